"""Random measurements follow the noise model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from odefit.problem.noise import Noise
from odefit.simulation.residuals.random_values import random_values

N = 100_000
LAWS: dict[str, Noise] = {
    "normal": Noise(sd=1.0),
    "student": Noise(sd=1.0, loss="student"),
    "huber": Noise(sd=1.0, loss="huber"),
    "laplace": Noise(sd=1.0, distribution="laplace"),
}


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("name", LAWS)
def test_an_interval_of_that_width_holds_its_share(name: str, level: float) -> None:
    values = LAWS[name].law.standard_values(N, np.random.default_rng(3))
    below, above = LAWS[name].law.interval(level)
    error = 4 * np.sqrt(level * (1 - level) / N)
    inside = (values >= -below) & (values <= above)
    assert np.mean(inside) == pytest.approx(level, abs=error)


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (Noise(distribution="poisson"), stats.poisson(7.5)),
        (
            Noise(distribution="negative-binomial", dispersion=0.4),
            stats.nbinom(2.5, 1 / (1 + 0.4 * 7.5)),
        ),
    ],
)
def test_counts_have_their_mean_and_variance(noise: Noise, law: Any) -> None:
    mean = np.full(N, 7.5)
    values = random_values(noise, mean, law.std() * np.ones(N), np.random.default_rng(3))
    assert (values == np.round(values)).all()
    assert values.mean() == pytest.approx(7.5, abs=4 * law.std() / np.sqrt(N))
    assert values.var() == pytest.approx(law.var(), rel=0.03)
    assert np.mean(values == 0) == pytest.approx(law.pmf(0), abs=0.003)


def test_a_mean_of_zero_has_counts_of_zero() -> None:
    noise = Noise(distribution="negative-binomial", dispersion=0.4)
    values = random_values(noise, np.zeros(5), np.zeros(5), np.random.default_rng(3))
    assert values.tolist() == [0, 0, 0, 0, 0]


def test_log_normal_values_scatter_by_factors() -> None:
    noise = Noise(sd=0.2, distribution="log-normal", transform="log")
    values = random_values(noise, np.full(N, 3.0), np.full(N, 0.2), np.random.default_rng(3))
    assert np.log(values / 3).std() == pytest.approx(0.2, rel=0.01)
