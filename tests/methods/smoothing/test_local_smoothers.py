"""Smoothers of noisy series for their values: penalised splines and local polynomials."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import make_smoothing_spline

from odefit import InputError
from odefit.common.arrays import Array
from odefit.methods.smoothing import (
    AAA,
    Chebyshev,
    FloaterHormann,
    GaussianProcess,
    LocalPolynomial,
    Smoother,
    SmoothingSpline,
    SplineByNoise,
)
from odefit.methods.smoothing.smoother import InUnits
from odefit.methods.smoothing.splines.smoothing_spline import PenalisedSpline
from tests.methods.smoothing.functions import GRID, LONG, exponential, wave

SPLINES: tuple[Smoother, ...] = (
    SmoothingSpline(order=2, size=None),
    SmoothingSpline(order=3, size=None),
    SmoothingSpline(order=3, size=None, criterion="gcv"),
    SplineByNoise(),
)
LOCAL: tuple[Smoother, ...] = (*SPLINES, LocalPolynomial(degree=1), LocalPolynomial())

every = pytest.mark.parametrize("smoother", LOCAL, ids=repr)
splines = pytest.mark.parametrize("smoother", SPLINES, ids=repr)


def noise(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(n)


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


@every
def test_noise_averages_out_and_is_estimated(smoother: Smoother) -> None:
    truth = wave(3.0)
    fit = smoother.fit(LONG, truth.value(LONG) + 0.1 * noise(1001, 1))
    assert rms(fit(LONG) - truth.value(LONG)) < 0.025
    assert fit.sd == pytest.approx(0.1, rel=0.1)
    error = np.abs(fit.taylor(1.0, 1) - truth.taylor(1.0, 1))
    assert np.all(error < 4 * fit.errors(1.0, 1))


@pytest.mark.slow
@every
def test_errors_are_of_the_estimated_size(smoother: Smoother) -> None:
    truth = exponential(-1.5)
    found = []
    for seed in range(4):
        fit = smoother.fit(LONG, truth.value(LONG) + 0.01 * noise(1001, seed))
        for at in (0.4, 1.0, 1.5):
            error = np.abs(fit.taylor(at, 1) - truth.taylor(at, 1))
            found.append(error / fit.errors(at, 1))
    assert 0.1 < np.median(found) < 1.5
    assert np.max(found) < 5


@every
def test_a_thousand_oscillations_are_not_taken_for_noise(smoother: Smoother) -> None:
    t = np.linspace(0.0, 100.0, 3001)
    truth = np.sin(2 * np.pi * 1.9 * t)
    fit = smoother.fit(t, truth + 0.1 * noise(3001))
    assert rms(fit(t) - truth) < 0.085


@every
@pytest.mark.parametrize(("unit", "size"), [(36000.0, 1e-9), (1e-9, 1e12)])
def test_units_of_time_and_value_do_not_matter(
    smoother: Smoother, unit: float, size: float
) -> None:
    values = np.exp(GRID) + 0.01 * noise(21)
    plain = smoother.fit(GRID, values)
    other = smoother.fit(unit * (GRID + 3.0), size * values)
    assert other(unit * (GRID + 3.0)) / size == pytest.approx(plain(GRID), rel=1e-5)
    back = unit ** np.arange(3.0) / size
    assert other.taylor(3.1 * unit, 2) * back == pytest.approx(plain.taylor(0.1, 2), rel=1e-3)
    assert other.sd / size == pytest.approx(plain.sd, rel=1e-3)


@pytest.mark.slow
@every
@pytest.mark.parametrize("noisy", [0.0, 1e-9, 1e-4])
def test_a_line_is_a_line_however_little_the_noise(smoother: Smoother, noisy: float) -> None:
    values = 3.0 - 2.0 * LONG + noisy * noise(1001)
    found = smoother.fit(LONG, values).taylor(1.2, 1)
    assert found == pytest.approx([0.6, -2.0], abs=1e-9 + noisy)


@every
def test_a_constant_has_the_same_value_everywhere(smoother: Smoother) -> None:
    for constant in (0.0, 0.45, -1e-200):
        fit = smoother.fit(GRID, np.full(21, constant))
        assert fit(GRID) == pytest.approx(np.full(21, constant), rel=1e-13)
        assert fit.sd <= 1e-14 * abs(constant)


@every
def test_values_are_the_zeroth_coefficients_of_any_order(smoother: Smoother) -> None:
    fit = smoother.fit(GRID, np.cos(4 * GRID) + 0.05 * noise(21))
    at = np.linspace(-0.5, 0.5, 7)
    assert fit(at) == pytest.approx([fit.taylor(float(t), 0)[0] for t in at], abs=1e-12)
    assert fit(at.reshape(7, 1)).shape == (7, 1)
    assert fit.taylor(0.1, 8)[:2] == pytest.approx(fit.taylor(0.1, 1), rel=1e-12)
    assert fit.errors(0.1, 8)[:2] == pytest.approx(fit.errors(0.1, 1), rel=1e-6)
    assert np.isinf(fit.errors(0.1, 8))[-1]
    assert fit.taylor(0.1, 8)[-1] == 0


@every
def test_a_less_certain_measurement_counts_less(smoother: Smoother) -> None:
    sds = np.where(np.arange(1001) % 2 == 0, 0.01, 0.5)
    values = np.sin(3 * LONG) + sds * noise(1001)
    told = rms(smoother.fit(LONG, values, sds)(LONG) - np.sin(3 * LONG))
    alike = rms(smoother.fit(LONG, values)(LONG) - np.sin(3 * LONG))
    assert told < 0.3 * alike
    assert told < 0.006


@every
def test_only_the_ratios_of_standard_deviations_matter(smoother: Smoother) -> None:
    values = np.exp(GRID) + 0.01 * noise(21)
    plain = smoother.fit(GRID, values)
    told = smoother.fit(GRID, values, np.full(21, 7.0))
    assert told(GRID) == pytest.approx(plain(GRID), rel=1e-9)
    assert told.sd == pytest.approx(plain.sd)


@every
def test_uninformative_measurements_change_nothing(smoother: Smoother) -> None:
    values, sds = np.exp(LONG) + 0.01 * noise(1001), np.full(1001, 0.01)
    values[300:310], sds[300:310] = 9.0, 10.0
    fit = smoother.fit(LONG, values, sds)
    assert rms(fit(LONG) - np.exp(LONG)) < 0.02


@every
def test_gaps_and_uneven_times_are_bridged(smoother: Smoother) -> None:
    t = np.concatenate([np.geomspace(0.01, 10, 60), np.linspace(20, 60, 30)])
    truth = np.exp(-t / 20)
    fit = smoother.fit(t, truth + 0.02 * noise(90))
    fine = np.linspace(0.01, 60, 500)
    # Near a parabola, orders of 3 lose digits to rounding, and differ from one BLAS to the next.
    assert rms(fit(fine) - np.exp(-fine / 20)) < 0.025


@every
def test_standard_deviations_are_checked(smoother: Smoother) -> None:
    with pytest.raises(InputError, match="a standard deviation for each time, got shapes"):
        smoother.fit(GRID, np.exp(GRID), np.ones(3))
    for wrong in (0.0, -1.0, np.nan, np.inf):
        sds = np.ones(21)
        sds[4] = wrong
        with pytest.raises(InputError, match="must be finite and above 0; leave out"):
            smoother.fit(GRID, np.exp(GRID), sds)


@every
def test_series_are_checked(smoother: Smoother) -> None:
    with pytest.raises(InputError, match="increase strictly; sort"):
        smoother.fit(np.array([0.0, 1.0, 1.0, 2.0, 3.0, 4.0]), np.zeros(6))
    with pytest.raises(InputError, match=r"needs at least .* got 3;"):
        smoother.fit(np.arange(3.0), np.zeros(3))
    with pytest.raises(InputError, match=r"needs at least .* got 0;"):
        smoother.fit(np.zeros(0), np.zeros(0))


@pytest.mark.parametrize("smoother", [AAA(), FloaterHormann(), GaussianProcess(), Chebyshev()])
def test_smoothers_without_weights_take_equal_ones_and_refuse_others(smoother: Smoother) -> None:
    assert smoother.fit(GRID, np.exp(GRID), np.full(21, 0.1))(GRID) == pytest.approx(np.exp(GRID))
    with pytest.raises(InputError, match="or take SmoothingSpline or LocalPolynomial"):
        smoother.fit(GRID, np.exp(GRID), np.linspace(1, 2, 21))


@splines
def test_exact_data_are_interpolated(smoother: Smoother) -> None:
    fit = smoother.fit(GRID, np.exp(3 * GRID))
    assert fit(GRID) == pytest.approx(np.exp(3 * GRID), rel=1e-4)
    assert fit.taylor(0.03, 1) == pytest.approx(exponential(3.0).taylor(0.03, 1), rel=1e-3)


def test_the_cubic_spline_is_that_of_scipy() -> None:
    t = LONG[::5]
    values = np.sin(6 * t) + 0.1 * noise(201)
    theirs = make_smoothing_spline(t, values)
    ours = SmoothingSpline(order=2, size=None, criterion="gcv").fit(t, values)
    assert rms(ours(t) - theirs(t)) < 0.2 * rms(ours(t) - np.sin(6 * t))


@splines
def test_a_thousand_points_take_banded_matrices_alone(smoother: Smoother) -> None:
    """So the cost is proportional to their number."""
    curve = smoother.fit(LONG, np.sin(LONG) + 0.1 * noise(1001))
    assert isinstance(curve, InUnits)
    assert isinstance(curve.curve, PenalisedSpline)
    problem = curve.curve.problem.design
    for matrix in (problem.gram, problem.penalty, problem.rows.values, problem.derivatives.values):
        assert matrix.shape[0] <= 2 * problem.order
    for solution in curve.curve.solutions:
        assert solution.factor.shape[0] == 2 * problem.order


def test_too_high_an_order_for_uneven_times_is_refused() -> None:
    t = np.geomspace(1e-6, 1e6, 60)
    with pytest.raises(InputError, match="too uneven; take a lower order"):
        SmoothingSpline(order=5, size=None).fit(t, np.exp(-t) + 0.1 * noise(60))


def test_a_given_bandwidth_is_in_units_of_time() -> None:
    t = np.linspace(0, 50, 51)
    values = np.zeros(51)
    values[25] = 1.0
    fit = LocalPolynomial(degree=1, bandwidth=4.0).fit(t, values)
    found = fit(np.array([25.0, 27.0, 28.9, 29.1]))
    kernel = (1 - np.abs(np.arange(-3, 4) / 4) ** 3) ** 3
    assert found[0] == pytest.approx(1 / kernel.sum())
    assert found[2] > 0
    assert found[3] == pytest.approx(0.0, abs=1e-14)


def test_the_bandwidth_is_that_which_predicts_best() -> None:
    # Closed form against measurements left out indeed.
    t, values = LONG[::25], np.sin(4 * LONG[::25]) + 0.2 * noise(41)

    def prediction(bandwidth: float) -> float:
        found = []
        for i in range(41):
            kept = np.arange(41) != i
            fit = LocalPolynomial(2, bandwidth).fit(t[kept], values[kept])
            found.append(fit(t[i : i + 1])[0] - values[i])
        return float(np.mean(np.square(found[4:-4])))

    best = LocalPolynomial(2).fit(t, values)
    widths = [0.3, 0.5, 0.8, 1.2]
    predicted = [prediction(h) for h in widths]
    nearest = LocalPolynomial(2, widths[int(np.argmin(predicted))]).fit(t, values)
    assert rms(best(t) - nearest(t)) < 0.06


def test_local_quadratics_reproduce_quadratics() -> None:
    t = np.sort(np.random.default_rng(2).uniform(0, 3, 40))
    fit = LocalPolynomial().fit(t, 1 - 2 * t + 0.5 * t**2)
    assert fit.taylor(1.3, 3) == pytest.approx([1 - 2.6 + 0.845, -2 + 1.3, 0.5, 0.0], abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SmoothingSpline(order=5, size=9), "SmoothingSpline, size"),
        (lambda: LocalPolynomial(degree=0), "LocalPolynomial, degree"),
        (lambda: LocalPolynomial(degree=3), "LocalPolynomial, degree: expected 1 or 2, got 3"),
        (lambda: LocalPolynomial(bandwidth=0.0), "LocalPolynomial, bandwidth"),
    ],
)
def test_options_are_checked(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=message):
        make()
