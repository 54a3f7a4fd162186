"""Negative binomial counts: the variance is m + a m^2 for the mean m and the dispersion a.

Mean and dispersion are orthogonal: the Fisher information has no terms that mix them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise_distributions.counts import (
    LEAST_DISPERSION,
    LEAST_MEAN,
    POSITIVE_MEAN,
    bend,
    count_sds,
    likely_counts,
    positive_means,
)
from odefit.problem.noise_distributions.distribution import (
    ROOT_TWO_PI,
    NoiseDistribution,
    Terms,
)

LARGE_SHAPE = 30.0
"""Smallest reciprocal dispersion for which sums over counts use their asymptotic expansion."""


@dataclass(frozen=True)
class NegativeBinomial(NoiseDistribution):
    """The negative binomial distribution; the spread is its dispersion."""

    words: ClassVar[str] = "negative binomial counts"
    located: ClassVar[bool] = False
    counts: ClassVar[bool] = True
    spread_field: ClassVar[Literal["sd", "dispersion"]] = "dispersion"
    spread_words: ClassVar[str] = "dispersion"
    # from nearly Poisson to widely scattered
    spread_range: ClassVar[tuple[float, float] | None] = (1e-3, 10.0)
    least: ClassVar[float] = 0.0
    requirement: ClassVar[str] = POSITIVE_MEAN

    def terms(self, predicted: Array, measured: Array, spread: Array) -> Terms:
        """Return the contributions of counts."""
        from scipy.special import betaln, gammaln, xlogy

        m, y, a = positive_means(predicted), measured, _positive(spread)
        k = 1 / a
        some = y > 0
        base = np.where(some, y, 1.0)
        d = m - base
        half = bend(d / base, m / base) / base
        half -= bend(d / (base + k), (m + k) / (base + k)) / (base + k)
        root = np.sqrt(half)
        none = np.sqrt(2 * k * np.log1p(a * m))
        # The part left by the mean of the saturated model, which is the count itself:
        shape = np.where(some, gammaln(base) - betaln(base, k), 0.0)  # log G(y + k) - log G(k)
        saturated = shape + np.log(a) * y - (y + k) * np.log1p(a * y) + xlogy(y, y)
        large = np.maximum(np.maximum(m, y), 0.5)
        variance = m * (1 + a * m)
        return Terms(
            np.where(some, d * root, none),
            np.where(some, k / (m * (m + k) * root), 1 / ((1 + a * m) * none)),
            (m - y) / np.sqrt(variance),
            # The factorial is a constant; without it the sum would be huge, and stopping rules
            # relative to it lax.
            gammaln(y + 1) - math.log(ROOT_TWO_PI) - saturated,
            np.zeros(len(m)),
            -_score(m, y, a),
            math.sqrt(0.5) * large / (1 + a * large),
        )

    def information(self, predicted: Array, spread: Array, spread_is_fixed: bool = False) -> Array:
        """Return the Fisher information of means and dispersions; for the latter it is a sum."""
        m, a = positive_means(predicted), _positive(spread)
        zeros = np.zeros(len(m))
        scale = zeros
        if not spread_is_fixed:
            y, weights = likely_counts(m, a)
            ones = np.ones_like(y)
            squares = _score(m[:, None] * ones, y, a[:, None] * ones) ** 2
            scale = np.sqrt(np.asarray((weights * squares).sum(axis=1)))
        variance = m * (1 + a * m)
        return np.column_stack([1 / np.sqrt(variance), zeros, scale])

    def expected_residuals(self, predicted: Array, spread: Array) -> Array:
        """Return the expectations of the deviance residuals, as sums over counts."""
        m, a = positive_means(predicted), _positive(spread)
        y, weights = likely_counts(m, a)
        each = [np.repeat(values, y.shape[1]) for values in (m, a)]
        residuals = self.terms(each[0], y.ravel(), each[1]).residuals.reshape(y.shape)
        return np.asarray((weights * residuals).sum(axis=1))

    def sds(self, mean: Array, spread: Array) -> Array:
        """Return the roots of m + a m^2."""
        return count_sds(mean, spread)

    def spreads(self, mean: Array, sds: Array) -> Array:
        """Return the dispersions of counts with these means and standard deviations."""
        mean = np.maximum(mean, LEAST_MEAN)
        return np.asarray(np.maximum(sds**2 - mean, 0.0) / mean**2)

    def probabilities(
        self, predicted: Array, measured: Array, spread: Array
    ) -> tuple[Array, Array]:
        """Return the probabilities of less than a count, and of at most that."""
        from scipy.special import betainc

        m, k = positive_means(predicted), 1.0 / _positive(spread)
        share = k / (k + m)
        least = np.where(measured > 0, betainc(k, np.maximum(measured, 1.0), share), 0.0)
        return least, np.asarray(betainc(k, measured + 1.0, share))

    def random_values(self, predicted: Array, sds: Array, random: np.random.Generator) -> Array:
        """Return Poisson counts whose means have a gamma distribution."""
        mean = np.maximum(predicted, 0.0)
        square = np.maximum(sds**2 - mean, 0.0)
        shape = np.divide(mean**2, square, out=np.full(len(mean), math.inf), where=square > 0)
        spread = (shape < 1e12) & (mean > 0)
        shape = np.where(spread, shape, 1.0)
        drawn = random.gamma(shape, 1.0) * mean / shape
        return random.poisson(np.where(spread, drawn, mean)).astype(float)


def _positive(dispersion: Array) -> Array:
    return np.where(dispersion >= 0, np.maximum(dispersion, LEAST_DISPERSION), math.nan)


def _score(m: Array, y: Array, a: Array) -> Array:
    """Return the derivative of the negative binomial log-density by the dispersion."""
    from scipy.special import digamma

    k = 1 / a
    # The sum of j/(1 + a j) over j < y, by its asymptotic expansion where a is small:
    t = y / k
    ratio = 1 / (1 + t)
    small = 0.5 * k * k * t * t * bend(t, 1 + t) - 0.5 * y * ratio
    small += -(1 - ratio**2) / 12 + (1 - ratio**4) / (120 * k * k)
    near = np.minimum(k, 10 * LARGE_SHAPE)
    exact = near * (y - near * (digamma(y + near) - digamma(near)))
    t = a * m
    mixed = k * k * t * t * (1 / (1 + t) - 0.5 * bend(t, 1 + t))
    return np.where(k > LARGE_SHAPE, small, exact) + mixed - y * m / (1 + t)
