"""Local optimality: what is shown, and no more."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from odefit import Experiment, ForwardMap, Model, Problem, library
from odefit.assessment import Local
from odefit.assessment.local import OPTIMALITY_TOLERANCE, assess_local
from odefit.methods.estimate import Certificate
from odefit.simulation import Evaluation

TIMES = np.linspace(0.0, 5.0, 12)
NOISE = 0.1 * np.random.default_rng(7).normal(size=12)
DESIGN = np.column_stack([TIMES, np.ones(12)])


def line(noise: npt.NDArray[np.float64] = NOISE, **fields: Any) -> Problem:
    """x = a + b t."""
    return Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": 1 + 2 * TIMES + noise},
        {"b": fields},
        {"x": {}},
    )


def local(
    problem: Problem, vector: npt.NDArray[np.float64], certificate: Certificate | None = None
) -> Local:
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    return assess_local(forward, vector, evaluation, certificate)


def best(problem: Problem) -> npt.NDArray[np.float64]:
    y = problem.data()["x"].to_numpy()
    return np.asarray(np.linalg.lstsq(DESIGN, y, rcond=None)[0])


def test_the_solution_of_normal_equations_is_a_local_optimum() -> None:
    found = local(line(), best(line()))
    assert found.optimal
    assert found.gradient < OPTIMALITY_TOLERANCE
    assert found.sentence.startswith("A local optimum on the integrated trajectories")
    assert "not proved" in found.sentence


def certified(share: float, **fields: Any) -> Certificate:
    """A closed certificate whose lower bound falls short of the optimum by a share."""
    y = line().data()["x"].to_numpy()
    least = float(np.sum((DESIGN @ best(line()) - y) ** 2))
    lower = least * (1 - share)
    found = Certificate(lower, least, "continuous time", closed=True, rigorous=True)
    return replace(found, **fields)


UNPROVED = "Whether a better one exists elsewhere is not proved."


def test_a_certificate_in_continuous_time_reports_on_other_optima() -> None:
    sentence = local(line(), best(line()), certified(9.01e-4)).sentence
    assert UNPROVED not in sentence
    assert sentence.endswith(
        " No other values within the bounds of the unknowns have an objective lower by more than "
        "0.091%."
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"closed": False},
        {"scope": "discretised (trapezoid, M = 20)", "discretised": True},
        {"assumed": {"b": (5.0, 6.0)}},
    ],
)
def test_no_other_certificate_proves_it(fields: dict[str, Any]) -> None:
    assert local(line(), best(line()), certified(1e-3, **fields)).sentence.endswith(UNPROVED)


def test_the_answer_in_its_own_box_is_the_best() -> None:
    inside = certified(1e-3, assumed={"b": (0.0, 6.0)})
    assert UNPROVED not in local(line(), best(line()), inside).sentence


def test_the_difference_is_absolute_near_a_zero_optimum() -> None:
    found = certified(1.0, lower=0.0, negligible=1.0)
    sentence = local(line(), best(line()), found).sentence
    said = float(sentence.rsplit(" ", 1)[1].rstrip("."))
    assert said >= found.upper
    assert said == pytest.approx(found.upper, rel=0.1)


def test_a_point_that_is_not_an_optimum_is_not_called_the_best() -> None:
    sentence = local(line(), best(line()) + 0.1, certified(1e-3)).sentence
    assert sentence.startswith("Not a local optimum")
    assert "No other" not in sentence


@pytest.mark.parametrize("distance", [0.01, 0.5, 10.0])
def test_the_distance_is_in_standard_errors(distance: float) -> None:
    """A step along b alone, of so many conditional standard errors."""
    problem = line()
    vector = best(problem)
    residuals = DESIGN @ vector - problem.data()["x"].to_numpy()
    variance = residuals @ residuals / 10
    step = distance * math.sqrt(variance / (DESIGN[:, 0] @ DESIGN[:, 0]))
    found = local(problem, vector + np.array([step, 0.0]))
    assert not found.optimal
    # The residual variance there is a little larger.
    there = variance * (1 + distance**2 / 10)
    assert found.gradient == pytest.approx(distance * math.sqrt(variance / there), rel=1e-6)
    assert found.sentence.startswith("Not a local optimum")


def test_a_point_that_a_bound_holds_is_an_optimum() -> None:
    problem = line(upper=1.5)
    y = problem.data()["x"].to_numpy()
    at_bound = np.array([1.5, float(np.mean(y - 1.5 * TIMES))])
    assert local(problem, at_bound).optimal
    assert not local(line(upper=1.6), at_bound).optimal


def test_a_perfect_fit_is_called_one() -> None:
    found = local(line(0 * NOISE), np.array([2.0, 1.0]))
    assert found.optimal
    assert "reproduces the data to rounding" in found.sentence
    assert "others may fit as well" in found.sentence


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e6])
def test_a_perfect_fit_is_called_one_where_noise_is_estimated(unit: float) -> None:
    data = {"t": TIMES, "x": unit * (1 + 2 * TIMES)}
    given = Problem(
        Model(ode={"x": "b"}), data, {"b": {}}, {"x": {}}, noise={"x": {"sd": "estimate"}}
    )
    rounding = 1e-16 * unit
    found = local(given, np.array([2 * unit, unit, rounding]))
    assert found.optimal
    assert "reproduces the data to rounding" in found.sentence
    assert "estimated noise is the size of the errors of rounding" in found.sentence
    wrong = local(given, np.array([2.001 * unit, unit, 1e-3 * unit]))
    assert not wrong.optimal
    assert "rounding" not in wrong.sentence


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e6])
def test_a_rate_that_reproduces_zeros_is_one_of_many_answers(unit: float) -> None:
    """From x(0) = 10 to zero, x' = -k x has to be fast, and all that is fast is the same."""
    given = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES[1:], "x": np.zeros(11)},
        {"k": {}},
        {"x": 10 * unit},
        t0=0.0,
    )
    for k in (80.0, 300.0):
        found = local(given, np.array([k]))
        assert found.optimal
        assert "one of many answers" in found.sentence
    assert not local(given, np.array([3.0])).optimal


def test_a_flat_direction_has_no_curvature() -> None:
    problem = Problem(
        Model(ode={"x": "a*b"}),
        {"t": TIMES, "x": 1 + 2 * TIMES + NOISE},
        {"a": {}, "b": {}},
        {"x": {}},
    )
    assert local(problem, np.array([1.0, 2.0, 1.0])).curvature < 1e-8
    assert local(line(), best(line())).curvature > 0.1


def test_a_scale_of_log10_does_not_change_the_distance() -> None:
    at = np.array([1.9, 1.0])
    plain, log = (local(line(scale=s), at) for s in ("linear", "log10"))
    assert log.gradient == pytest.approx(plain.gradient, rel=1e-6)


def test_residuals_of_the_size_of_the_unknowns_last_digit_are_an_optimum() -> None:
    """Bock's example, where errors grow by exp(20): no value of p has residuals below 1e-8."""
    pytest.importorskip("heyoka")
    problem = library.load("bock")
    vector = np.array([math.pi])
    forward = ForwardMap(problem)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    found = local(problem, vector)
    assert found.gradient > OPTIMALITY_TOLERANCE
    assert found.optimal
    assert "reproduces the data to rounding" in found.sentence
    assert not local(problem, np.array([math.pi * (1 + 1e-12)])).optimal


def test_steps_below_the_accuracy_of_the_integration_do_not_count() -> None:
    """Noise of 1e-6 of the data, and an implicit engine that is accurate to 1e-9 of them."""
    problem = line(1e-4 * NOISE)
    forward = ForwardMap(problem, "bdf")
    vector = best(problem)

    def assessed(error: float) -> Local:
        at = vector + np.array([error, 0.0])
        evaluation = forward.evaluate(at)
        assert isinstance(evaluation, Evaluation)
        return assess_local(forward, at, evaluation)

    found = assessed(3e-8)
    assert found.gradient > OPTIMALITY_TOLERANCE
    assert found.optimal
    assert "as far as their accuracy shows" in found.sentence
    assert not assessed(1e-6).optimal


@pytest.mark.slow
@pytest.mark.parametrize(("lag", "optimal"), [(0.0, True), (0.2, False)])
def test_an_exponent_that_could_grow_without_end_leaves_an_optimum(
    lag: float, optimal: bool
) -> None:
    """Inputs lie far on both sides of K, so that the exponent n hardly acts any more from 12 on.

    Where v, which the data determine, is off its optimum by some errors, there is none.
    """
    ode = {"y": "v*u^n/(1 + u^n) - y", "u": "0"}
    model = Model(ode=ode, observables={"y": "y"})
    high, low = 1 - np.exp(-TIMES), np.zeros(12)
    runs = [
        Experiment(f"u = {u}", {"t": TIMES, "y": plateau + NOISE}, initial={"u": u, "y": 0.0})
        for u, plateau in ((0.1, low), (10.0, high))
    ]
    given = Problem(
        model, experiments=runs, parameters={"v": {}, "n": {}}, noise={"y": {"sd": 0.1}}
    )
    v = 1 + float(high @ NOISE / (high @ high))
    found = local(given, np.array([v + lag, 12.0]))
    assert found.optimal is optimal


def test_the_lowest_point_of_a_kink_is_an_optimum_and_no_other_point_of_it_is() -> None:
    """The slope of max(k, 3 - 2 k) jumps at k = 1, where data that want less are fitted best."""
    data = {"t": TIMES, "x": 0.9 * TIMES + NOISE, "y": 2.0 * TIMES - NOISE}
    model = Model(ode={"x": "max(k, 3 - 2*k)", "y": "m"}, observables={"x": "x", "y": "y"})
    noise = {"x": {"sd": 0.1}, "y": {"sd": 0.1}}
    start = {"x": 0.0, "y": 0.0}
    given = Problem(model, data, {"k": {}, "m": {}}, start, noise=noise)
    m = float(TIMES @ data["y"] / (TIMES @ TIMES))
    assert "at a kink" in local(given, np.array([1.0, m])).sentence
    assert local(given, np.array([1.0, m])).optimal
    for k, off in ((1.0, 0.01), (1.001, 0.0), (0.999, 0.0)):
        assert not local(given, np.array([k, m + off])).optimal
