"""The deviance has the limits that make intervals of linear models exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from odefit import Control, ForwardMap, Model, Problem, SingleShooting
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.common.arrays import Array
from odefit.simulation import Evaluation

TIMES = np.linspace(0.0, 5.0, 8)
VALUES = 1 + 2 * TIMES + 0.3 * np.random.default_rng(3).normal(size=8)
DESIGN = np.column_stack([TIMES, np.ones(8)])


def line(**more: Any) -> Problem:
    """x = a + b t: linear regression."""
    data = {"t": TIMES, "x": more.pop("y", VALUES)}
    slope = {"guess": 1.0, **more.pop("b", {})}
    return Problem(Model(ode={"x": "b"}), data, {"b": slope}, {"x": {"guess": 0.0}}, **more)


def fitted(problem: Problem) -> tuple[ForwardMap, Array, Evaluation]:
    forward = ForwardMap(problem)
    (start,) = SingleShooting().solve(problem, Control()).starts
    evaluation = forward.evaluate(start.vector)
    assert isinstance(evaluation, Evaluation)
    return forward, start.vector, evaluation


def lowest_squares(slope: float) -> float:
    """The sum of squares with the best intercept."""
    rest = VALUES - slope * TIMES
    return float(np.sum((rest - rest.mean()) ** 2))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_plain_least_squares_has_the_interval_of_linear_regression(level: float) -> None:
    forward, vector, evaluation = fitted(line())
    deviance = Deviance.of(forward, vector, evaluation)
    textbook = stats.linregress(TIMES, VALUES)
    end = textbook.slope + stats.t(6).ppf(0.5 + level / 2) * textbook.stderr
    at_end = deviance.at(0.5 * lowest_squares(end))
    assert at_end == pytest.approx(deviance.limit(level), rel=1e-6)
    assert deviance.at(evaluation.cost) == 0.0
    assert deviance.degrees == 6


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_noise_that_is_estimated_has_the_same_interval(level: float) -> None:
    forward, vector, evaluation = fitted(line(noise={"x": {"sd": "estimate"}}))
    deviance = Deviance.of(forward, vector, evaluation)
    assert deviance.degrees == pytest.approx(6)
    textbook = stats.linregress(TIMES, VALUES)
    end = textbook.slope + stats.t(6).ppf(0.5 + level / 2) * textbook.stderr
    squares = lowest_squares(end)
    sd = math.sqrt(squares / 8)
    at_end = deviance.at(0.5 * squares / sd**2 + 8 * math.log(sd))
    assert at_end == pytest.approx(deviance.limit(level), rel=1e-6)


def test_noise_that_is_given_has_the_normal_distribution() -> None:
    forward, vector, evaluation = fitted(line(noise={"x": {"sd": 0.3}}))
    deviance = Deviance.of(forward, vector, evaluation)
    covariance = 0.09 * np.linalg.inv(DESIGN.T @ DESIGN)
    end = vector[0] + stats.norm.ppf(0.975) * math.sqrt(covariance[0, 0])
    at_end = deviance.at(0.5 * lowest_squares(end) / 0.09)
    assert at_end == pytest.approx(deviance.limit(0.95), rel=1e-6)
    assert deviance.limit(0.95) == pytest.approx(stats.norm.ppf(0.975) ** 2)


@pytest.mark.parametrize("noise", [None, {"x": {"sd": 0.3}}, {"x": {"sd": "estimate"}}])
def test_the_root_of_the_limit_is_the_quantile_of_the_linear_interval(noise: Any) -> None:
    deviance = Deviance.of(*fitted(line(noise=noise)))
    quantile = stats.norm.ppf(0.975) if noise == {"x": {"sd": 0.3}} else stats.t(6).ppf(0.975)
    assert deviance.root(deviance.limit(0.95)) == pytest.approx(quantile, rel=1e-6)


def test_limits_with_many_measurements_are_those_of_chi_square() -> None:
    expected = stats.chi2(1).ppf(0.95)
    assert Deviance(0.0, 1.0, 1e6, 0).limit(0.95) == pytest.approx(expected, rel=1e-4)
    assert Deviance(0.0, 1.0, 1e6, 10**6).limit(0.95) == pytest.approx(expected, rel=1e-4)


def test_an_unknown_at_a_bound_takes_no_degree_of_freedom() -> None:
    problem = line(b={"upper": 1.5})
    deviance = Deviance.of(*fitted(problem))
    assert deviance.degrees == 7


def test_as_many_unknowns_as_measurements_leave_no_limit() -> None:
    assert math.isnan(Deviance(1.0, math.nan, 0.0, 0).limit(0.95))


def test_data_without_noise_have_no_variance() -> None:
    forward, vector, evaluation = fitted(line(y=1 + 2 * TIMES))
    deviance = Deviance.of(forward, vector, evaluation)
    assert deviance.variance == 0.0
    assert deviance.at(evaluation.cost + 1e-6) == math.inf


def test_a_cost_and_its_deviance_belong_together() -> None:
    deviance = Deviance(3.0, 0.25, 10.0, 0)
    assert deviance.at(deviance.cost(4.2)) == pytest.approx(4.2)


def test_the_variance_is_that_of_the_standard_errors() -> None:
    forward, vector, evaluation = fitted(line())
    found = assess_uncertainty(forward, vector, evaluation)
    assert Deviance.of(forward, vector, evaluation).variance == pytest.approx(found.variance)
