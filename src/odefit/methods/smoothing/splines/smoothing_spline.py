"""Smoothing splines of any degree, the smoothing parameter chosen by the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.common.option_checks import whole
from odefit.methods.smoothing.smoother import Interpolant, NormalisedSeries, SeriesSmoother
from odefit.methods.smoothing.splines.few_splines import few_splines
from odefit.methods.smoothing.splines.smoothing_parameter import (
    Criterion,
    check_criterion,
    fit_penalised,
)

NEARLY_EXACT = 1e-2  # noise over the values' standard deviation below which high degrees pay


@dataclass(frozen=True)
class SmoothingSpline(SeriesSmoother):
    """Least squares with a penalty on the integral of the squared derivative of an `order`.

    The fit is local, unlike that of other smoothers: what happens at one time hardly disturbs
    another. Splines have the degree 2 order - 1; as a mixed model, polynomials of degree below
    `order` are free, and deviations from them are a priori Gaussian.

    Attributes
    ----------
    order
        Order of the derivative that is penalised: Taylor coefficients exist up to 2 order - 1, and
        are of use to about order.
    size
        Largest number of B-splines, on equal intervals and never more than points: for curves
        without sudden changes, to the last digit. None for as many as the data ask for, up to one
        for each point: for long series, oscillations and noise, with an order of 2 or 3, at a cost
        proportional to n.
    criterion
        How the smoothing parameter is chosen: "reml" (restricted maximum likelihood, averaged over
        likely values) or "gcv" (generalised cross-validation), which smooths far too little at
        times with a `size`, but not without, where its minimum next to the likeliest value is
        taken.
    """

    order: int = 5
    size: int | None = 60
    criterion: Criterion = "reml"

    name: ClassVar[str] = "smoothing spline"
    weights_measurements: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.order, "SmoothingSpline, order")
        if self.size is not None:
            whole(self.size, "SmoothingSpline, size", 2 * self.order)
        check_criterion(self.criterion, "SmoothingSpline")

    @property
    def min_points(self) -> int:
        """The smallest number of points: two more than the order."""
        return self.order + 2

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the spline, averaged over likely smoothing parameters."""
        if self.size is None:
            return fit_penalised(series, self.order, self.criterion)
        size = max(min(self.size, len(series.x)), 2 * self.order)
        return few_splines(series, self.order, size).fit(series.y, self.criterion)


@dataclass(frozen=True)
class SplineByNoise:
    """A cubic spline by generalised cross-validation, or one of degree 9 for nearly exact data.

    Noise hides what a high degree could show, and fast changes make a high degree oscillate;
    without noise it is more accurate by orders of magnitude. The noise that both splines estimate
    decides: a cubic spline that interpolates is replaced only if the other sees little noise too.
    """

    name: ClassVar[str] = "smoothing spline"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Return the spline of a series of at least four points."""
        cubic = SmoothingSpline(order=2, size=None, criterion="gcv").fit(times, values, sds)
        # The size is relative to the largest value, as squares of large values overflow.
        size = float(np.abs(values).max()) or 1.0
        small = NEARLY_EXACT * size * float(np.std(np.asarray(values) / size))
        if cubic.sd > small:
            return cubic
        order = min(5, max(len(times) - 2, 2))
        smooth = SmoothingSpline(order).fit(times, values, sds)
        return smooth if smooth.sd <= small else cubic
