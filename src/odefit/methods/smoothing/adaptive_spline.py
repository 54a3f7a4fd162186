"""A smoothing spline whose penalty is weaker where the curve bends more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from odefit.methods.smoothing.penalised_design import PenalisedDesign
from odefit.methods.smoothing.smoother import Interpolant, NormalisedSeries, SeriesSmoother
from odefit.methods.smoothing.smoothing_parameter import (
    Criterion,
    PenalisedSpline,
    check_criterion,
    choose,
    cross_validated,
    fit_penalised,
)
from odefit.problem.arrays import Array
from odefit.problem.option_checks import whole

MAX_PASSES = 4
"""The largest number of passes, each of which takes local weights from the curve before it."""

WINDOW = 1.0
"""Half the width of the window in which squared derivatives are averaged, in units of half the
interval over the effective number of parameters: about as far as one parameter reaches."""

MIN_ROUGHNESS = 1e-3
"""Smallest local roughness relative to its mean: what bends less is not smoothed more."""


@dataclass(frozen=True)
class AdaptiveSpline(SeriesSmoother):
    """Least squares with a penalty that is weaker where the curve bends more.

    A smoothing spline bends a priori as much in one place as in another. Solutions of ODEs seldom
    do: epidemics break out and fade, neurons fire, transients die down. So the penalty has a local
    weight, the inverse of the mean square of the penalised derivative nearby (C. B. Storlie,
    H. D. Bondell and B. J. Reich, A locally adaptive penalty for estimation of functions with
    varying roughness, J. Comput. Graph. Statist. 19 (2010)): at first from the curve without local
    weights, and again while the likelihood rises. All linear algebra is banded.

    Attributes
    ----------
    order
        Order of the derivative that is penalised: 3, or 2 for jumps that no datum lies in.
    criterion
        How the smoothing parameter is chosen at the end: "gcv" (generalised cross-validation, the
        minimum next to the likeliest value) or "reml" (restricted maximum likelihood, averaged
        over likely values), which is a little better for curves that the prior describes and
        smooths jumps too much.
    """

    order: int = 3
    criterion: Criterion = "gcv"

    name: ClassVar[str] = "adaptive spline"
    weights_measurements: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.order, "AdaptiveSpline, order")
        check_criterion(self.criterion, "AdaptiveSpline")

    @property
    def min_points(self) -> int:
        """The smallest number of points: two more than the order."""
        return self.order + 2

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the spline with local weights of the penalty."""
        spline = adapted(fit_penalised(series, self.order, "reml"))
        return spline if self.criterion == "reml" else cross_validated(spline)


def adapted(spline: PenalisedSpline) -> PenalisedSpline:
    """Give the penalty local weights, as long as this raises the likelihood."""
    for _ in range(MAX_PASSES):
        local = local_weights(spline)
        if local is None:
            return spline
        problem = spline.problem.with_local_weights(local)
        other = choose(problem, "reml", spline.solutions[0].ratio)
        if other.score >= spline.score:
            return spline
        spline = other
    return spline


def local_weights(spline: PenalisedSpline) -> Array | None:
    """Return the inverse mean square of the p-th derivative around each Gauss point.

    Returns
    -------
    array or None
        Weights of the penalty, shape (Gauss points,); None if the derivative is zero everywhere.
    """
    design = spline.problem.design
    squares = (design.derivatives @ spline.solutions[0].coefficients) ** 2
    half = WINDOW / spline.effective_parameters
    local = window_means(design, window_means(design, squares, half), half)
    mean = float(design.quadrature @ local) / 2
    return 1.0 / (local / mean + MIN_ROUGHNESS) if mean > 0 else None


def window_means(design: PenalisedDesign, values: Array, half: float) -> Array:
    """Return means over windows around the Gauss points, `half` to each side within [-1, 1]."""
    points = design.points
    edges = np.concatenate([[-1.0], (points[1:] + points[:-1]) / 2, [1.0]])
    total = np.concatenate([[0.0], np.cumsum(design.quadrature * values)])
    low, high = np.maximum(points - half, -1.0), np.minimum(points + half, 1.0)
    means: Array = (np.interp(high, edges, total) - np.interp(low, edges, total)) / (high - low)
    return means
