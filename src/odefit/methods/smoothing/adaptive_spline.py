"""A smoothing spline that smooths less where more happens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.methods.smoothing.amount import (
    Choice,
    Criterion,
    check_criterion,
    choose,
    cross_validated,
    resolved,
)
from odefit.methods.smoothing.banded import Penalised, Series
from odefit.methods.smoothing.banded_curve import BandedCurve
from odefit.methods.smoothing.smoother import Interpolant, fit_normalised, relative_weights
from odefit.problem.arrays import Array
from odefit.problem.option_checks import whole

PASSES = 4
"""Curves from which a local weight is taken, each from the one before."""

WINDOW = 1.0
"""Half the window in which bending is averaged, times the effective number of parameters over
half the interval: about as far as one parameter reaches."""

FLOOR = 1e-3
"""Of the mean squared bending: what bends less is not smoothed more."""


@dataclass(frozen=True)
class AdaptiveSpline:
    """Least squares with a penalty that is weaker where the curve bends more.

    A smoothing spline bends as much in one place as in another a priori. Solutions of ODEs seldom
    do: epidemics break out and fade, neurons fire, transients die down. So the penalty has a local
    weight, the inverse of the mean square of the penalised derivative nearby (C. B. Storlie,
    H. D. Bondell and B. J. Reich, A locally adaptive penalty for estimation of functions with
    varying roughness, J. Comput. Graph. Statist. 19 (2010)), from the curve without it at first,
    and again while the likelihood rises. All linear algebra is banded.

    Attributes
    ----------
    order
        Of the derivative that is penalised: 3, or 2 for jumps that no datum lies in.
    criterion
        What chooses the smoothing at the end: "gcv" (generalised cross-validation, the minimum
        next to the likeliest amount) or "reml" (restricted maximum likelihood, averaged over what
        is likely), which is a little better for curves that the prior describes and smooths jumps
        too much.
    """

    order: int = 3
    criterion: Criterion = "gcv"

    def __post_init__(self) -> None:
        whole(self.order, "AdaptiveSpline, order")
        check_criterion(self.criterion, "AdaptiveSpline")

    @property
    def name(self) -> str:
        """Adaptive spline."""
        return "adaptive spline"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series of at least order + 2 points."""
        weights = relative_weights(times, sds, self.name)
        return fit_normalised(
            times,
            values,
            self.name,
            self.order + 2,
            lambda x, y: self._fit(Series(x, y, weights)),
        )

    def _fit(self, series: Series) -> Interpolant:
        found = adapted(resolved(series, self.order, "reml"))
        return BandedCurve(found if self.criterion == "reml" else cross_validated(found))


def adapted(choice: Choice) -> Choice:
    """With a local weight of the penalty, while that is more likely."""
    for _ in range(PASSES):
        local = local_weight(choice)
        if local is None:
            return choice
        near = choice.solutions[0].ratio
        new = choose(choice.problem.localised(local), "reml", near)
        if new.score >= choice.score:
            return choice
        choice = new
    return choice


def local_weight(choice: Choice) -> Array | None:
    """Inverse mean square of the p-th derivative around each Gauss point; None if there is none."""
    problem = choice.problem
    squares = (problem.bends @ choice.solutions[0].coefficients) ** 2
    half = WINDOW / choice.parameters
    local = windowed(problem, windowed(problem, squares, half), half)
    mean = float(problem.quadrature @ local) / 2
    return 1.0 / (local / mean + FLOOR) if mean > 0 else None


def windowed(problem: Penalised, values: Array, half: float) -> Array:
    """Means over windows around the Gauss points, `half` to each side but not beyond the ends."""
    points = problem.points
    edges = np.concatenate([[-1.0], (points[1:] + points[:-1]) / 2, [1.0]])
    total = np.concatenate([[0.0], np.cumsum(problem.quadrature * values)])
    low, high = np.maximum(points - half, -1.0), np.minimum(points + half, 1.0)
    means: Array = (np.interp(high, edges, total) - np.interp(low, edges, total)) / (high - low)
    return means
