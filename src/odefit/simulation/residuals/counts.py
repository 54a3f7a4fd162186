"""Counts: Poisson and negative binomial densities as residuals.

The observable is the mean m of the counts. The variance is m for Poisson counts and m + a m^2 for
negative binomial ones with the dispersion a, which tends to the former as a goes to zero
(P. McCullagh and J. A. Nelder, Generalized Linear Models, 1989, chapters 6 and 11).
Mean and dispersion are orthogonal: the Fisher information has no terms that mix them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.residuals.densities import ROOT_TWO_PI, Density, Terms

LEAST_MEAN = 1e-12
"""Mean that stands for one that is zero."""

NEGATIVE_MEAN = -1e-6
"""Means down to this count as zero: the integration is no more accurate."""

LEAST_DISPERSION = 1e-12
"""Dispersion that stands for zero."""

SERIES_RANGE = 0.1
"""Argument up to which u - log(1 + u) is summed as a series."""

SERIES_TERMS = 16
"""Number of terms of the series."""

NODES = 80
"""Number of counts in each of three rows of nodes for the information of the dispersion."""

LARGE_SHAPE = 30.0
"""Reciprocal of the dispersion from which sums over counts are taken from their asymptotic
expansion."""


@dataclass(frozen=True, eq=False)
class Counts(Density):
    """The density of counts; its scale is the dispersion."""

    def terms(self, predicted: Array, measured: Array, scale: Array) -> Terms:
        """Return what the counts contribute; their means are `predicted`."""
        mean, dispersion = self._parameters(predicted, scale)
        if self.noise.distribution == "poisson":
            return _poisson(mean, measured)
        return _negative_binomial(mean, measured, dispersion)

    def information(self, predicted: Array, scale: Array) -> Array:
        """Return the Fisher information of means and dispersions."""
        mean, dispersion = self._parameters(predicted, scale)
        zeros = np.zeros(len(mean))
        if self.noise.distribution == "poisson":
            return np.column_stack([1 / np.sqrt(mean), zeros, zeros])
        spread = zeros
        if not isinstance(self.noise.dispersion, float):
            spread = np.sqrt(_information_of_dispersion(mean, dispersion))
        variance = mean * (1 + dispersion * mean)
        return np.column_stack([1 / np.sqrt(variance), zeros, spread])

    def expected_residuals(self, predicted: Array, scale: Array) -> Array:
        """Return the expectations of the deviance residuals; means and dispersions are given."""
        mean, dispersion = self._parameters(predicted, scale)
        if self.noise.distribution == "poisson":
            dispersion = np.full(len(mean), LEAST_DISPERSION)
        y, weights = _likely_counts(mean, dispersion)
        each = [np.repeat(values, y.shape[1]) for values in (mean, dispersion)]
        residuals = self.terms(each[0], y.ravel(), each[1]).residuals.reshape(y.shape)
        return np.asarray((weights * residuals).sum(axis=1))

    def _parameters(self, predicted: Array, scale: Array) -> tuple[Array, Array]:
        """Return means and dispersions that are positive, NaN where they cannot be."""
        near_zero = (predicted > NEGATIVE_MEAN) & (predicted < LEAST_MEAN)
        mean = np.where(near_zero, LEAST_MEAN, predicted)
        dispersion = np.where(scale >= 0, np.maximum(scale, LEAST_DISPERSION), math.nan)
        return np.where(mean > 0, mean, math.nan), dispersion


def _poisson(m: Array, y: Array) -> Terms:
    from scipy.special import gammaln, xlogy

    some = y > 0
    base = np.where(some, y, 1.0)
    u, ratio = (m - base) / base, m / base
    bend = np.sqrt(_bend(u, ratio))
    root = np.sqrt(2 * m)
    zeros = np.zeros(len(m))
    return Terms(
        np.where(some, np.sqrt(base) * u * bend, root),
        np.where(some, 1 / (ratio * np.sqrt(base) * bend), 1 / root),
        (m - y) / np.sqrt(m),
        zeros,
        gammaln(y + 1) - xlogy(y, y) + y - math.log(ROOT_TWO_PI),
        zeros,
        zeros,
    )


def _negative_binomial(m: Array, y: Array, a: Array) -> Terms:
    from scipy.special import betaln, gammaln, xlogy

    k = 1 / a
    some = y > 0
    base = np.where(some, y, 1.0)
    d = m - base
    half = _bend(d / base, m / base) / base
    half -= _bend(d / (base + k), (m + k) / (base + k)) / (base + k)
    root = np.sqrt(half)
    none = np.sqrt(2 * k * np.log1p(a * m))
    # What the mean of the saturated model, the count itself, leaves:
    shape = np.where(some, gammaln(base) - betaln(base, k), 0.0)  # log G(y + k) - log G(k)
    saturated = shape + np.log(a) * y - (y + k) * np.log1p(a * y) + xlogy(y, y)
    large = np.maximum(np.maximum(m, y), 0.5)
    variance = m * (1 + a * m)
    return Terms(
        np.where(some, d * root, none),
        np.where(some, k / (m * (m + k) * root), 1 / ((1 + a * m) * none)),
        (m - y) / np.sqrt(variance),
        # With the factorial, a constant: the sum would be huge without it, and stopping rules
        # relative to the sum lax.
        gammaln(y + 1) - math.log(ROOT_TWO_PI) - saturated,
        np.zeros(len(m)),
        -_score(m, y, a),
        math.sqrt(0.5) * large / (1 + a * large),
    )


def _score(m: Array, y: Array, a: Array) -> Array:
    """Return the derivative of the negative binomial log-density by the dispersion."""
    from scipy.special import digamma

    k = 1 / a
    # The sum of j/(1 + a j) over j < y, by its asymptotic expansion where a is small:
    t = y / k
    ratio = 1 / (1 + t)
    small = 0.5 * k * k * t * t * _bend(t, 1 + t) - 0.5 * y * ratio
    small += -(1 - ratio**2) / 12 + (1 - ratio**4) / (120 * k * k)
    near = np.minimum(k, 10 * LARGE_SHAPE)
    exact = near * (y - near * (digamma(y + near) - digamma(near)))
    t = a * m
    mixed = k * k * t * t * (1 / (1 + t) - 0.5 * _bend(t, 1 + t))
    return np.where(k > LARGE_SHAPE, small, exact) + mixed - y * m / (1 + t)


def _information_of_dispersion(m: Array, a: Array) -> Array:
    """Return the expectation of the squared score, as a sum over some counts, shape (n,)."""
    y, weights = _likely_counts(m, a)
    ones = np.ones_like(y)
    squares = _score(m[:, None] * ones, y, a[:, None] * ones) ** 2
    return np.asarray((weights * squares).sum(axis=1))


def _likely_counts(m: Array, a: Array) -> tuple[Array, Array]:
    """Return some counts, and weights with which sums over them are expectations, shape (n, k).

    The counts are all small ones, and nodes of the trapezoidal rule among the others.
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
    # A node that stands twice has no width of its own; next to others, one is as wide as a count.
    left = np.concatenate([np.ones_like(m), between], axis=1)
    right = np.concatenate([between, np.ones_like(m)], axis=1)
    width = 0.5 * (left + right)
    k = 1 / a
    positive = np.maximum(y, 1.0)
    shape = np.where(y > 0, -betaln(positive, k) - np.log(positive), 0.0)
    weights = width * np.exp(shape + xlogy(y, a * m) - xlog1py(y + k, a * m))
    return y, weights / weights.sum(axis=1, keepdims=True)


def _bend(u: Array, above: Array) -> Array:
    """Return 2 (u - log(1 + u)) / u^2, which is one at u = 0, for u > -1.

    `above` is 1 + u, which keeps its digits where u is close to -1.
    """
    near = np.abs(u) < SERIES_RANGE
    inside = np.where(near, u, 0.0)
    total = np.zeros_like(u)
    for n in range(SERIES_TERMS + 1, 1, -1):
        total = 1.0 / n - inside * total
    outside = np.where(near, 1.0, u)
    logarithm = np.where(outside < -0.5, np.log(above), np.log1p(outside))
    return np.where(near, 2 * total, 2 * (outside - logarithm) / outside**2)
