"""Enclosed solutions against exact ones, known to forty digits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from odefit import Problem
from odefit.enclosure import Enclosure, affine_maps, flow, taylor_step
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.flow import Flow, StepControl
from odefit.enclosure.residuals import variables
from odefit.enclosure.state_enclosure import StateEnclosure
from odefit.enclosure.system import System
from odefit.enclosure.taylor_step import StepMethod, dependent
from tests.enclosure.containment import box, sane
from tests.enclosure.solutions import CASES, Solution, decay, holds, number, observed, oscillator


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many steps as it takes."""
    monkeypatch.setattr(flow, "MAX_STEPS", 100_000)
    monkeypatch.setattr(flow, "MAX_UNCONFIRMED", 100)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "degree", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 3))]
)
def test_exact_solutions_lie_in_the_enclosures(case: str, degree: int) -> None:
    problem, vector, solution, widest = CASES[case]
    enclosure = Enclosure(problem, degree)
    for relative in ((0.0, 1e-9)[degree % 2], 1e-2, widest):
        found = holds(problem, enclosure, *box(vector, relative), solution, count=2)
        assert np.isfinite(found.remainder).all() or (degree < 2 and relative == widest)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("order", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_enclosures_hold_at_every_order_in_time(case: str, order: int) -> None:
    problem, vector, solution, _ = CASES[case]
    holds(problem, Enclosure(problem, 2, order), *box(vector, 0.05), solution, count=2)


@pytest.mark.parametrize("case", CASES)
def test_points_are_enclosed_to_rounding(case: str) -> None:
    problem, vector, solution, widest = CASES[case]
    found = holds(problem, Enclosure(problem, 1, 24), *box(vector, 0.0), solution, count=2)
    # Functions are computed with a few more roundings than sums and products.
    assert found.remainder.max() < (3e-12 if widest > 0.1 else 3e-11)


@pytest.mark.parametrize("factor", [2.0**-10, 2.0**10])
def test_the_unit_of_time_changes_nothing(factor: float) -> None:
    """Steps are as accurate, to the last digit: powers of two are not rounded."""
    found = []
    for unit in (1.0, factor):
        times = [0.5 * unit, 1.0 * unit, 3.0 * unit]
        problem = observed({"x": "r*x*(1 - x)"}, times, {"x": 0.2}, ["r"], 0.0)
        lower, upper = np.array([[2.0], [1.5]]) / unit, np.array([[2.0], [1.6]]) / unit
        found.append(Enclosure(problem)(lower, upper))
    np.testing.assert_allclose(found[0].c, found[1].c, rtol=1e-12)
    np.testing.assert_allclose(found[0].remainder, found[1].remainder, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_remainder_is_of_the_next_degree(case: str) -> None:
    problem, vector, *_ = CASES[case]
    for degree in (1, 2):
        enclosure = Enclosure(problem, degree, 20)
        wide, narrow = (enclosure(*box(vector, r)).remainder.max() for r in (4e-3, 1e-3))
        assert wide / narrow > 0.8 * 4 ** (degree + 1)


@pytest.mark.parametrize("k", [1e2, 1e4, 1e5])
@pytest.mark.usefixtures("patient")
def test_stiff_decay_is_enclosed(k: float) -> None:
    problem = observed({"x": "-k*x"}, [0.0, 1e-3, 5e-3], {"x": {}}, ["k"])
    found = holds(problem, Enclosure(problem), *box(np.array([k, 1.0]), 1e-3), decay)
    assert np.isfinite(found.remainder).all()


@pytest.mark.usefixtures("patient")
def test_decay_below_the_smallest_number() -> None:
    problem = observed({"x": "-k*x"}, [0.0, 200.0, 600.0], {"x": {}}, ["k"])
    found = holds(problem, Enclosure(problem), *box(np.array([1.5, 1.0]), 0.0), decay)
    assert (found.remainder > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("t0", [0.0, -7.3, 1e6, 1e12])
@pytest.mark.usefixtures("patient")
def test_no_time_is_lost_in_many_steps(t0: float) -> None:
    """Times are floating-point numbers; the steps between them add up to all of it."""
    times = [t0 + 0.1, t0 + 0.3]
    problem = observed(
        {"x": "k", "y": "-500*y", "z": "t"}, times, {"x": {}, "y": 1.0, "z": 0.0}, ["k"], t0
    )
    start = Fraction(t0)

    def moved(t: Any, v: Sequence[Any]) -> Sequence[Any]:
        passed = t - number(start)
        square = (t * t - number(start * start)) / 2
        return [v[1] + v[0] * passed, mpmath.exp(-500 * passed), square]

    found = holds(problem, Enclosure(problem), *box(np.array([1.1, 0.5]), 0.0), moved)
    assert found.remainder[:2].max() < 1e-8


def test_the_shortest_time_spans_are_integrated() -> None:
    t = [1.0]
    for _ in range(3):
        t.append(float(np.nextafter(t[-1], 2.0)))
    problem = observed({"x": "k", "y": "-1e17*y"}, t, {"x": {}, "y": 1.0}, ["k"], 1.0)

    def moved(t: Any, v: Sequence[Any]) -> Sequence[Any]:
        return [v[1] + v[0] * (t - 1), mpmath.exp(-(mpmath.mpf(10) ** 17) * (t - 1))]

    holds(problem, Enclosure(problem), *box(np.array([1.1, 0.5]), 1e-9), moved)


def blowing_up() -> tuple[Problem, Solution]:
    def pole(t: Any, v: Sequence[Any]) -> Sequence[Any]:
        return [v[0] / (1 - v[0] * t)]

    return observed({"x": "x^2"}, [0.5, 0.99, 1.5], {"x": {}}, []), pole


def test_a_solution_that_explodes_is_not_bounded() -> None:
    problem, _ = blowing_up()
    enclosure = Enclosure(problem)
    found = enclosure(np.array([[0.5], [0.9], [0.9]]), np.array([[0.6], [1.1], [1.8]]))
    sane(found)
    assert np.isfinite(found.remainder[:, 0]).all()
    assert np.isfinite(found.remainder[0, 1])
    assert np.isinf(found.remainder[2, 1:]).all()


def test_a_solution_is_followed_up_to_a_pole() -> None:
    problem, pole = blowing_up()
    problem = observed({"x": "x^2"}, [0.5, 0.9, 0.99], {"x": {}}, [])
    for lower, upper in ([0.2, 0.3], [0.9, 1.0], [1.0, 1.0], [-2.0, -1.0]):
        holds(problem, Enclosure(problem), np.array([[lower]]), np.array([[upper]]), pole)


def test_a_denominator_with_a_zero_in_it() -> None:
    problem = observed({"x": "1/(x - k)"}, [0.0, 0.5, 1.0], {"x": {}}, ["k"])
    enclosure = Enclosure(problem)
    found = enclosure(np.array([[0.5, 0.9], [0.5, 2.0]]), np.array([[1.0, 1.1], [1.0, 2.1]]))
    sane(found)
    assert np.isfinite(found.remainder[0]).all()
    assert np.isinf(found.remainder[1:, 0]).all()
    assert np.isfinite(found.remainder[:, 1]).all()


@pytest.mark.parametrize("tries", [1, 2, 4])
@pytest.mark.parametrize("upper", [0.35, 1.0, 1.1])
def test_a_deviation_larger_than_guessed_is_not_trusted(
    tries: int, upper: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one step to where the largest of 0.3 to 1.1 is at 110: a guess that fails is no bound."""
    monkeypatch.setattr(taylor_step, "MAX_GUESSES", tries)
    monkeypatch.setattr(flow, "SHORTEST_STEP", 1.0)
    problem = observed({"x": "x^2"}, [0.9], {"x": {}}, [])
    one, monomials = System(problem, problem.conditions[0]), Monomials.of(1, 0)
    model = variables(monomials, np.array([[0.3]]), np.array([[upper]]))[0]
    start = StateEnclosure.of([model])
    control = StepControl(np.full(1, 0.9), np.zeros(1), np.ones(1))
    far = Flow(StepMethod(one, monomials, 40, np.ones(1), 1.5))
    with np.errstate(all="ignore"):
        found = far.advance(start, {one.unknowns[0]: model}, 0.0, 0.9, control)
    largest = upper / (1 - 0.9 * upper)
    assert largest <= found.c[0, 0, 0] + found.error.sizes[0, 0]
    assert np.isfinite(found.error.sizes[0, 0]) == (upper == 0.35 and tries > 1)


@pytest.mark.usefixtures("patient")
def test_a_hundred_rotations_of_a_point() -> None:
    problem = observed({"x": "w*y", "y": "-w*x"}, [600.0], {"x": {}, "y": 0.0}, ["w"])
    enclosure = Enclosure(problem, 1, 24)
    found = holds(problem, enclosure, *box(np.array([1.0, 1.0]), 0.0), oscillator)
    assert found.remainder.max() < 1e-9


@pytest.mark.slow
def test_boxes_have_steps_of_their_own() -> None:
    """What a box gets does not depend on the boxes that come with it."""
    problem, vector, *_ = CASES["a quotient"]
    enclosure = Enclosure(problem)
    rng = np.random.default_rng(0)
    middle = vector * rng.uniform(0.5, 2, (7, 2))
    radius = 10.0 ** rng.uniform(-6, -1, (7, 1))
    lower, upper = middle * (1 - radius), middle * (1 + radius)
    together = enclosure(lower, upper)
    for b in range(7):
        alone = enclosure(lower[b : b + 1], upper[b : b + 1])
        np.testing.assert_allclose(alone.c[:, :, 0], together.c[:, :, b], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(
            alone.remainder[:, 0], together.remainder[:, b], rtol=1e-3, atol=1e-15
        )


@pytest.mark.parametrize("unbounded", [np.inf, np.nan, 1.7e308])
def test_boxes_without_bounds(unbounded: float) -> None:
    problem, vector, *_ = CASES["decay"]
    lower, upper = box(vector, 0.1)
    upper[0, 0] = unbounded
    found = Enclosure(problem)(lower, upper)
    sane(found)
    assert np.isinf(found.remainder[1:]).all()


def test_residuals_that_take_too_many_steps_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MAX_STEPS", 30)
    monkeypatch.setattr(affine_maps, "STIFF_RATE", np.inf)
    problem = observed({"x": "w*y", "y": "-w*x"}, [1.0, 100.0], {"x": {}, "y": 0.0}, ["w"])
    found = holds(problem, Enclosure(problem), *box(np.array([1.0, 1.0]), 1e-3), oscillator)
    assert np.isfinite(found.remainder[[0, 2]]).all()
    assert np.isinf(found.remainder[[1, 3]]).all()


def test_quantities_that_depend_on_a_lost_state_are_lost() -> None:
    reach = np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]])
    lost = np.array([[True, False, False], [False, True, False], [False, False, False]])
    expected = [[True, True, False], [False, True, False], [False, False, False]]
    assert dependent(lost, reach).tolist() == expected
