"""Poisson counts, whose variance is their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise_distributions.counts import (
    LEAST_DISPERSION,
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


@dataclass(frozen=True)
class Poisson(NoiseDistribution):
    """The Poisson distribution, whose variance is its mean: the spread is ignored."""

    words: ClassVar[str] = "Poisson counts"
    located: ClassVar[bool] = False
    counts: ClassVar[bool] = True
    spread_field: ClassVar[Literal["sd", "dispersion"]] = "dispersion"
    spread_words: ClassVar[str] = "dispersion"
    has_spread: ClassVar[bool] = False
    least: ClassVar[float] = 0.0
    requirement: ClassVar[str] = POSITIVE_MEAN

    def terms(self, predicted: Array, measured: Array, spread: Array) -> Terms:
        """Return the contributions of counts."""
        from scipy.special import gammaln, xlogy

        m, y = positive_means(predicted), measured
        some = y > 0
        base = np.where(some, y, 1.0)
        u, ratio = (m - base) / base, m / base
        half = np.sqrt(bend(u, ratio))
        root = np.sqrt(2 * m)
        zeros = np.zeros(len(m))
        return Terms(
            np.where(some, np.sqrt(base) * u * half, root),
            np.where(some, 1 / (ratio * np.sqrt(base) * half), 1 / root),
            (m - y) / np.sqrt(m),
            zeros,
            gammaln(y + 1) - xlogy(y, y) + y - math.log(ROOT_TWO_PI),
            zeros,
            zeros,
        )

    def information(self, predicted: Array, spread: Array, spread_is_fixed: bool = False) -> Array:
        """Return the Fisher information of the means."""
        mean = positive_means(predicted)
        zeros = np.zeros(len(mean))
        return np.column_stack([1 / np.sqrt(mean), zeros, zeros])

    def expected_residuals(self, predicted: Array, spread: Array) -> Array:
        """Return the expectations of the deviance residuals, as sums over counts."""
        mean = positive_means(predicted)
        y, weights = likely_counts(mean, np.full(len(mean), LEAST_DISPERSION))
        means = np.repeat(mean, y.shape[1])
        residuals = self.terms(means, y.ravel(), means).residuals.reshape(y.shape)
        return np.asarray((weights * residuals).sum(axis=1))

    def sds(self, mean: Array, spread: Array) -> Array:
        """Return the roots of the means."""
        return count_sds(mean, 0.0)

    def probabilities(
        self, predicted: Array, measured: Array, spread: Array
    ) -> tuple[Array, Array]:
        """Return the probabilities of less than a count, and of at most that."""
        from scipy.special import pdtr

        mean = positive_means(predicted)
        least = np.where(measured > 0, pdtr(np.maximum(measured - 1.0, 0.0), mean), 0.0)
        return least, np.asarray(pdtr(measured, mean))

    def random_values(self, predicted: Array, sds: Array, random: np.random.Generator) -> Array:
        """Return counts with these means."""
        return random.poisson(np.maximum(predicted, 0.0)).astype(float)
