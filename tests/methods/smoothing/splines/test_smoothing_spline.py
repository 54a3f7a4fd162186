"""The cubic spline with noise, the one of degree 9 without: the smoother of integral matching."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import InputError, IntegralMatching
from odefit.common.arrays import Array
from odefit.methods.smoothing import Smoother, SmoothingSpline, SplineByNoise
from tests.methods.smoothing.functions import GRID, Known, exponential, runge, wave

CUBIC = SmoothingSpline(order=2, size=None, criterion="gcv")
FINE = np.linspace(-0.5, 0.5, 401)


def noise(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(n)


def farthest(smoother: Smoother, truth: Known, times: Array = GRID) -> float:
    return float(np.abs(smoother.fit(times, truth.value(times))(FINE) - truth.value(FINE)).max())


def test_integral_matching_smooths_with_the_chosen_smoother() -> None:
    assert IntegralMatching().smoother == SplineByNoise()


@pytest.mark.parametrize("truth", [exponential(-1.5), wave(6.0)], ids=lambda f: f.name)
def test_without_noise_it_is_far_more_accurate_than_the_cubic(truth: Known) -> None:
    assert farthest(SplineByNoise(), truth) < 1e-2 * farthest(CUBIC, truth)


def test_the_spline_is_as_accurate_where_a_high_degree_fails() -> None:
    """A peak of few points: Runge's function on 21."""
    assert farthest(SplineByNoise(), runge(300.0)) < 1.5 * farthest(CUBIC, runge(300.0))


@pytest.mark.parametrize("sd", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_with_noise_it_is_the_cubic(sd: float, seed: int) -> None:
    t = np.linspace(0.0, 4.0, 81)
    values = np.sin(3 * t) + sd * noise(81, seed)
    found, cubic = SplineByNoise().fit(t, values), CUBIC.fit(t, values)
    assert np.array_equal(found(t), cubic(t))
    assert found.sd == cubic.sd


@pytest.mark.parametrize("seed", range(4))
def test_a_little_noise_does_not_lead_to_a_cubic(seed: int) -> None:
    """One per mille of the signal: what is left to a high degree is worth having."""
    t = np.linspace(0.0, 4.0, 81)
    values = np.sin(3 * t) + 1e-3 * noise(81, seed)
    found, cubic = SplineByNoise().fit(t, values), CUBIC.fit(t, values)
    assert found.sd == pytest.approx(1e-3, rel=0.3)
    between = (t[1:] + t[:-1]) / 2
    errors = [float(np.std(fit(between) - np.sin(3 * between))) for fit in (found, cubic)]
    assert errors[0] < errors[1]


def test_a_cubic_that_interpolates_noise_is_kept() -> None:
    """As cross-validation does in some of so few points; the other spline sees the noise."""
    t = np.linspace(0.0, 4.0, 15)
    series = [np.sin(2 * t) + 0.2 * noise(15, seed) for seed in range(20)]
    cubics = [CUBIC.fit(t, values) for values in series]
    assert any(cubic.sd < 1e-3 for cubic in cubics)
    for values, cubic in zip(series, cubics, strict=True):
        assert np.array_equal(SplineByNoise().fit(t, values)(t), cubic(t))


@pytest.mark.parametrize("points", [4, 5, 6, 7])
def test_four_points_are_enough(points: int) -> None:
    t = np.linspace(0.0, 1.0, points)
    fit = SplineByNoise().fit(t, np.exp(t))
    assert fit(FINE + 0.5) == pytest.approx(np.exp(FINE + 0.5), abs=0.02)


@pytest.mark.parametrize("points", [0, 1, 2, 3])
def test_three_points_are_refused(points: int) -> None:
    t = np.linspace(0.0, 1.0, points)
    with pytest.raises(InputError) as caught:
        SplineByNoise().fit(t, np.exp(t))
    assert str(caught.value) == (
        f"smoothing spline: needs at least 4 points, got {points}; measure more, or take another "
        "smoother"
    )


def test_the_smallest_spline_basis_is_one_polynomial() -> None:
    """Four cubic B-splines have no knots inside: the third derivative is the same anywhere."""
    fit = SmoothingSpline(order=2, size=4).fit(GRID, np.exp(6 * GRID))
    thirds = [fit.taylor(at, 3)[3] for at in (-0.5, -0.2, 0.1, 0.5)]
    assert thirds == pytest.approx([thirds[0]] * 4, rel=1e-9)


def test_weights_count_whichever_spline_it_is() -> None:
    """A hopeless measurement is passed by, with noise and without."""
    sds = np.full(21, 0.1)
    sds[7] = 1e3
    for sd in (0.0, 0.1):
        values = np.exp(GRID) + sd * noise(21, 3)
        without = np.delete(np.arange(21), 7)
        values[7] += 5.0
        told = SplineByNoise().fit(GRID, values, sds)
        left_out = SplineByNoise().fit(GRID[without], values[without])
        assert told(FINE) == pytest.approx(left_out(FINE), abs=0.01)


def test_values_whose_squares_overflow_are_smoothed() -> None:
    fit = SplineByNoise().fit(GRID, 1e300 * np.exp(GRID))
    assert fit(FINE) / 1e300 == pytest.approx(np.exp(FINE), rel=1e-9)
