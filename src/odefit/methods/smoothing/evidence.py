"""How much of the data is noise: marginal likelihood and cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import Array

RATIOS = np.geomspace(1e-17, 1e2, 58) ** 2
"""Noise variance over prior variance: candidates, from rounding to nothing but noise."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """A linear model with a prior N(0, v I) on its coefficients, in its singular vectors.

    Attributes
    ----------
    singular
        Singular values of the design, shape (k,).
    projections
        Data in the basis of its left singular vectors, shape (k,).
    left
        Sum of squares of the data outside of these.
    n
        Number of data.
    """

    singular: Array
    projections: Array
    left: float
    n: int

    def likelihood(self, ratios: Array) -> tuple[Array, Array]:
        """-2 log(marginal likelihood) up to a constant, and the prior variance, by ratio.

        With prior variance v and noise variance v r, the data have variance v (s^2 + r) along
        the singular vectors and v r elsewhere. For given r the most likely v is a mean.
        """
        s2, b2, r = self.singular**2, self.projections**2, ratios[:, None]
        variance = ((b2 / (s2 + r)).sum(axis=1) + self.left / ratios) / self.n
        score = self.n * np.log(np.maximum(variance, 1e-300)) + np.log(s2 + r).sum(axis=1)
        return score + (self.n - len(s2)) * np.log(ratios), variance

    def cross_validation(self, ratios: Array) -> tuple[Array, Array]:
        """Logarithm of the generalised cross-validation score, and the prior variance."""
        kept = ratios[:, None] / (self.singular**2 + ratios[:, None])
        rss = ((kept * self.projections) ** 2).sum(axis=1) + self.left
        freedom = np.maximum(self.n - len(self.singular) + kept.sum(axis=1), 1e-300)
        return np.log(np.maximum(rss, 1e-300)) - 2 * np.log(freedom), rss / freedom / ratios


@dataclass(frozen=True)
class Balance:
    """How much is noise.

    Attributes
    ----------
    score
        -2 log(marginal likelihood), up to a constant.
    ratio
        Noise variance over prior variance.
    variance
        Prior variance.
    """

    score: float
    ratio: float
    variance: float

    @property
    def sd(self) -> float:
        """Standard deviation of the noise."""
        return float(np.sqrt(self.ratio * self.variance))


def balance(model: Reduced) -> Balance:
    """The most likely split of data into signal and noise."""
    best = int(np.argmin(model.likelihood(RATIOS)[0]))
    fine = np.geomspace(RATIOS[max(best - 1, 0)], RATIOS[min(best + 1, len(RATIOS) - 1)], 33)
    score, variance = model.likelihood(fine)
    best = int(np.argmin(score))
    return Balance(float(score[best]), float(fine[best]), float(variance[best]))
