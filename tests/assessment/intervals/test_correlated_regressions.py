"""Regressions with correlated noise, and the limits that simulated ones give."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import odefit
from odefit.assessment.intervals.correlated_regressions import Chains, Products, fit_products
from odefit.assessment.intervals.degrees_of_freedom import noise_freedom
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.common.arrays import Array
from odefit.simulation import Evaluation, ForwardMap

TIMES = np.array([0.0, 0.5, 0.8, 1.5, 2.0, 3.0, 3.1, 4.0, 5.5, 6.0, 6.5, 7.0, 8.0, 9.0, 10.0])
DESIGN = np.column_stack([np.ones_like(TIMES), np.exp(-0.3 * TIMES)])


BOUNDS = [(None, None)] * 2
LOG_TIMES = (math.log(0.05), math.log(100.0))


def noise_of(rng: np.random.Generator, time: float, times: Array = TIMES) -> Array:
    covariance = np.exp(-np.abs(times[:, None] - times) / time)
    return np.asarray(rng.multivariate_normal(np.zeros(len(times)), covariance))


def minus_log_likelihood(values: Array, coefficients: Array, scale: float, time: float) -> float:
    covariance = scale**2 * np.exp(-np.abs(TIMES[:, None] - TIMES) / time)
    return -float(multivariate_normal(DESIGN @ coefficients, covariance).logpdf(values))


def lowest(start: Any, bounds: Any, series: Sequence[Array]) -> Any:
    """Minimise over coefficients, and the logarithms of scales and times of each series."""

    def total(p: Array) -> float:
        n = len(series)
        scales, times = np.exp(p[2 : 2 + n]), np.exp(p[2 + n :])
        noise = zip(series, scales, times, strict=True)
        return sum(minus_log_likelihood(y, p[:2], s, t) for y, s, t in noise)

    return minimize(total, start, bounds=bounds)


@pytest.mark.slow
def test_a_fit_is_the_maximum_of_the_likelihood_of_a_dense_normal_distribution() -> None:
    values = np.array([noise_of(np.random.default_rng(s), 1.5) for s in range(3)])
    chains = Chains.of([TIMES], 1.5, (0.05, 100.0), 0)
    found = fit_products([Products.of(DESIGN, values, chains, known_scale=False)])
    constant = 0.5 * len(TIMES) * math.log(2 * math.pi)
    for one, coefficients, scale, number, cost in zip(values, *found, strict=True):
        time = chains.times[number[0]]
        dense = minus_log_likelihood(one, coefficients, scale[0], time)
        assert cost + constant == pytest.approx(dense, rel=1e-9)
        best = lowest(np.zeros(4), [*BOUNDS, (-5, 5), LOG_TIMES], [one])
        assert cost + constant == pytest.approx(best.fun, abs=0.02)  # of the grid of times


@pytest.mark.slow
def test_two_series_with_different_noise_are_fitted_together() -> None:
    rng = np.random.default_rng(2)
    slow, fast = noise_of(rng, 3.0), 0.2 * noise_of(rng, 0.5)
    chains = [Chains.of([TIMES], 1.0, (0.05, 100.0), k) for k in (0, 1)]
    parts = [
        Products.of(DESIGN, y[None], c, known_scale=False)
        for y, c in zip((slow, fast), chains, strict=True)
    ]
    coefficients, scales, numbers, costs = fit_products(parts)
    start = [*coefficients[0], *np.log(scales[0]), 0.0, 0.0]
    best = lowest(start, [*BOUNDS, (-5, 5), (-5, 5), LOG_TIMES, LOG_TIMES], [slow, fast])
    assert costs[0] + len(TIMES) * math.log(2 * math.pi) == pytest.approx(best.fun, abs=0.05)
    assert np.allclose(coefficients[0], best.x[:2], atol=0.05)
    assert numbers.shape == (1, 2)


def fitted(
    noise: dict[str, Any], seed: int = 1
) -> tuple[odefit.Result, ForwardMap, Array, Evaluation]:
    """Return a forward map at the answer of a decay with AR(1) noise of 0.6."""
    times, rng = np.linspace(0, 10, 40), np.random.default_rng(seed)
    values = 2 * np.exp(-0.3 * times) + 0.1 * noise_of(rng, 0.5, times)
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        data={"t": times, "x": values},
        parameters={"k": {"lower": 0, "upper": 5}},
        initial={"x": {"lower": 0, "upper": 10}},
        noise={"x": noise},
    )
    result = odefit.fit(problem, odefit.SingleShooting(), start={"k": 0.3, "x": 2.0})
    forward = ForwardMap(problem)
    vector = np.array([result.params[key].value for key in problem.keys])
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    return result, forward, vector, evaluation


@pytest.mark.slow
def test_limits_are_wider_than_those_of_large_samples_where_the_time_is_estimated() -> None:
    _, forward, vector, evaluation = fitted({"sd": "estimate", "correlation": "ou"})
    fits = SimulatedFits.of(forward, vector, evaluation)
    assert fits is not None
    assert fits.correlated
    assert 4.2 < fits.limit(0.95) < 7.0
    below, above = fits.limits_of_scales(0.95)[forward.problem.keys.index("x_correlation_time")]
    assert below < 3.84 < above  # the maximum of the likelihood takes the time for too short


def test_a_known_correlation_time_leaves_the_degrees_of_freedom_of_regression() -> None:
    noise = {"sd": "estimate", "correlation": "ou", "correlation_time": 0.5}
    _, forward, vector, evaluation = fitted(noise)
    assert SimulatedFits.of(forward, vector, evaluation) is None
    orthonormal = np.linalg.qr(evaluation.jacobian[:, :2])[0]
    freedom = noise_freedom(forward, vector, evaluation.jacobian, orthonormal)
    assert freedom is not None
    assert freedom.degrees == pytest.approx(38)


@pytest.mark.slow
def test_the_report_says_where_the_errors_come_from() -> None:
    result, *_ = fitted({"sd": "estimate", "correlation": "ou"})
    assert result.uncertainty is not None
    assert "The noise is correlated in time: standard errors" in result.uncertainty.sentence
    corrected = result.uncertainty.corrected_noise["x_correlation_time"]
    assert corrected > result.params["x_correlation_time"].value


@pytest.mark.slow
def test_white_noise_that_runs_in_a_pattern_names_the_correlated_one(tmp_path: Path) -> None:
    result, *_ = fitted({"sd": "estimate"}, seed=3)
    assert result.goodness is not None
    assert result.goodness.bad
    assert 'x = { sd = "estimate", correlation = "ou" }' in " ".join(str(result).split())
    again, *_ = fitted({"sd": "estimate", "correlation": "ou"}, seed=3)
    assert again.goodness is not None
    assert not again.goodness.bad
    again.save(tmp_path / "result.json")
    restored = odefit.load_result(tmp_path / "result.json")
    assert restored.params["x_correlation_time"].value == again.params["x_correlation_time"].value
    assert restored.problem.noise["x"] == again.problem.noise["x"]
