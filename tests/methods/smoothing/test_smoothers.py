"""What holds of every smoother: shapes, units, refusals, and simple functions."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import InputError
from odefit.common.arrays import Array
from odefit.methods.smoothing import (
    AAA,
    Chebyshev,
    FloaterHormann,
    Smoother,
    SmoothingSpline,
    SplineByNoise,
)
from tests.methods.smoothing.functions import (
    ALL,
    FOR_NOISE,
    GRID,
    LONG,
    Known,
    cubic,
    exponential,
    wave,
)

every = pytest.mark.parametrize("smoother", ALL, ids=lambda s: s.name)
noisy = pytest.mark.parametrize("smoother", FOR_NOISE, ids=lambda s: s.name)


def ratio(smoother: Smoother, times: Array, values: Array, truth: Known, order: int) -> Array:
    """True error over estimated error at three places."""
    fit = smoother.fit(times, values)
    found = []
    for share in (0.25, 0.5, 0.7):
        at = float(times[0] + share * (times[-1] - times[0]))
        error = np.abs(fit.taylor(at, order) - truth.taylor(at, order))
        found.append(error / fit.errors(at, order))
    return np.array(found)


@every
@pytest.mark.parametrize("truth", [exponential(-1.5), wave(3.0), cubic()], ids=lambda f: f.name)
def test_seven_derivatives_of_exact_data_are_near_machine_accuracy(
    smoother: Smoother, truth: Known
) -> None:
    fit = smoother.fit(GRID, truth.value(GRID))
    tolerance = 1e-13 * 60.0 ** np.arange(8)  # an order costs about the number of points
    assert np.all(np.abs(fit.taylor(0.03, 7) - truth.taylor(0.03, 7)) < 10 * tolerance)


@every
@pytest.mark.parametrize("truth", [exponential(-1.5), wave(3.0), cubic()], ids=lambda f: f.name)
def test_errors_of_exact_data_are_of_the_estimated_size(smoother: Smoother, truth: Known) -> None:
    found = ratio(smoother, GRID, truth.value(GRID), truth, 6)
    assert np.median(found) < 3  # rounding errors: as many as the linear algebra makes
    assert found.max() < 15


@pytest.mark.slow
@noisy
@pytest.mark.parametrize("noise", [1e-4, 1e-2])
def test_errors_of_noisy_data_are_of_the_estimated_size(smoother: Smoother, noise: float) -> None:
    truth = exponential(-1.5)
    found = []
    for seed in range(3):
        rough = np.random.default_rng(seed).normal(0, noise, len(LONG))
        found.append(ratio(smoother, LONG, truth.value(LONG) + rough, truth, 5))
    assert np.median(found) < 1.5
    assert np.max(found) < 8


@pytest.mark.slow
@noisy
@pytest.mark.parametrize("noise", [1e-4, 1e-2])
def test_the_noise_is_estimated(smoother: Smoother, noise: float) -> None:
    rough = np.random.default_rng(5).normal(0, noise, len(LONG))
    assert smoother.fit(LONG, np.exp(-LONG) + rough).sd == pytest.approx(noise, rel=0.1)


@pytest.mark.slow
@noisy
def test_noise_averages_out(smoother: Smoother) -> None:
    rough = np.random.default_rng(6).normal(0, 1e-2, len(LONG))
    fit = smoother.fit(LONG, np.sin(3 * LONG) + rough)
    error = np.abs(fit.taylor(1.0, 1) - wave(3.0).taylor(1.0, 1))
    assert np.all(error < [0.003, 0.03])


@every
def test_values_are_the_zeroth_coefficients(smoother: Smoother) -> None:
    fit = smoother.fit(GRID, np.cos(4 * GRID))
    at = np.linspace(-0.5, 0.5, 7)
    zeroth = [fit.taylor(float(t), 0)[0] for t in at]
    assert fit(at) == pytest.approx(zeroth, abs=1e-12)
    assert fit(at.reshape(7, 1)).shape == (7, 1)


@every
def test_a_coefficient_does_not_depend_on_the_requested_order(smoother: Smoother) -> None:
    fit = smoother.fit(GRID, np.cos(4 * GRID))
    assert fit.taylor(0.1, 9)[:4] == pytest.approx(fit.taylor(0.1, 3), rel=1e-12, abs=1e-14)
    assert fit.errors(0.1, 9)[:4] == pytest.approx(fit.errors(0.1, 3), rel=1e-6)
    assert fit.taylor(0.1, 0).shape == fit.errors(0.1, 0).shape == (1,)


@every
@pytest.mark.parametrize(("unit", "size"), [(36000.0, 1e-9), (1e-9, 1e12), (1e3, 1e300)])
def test_units_of_time_and_value_do_not_matter(
    smoother: Smoother, unit: float, size: float
) -> None:
    t = (GRID + 0.5) * unit
    truth = exponential(-1.5)
    fit = smoother.fit(t, size * truth.value(GRID))
    back = unit ** np.arange(7.0) / size
    error = np.abs(fit.taylor(0.53 * unit, 6) * back - truth.taylor(0.03, 6))
    assert np.all(error < 1e-12 * 60.0 ** np.arange(7))
    assert np.all(fit.errors(0.53 * unit, 6) * back < 1e-11 * 60.0 ** np.arange(7))


@every
@pytest.mark.parametrize("constant", [0.0, 0.45, -1e-200])
def test_a_constant_has_no_derivatives(smoother: Smoother, constant: float) -> None:
    fit = smoother.fit(GRID, np.full(21, constant))
    found = fit.taylor(0.2, 4)
    assert found[0] == pytest.approx(constant, rel=1e-14)
    assert np.all(np.abs(found[1:]) <= 1e-13 * abs(constant) * 50.0 ** np.arange(1, 5))
    assert fit.sd <= 1e-14 * abs(constant)


@every
def test_a_line_is_fitted_as_a_line(smoother: Smoother) -> None:
    found = smoother.fit(GRID, 3.0 - 2.0 * GRID).taylor(0.2, 3)
    assert found == pytest.approx([2.6, -2.0, 0.0, 0.0], abs=1e-9)


@every
def test_an_offset_costs_no_more_than_its_rounding(smoother: Smoother) -> None:
    fit = smoother.fit(GRID, 1000.0 + np.sin(3 * GRID))
    error = np.abs(fit.taylor(0.1, 4)[1:] - wave(3.0).taylor(0.1, 4)[1:])
    assert np.all(error < 1e-9 * 60.0 ** np.arange(4))


@every
def test_times_need_not_be_equidistant(smoother: Smoother) -> None:
    t = np.delete(np.linspace(0, 1, 26), [3, 4, 9, 15, 22])
    error = np.abs(smoother.fit(t, np.exp(t)).taylor(0.36, 4) - exponential(1.0).taylor(0.36, 4))
    assert np.all(error < 1e-12 * 60.0 ** np.arange(5))


@every
def test_errors_grow_in_a_gap_and_are_reported(smoother: Smoother) -> None:
    t = np.concatenate([np.linspace(0, 0.3, 10), np.linspace(0.8, 1, 8)])
    fit = smoother.fit(t, np.exp(t))
    error = np.abs(fit.taylor(0.55, 3) - exponential(1.0).taylor(0.55, 3))
    assert np.all(error < 10 * fit.errors(0.55, 3))
    assert error[0] < 1e-8


@every
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rounded_files_are_trusted_to_their_digits_alone(smoother: Smoother, seed: int) -> None:
    t = np.linspace(0, 1, 21) + 0.01 * seed
    fit = smoother.fit(t, np.round(np.exp(t), 8).astype(float))
    error = np.abs(fit.taylor(0.4, 3) - exponential(1.0).taylor(0.4, 3))
    assert np.all(error < [2e-8, 4e-7, 1e-5, 1e-4])
    assert np.all(error < 10 * fit.errors(0.4, 3))


@pytest.mark.parametrize(
    "smoother", [s for s in ALL if not isinstance(s, SplineByNoise)], ids=lambda s: s.name
)
def test_few_points_are_used_or_refused(smoother: Smoother) -> None:
    """`SplineByNoise` has a test of its own: a cubic's errors are those of the noise alone."""
    refused = []
    for n in range(1, 9):
        t = np.linspace(0, 1, n)
        try:
            fit = smoother.fit(t, np.exp(t))
        except InputError as refusal:
            refused.append(n)
            assert f"got {n};" in str(refusal)  # noqa: PT017
        else:
            error = np.abs(fit.taylor(0.4, 2) - exponential(1.0).taylor(0.4, 2))
            assert np.all(error < 10 * fit.errors(0.4, 2))
    assert refused == list(range(1, len(refused) + 1))
    assert 1 in refused
    assert 7 not in refused


@every
def test_unusable_input_is_refused_with_a_remedy(smoother: Smoother) -> None:
    with pytest.raises(InputError, match="increase strictly; sort"):
        smoother.fit(np.array([0.0, 1.0, 1.0, 2.0, 3.0]), np.zeros(5))
    with pytest.raises(InputError, match="not finite; leave those points out"):
        smoother.fit(np.arange(5.0), np.array([0.0, np.nan, 1.0, 2.0, 3.0]))
    with pytest.raises(InputError, match="as many times as values"):
        smoother.fit(np.arange(5.0), np.zeros(4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AAA(-1.0), "AAA, tolerance: expected a number of at least 0, got -1.0"),
        (lambda: FloaterHormann(-1), "FloaterHormann, degree"),
        (lambda: Chebyshev(degree=-2), "Chebyshev, degree"),
        (lambda: SmoothingSpline(order=0), "SmoothingSpline, order"),
        (lambda: SmoothingSpline(order=5, size=9), "SmoothingSpline, size"),
        (lambda: SmoothingSpline(criterion="best"), "expected 'reml' or 'gcv', got 'best'"),  # type: ignore[arg-type]
    ],
)
def test_options_are_checked(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=message):
        make()
