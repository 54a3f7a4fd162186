"""The AAA iteration: rational approximations with one more support point each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from odefit.methods.smoothing.barycentric import Rational
from odefit.methods.smoothing.criteria import aicc
from odefit.methods.smoothing.smoother import EPS
from odefit.problem.arrays import Array

TERMS = 40
"""Support points at most: one iteration costs a singular value decomposition, shape (n, m)."""

PATIENCE = 6
"""Iterations without a better criterion after which no better one is expected."""


def iterate(x: Array, y: Array, most: int = TERMS) -> Iterator[tuple[Rational, float, float]]:
    """Approximations of normalised data with 1, 2, ... support points.

    Y. Nakatsukasa, O. Sete and L. N. Trefethen, The AAA algorithm for rational approximation,
    SIAM J. Sci. Comput. 40 (2018), section 4. SciPy has only the last iterate of it, and warns
    where we have a choice to make; here each is yielded with the sum of its squared residuals
    and the largest residual. It ends when residuals are zero, when as many parameters as data
    are used up, or when the corrected Akaike criterion has not improved for some iterations.
    """
    n = len(x)
    left = np.ones(n, dtype=bool)
    chosen: list[int] = []
    residual = np.abs(y - y.mean())
    best, since = np.inf, 0
    for m in range(1, min(most, n // 2) + 1):
        worst = int(np.argmax(np.where(left, residual, -1.0)))
        chosen.append(worst)
        left[worst] = False
        if m == 1:
            # A constant of one parameter: the mean, not the value farthest from it.
            residual = np.abs(y - y.mean())
            rational = Rational(x[chosen], np.array([y.mean()]), np.ones(1))
        else:
            rational, residual = _approximate(x, y, chosen, left)
        rss = float(np.sum(residual**2))
        yield rational, rss, float(residual.max())
        score = aicc(rss, n, 2 * m - 1) if np.isfinite(rss) else np.inf
        best, since = (score, 0) if score < best else (best, since + 1)
        if since >= PATIENCE or residual.max() <= EPS / 4:
            return


def _approximate(
    x: Array, y: Array, chosen: list[int], left: NDArray[np.bool_]
) -> tuple[Rational, Array]:
    """Interpolate the chosen data, approximate those left; the magnitudes of all residuals."""
    support, values = x[chosen], y[chosen]
    cauchy = 1.0 / (x[left][:, None] - support)
    loewner = (y[left][:, None] - values) * cauchy
    # Full right factor where fewer data are left than there are support points.
    weights = np.linalg.svd(loewner, full_matrices=len(loewner) < len(chosen))[2][-1]
    bottom = cauchy @ weights
    safe = bottom != 0
    residual: Array = np.where(left, np.inf, 0.0)
    fitted = (cauchy @ (weights * values))[safe] / bottom[safe]
    residual[np.flatnonzero(left)[safe]] = np.abs(y[left][safe] - fitted)
    return Rational(support, values, weights), residual
