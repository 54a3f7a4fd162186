"""Residuals of an answer: their signs, kinds, autocorrelation and quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from odefit.common.arrays import Array
from odefit.problem.experiment import Experiment
from odefit.problem.model import Model
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.reporting.figures.residual_data import (
    Residuals,
    autocorrelation,
    few_together,
    normal_quantiles,
    quantile_band,
    residuals_of,
)
from odefit.reporting.summary import residual_frame
from tests.reporting import examples


def entry(values: list[float] | Array, times: list[float] | None = None) -> Residuals:
    found = np.asarray(values, dtype=float)
    at = np.arange(len(found), dtype=float) if times is None else np.array(times)
    zeros = np.zeros(len(found))
    return Residuals("run", "x", at, zeros, zeros, found, found, zeros.astype(np.intp))


def test_observables_of_few_values_share_the_panel_of_their_distribution() -> None:
    few, other, many = entry([0.1] * 12), entry([0.2] * 7), entry([0.3] * 20)
    assert few_together({"x": [few], "y": [other]}) == {"all observables": [few, other]}
    shared = few_together({"x": [few], "z": [many], "y": [other]})
    assert shared == {"z": [many], "others, together": [few, other]}
    assert few_together({"x": [few], "z": [many]}) == {"x": [few], "z": [many]}
    assert few_together({"x": [few, other, few]}) == {"x": [few, other, few]}


def test_a_wave_of_period_two_has_an_autocorrelation_of_minus_one() -> None:
    found, count = autocorrelation([entry([1.0, -1.0] * 50)])
    assert count == 100
    np.testing.assert_allclose(found[:2], [-0.99, 0.98])


def test_an_autoregression_has_powers_of_its_coefficient() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=20_000)
    values = np.zeros(20_000)
    for k in range(1, len(values)):
        values[k] = 0.6 * values[k - 1] + noise[k]
    found, _ = autocorrelation([entry(values)], lags=4)
    np.testing.assert_allclose(found, 0.6 ** np.arange(1, 5), atol=0.03)


def test_experiments_do_not_follow_one_another() -> None:
    """Two runs of two values each have one pair each, not three in a row."""
    found, count = autocorrelation([entry([1.0, -1.0]), entry([1.0, -1.0])])
    assert count == 4
    np.testing.assert_allclose(found, [-0.5])


def test_replicates_at_a_time_are_one_value() -> None:
    found, count = autocorrelation([entry([1.0, 3.0, -2.0, -2.0], [0.0, 0.0, 1.0, 1.0])])
    assert count == 2
    assert len(found) == 0  # too few


def test_normal_quantiles_are_the_means_of_sorted_normal_values() -> None:
    random = np.random.default_rng(4).normal(size=(20_000, 9))
    expected, ordered = normal_quantiles(np.array([3.0, np.nan, 1.0, *range(7)]))
    assert list(ordered) == sorted([3.0, 1.0, *range(7)])
    np.testing.assert_allclose(expected, np.sort(random, axis=1).mean(axis=0), atol=0.02)


def test_sorted_normal_values_are_within_the_band_as_often_as_it_says() -> None:
    random = np.sort(np.random.default_rng(4).normal(size=(20_000, 9)), axis=1)
    low, high = quantile_band(9, 0.9)
    inside = ((low <= random) & (random <= high)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.9, atol=0.01)
    np.testing.assert_array_equal(
        quantile_band(9, 0.9, np.array([0, 4])), [low[[0, 4]], high[[0, 4]]]
    )


def test_innovations_keep_their_own_signs() -> None:
    """A value above the curve that falls fast from one far above has a negative innovation."""
    times = np.arange(5.0)
    curve = np.exp(-0.5 * times)
    noise = np.array([0.2, 0.9, 0.3, -0.1, -0.1])
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": times, "x": curve + noise},
        {"k": {}},
        {"x": 1.0},
        noise={"x": Noise(sd=0.1, correlation="ou", correlation_time=5.0)},
    )
    result = examples.result_of(problem, np.array([0.5]), 1.0, None, ())
    c = np.exp(-1.0 / 5.0)
    exact = np.append(noise[0], (noise[1:] - c * noise[:-1]) / np.sqrt(1 - c * c)) / 0.1
    (found,) = residuals_of(result)
    np.testing.assert_allclose(found.values, exact, rtol=1e-6)
    np.testing.assert_allclose(residual_frame(result)["weighted"], exact, rtol=1e-6)
    assert noise[2] > 0 > found.values[2]


def test_counts_have_deviance_residuals_and_normal_ones_beside_them() -> None:
    rng = np.random.default_rng(7)
    times = np.linspace(0.0, 3.0, 300)
    mean = 2.0 * np.exp(-0.3 * times)
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[
            Experiment("run", {"t": times, "x": rng.poisson(mean).astype(float)}, t0=0.0),
        ],
        parameters={"k": {}},
        initial={"x": 2.0},
        noise={"x": Noise(distribution="poisson")},
    )
    result = examples.result_of(problem, np.array([0.3]), 1.0, None, ())
    (found,) = residuals_of(result)
    none = found.measured == 0.0
    np.testing.assert_allclose(found.values[none], -np.sqrt(2.0 * mean[none]), rtol=1e-6)
    assert not found.plain
    assert stats.kstest(found.normal, "norm").pvalue > 1e-3
    assert stats.kstest(found.values, "norm").pvalue < 1e-3
    again = residuals_of(result)[0].normal
    np.testing.assert_array_equal(found.normal, again)


def test_residuals_without_known_noise_are_in_their_own_standard_deviations() -> None:
    problem = examples.alpha_pinene_problem()
    result = examples.alpha_pinene()
    assert result.uncertainty is not None
    scale = np.sqrt(result.uncertainty.variance)
    for found in residuals_of(result):
        np.testing.assert_allclose(found.normal * scale, found.values)
        assert found.values == pytest.approx(found.measured - found.predicted)
    assert len(residuals_of(result)) == len(problem.model.observables)
