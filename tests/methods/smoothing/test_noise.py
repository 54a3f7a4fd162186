"""The noise of a series, with nothing else known of it."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import InputError
from odefit.common.arrays import Array
from odefit.methods.smoothing import noise as noise_module
from odefit.methods.smoothing import noise_level
from tests.methods.smoothing.functions import GRID, LONG, measured

SIGNALS = {
    "decay": np.exp(-LONG),
    "oscillation": np.sin(60 * LONG),
    "Runge": 1 / (1 + 100 * (LONG - 1) ** 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("signal", SIGNALS.values(), ids=SIGNALS)
@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1e-1])
def test_noise_of_long_series_is_estimated(signal: Array, noise: float) -> None:
    rough = np.random.default_rng(1).normal(0, noise, len(LONG))
    assert noise_level(LONG, signal + rough) == pytest.approx(noise, rel=0.2)


def test_noise_of_short_series_is_estimated_within_a_factor() -> None:
    found = [
        noise_level(GRID, np.exp(GRID) + np.random.default_rng(s).normal(0, 1e-3, 21))
        for s in range(30)
    ]
    assert 0.4e-3 < np.median(found) < 1.2e-3
    assert min(found) > 1e-4
    assert max(found) < 3e-3


@pytest.mark.parametrize("name", ["harmonic", "crauste", "seir", "biohydrogenation", "hiv"])
def test_smooth_data_have_noise_of_the_size_of_rounding(name: str) -> None:
    data = measured(f"rational-{name}/data_0.csv")
    for column in data.keys() - {"t"}:
        assert noise_level(data["t"], data[column]) < 1e-12 * np.abs(data[column]).max()


def test_rounded_data_have_the_noise_of_their_last_digit() -> None:
    rounded = np.round(np.exp(LONG), 5).astype(float)
    assert noise_level(LONG, rounded) == pytest.approx(1e-5 / np.sqrt(12), rel=0.2)


def test_an_outlier_is_not_noise() -> None:
    rough = np.exp(-LONG) + np.random.default_rng(2).normal(0, 1e-3, len(LONG))
    rough[500] = 10.0
    assert noise_level(LONG, rough) == pytest.approx(1e-3, rel=0.3)


def test_units_and_gaps_do_not_matter() -> None:
    keep = (LONG < 0.7) | (LONG > 1.1)
    t = LONG[keep]
    rough = np.exp(-t) + np.random.default_rng(3).normal(0, 1e-3, len(t))
    assert noise_level(t, rough) == pytest.approx(1e-3, rel=0.2)
    assert noise_level(3.6e4 * t, 1e-9 * rough) == pytest.approx(1e-9 * noise_level(t, rough))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_points_show_only_rounding(n: int) -> None:
    assert 0 < noise_level(np.arange(float(n)), np.ones(n)) < 1e-15


def test_zeros_have_no_noise() -> None:
    assert noise_level(GRID, np.zeros(21)) == 0.0


@pytest.mark.slow
def test_blocks_suffice_for_very_long_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sharp transients, a plateau without noise, and never more points at once than a block."""
    times = np.linspace(0.0, 10.0, 60_001)
    rough = np.exp(-50 * times) + np.sin(20 * times)
    noise = np.random.default_rng(1).normal(0, 1e-3, len(times))
    noise[times < 5] = 0.0
    seen = []

    def differences(x: Array, y: Array) -> float:
        seen.append(len(x))
        return original(x, y)

    original = noise_module._differences
    monkeypatch.setattr(noise_module, "_differences", differences)
    assert noise_level(times, rough + noise) == pytest.approx(1e-3, rel=0.2)
    assert max(seen) <= 1000


def test_times_must_increase() -> None:
    with pytest.raises(InputError, match="noise level: times must increase"):
        noise_level(np.zeros(6), np.zeros(6))
