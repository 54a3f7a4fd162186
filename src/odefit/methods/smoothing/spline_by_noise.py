"""A smoothing spline whose degree suits the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.methods.smoothing.smoother import Interpolant
from odefit.methods.smoothing.spline import SmoothingSpline
from odefit.problem.arrays import Array

NEARLY_EXACT = 1e-2
"""Of the standard deviation of the values: noise below it leaves something to a high degree."""


@dataclass(frozen=True)
class SplineByNoise:
    """A cubic spline by generalised cross-validation; one of degree 9 where data are nearly exact.

    Noise hides what a high degree could show, and fast changes make it ring; without noise it is
    more accurate by orders of magnitude. Which it is, the noise tells that both find: a cubic that
    would interpolate, where the other sees little noise, gives way.
    """

    @property
    def name(self) -> str:
        """Smoothing spline."""
        return "smoothing spline"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series of at least four points."""
        cubic = SmoothingSpline(order=2, size=None, criterion="gcv").fit(times, values, sds)
        # Relative to the largest value, as squares of large ones overflow.
        size = float(np.abs(values).max()) or 1.0
        small = NEARLY_EXACT * size * float(np.std(np.asarray(values) / size))
        if cubic.sd > small:
            return cubic
        order = min(5, max(len(times) - 2, 2))
        smooth = SmoothingSpline(order).fit(times, values, sds)
        return smooth if smooth.sd <= small else cubic
