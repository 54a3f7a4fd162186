"""AAA: rational approximation that finds its degree and its poles."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from odefit.methods.smoothing.aaa_iteration import iterate
from odefit.methods.smoothing.barycentric import Rational
from odefit.methods.smoothing.criteria import aicc
from odefit.methods.smoothing.floater_hormann import interpolant
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.smoother import EPS, Interpolant, fit_normalised, refuse_weights
from odefit.problem.arrays import Array
from odefit.problem.option_checks import number

FOLDS = 5
"""Refits, each without every fifth point, that the error is estimated from."""

SAFETY = 2.0
"""What the spread of the refits is multiplied with."""

LEAST = 7
"""Points below which a rational approximation has nothing left to be judged by."""

SHORT = 13
"""Points below which it must be exact: otherwise a polynomial makes more of them."""

FALLBACK_DEGREE = 10
"""Of the Floater-Hormann interpolant that takes over."""

UNRESOLVED = 30.0
"""Times the noise that `noise_level` finds: an approximation that leaves more has not resolved
the data, and interpolation serves better."""

WEAK = 100.0
"""Times the largest residual: a pole with less in the data is a Froissart doublet."""

CLOSE = 0.3
"""Of half the interval: weak poles farther away do no harm."""


@dataclass(frozen=True)
class AAA:
    """Rational approximation of data without noise.

    Iterations add a support point each. Of those up to the first that meets `tolerance`, the one
    is taken that the corrected Akaike criterion prefers: where noise or rounding (a file with 8
    digits, say) sets in earlier, it is not fitted. Iterates with a pole in the interval, or beside
    it with a residue that the data do not show, are passed over. If none resolves the data, or
    with fewer than 7 points, a Floater-Hormann interpolant takes over, which has no poles.

    Attributes
    ----------
    tolerance
        Largest residual aimed at, relative to the largest value.
    """

    tolerance: float = 3e-14

    def __post_init__(self) -> None:
        number(self.tolerance, "AAA, tolerance", least=0.0)

    @property
    def name(self) -> str:
        """AAA."""
        return "AAA"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Approximate a series of at least 2 points."""
        refuse_weights(times, sds, self.name)
        return fit_normalised(times, values, self.name, 2, self._fit)

    def _fit(self, x: Array, y: Array) -> Interpolant:
        n = len(x)
        found, score, sd, residual = None, np.inf, 0.0, np.inf
        for m, (rational, rss, worst) in enumerate(iterate(x, y), 1) if n >= LEAST else ():
            this = aicc(rss, n, 2 * m - 1) if np.isfinite(rss) else np.inf
            if this < score and not spurious(rational, x, worst):
                found, score, residual = rational, this, worst
                sd = float(np.sqrt(rss / (n - 2 * m + 1)))
            if worst <= self.tolerance:
                break
        if found is None:
            return interpolant(x, y, FALLBACK_DEGREE)
        unresolved = sd > UNRESOLVED * noise_level(x, y) or _used_up(found, sd, n)
        if residual > self.tolerance and unresolved:
            return interpolant(x, y, FALLBACK_DEGREE)
        return Approximation(found, sd, x, y)


def _used_up(found: Rational, sd: float, n: int) -> bool:
    """Is too little left to judge by, though residuals have not come down to rounding?"""
    return (n < SHORT or 2 * len(found.support) + 2 >= n) and sd > 10 * EPS


def spurious(rational: Rational, x: Array, worst: float) -> bool:
    """Has it a pole in the interval, or close to it one that is too weak to be in the data?

    A pole that belongs to the function shows in the data nearest to it far above the residuals,
    whose largest is `worst`.
    """
    real, imaginary, residues = rational.poles()
    outside = np.maximum(np.abs(real) - 1.0, 0.0)
    distance = np.hypot(outside, imaginary)
    gap = float(np.diff(x).max())
    if (distance <= 1e-3 * gap).any():
        return True
    nearest = np.hypot(real[:, None] - x, imaginary[:, None]).min(axis=1, initial=np.inf)
    weak = residues / nearest < WEAK * max(worst, EPS)
    return bool((weak & (distance < CLOSE)).any())


@dataclass(frozen=True, eq=False)
class Approximation:
    """A rational approximation and the data it is judged by.

    Attributes
    ----------
    rational
        The approximation.
    sd
        Root mean square of what it leaves, for its degrees of freedom.
    x, y
        Normalised data.
    """

    rational: Rational
    sd: float
    x: Array = field(repr=False)
    y: Array = field(repr=False)

    def __call__(self, times: Array) -> Array:
        """Values at `times`."""
        return self.rational(times)

    def taylor(self, at: float, order: int) -> Array:
        """Taylor coefficients, shape (order + 1,)."""
        return self.rational.taylor(at, order)

    def errors(self, at: float, order: int) -> Array:
        """By refits without some of the points.

        The second largest deviation counts: one refit in a few meets a pole of its own.
        """
        own = self.taylor(at, order)
        others = np.abs([refit.taylor(at, order) - own for refit in self._refits])
        second: Array = np.sort(others, axis=0)[-2]
        return SAFETY * second + self.sd

    @cached_property
    def _refits(self) -> list[Rational]:
        terms = len(self.rational.support)
        refits = []
        for fold in range(FOLDS):
            kept = np.arange(len(self.x)) % FOLDS != fold
            refits.append(list(iterate(self.x[kept], self.y[kept], terms))[-1][0])
        return refits
