"""What does not depend on the measured values is computed once for all series at the same times."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.methods.smoothing import Smoother, SmoothingSpline, SplineByNoise
from odefit.methods.smoothing.smoother import NormalisedSeries
from odefit.methods.smoothing.splines import few_splines as few
from odefit.methods.smoothing.splines import penalised_spline as penalised
from odefit.methods.smoothing.splines.penalised_spline import PenalisedProblem

T = np.linspace(0.0, 3.0, 31)
CUBIC = SmoothingSpline(order=2, size=None, criterion="gcv")


def series(x: Array) -> NormalisedSeries:
    return NormalisedSeries(x, np.sin(x), np.ones(len(x)))


def forget() -> None:
    for shared in (penalised._shared, few._shared, few._split):
        shared.cache_clear()


@pytest.mark.parametrize("smoother", [CUBIC, SmoothingSpline(), SplineByNoise()], ids=str)
def test_a_curve_does_not_depend_on_the_series_before_it(smoother: Smoother) -> None:
    noise = 0.05 * np.random.default_rng(0).standard_normal((3, len(T)))
    rows = [np.sin(2 * T) + noise[0], np.exp(-T) + noise[1], 1e-9 * noise[2], np.cos(T)]
    forget()
    together = [smoother.fit(T, row) for row in rows]
    for row, curve in zip(rows, together, strict=True):
        forget()
        alone = smoother.fit(T, row)
        assert np.array_equal(curve(T), alone(T))
        assert curve.sd == alone.sd
        assert np.array_equal(curve.errors(1.0, 2), alone.errors(1.0, 2))


def test_series_at_the_same_times_share_their_factorisations() -> None:
    one, other = (PenalisedProblem.in_pieces(series(T / 3), 2, 30) for _ in range(2))
    assert one.design is other.design
    assert one.design.factorisation(0.3) is other.design.factorisation(0.3)


def test_other_weights_of_data_share_none() -> None:
    one = PenalisedProblem.in_pieces(series(T / 3), 2, 30)
    weighted = NormalisedSeries(T / 3, np.sin(T), 1.0 + T)
    other = PenalisedProblem.in_pieces(weighted, 2, 30)
    determinants = {p.design.factorisation(0.3).log_determinant for p in (one, other)}
    assert len(determinants) == 2


def test_long_series_are_not_cached() -> None:
    long = series(np.linspace(-1.0, 1.0, penalised.MAX_SHARED_SIZE + 1))
    forget()
    one, other = (PenalisedProblem.in_pieces(long, 2, 500) for _ in range(2))
    assert one.design is not other.design
    assert one.design.factorisation(0.3) is not one.design.factorisation(0.3)
    assert few.few_splines(long, 5, 60) is not few.few_splines(long, 5, 60)
    assert penalised._shared.cache_info().currsize == few._shared.cache_info().currsize == 0


def test_a_singular_problem_is_recognised_by_the_absence_of_a_factor() -> None:
    design = PenalisedProblem.in_pieces(series(np.geomspace(1e-9, 1.0, 40)), 5, 39).design
    found = design.factorisation(1e25)
    assert found.factor is None
    assert np.isnan(found.log_determinant)
    assert design.effective_parameters(1e25) == 5.0
