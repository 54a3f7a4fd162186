"""Penalised differences: the closed form of the likelihood, and what its uncertainty adds."""

import math

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.assessment.intervals.penalised_differences import (
    Differences,
    differences_of,
    smoothness_rows,
)
from odefit.common.arrays import Array
from odefit.simulation import Evaluation, ForwardMap

TIMES = np.linspace(0.0, 6.0, 13)


def problem(smooth: str = "reml", sd: float = 0.7) -> Problem:
    """A function of time that is measured through its integral."""
    table = {"estimate": "linear", "knots": 5, "smooth": smooth, "sd": sd, "guess": 1.0}
    model = Model(ode={"x": "u"}, observables={"y": "x"}, inputs={"u": table})
    y = 2.0 * np.sin(TIMES) + 0.1 * np.cos(17 * TIMES)
    noise = {"y": {"sd": 0.1}}
    return Problem(model, data={"t": TIMES, "y": y}, initial={"x": 0.0}, noise=noise)


def evaluated(p: Problem, vector: Array) -> Evaluation:
    found = ForwardMap(p).evaluate(vector)
    assert isinstance(found, Evaluation)
    return found


def fitted(p: Problem) -> tuple[Array, Evaluation]:
    """The fit of a linear problem: one step from zero."""
    at_zero = evaluated(p, np.zeros(len(p.unknowns)))
    vector: Array = np.asarray(-np.linalg.pinv(at_zero.jacobian) @ at_zero.residuals)
    return vector, evaluated(p, vector)


def differences(p: Problem) -> Differences:
    vector, evaluation = fitted(p)
    expansion = p.given.unknown_functions["u"]
    found = differences_of(p, vector, evaluation.information, "u", expansion)
    assert found is not None
    return found


def log_likelihood(p: Problem, log_sds: Array) -> float:
    """The likelihood with all unknowns integrated out, from the rows of the data alone."""
    evaluation = evaluated(p, np.zeros(len(p.unknowns)))
    rows, residuals = evaluation.jacobian[: p.size], evaluation.residuals[: p.size]
    penalty = np.zeros(rows.shape[1])
    penalty[[p.keys.index(k) for k in p.given.unknown_functions["u"].penalised]] = np.exp(
        -2 * log_sds
    )
    hessian = rows.T @ rows + np.diag(penalty)
    best = -np.linalg.solve(hessian, rows.T @ residuals)
    cost = np.sum((residuals + rows @ best) ** 2) + best @ (penalty * best)
    return -0.5 * float(cost + np.linalg.slogdet(hessian)[1]) - float(log_sds.sum())


@pytest.mark.slow
def test_the_likelihood_of_other_standard_deviations_is_that_of_new_fits() -> None:
    p = problem()
    found = differences(p)
    old = found.logarithms
    for new in (old + 1.0, old - 2.0, old + np.array([-1.0, 0.5, 2.0])):
        difference = found.likelihood(new)[0] - found.likelihood(old)[0]
        exact = log_likelihood(p, new) - log_likelihood(p, old)
        assert difference == pytest.approx(exact, abs=1e-4)


def test_the_estimate_moves_as_a_new_fit_does() -> None:
    found = differences(problem())
    _, covariance, shift = found.likelihood(found.logarithms + math.log(0.5))
    vector, evaluation = fitted(problem(sd=0.35))
    assert vector[found.places] == pytest.approx(found.values + shift, abs=1e-5)
    inverse = np.linalg.inv(evaluation.information.T @ evaluation.information)
    expected = inverse[np.ix_(found.places, found.places)]
    assert covariance == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_the_covariance_grows_to_that_of_a_mixture_over_a_fine_grid() -> None:
    p = problem()
    found = differences(p)
    grid = np.arange(-3.0, 5.0, 0.05)
    points = [found.likelihood(np.full(3, level)) for level in grid]
    weights = np.exp(np.array([w for w, _, _ in points]) - max(w for w, _, _ in points))
    weights /= weights.sum()
    mixed = sum(w * (c + np.outer(d, d)) for w, (_, c, d) in zip(weights, points, strict=True))
    added = found.spread()
    known = found.likelihood(found.logarithms)[1]
    assert np.diag(known + added) == pytest.approx(np.diag(mixed), rel=0.02)
    assert (np.linalg.eigvalsh(added) > -1e-12).all()


def test_unknowns_that_move_with_the_differences_get_their_part() -> None:
    p = problem()
    vector, evaluation = fitted(p)
    rows = smoothness_rows(p, vector, evaluation.information)
    found = differences(p)
    added = rows.T @ rows
    assert added[np.ix_(found.places, found.places)] == pytest.approx(found.spread(), rel=1e-6)
    other = fitted(problem(sd=0.35))[0]
    shift = found.likelihood(found.logarithms + math.log(0.5))[2]
    assert found.others @ shift == pytest.approx(other - vector, abs=1e-5)


@pytest.mark.parametrize("smooth", ["none", "cv"])
def test_a_smoothness_that_the_likelihood_did_not_choose_adds_nothing(smooth: str) -> None:
    p = problem(smooth)
    vector, evaluation = fitted(p)
    assert smoothness_rows(p, vector, evaluation.information).shape == (0, len(vector))


def test_an_adaptive_smoothness_has_a_level_and_a_tilt() -> None:
    found = differences(problem("adaptive"))
    assert found.along == pytest.approx([-2 / 4, 0.0, 2 / 4])
    assert found.coordinates() == pytest.approx((math.log(0.7), 0.0))
    level, tilt = found.best(0.5)
    assert max(abs(level - math.log(0.7)), abs(tilt)) <= 0.5 + 1e-9
    assert found.weight(level, tilt)[0] >= found.weight(math.log(0.7), 0.0)[0]
