"""Solutions of experiments with unknowns of their own: counted by experiment, and by product."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Experiment, Model, Problem, Result
from odefit.result_data.notices import NoticeKind

TIMES = np.linspace(0.2, 6.0, 14)


@cache
def fitted(sd: Any) -> Result:
    """Two runs with two rates each that may change places; in the third, bounds forbid it."""
    random = np.random.default_rng(2)
    runs = []
    for name, a, b in (("A", 0.3, 1.5), ("B", 0.4, 2.0), ("C", 0.5, 3.5)):
        values = np.exp(-a * TIMES) + np.exp(-b * TIMES) + 0.02 * random.normal(size=14)
        runs.append(Experiment(name, {"t": TIMES, "y": values}, t0=0.0))
    rate = {"lower": 0.01, "upper": 9.0, "per_experiment": True}
    problem = Problem(
        Model(ode={"x": "-a*x", "z": "-b*z"}, observables={"y": "x + z"}),
        experiments=runs,
        parameters={"a": rate | {"upper": 2.3}, "b": rate},
        initial={"x": 1.0, "z": 1.0},
        noise={"y": {"sd": sd}},
    )
    return odefit.fit(problem, seed=1, jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("sd", [0.02, "estimate"])
def test_mirror_solutions_are_counted_by_experiment_and_by_product(sd: Any) -> None:
    result = fitted(sd)
    (notice,) = [n for n in result.notices if n.kind is NoticeKind.EQUAL_SOLUTIONS]
    assert notice.numbers["count"] == 4.0
    assert notice.groups == {"A": 2.0, "B": 2.0}
    assert set(notice.names) == {"a[A]", "b[A]", "a[B]", "b[B]"}
    words = " ".join(result.warnings)
    assert (
        "4 different solutions fit equally well (2 x 2: 2 of A, 2 of B, and any goes with any)"
        in words
    )
    complete = result.assessment.complete
    assert complete is not None
    assert (complete.possible, complete.real) == (8, 8)
    assert "8 solutions with the same outputs" in complete.sentence
    assert "4 within the bounds" in complete.sentence


def test_intervals_of_unknowns_that_change_places_say_so() -> None:
    notes = fitted(0.02).parameters["note"]
    for key in ("a[A]", "b[A]", "a[B]", "b[B]"):
        assert "solutions fit within the noise: " in notes[key]
    assert notes["a[C]"] == ""
