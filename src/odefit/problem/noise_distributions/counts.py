"""Functions shared by the distributions of counts; the observable is their mean m.

The variance is m for Poisson counts and m + a m^2 for negative binomial ones with the dispersion a,
which tends to the former as a goes to zero (P. McCullagh and J. A. Nelder, Generalized Linear
Models, 1989, chapters 6 and 11).
"""

from __future__ import annotations

import math

import numpy as np

from odefit.common.arrays import Array

LEAST_MEAN = 1e-12
"""Mean that replaces a mean of zero."""

NEGATIVE_MEAN = -1e-6
"""Means below this count as zero, because integration is not more accurate."""

LEAST_DISPERSION = 1e-12
"""Dispersion that replaces zero."""

SERIES_RANGE = 0.1
"""Argument below which u - log(1 + u) is summed as a series."""

SERIES_TERMS = 16
"""Number of terms of the series."""

NODES = 80
"""Number of counts in each of three rows of nodes for expectations."""

POSITIVE_MEAN = "the mean of counts must be positive"


def positive_means(predicted: Array) -> Array:
    """Return positive means; NaN where a mean is invalid."""
    near_zero = (predicted > NEGATIVE_MEAN) & (predicted < LEAST_MEAN)
    mean = np.where(near_zero, LEAST_MEAN, predicted)
    return np.where(mean > 0, mean, math.nan)


def count_sds(mean: Array, dispersion: Array | float) -> Array:
    """Return the standard deviations of counts."""
    return np.asarray(np.sqrt(np.maximum(mean, LEAST_MEAN) * (1 + dispersion * mean)))


def likely_counts(m: Array, a: Array) -> tuple[Array, Array]:
    """Return some counts, and weights that turn sums over them into expectations, shape (n, k).

    The counts are all small ones, and trapezoidal nodes among the others.
    """
    from scipy.special import betaln, xlog1py, xlogy

    m, a = m[:, None], a[:, None]
    sd = np.sqrt(m * (1 + a * m))
    most = np.ceil(m + 12 * sd + 40 * (1 + a * m))
    shares = np.linspace(0.0, 1.0, NODES)
    around = np.clip(m + sd * np.linspace(-8.0, 12.0, NODES), 0.0, None)
    small = np.arange(float(NODES)) * np.ones_like(m)
    nodes = np.concatenate([small, NODES * (most / NODES) ** shares, around], axis=1)
    y = np.sort(np.round(np.minimum(nodes, np.maximum(most, NODES))), axis=1)
    between = np.diff(y, axis=1)
    # A repeated node has zero width; an isolated one has the width of a count.
    left = np.concatenate([np.ones_like(m), between], axis=1)
    right = np.concatenate([between, np.ones_like(m)], axis=1)
    width = 0.5 * (left + right)
    k = 1 / a
    positive = np.maximum(y, 1.0)
    shape = np.where(y > 0, -betaln(positive, k) - np.log(positive), 0.0)
    weights = width * np.exp(shape + xlogy(y, a * m) - xlog1py(y + k, a * m))
    return y, weights / weights.sum(axis=1, keepdims=True)


def bend(u: Array, above: Array) -> Array:
    """Return 2 (u - log(1 + u)) / u^2, which is one at u = 0, for u > -1.

    `above` is 1 + u, which stays accurate where u is close to -1.
    """
    near = np.abs(u) < SERIES_RANGE
    inside = np.where(near, u, 0.0)
    total = np.zeros_like(u)
    for n in range(SERIES_TERMS + 1, 1, -1):
        total = 1.0 / n - inside * total
    outside = np.where(near, 1.0, u)
    logarithm = np.where(outside < -0.5, np.log(above), np.log1p(outside))
    return np.where(near, 2 * total, 2 * (outside - logarithm) / outside**2)
