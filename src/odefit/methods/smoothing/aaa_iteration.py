"""The AAA iteration: rational approximations, each with one more support point."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.methods.smoothing.barycentric import Rational
from odefit.methods.smoothing.information_criteria import aicc
from odefit.methods.smoothing.smoother import EPS

MAX_SUPPORT_POINTS = 40
"""The largest number of support points: with m of them, an iteration costs a singular value
decomposition of shape (n, m)."""

PATIENCE = 6
"""The number of iterations without a better criterion after which no better one is expected."""


def iterate(
    x: Array, y: Array, max_support_points: int = MAX_SUPPORT_POINTS
) -> Iterator[tuple[Rational, float, float]]:
    """Yield approximations of normalised data with 1, 2, ... support points.

    Y. Nakatsukasa, O. Sete and L. N. Trefethen, The AAA algorithm for rational approximation,
    SIAM J. Sci. Comput. 40 (2018), section 4. SciPy's AAA returns the last iterate only and cleans
    it up, where here the smoother chooses among all of them; so each is yielded with its sum of
    squared residuals and its largest residual. The iteration ends when residuals are zero, when
    there are as many parameters as data, or when the corrected Akaike criterion has not improved
    for some iterations.
    """
    n = len(x)
    remaining = np.ones(n, dtype=bool)
    chosen: list[int] = []
    residual = np.abs(y - y.mean())
    best, since_best = np.inf, 0
    for m in range(1, min(max_support_points, n // 2) + 1):
        worst = int(np.argmax(np.where(remaining, residual, -1.0)))
        chosen.append(worst)
        remaining[worst] = False
        if m == 1:
            # The constant is the mean, not the value farthest from it.
            residual = np.abs(y - y.mean())
            rational = Rational(x[chosen], np.array([y.mean()]), np.ones(1))
        else:
            rational, residual = _approximate(x, y, chosen, remaining)
        rss = float(np.sum(residual**2))
        yield rational, rss, float(residual.max())
        score = aicc(rss, n, 2 * m - 1) if np.isfinite(rss) else np.inf
        best, since_best = (score, 0) if score < best else (best, since_best + 1)
        if since_best >= PATIENCE or residual.max() <= EPS / 4:
            return


def _approximate(
    x: Array, y: Array, chosen: list[int], remaining: BoolArray
) -> tuple[Rational, Array]:
    """Interpolate the chosen data and approximate the rest; return magnitudes of residuals, too."""
    support, values = x[chosen], y[chosen]
    cauchy = 1.0 / (x[remaining][:, None] - support)
    loewner = (y[remaining][:, None] - values) * cauchy
    # The full right factor is needed where fewer data remain than there are support points.
    weights = np.linalg.svd(loewner, full_matrices=len(loewner) < len(chosen))[2][-1]
    denominator = cauchy @ weights
    safe = denominator != 0
    residual: Array = np.where(remaining, np.inf, 0.0)
    fitted = (cauchy @ (weights * values))[safe] / denominator[safe]
    residual[np.flatnonzero(remaining)[safe]] = np.abs(y[remaining][safe] - fitted)
    return Rational(support, values, weights), residual
