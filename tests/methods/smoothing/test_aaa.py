"""AAA: exact rational functions, poles that do not belong, data sets of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.methods.smoothing import AAA, FloaterHormann, GaussianProcess
from odefit.methods.smoothing.aaa import RationalApproximation, has_spurious_pole
from odefit.methods.smoothing.barycentric import Rational
from odefit.methods.smoothing.floater_hormann import BlendedInterpolant
from odefit.methods.smoothing.smoother import InUnits
from tests.methods.smoothing.functions import GRID, measured, runge, van_der_pol, wave

AT = (-0.25, 0.0, 0.13, 0.25)


def curve(fit: object) -> object:
    assert isinstance(fit, InUnits)
    return fit.curve


@pytest.mark.parametrize("at", AT)
def test_rational_functions_are_found_exactly(at: float) -> None:
    truth = runge(100.0)  # poles at 0.1 i
    fit = AAA().fit(GRID, truth.value(GRID))
    error = np.abs(fit.taylor(at, 8) - truth.taylor(at, 8))
    assert np.all(error < 1e-13 * 25.0 ** np.arange(9))


@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("smoother", [AAA(), GaussianProcess()], ids=["AAA", "GP"])
def test_van_der_pol_is_differentiated_seven_times(
    smoother: AAA | GaussianProcess, at: float
) -> None:
    data = measured("rational-van-der-pol/data_0.csv")
    for values, truth in zip((data["y1"], data["y2"]), van_der_pol(at, 7), strict=True):
        error = np.abs(smoother.fit(data["t"], values).taylor(at, 7) - truth)
        assert np.all(error < 1e-12 * 30.0 ** np.arange(8))


def test_the_residual_is_that_of_the_data() -> None:
    rounded = np.round(np.exp(GRID), 8).astype(float)
    fit = AAA().fit(GRID, rounded)
    assert 5e-10 < fit.sd < 2e-8


def test_a_looser_tolerance_takes_fewer_terms() -> None:
    loose, tight = (curve(AAA(tol).fit(GRID, np.exp(3 * GRID))) for tol in (1e-4, 1e-14))
    assert isinstance(loose, RationalApproximation)
    assert isinstance(tight, RationalApproximation)
    assert len(loose.rational.support) < len(tight.rational.support)
    assert np.abs(loose(2 * GRID) - tight(2 * GRID)).max() < 1e-3


def with_pole(pole: complex, residue: float) -> Rational:
    """1 + r / (x - p), and with the conjugate pole where it is complex."""
    poles = [pole] if pole.imag == 0 else [pole, pole.conjugate()]
    support = np.array([-1.0, -0.2, 0.9])[: len(poles) + 1]
    values = 1 + np.sum([residue / (support - p) for p in poles], axis=0).real
    denominator = np.prod([support - p for p in poles], axis=0).real
    product = np.array([np.prod([a - b for b in support if b != a]) for a in support])
    return Rational(support, values, denominator / product)


@pytest.mark.parametrize(
    ("pole", "residue", "expected"),
    [
        (0.512 + 0j, 1e-12, True),  # in the interval, whatever it weighs
        (0.512 + 0j, 1.0, True),
        (0.512 + 0.1j, 1e-14, True),  # beside it, and not in the data
        (0.512 + 0.1j, 1.0, False),  # Runge's
        (1.05 + 0j, 1e-14, True),
        (1.05 + 0j, 0.1, False),  # a solution that grows without bound soon after
        (3.0 + 0j, 1e-14, False),  # too far away to harm
    ],
)
def test_spurious_poles_are_removed(pole: complex, residue: float, expected: bool) -> None:
    assert has_spurious_pole(with_pole(pole, residue), 2 * GRID, 1e-14) == expected


@pytest.mark.parametrize("seed", range(8))
def test_no_pole_is_left_among_the_data(seed: int) -> None:
    # A disturbance at the level of rounding is what breeds doublets.
    rng = np.random.default_rng(seed)
    values = (0.6 + np.exp(-GRID)) * (1 + 2e-15 * rng.standard_normal(21))
    fit = AAA(tolerance=0.0).fit(GRID, values)
    fine = np.linspace(-0.5, 0.5, 5001)
    assert np.abs(fit(fine) - 0.6 - np.exp(-fine)).max() < 1e-12
    assert abs(fit.taylor(0.07, 4)[4] - np.exp(-0.07) / 24) < 1e-6


@pytest.mark.parametrize("name", ["rational-crauste/data_2.csv", "rational-crauste/data_3.csv"])
def test_data_that_cause_froissart_doublets_are_still_differentiated(name: str) -> None:
    data = measured(name)
    for column in data.keys() - {"t"}:
        rational = AAA().fit(data["t"], data[column])
        other = GaussianProcess().fit(data["t"], data[column])
        for at in AT:
            found: Array = np.abs(rational.taylor(at, 5) - other.taylor(at, 5))
            assert np.all(found < 10 * (rational.errors(at, 5) + other.errors(at, 5)))


def test_with_few_points_a_polynomial_takes_over() -> None:
    t = np.linspace(0, 1, 5)
    fit = AAA().fit(t, np.exp(t))
    assert isinstance(curve(fit), BlendedInterpolant)
    assert fit.taylor(0.3, 4) == pytest.approx(FloaterHormann(4).fit(t, np.exp(t)).taylor(0.3, 4))


def test_unresolved_data_are_interpolated() -> None:
    t = np.linspace(0, 1, 1001)
    truth = wave(130.0)
    fit = AAA().fit(t, truth.value(t))
    assert isinstance(curve(fit), BlendedInterpolant)
    assert np.all(np.abs(fit.taylor(0.37, 2) - truth.taylor(0.37, 2)) < [1e-10, 1e-7, 1e-4])


def test_n_points_leave_the_nth_derivative_unknown() -> None:
    errors = FloaterHormann().fit(np.arange(4.0), np.array([1.0, 2.0, 0.0, 1.0])).errors(1.5, 5)
    assert np.isfinite(errors).tolist() == [True] * 4 + [False] * 2
