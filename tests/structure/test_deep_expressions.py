"""Expressions that are nested deeply: their analysis ends after counted work, and says so."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

import pytest

from odefit import Model, Problem
from odefit.reporting.description import COUNT_WORK, STRUCTURE_WORK
from odefit.structure.identifiability import analysed
from odefit.structure.series.deadline import Deadline

MOST_SECONDS = 10.0
"""Seconds of the processor, for a loaded machine.

Each tower took 0.6 to 3.2, and 10 to 40 before the count had a limit of its own."""

STEPS: Mapping[str, Callable[[str], str]] = {
    "squares": lambda e: f"({e} + k)^2",
    "exponentials": lambda e: f"exp(-k*{e})",
    "sines": lambda e: f"sin(k*{e})",
    "hyperbolic tangents": lambda e: f"tanh(k + {e})",
    "fractions": lambda e: f"k/(1 + {e})",
    "fractions of states": lambda e: f"x/(k + {e})",
    "powers": lambda e: f"(1 + {e})^k",
    "cubes": lambda e: f"(k - {e})^3",
    "arcs": lambda e: f"atan(k*{e})",
    "mixed": lambda e: f"tanh(exp(-k*sin({e})))",
}
"""One more level around an expression, by the name of the family."""


def problem_of(rate: str) -> Problem:
    """Return a problem with one state of this rate, and one unknown."""
    model = Model(ode={"x": rate}, observables={"y": "x"})
    data = {"t": [0.0, 1.0, 2.0], "y": [0.1, 0.2, 0.3]}
    return Problem(model, data, {"k": {"lower": 0.01, "upper": 1.0}}, {"x": 0.1})


def tower(family: str, depth: int) -> str:
    """Return an expression of so many levels."""
    text = "x"
    for _ in range(depth):
        text = STEPS[family](text)
    return text


@pytest.mark.parametrize(
    "family",
    ["squares", *(pytest.param(f, marks=pytest.mark.slow) for f in STEPS if f != "squares")],
)
def test_a_tower_of_functions_is_given_up_after_little_work(family: str) -> None:
    seed = f"38 {family}"
    depth = random.Random(seed).randrange(24, 32)
    problem = problem_of(tower(family, depth))
    deadline, began = Deadline(work=STRUCTURE_WORK), time.process_time()
    found = analysed(problem, deadline, count_work=COUNT_WORK)
    spent = time.process_time() - began
    assert spent < MOST_SECONDS, f"seed {seed}, {depth} levels: {spent:.1f} s"
    assert found["k"].identifiable
    if found.solutions is None:
        assert found.unfinished
        assert "was not decided within the limit" in found.sentence


def test_the_count_has_a_separate_limit() -> None:
    problem = problem_of("-k*x/(1 + k*x)")
    whole = analysed(problem, Deadline(work=STRUCTURE_WORK), count_work=COUNT_WORK)
    assert whole["k"].status == "globally"
    without = analysed(problem, Deadline(work=STRUCTURE_WORK), count_work=0.0)
    assert without["k"].status == "locally"
    assert without.solutions is None
    assert without.unfinished


def test_a_limit_is_never_widened() -> None:
    deadline = Deadline(work=100.0)
    deadline.spend(10.0)
    deadline.narrow(1000.0)
    deadline.spend(89.0)
    assert not deadline.passed
    deadline.narrow(0.5)
    deadline.spend(0.5)
    assert deadline.passed
