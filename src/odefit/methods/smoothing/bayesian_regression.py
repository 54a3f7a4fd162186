"""Bayesian regression in a basis, and the two smoothers based on it.

The variances of noise and prior maximise the marginal likelihood (empirical Bayes); the fit is
averaged over shapes of the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from odefit.common.arrays import Array
from odefit.methods.smoothing.expansion import (
    Basis,
    ChebyshevBasis,
    Expansion,
    average,
    posterior_weights,
)
from odefit.methods.smoothing.noise import noise_level
from odefit.methods.smoothing.smoother import EPS, Interpolant, NormalisedSeries, SeriesSmoother

VARIANCE_RATIOS = np.geomspace(1e-17, 1e2, 58) ** 2
"""Candidates for the noise variance over the prior variance, from rounding to pure noise."""

COARSE_GRID = 14  # number of values of a prior's parameter tried over its whole range
FINE_GRID = 11  # number of values then tried between the neighbours of the best one


@dataclass(frozen=True, eq=False)
class RidgeModel:
    """A linear model with a prior N(0, v I) on its coefficients, in its singular vectors."""

    singular: Array  # singular values of the design, shape (k,)
    projections: Array  # data in the basis of the left singular vectors, shape (k,)
    unexplained: float  # sum of squares of the data outside of that basis
    n: int  # number of data

    def likelihood(
        self, ratios: Array, log_determinants: Array | None = None
    ) -> tuple[Array, Array]:
        """Return -2 log(marginal likelihood) up to a constant, and the prior variance, by ratio.

        With prior variance v and noise variance v r, the data have variance v (s^2 + r) along the
        singular vectors and v r elsewhere. For given r the most likely v is a mean.
        `log_determinants` are the sums of log(s^2 + r) by ratio, if they are known.
        """
        s2, b2, r = self.singular**2, self.projections**2, ratios[:, None]
        variance = ((b2 / (s2 + r)).sum(axis=1) + self.unexplained / ratios) / self.n
        if log_determinants is None:
            log_determinants = np.log(s2 + r).sum(axis=1)
        score = self.n * np.log(np.maximum(variance, 1e-300)) + log_determinants
        return score + (self.n - len(s2)) * np.log(ratios), variance

    def cross_validation(self, ratios: Array) -> tuple[Array, Array]:
        """Return log(generalised cross-validation) and the prior variance, by variance ratio."""
        left = ratios[:, None] / (self.singular**2 + ratios[:, None])
        rss = ((left * self.projections) ** 2).sum(axis=1) + self.unexplained
        freedom = np.maximum(self.n - len(self.singular) + left.sum(axis=1), 1e-300)
        return np.log(np.maximum(rss, 1e-300)) - 2 * np.log(freedom), rss / freedom / ratios


@dataclass(frozen=True)
class Variances:
    """The most likely variances of noise and prior."""

    score: float  # -2 log(marginal likelihood), up to a constant
    ratio: float  # noise variance over prior variance
    prior: float  # prior variance

    @property
    def sd(self) -> float:
        """Standard deviation of the noise."""
        return float(np.sqrt(self.ratio * self.prior))


def most_likely_variances(model: RidgeModel) -> Variances:
    """Return the variances of noise and prior at the maximum of the marginal likelihood."""
    best = int(np.argmin(model.likelihood(VARIANCE_RATIOS)[0]))
    low, high = max(best - 1, 0), min(best + 1, len(VARIANCE_RATIOS) - 1)
    fine = np.geomspace(VARIANCE_RATIOS[low], VARIANCE_RATIOS[high], 33)
    score, variance = model.likelihood(fine)
    best = int(np.argmin(score))
    return Variances(float(score[best]), float(fine[best]), float(variance[best]))


@dataclass(frozen=True)
class PriorFamily:
    """A one-parameter family of priors with independent coefficients."""

    # returns the relative standard deviations for a value of the parameter, shape (m,)
    decay: Callable[[float], Array]
    # range of the parameter
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class OrthogonalisedData:
    """The data of a linear model after a QR factorisation of its design."""

    basis: Basis  # m functions of the model
    triangle: Array  # R, shape (k, m)
    right: Array  # Q^T y, shape (k,)
    unexplained: float  # sum of squares of the data outside of the columns of Q
    n: int  # number of data

    def variances(self, decay: Array) -> Variances:
        """Return the most likely variances with a prior."""
        u, s, _ = np.linalg.svd(self.triangle * decay, full_matrices=False)
        return most_likely_variances(RidgeModel(s, u.T @ self.right, self.unexplained, self.n))

    def posterior(self, decay: Array) -> Expansion:
        """Return the posterior of the coefficients under a prior with its most likely variance.

        The prior is diagonal in the basis. All numbers come from singular values of the design with
        scaled columns, which are accurate to rounding. The matrix of a kernel would lose half the
        digits.
        """
        u, s, vt = np.linalg.svd(self.triangle * decay, full_matrices=True)
        rank = len(s)
        right = (u.T @ self.right)[:rank]
        variances = most_likely_variances(RidgeModel(s, right, self.unexplained, self.n))
        mean = decay * (vt[:rank].T @ (s / (s**2 + variances.ratio) * right))
        # Directions without an effect on the data keep their prior variance.
        shrinkage = np.ones(len(decay))
        shrinkage[:rank] = np.sqrt(variances.ratio / (s**2 + variances.ratio))
        root = np.sqrt(variances.prior) * decay[:, None] * vt.T * shrinkage
        return Expansion(self.basis, mean, root, variances.sd)


def regress(
    x: Array, y: Array, basis: Basis, families: Sequence[PriorFamily]
) -> tuple[Expansion, Array]:
    """Return the posterior, averaged over families of priors and their parameters.

    The second value is the standard deviations of the most likely prior, shape (m,).
    """
    n = len(x)
    q, r = np.linalg.qr(basis.values(x))
    b = q.T @ y
    unexplained = float(np.sum((y - q @ b) ** 2)) if n > r.shape[1] else 0.0
    data = OrthogonalisedData(basis, r, b, unexplained, n)

    decays: list[Array] = []
    scores: list[float] = []
    widths: list[Array] = []
    for family in families:
        known: dict[float, float] = {}
        low, high = np.log(family.low), np.log(family.high)
        for points in (COARSE_GRID, FINE_GRID):
            for log in np.linspace(low, high, points):
                known[float(log)] = data.variances(family.decay(float(np.exp(log)))).score
            logs = np.array(sorted(known))
            best = int(np.argmin([known[log] for log in logs]))
            low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
        decays += [family.decay(float(np.exp(log))) for log in logs]
        scores += [known[log] for log in logs]
        widths.append(np.gradient(logs) / (logs[-1] - logs[0]))
    chosen, weights = posterior_weights(np.array(scores), np.concatenate(widths))
    fit = average([data.posterior(decays[i]) for i in chosen], weights)
    best = int(np.argmin(scores))
    return fit, np.sqrt(data.variances(decays[best]).prior) * decays[best]


FIRST_SIZE = 40
"""The first number of Chebyshev polynomials, doubled while the last one has a prior that is not
negligible."""

MAX_SIZE = 320  # largest number of Chebyshev polynomials: the cost grows with its cube
UNRESOLVED_RATIO = 3.0  # ratio of residuals to noise above which residuals contain a signal


@dataclass(frozen=True)
class GaussianProcess(SeriesSmoother):
    """Bayesian regression on an analytic function, for noisy data and for exact ones.

    The prior is a Gaussian process sum_j c_j T_j(t) over Chebyshev polynomials with independent
    coefficients. Their standard deviations decay like those of analytic functions: like rho^j for
    functions with singularities at a finite distance, or like p^j / j! for those without.
    Exponentials and oscillations have none. Solutions of smooth ODEs are analytic; the marginal
    likelihood determines the rate of decay, the family, and the amount of noise in the data. A
    stationary kernel, such as the squared exponential one, carries less information on derivatives,
    whose errors it magnifies near the ends of the interval.
    """

    name: ClassVar[str] = "Gaussian process"
    min_points: ClassVar[int] = 3

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the posterior mean with as many polynomials as the data require."""
        x, y = series.x, series.y
        # The data cannot distinguish more than two polynomials per datum.
        largest = min(max(FIRST_SIZE, 2 * len(x)), MAX_SIZE)
        noise = noise_level(x, y)
        size = FIRST_SIZE
        while True:
            families = (
                PriorFamily(partial(geometric_decay, size=size), 0.005, 0.97),
                PriorFamily(partial(entire_decay, size=size), 0.02, size / 3),
            )
            fit, prior_sds = regress(x, y, ChebyshevBasis(size), families)
            # The polynomials suffice if the prior allows less than the noise beyond the last one,
            # and if residuals are noise: with few polynomials, fast oscillations look like noise.
            resolved = prior_sds[-1] <= max(fit.sd, EPS) and fit.sd <= UNRESOLVED_RATIO * noise
            if resolved or size >= largest:
                return fit
            size = min(2 * size, largest)


def geometric_decay(rho: float, size: int) -> Array:
    """Return the prior standard deviations rho^j of functions analytic in an ellipse."""
    return rho ** np.arange(size, dtype=float)


def entire_decay(p: float, size: int) -> Array:
    """Return the prior standard deviations min(p^j / j!, 1) of functions analytic everywhere."""
    j = np.arange(size)
    decay: Array = np.exp(np.minimum(j * np.log(p) - gammaln(j + 1), 0.0))
    return decay
