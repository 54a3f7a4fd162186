"""AAA: rational approximation that finds its degree and its poles."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.common.option_checks import number
from odefit.methods.smoothing.barycentric import Rational, iterate
from odefit.methods.smoothing.floater_hormann import interpolate
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.smoother import (
    EPS,
    Interpolant,
    NormalisedSeries,
    SeriesSmoother,
    aicc,
)

FOLDS = 5  # number of refits from which the error is estimated, each without every fifth point
SAFETY_FACTOR = 2.0  # factor between the spread of the refits and the estimated error
MIN_POINTS = 7  # number of points below which no data remain to judge a rational approximation

MIN_POINTS_WITH_RESIDUALS = 13
"""The number of points below which a rational approximation must be exact: otherwise a polynomial
uses them better."""

FALLBACK_DEGREE = 10  # degree of the Floater-Hormann interpolant that replaces it

UNRESOLVED_RATIO = 30.0
"""Ratio of residuals to the noise estimated by `noise_level` above which an approximation has not
resolved the data, so that interpolation is better."""

DOUBLET_RATIO = 100.0
"""Ratio of a pole's effect on the data to the largest residual below which the pole belongs to a
Froissart doublet: a pole and a zero that nearly cancel."""

DOUBLET_DISTANCE = 0.3  # half lengths of the interval from it, beyond which doublets are harmless


@dataclass(frozen=True)
class AAA(SeriesSmoother):
    """Rational approximation of data without noise.

    Each iteration adds a support point. The corrected Akaike criterion chooses one of the iterates
    up to the first that meets `tolerance`. So noise or rounding (of a file with 8 digits, say) is
    not fitted. Iterates with a pole in the interval, or next to it with a residue too small to show
    in the data, are skipped. If no iterate resolves the data, or there are fewer than 7 points, a
    Floater-Hormann interpolant replaces them, which has no poles.

    Attributes
    ----------
    tolerance
        Target for the largest residual, relative to the largest value.
    """

    tolerance: float = 3e-14

    name: ClassVar[str] = "AAA"
    min_points: ClassVar[int] = 2

    def __post_init__(self) -> None:
        number(self.tolerance, "AAA, tolerance", least=0.0)

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the best iterate, or the Floater-Hormann interpolant."""
        x, y = series.x, series.y
        n = len(x)
        best, best_score, sd, residual = None, np.inf, 0.0, np.inf
        iterates = enumerate(iterate(x, y), 1) if n >= MIN_POINTS else ()
        for m, (rational, rss, largest) in iterates:
            score = aicc(rss, n, 2 * m - 1) if np.isfinite(rss) else np.inf
            if score < best_score and not has_spurious_pole(rational, x, largest):
                best, best_score, residual = rational, score, largest
                sd = float(np.sqrt(rss / (n - 2 * m + 1)))
            if largest <= self.tolerance:
                break
        if best is None:
            return interpolate(x, y, FALLBACK_DEGREE)
        # Too few data may remain to judge residuals that are above rounding.
        few_left = n < MIN_POINTS_WITH_RESIDUALS or 2 * len(best.support) + 2 >= n
        unresolved = sd > UNRESOLVED_RATIO * noise_level(x, y) or (few_left and sd > 10 * EPS)
        if residual > self.tolerance and unresolved:
            return interpolate(x, y, FALLBACK_DEGREE)
        return RationalApproximation(best, sd, series)


def has_spurious_pole(rational: Rational, x: Array, largest_residual: float) -> bool:
    """Return whether a pole lies in the interval, or near it and too weak to come from the data.

    A pole of the function has an effect far above the residuals on the nearest data.
    """
    real, imaginary, residues = rational.poles()
    outside = np.maximum(np.abs(real) - 1.0, 0.0)
    distance = np.hypot(outside, imaginary)
    gap = float(np.diff(x).max())
    if (distance <= 1e-3 * gap).any():
        return True
    nearest = np.hypot(real[:, None] - x, imaginary[:, None]).min(axis=1, initial=np.inf)
    weak = residues / nearest < DOUBLET_RATIO * max(largest_residual, EPS)
    return bool((weak & (distance < DOUBLET_DISTANCE)).any())


@dataclass(frozen=True, eq=False)
class RationalApproximation:
    """A rational approximation and its data."""

    rational: Rational  # approximation
    sd: float  # root mean square of its residuals, for its degrees of freedom
    series: NormalisedSeries = field(repr=False)  # normalised data

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`."""
        return self.rational(times)

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1,)."""
        return self.rational.taylor(at, order)

    def errors(self, at: float, order: int) -> Array:
        """Return errors estimated by refits without some of the points, shape (order + 1,).

        The second largest deviation is used, as one refit in a few has a spurious pole of its own.
        """
        coefficients = self.taylor(at, order)
        deviations = np.abs([refit.taylor(at, order) - coefficients for refit in self._refits])
        second: Array = np.sort(deviations, axis=0)[-2]
        return SAFETY_FACTOR * second + self.sd

    @cached_property
    def _refits(self) -> list[Rational]:
        x, y, terms = self.series.x, self.series.y, len(self.rational.support)
        in_fold = [np.arange(len(x)) % FOLDS != fold for fold in range(FOLDS)]
        return [list(iterate(x[k], y[k], terms))[-1][0] for k in in_fold]
