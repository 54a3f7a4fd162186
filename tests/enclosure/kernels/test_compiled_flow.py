"""Compiled enclosures, against exact solutions to forty digits and against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Problem
from odefit.enclosure import Enclosure
from odefit.enclosure.kernels.flow import CompiledFlow
from odefit.simulation.engines.cut_off import WorkLimit, counting
from tests.enclosure.containment import box, checked
from tests.enclosure.solutions import CASES, holds, observed
from tests.enclosure.test_continuous import eventful, with_input

TIMES = [0.5, 1.0, 2.0, 4.0, 8.0]


def oscillating() -> Problem:
    """The van der Pol equations."""
    rates = {"x": "y", "y": "m*(1 - x^2)*y - k*x"}
    return observed(rates, TIMES, {"x": 2.0, "y": 0.0}, ["m", "k"])


def predator() -> Problem:
    """A predator that saturates: quotients of polynomials."""
    rates = {"x": "r*x*(1 - x/4) - a*x*y/(1 + h*x)", "y": "a*x*y/(2 + 2*h*x) - y/2"}
    return observed(rates, TIMES, {"x": 1.0, "y": 0.5}, ["r", "a", "h"])


def triangular() -> Problem:
    """A state that may be lost, and one that does not depend on it."""
    return observed({"y": "x - k*y^3 + y^2", "x": "-m*x"}, TIMES, {"y": {}, "x": 1.0}, ["k", "m"])


PROBLEMS = {"oscillating": oscillating, "predator": predator, "triangular": triangular}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_exact_solutions_lie_in_the_enclosures(case: str) -> None:
    problem, vector, solution, widest = CASES[case]
    enclosure = Enclosure(problem).compiled
    for relative in (0.0, 1e-2, widest):
        found = holds(problem, enclosure, *box(vector, relative), solution, count=2)
        assert np.isfinite(found.remainder).all()


@pytest.mark.parametrize("order", [1, 2, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_enclosures_hold_at_every_order_and_degree(degree: int, order: int) -> None:
    for case in ("logistic", "a quotient", "the time itself"):
        problem, vector, solution, _ = CASES[case]
        enclosure = Enclosure(problem, degree, order).compiled
        holds(problem, enclosure, *box(vector, 0.05), solution, count=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("width", [1e-6, 0.02, 0.2, 2.0])
def test_the_compiled_flow_gives_the_bounds_of_numpy(name: str, width: float) -> None:
    """Boxes that are enclosed to the end, lost on the way, and lost at once."""
    problem = PROBLEMS[name]()
    rng = np.random.default_rng(3)
    lower = 10 ** rng.uniform(-0.7, 0.7, (24, len(problem.unknowns)))
    enclosure = Enclosure(problem)
    slow, fast = (
        enclosure(lower, lower * (1 + width)),
        enclosure.compiled(lower, lower * (1 + width)),
    )
    known = np.isfinite(slow.remainder)
    np.testing.assert_array_equal(known, np.isfinite(fast.remainder))
    assert width > 0.02 or known.any()
    np.testing.assert_allclose(fast.remainder[known], slow.remainder[known], rtol=1e-6, atol=1e-12)
    size = np.abs(slow.c).sum(axis=1)[known]
    distance = np.abs(fast.c - slow.c).sum(axis=1)[known]
    assert (distance <= 1e-9 * size + 1e-3 * slow.remainder[known]).all()


def test_the_compiled_flow_leaves_functions_to_numpy() -> None:
    smooth, steep = Enclosure(oscillating()).compiled, Enclosure(CASES["exp"].problem).compiled
    assert isinstance(smooth._conditions[0].flow, CompiledFlow)
    assert not isinstance(steep._conditions[0].flow, CompiledFlow)


@pytest.mark.parametrize("interpolation", ["linear", "constant", "cubic"])
def test_inputs_and_time_are_enclosed(interpolation: str) -> None:
    problem, vector = with_input(interpolation, "k*u*(1 - x*u)/(3 + t)")
    for relative in (0.0, 0.05):
        checked(problem, *box(vector, relative), Enclosure(problem).compiled, count=5)


@pytest.mark.slow
def test_events_change_the_equations() -> None:
    problem, vector = eventful()
    for relative in (0.0, 1e-2):
        found = checked(problem, *box(vector, relative), Enclosure(problem).compiled, count=5)
        assert np.isfinite(found.remainder).all()


@pytest.mark.slow
def test_compiled_work_is_counted() -> None:
    """The same for the same boxes, and less than that of NumPy."""
    enclosure = Enclosure(oscillating())
    lower = np.full((32, 2), 0.9)
    spent = []
    for each in (enclosure, enclosure.compiled, enclosure.compiled):
        work = WorkLimit(np.inf)
        with counting(work):
            each(lower, lower + 0.05)
        spent.append(work.spent)
    assert 0 < spent[1] == spent[2] < spent[0]
