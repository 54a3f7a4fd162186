"""Quantile residuals are standard normal under the density from which the data are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.simulation.residuals.quantile_residuals import quantile_residuals

COUNT = 4000
"""Number of values, of which a Kolmogorov-Smirnov test sees a shift of a twentieth."""


def residuals_of(
    noise: Noise,
    predicted: float,
    values: np.ndarray,
    sd: float,
    censored: np.ndarray | None = None,
) -> np.ndarray:
    """Residuals of values about one prediction, whose standardised ones only normal noise uses."""
    n = len(values)
    means = np.full(n, predicted)
    return quantile_residuals(
        noise,
        Series(np.arange(n), values, None, censored),
        means,
        (means - values) / sd,
        np.full(n, sd),
        np.random.default_rng(5),
    )


@pytest.mark.parametrize(
    ("noise", "predicted", "sd", "density"),
    [
        (Noise(sd=0.5, loss="student"), 3.0, 0.5, stats.t(4.0, 3.0, 0.5)),
        (Noise(sd=0.5, distribution="laplace"), 3.0, 0.5, stats.laplace(3.0, 0.5 / np.sqrt(2.0))),
        (Noise(distribution="poisson"), 0.7, 1.0, stats.poisson(0.7)),
        (Noise(distribution="poisson"), 40.0, 1.0, stats.poisson(40.0)),
        (
            Noise(distribution="negative-binomial", dispersion=0.5),
            6.0,
            np.sqrt(6.0 + 0.5 * 36.0),
            stats.nbinom(2.0, 2.0 / (2.0 + 6.0)),
        ),
    ],
)
def test_values_of_each_density_have_normal_quantile_residuals(
    noise: Noise, predicted: float, sd: float, density: stats.rv_continuous
) -> None:
    values = density.rvs(COUNT, random_state=np.random.default_rng(1)).astype(float)
    found = residuals_of(noise, predicted, values, sd)
    assert stats.kstest(found, "norm").pvalue > 1e-3
    # Those of another mean are not: the test sees what it is to see.
    assert stats.kstest(residuals_of(noise, 1.2 * predicted, values, sd), "norm").pvalue < 1e-3


def test_residuals_of_huber_have_the_probabilities_of_its_density() -> None:
    """The integral of the density, by quadrature."""
    noise = Noise(sd=1.0, loss="huber")
    law = noise.law
    grid = np.linspace(-30.0, 30.0, 600_001)
    density = np.exp(-0.5 * law.root(grid)[0] ** 2)
    summed = np.cumsum(density) - 0.5 * density
    at = np.array([-6.0, -1.345, -0.4, 0.0, 0.9, 3.0])
    exact = np.interp(at, grid, summed / density.sum())
    low, high = law.probabilities(np.zeros(6), at, np.ones(6))
    np.testing.assert_allclose(low, exact, rtol=1e-4)
    np.testing.assert_array_equal(low, high)


def test_censored_values_lie_in_the_range_that_is_left_to_them() -> None:
    noise = Noise(sd=1.0)
    rng = np.random.default_rng(3)
    drawn = rng.normal(2.0, 1.0, COUNT)
    low, high = 1.5, 3.5
    codes = np.where(drawn < low, 1, np.where(drawn > high, -1, 0))
    found = residuals_of(noise, 2.0, np.clip(drawn, low, high), 1.0, codes)
    assert np.all(found[codes == 1] <= low - 2.0)
    assert np.all(found[codes == -1] >= high - 2.0)
    np.testing.assert_allclose(found[codes == 0], drawn[codes == 0] - 2.0)
    assert stats.kstest(found, "norm").pvalue > 1e-3


def test_far_values_keep_their_digits_on_both_sides() -> None:
    noise = Noise(sd=1.0, distribution="laplace")
    found = residuals_of(noise, 0.0, np.array([-40.0, 40.0]), 1.0)
    exact = stats.norm.isf(0.5 * np.exp(-np.sqrt(2.0) * 40.0))
    np.testing.assert_allclose(found, [-exact, exact], rtol=1e-9)
    assert 9.0 < exact < 12.0
