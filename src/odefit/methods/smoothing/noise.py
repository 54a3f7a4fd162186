"""How noisy a series is, before anything else is known of it."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.polynomial import chebyshev

from odefit.methods.smoothing.aaa_iteration import iterate
from odefit.methods.smoothing.criteria import aicc
from odefit.methods.smoothing.smoother import EPS, check_series
from odefit.problem.arrays import Array

ORDERS = 10
"""Highest order of differences."""

DEGREE = 60
"""Highest degree of polynomials."""

LEAST = 5
"""Points below which nothing can be said of noise."""

NORMAL = 0.6744897501960817
"""Median of the magnitude of a standard normal number."""


def noise_level(times: Array, values: Array) -> float:
    """Robust estimate of the standard deviation of the noise of a series.

    The smallest of three estimates that all take an unresolved signal for noise: differences of
    rising order, what a polynomial leaves, and what a rational function leaves. For smooth data
    without noise it is of the size of rounding errors, and never below them.

    Parameters
    ----------
    times
        Strictly increasing, shape (n,).
    values
        Shape (n,).

    Returns
    -------
    float
        In the units of the values; with fewer than 5 points that of rounding.

    Raises
    ------
    InputError
        Times do not increase, or a number is not finite.

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
    scale = float(np.abs(y).max())
    if len(t) < LEAST or scale == 0:
        return EPS * scale
    x = 2 * (t - t[0]) / (t[-1] - t[0]) - 1
    y = y / scale
    return scale * max(min(_differences(x, y), _polynomial(x, y), _rational(x, y)), EPS)


def _differences(x: Array, y: Array) -> float:
    """Differences of order k annihilate polynomials of lower degree, and keep noise."""
    found = []
    for order in range(1, min(ORDERS, len(x) // 2) + 1):
        windows = sliding_window_view(x, order + 1)
        distance = windows[:, :, None] - windows[:, None, :]
        distance[:, range(order + 1), range(order + 1)] = 1.0
        logs = -np.log(np.abs(distance)).sum(axis=2)
        weights = np.sign(distance).prod(axis=2) * np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        sizes = np.abs((weights * sliding_window_view(y, order + 1)).sum(axis=1))
        middle = float(np.median(sizes)) / NORMAL
        # More than half of them exactly zero: a plateau, which says nothing of the rest.
        found.append(middle if middle > 0 else float(np.sqrt(np.mean(sizes**2))))
    return min(found)


def _polynomial(x: Array, y: Array) -> float:
    n = len(x)
    # Beyond 2 sqrt(n) least squares in equidistant points becomes ill-conditioned.
    most = min(3 * n // 4, int(2 * np.sqrt(n)) + 6, n - 3, DEGREE)
    q = np.linalg.qr(chebyshev.chebvander(x, most))[0]
    b = q.T @ y
    b2 = b**2
    left = float(np.sum((y - q @ b) ** 2)) + np.append(np.cumsum(b2[::-1])[::-1][1:], 0.0)
    scores = [aicc(rss, n, d + 1) for d, rss in enumerate(left)]
    best = int(np.argmin(scores))
    return float(np.sqrt(left[best] / (n - best - 1)))


def _rational(x: Array, y: Array) -> float:
    n = len(x)
    best, sd = np.inf, np.inf
    for m, (_, rss, _) in enumerate(iterate(x, y), 1):
        score = aicc(rss, n, 2 * m - 1)
        if score < best:
            best, sd = score, np.sqrt(rss / (n - 2 * m + 1))
    return float(sd)
