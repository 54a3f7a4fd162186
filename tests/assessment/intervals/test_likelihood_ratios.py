"""Likelihood ratios of nested models have the distributions of theory and of other simulations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import chdtrc

from odefit import Control, ForwardMap, Model, Problem, SingleShooting
from odefit.assessment.intervals.likelihood_ratios import RatioTest, TestKind, f_test, ratio_test
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.assessment.profiles.noise_limits import limits_by_unknown
from odefit.common.arrays import Array
from odefit.simulation import Evaluation

RANDOM = np.random.default_rng(8)
TIMES = np.linspace(0.0, 5.0, 8)
VALUES = 1 + 0.2 * TIMES + 0.3 * RANDOM.normal(size=8)
COUNT = 5
"""Values of each of two methods that measure the same."""


def solved(problem: Problem) -> tuple[ForwardMap, Array, Evaluation]:
    forward = ForwardMap(problem)
    (start,) = SingleShooting(evaluations=300).solve(problem, Control()).starts
    evaluation = forward.evaluate(start.vector)
    assert isinstance(evaluation, Evaluation)
    return forward, start.vector, evaluation


def line(noise: dict[str, object]) -> Problem:
    return Problem(
        Model(ode={"x": "b"}),
        {"t": TIMES, "x": VALUES},
        {"b": {"guess": 1.0}},
        {"x": {"guess": 0.0}},
        noise={"x": noise},
    )


def two_methods() -> Problem:
    """One mean, measured by two methods with standard deviations of their own."""
    return Problem(
        Model(ode={"m": "0"}, observables={"y": "m", "z": "m"}),
        {
            "t": np.arange(float(COUNT)),
            "y": 3 + RANDOM.normal(0, 1.0, COUNT),
            "z": 3 + RANDOM.normal(0, 1.0, COUNT),
        },
        initial={"m": {"guess": 3.0}},
        noise={"y": {"sd": "estimate"}, "z": {"sd": "estimate"}},
    )


def test_one_estimated_standard_deviation_has_the_f_test_of_regression() -> None:
    problem = line({"sd": "estimate"})
    _, vector, _ = solved(problem)
    textbook = stats.linregress(TIMES, VALUES)
    left = float(np.sum((VALUES - textbook.intercept - textbook.slope * TIMES) ** 2))
    statistic = 8 * np.log(np.sum((VALUES - VALUES.mean()) ** 2) / left)
    found = ratio_test(problem, vector, (0,), 1, statistic)
    assert found.kind is TestKind.F
    assert found.p == pytest.approx(textbook.pvalue, rel=1e-6)


def test_noise_that_is_given_has_the_chi_square_test() -> None:
    problem = line({"sd": 0.3})
    _, vector, _ = solved(problem)
    found = ratio_test(problem, vector, (0,), 2, 5.0)
    assert found == RatioTest(TestKind.CHI_SQUARE, 5.0, float(chdtrc(2, 5.0)))


def test_too_few_values_have_no_f_test() -> None:
    assert f_test(3.0, 8, 0.0, 1) is None
    assert f_test(3.0, 0, 5.0, 1) is None


def independent(ratio: float, sets: int) -> Array:
    """Simulated likelihood ratios of the true mean, each by a search along a grid of means."""
    random = np.random.default_rng(1)
    y = random.normal(0, 1.0, (sets, COUNT, 1))
    z = random.normal(0, ratio, (sets, COUNT, 1))
    means = np.linspace(-4.0, 4.0, 1601)

    def deviances(at: Array) -> Array:
        squares = [np.mean((values - at) ** 2, axis=1) for values in (y, z)]
        return np.asarray(COUNT * sum(np.log(s) for s in squares))

    return np.asarray(deviances(np.zeros(1))[:, 0] - deviances(means).min(axis=1))


@pytest.mark.slow
def test_several_estimated_standard_deviations_have_the_limit_of_their_likelihood_ratio() -> None:
    """The error of a quantile of 2,000 fits is about 3 %."""
    problem = two_methods()
    forward, vector, evaluation = solved(problem)
    others = independent(float(vector[2] / vector[1]), 3000)
    (low, high) = limits_by_unknown(forward, vector, evaluation, 0.95)[0]
    assert low == high == pytest.approx(np.quantile(others, 0.95), rel=0.1)
    f = COUNT * 2 * np.log1p(stats.f.ppf(0.95, 1, COUNT * 2 - 1) / (COUNT * 2 - 1))
    assert low > 1.15 * f
    found = ratio_test(problem, vector, (0,), 1, 4.5)
    assert found.kind is TestKind.SIMULATED
    assert found.p == pytest.approx(np.mean(others >= 4.5), rel=0.15)
    assert SimulatedFits.of(forward, vector, evaluation) is None  # intervals are those of theory


def test_counts_with_an_estimated_dispersion_have_the_limit_of_a_small_sample() -> None:
    from odefit.assessment.intervals.deviance import Deviance

    counts = np.array([21.0, 30.0, 17.0, 40.0, 25.0, 12.0, 33.0])
    noise = {"distribution": "negative-binomial", "dispersion": "estimate"}
    problem = Problem(
        Model(ode={"m": "0"}, observables={"y": "m"}),
        {"t": np.arange(7.0), "y": counts},
        initial={"m": {"guess": 25.0, "lower": 1.0}},
        noise={"y": noise},
    )
    deviance = Deviance.of(*solved(problem))
    assert deviance.degrees == pytest.approx(6)
    assert deviance.limit(0.95) == pytest.approx(7 * np.log1p(stats.f.ppf(0.95, 1, 6) / 6))
