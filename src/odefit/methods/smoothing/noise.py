"""The noise of a series, estimated without further knowledge."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.polynomial import chebyshev

from odefit.common.arrays import Array
from odefit.methods.smoothing.barycentric import iterate
from odefit.methods.smoothing.chebyshev import max_least_squares_degree
from odefit.methods.smoothing.smoother import EPS, aicc, check_series

MAX_DIFFERENCE_ORDER = 10  # highest order of differences used

MAX_POINTS, BLOCKS = 4000, 4
"""Number of points above which the estimate is the largest over some blocks of a series, spread
evenly, with this number of points together; and the number of blocks."""

MIN_POINTS = 5  # number of points below which noise cannot be estimated
NORMAL_MEDIAN = 0.6744897501960817  # median of the magnitude of a standard normal number


def noise_level(times: Array, values: Array) -> float:
    """Return a robust estimate of the standard deviation of the noise of a series.

    It is the smallest of three estimates: by differences of rising order, the residuals of a
    polynomial, and those of a rational function. All of them treat an unresolved signal as noise.
    For smooth data without noise it is of the size of rounding errors, and never below them.

    Parameters
    ----------
    times
        Strictly increasing times, shape (n,).
    values
        Values, shape (n,).

    Returns
    -------
    float
        The estimate in the units of the values; with fewer than 5 points, the rounding error.

    Raises
    ------
    InputError
        The times do not increase, or a number is not finite.

    Examples
    --------
    >>> t = np.linspace(0, 1, 51)
    >>> noise_level(t, np.exp(-t)) < 1e-14
    True
    >>> rough = np.exp(-t) + 0.01 * np.random.default_rng(1).standard_normal(51)
    >>> 0.005 < noise_level(t, rough) < 0.02
    True
    """
    t, y = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    check_series(t, y, "noise level", 1)
    if len(t) > MAX_POINTS:
        size = MAX_POINTS // BLOCKS
        first = np.linspace(0, len(t) - size, BLOCKS).astype(int)
        return max(noise_level(t[i : i + size], y[i : i + size]) for i in first)
    scale = float(np.abs(y).max())
    if len(t) < MIN_POINTS or scale == 0:
        return EPS * scale
    x = 2 * (t - t[0]) / (t[-1] - t[0]) - 1
    y = y / scale
    return scale * max(min(_differences(x, y), _polynomial(x, y), _rational(x, y)), EPS)


def _differences(x: Array, y: Array) -> float:
    """Estimate the noise by differences: those of order k annihilate lower-degree polynomials."""
    estimates = []
    for order in range(1, min(MAX_DIFFERENCE_ORDER, len(x) // 2) + 1):
        windows = sliding_window_view(x, order + 1)
        distance = windows[:, :, None] - windows[:, None, :]
        distance[:, range(order + 1), range(order + 1)] = 1.0
        logs = -np.log(np.abs(distance)).sum(axis=2)
        weights = np.sign(distance).prod(axis=2) * np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        sizes = np.abs((weights * sliding_window_view(y, order + 1)).sum(axis=1))
        middle = float(np.median(sizes)) / NORMAL_MEDIAN
        # A plateau, where more than half of them are zero, gives no information on the rest.
        estimates.append(middle if middle > 0 else float(np.sqrt(np.mean(sizes**2))))
    return min(estimates)


def _polynomial(x: Array, y: Array) -> float:
    """Estimate the noise by the residuals of the polynomial that Akaike's criterion prefers."""
    n = len(x)
    q = np.linalg.qr(chebyshev.chebvander(x, max_least_squares_degree(n)))[0]
    b = q.T @ y
    b2 = b**2
    rss = float(np.sum((y - q @ b) ** 2)) + np.append(np.cumsum(b2[::-1])[::-1][1:], 0.0)
    best = int(np.argmin([aicc(float(r), n, d + 1) for d, r in enumerate(rss)]))
    return float(np.sqrt(rss[best] / (n - best - 1)))


def _rational(x: Array, y: Array) -> float:
    """Estimate the noise by the residuals of the AAA iterate that Akaike's criterion prefers."""
    n = len(x)
    best, sd = np.inf, np.inf
    for m, (_, rss, _) in enumerate(iterate(x, y), 1):
        score = aicc(rss, n, 2 * m - 1)
        if score < best:
            best, sd = score, np.sqrt(rss / (n - 2 * m + 1))
    return float(sd)
