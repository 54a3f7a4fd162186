"""Penalised least squares in B-splines at a cost proportional to the number of data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpbtrf, dpbtrs

from odefit.methods.smoothing.bsplines import BandedRows, BSplines, breakpoints_among
from odefit.methods.smoothing.smoother import EPS, NormalisedSeries
from odefit.problem.arrays import Array

LOG_STEP = 0.1
"""The step in the logarithm of the smoothing parameter by which determinants are differenced."""

ROUNDING_MARGIN = 1e4 * EPS
"""The error that rounding may cause in a solution, relative to data and smoothing parameter."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimum for one value of the smoothing parameter.

    Attributes
    ----------
    ratio
        Smoothing parameter over `PenalisedProblem.unit`.
    coefficients
        Coefficients of the B-splines, shape (m,).
    factor
        Banded Cholesky factor of the normal equations.
    rss
        Weighted sum of squared residuals.
    cost
        The weighted sum of squared residuals plus the penalty.
    """

    ratio: float
    coefficients: Array = field(repr=False)
    factor: Array = field(repr=False)
    rss: float
    cost: float


@dataclass(frozen=True, eq=False)
class PenalisedProblem:
    """sum_i w_i (y_i - f(x_i))^2 + lambda * integral of v (f^(p))^2 over B-splines f.

    All matrices are banded: a solution costs O(n p^2), and so does the determinant in the
    restricted likelihood. The trace in cross-validation is the derivative of that determinant's
    logarithm, which is found by differences.

    Attributes
    ----------
    series
        The normalised data.
    basis
        The B-splines, of degree 2p - 1.
    local_weights
        v at the Gauss points; None for 1.
    """

    series: NormalisedSeries
    basis: BSplines
    local_weights: Array | None = None

    @classmethod
    def in_pieces(cls, series: NormalisedSeries, order: int, pieces: int) -> PenalisedProblem:
        """Return the problem with a penalty on the derivative of an `order`, in some pieces."""
        return cls(series, BSplines(breakpoints_among(series.x, pieces), 2 * order - 1))

    def with_local_weights(self, local_weights: Array) -> PenalisedProblem:
        """Return the problem with other local weights of the penalty, given at the Gauss points."""
        other = replace(self, local_weights=local_weights)
        # What does not depend on the weights is not computed again.
        for name in ("rows", "gram", "right", "_gauss", "derivatives", "_derivative_basis"):
            other.__dict__[name] = getattr(self, name)
        return other

    @property
    def order(self) -> int:
        """The order p of the derivative that is penalised."""
        return (self.basis.degree + 1) // 2

    @property
    def size(self) -> int:
        """The number of B-splines, m."""
        return self.basis.size

    @cached_property
    def rows(self) -> BandedRows:
        """The B-splines at the data."""
        return self.basis.rows(self.series.x)

    @cached_property
    def gram(self) -> Array:
        """The weighted products of the B-splines at the data, banded."""
        return self.rows.gram(self.series.weights)

    @cached_property
    def right(self) -> Array:
        """The weighted products of the B-splines with the data, shape (m,)."""
        return self.rows.transposed(self.series.weights * self.series.y)

    @property
    def points(self) -> Array:
        """The Gauss points, by which squares of the penalised derivative are integrated exactly."""
        return self._gauss[0]

    @property
    def quadrature(self) -> Array:
        """The quadrature weights of the Gauss points."""
        return self._gauss[1]

    @cached_property
    def weights(self) -> Array:
        """The quadrature weights times v."""
        return self.quadrature * (1.0 if self.local_weights is None else self.local_weights)

    @cached_property
    def derivatives(self) -> BandedRows:
        """The p-th derivatives of the B-splines at the Gauss points."""
        return self.basis.rows(self.points, self.order)

    @cached_property
    def penalty(self) -> Array:
        """The weighted products of the p-th derivatives, banded."""
        return self.derivatives.gram(self.weights)

    @property
    def unit(self) -> float:
        """The lambda at which data and penalty have equal weights where data are densest."""
        return self._densities[0]

    @property
    def unevenness(self) -> float:
        """The same lambda where data are sparsest over `unit`, the rarest tenth left out."""
        return self._densities[1] / self._densities[0]

    @cached_property
    def _densities(self) -> tuple[float, float]:
        ratios = np.sort(self.gram[0] / self.penalty[0])
        rare = self.size // 10
        return float(ratios[rare]), float(ratios[-1 - rare])

    def solve(self, ratio: float) -> Solution | None:
        """Return the minimum with lambda = ratio * unit; None where rounding prevents it."""
        smoothing = ratio * self.unit
        factor = self._factor(smoothing)
        if factor is None:
            return None
        coefficients, _ = dpbtrs(factor, self.right, lower=1)
        residuals = self.series.y - self.rows @ coefficients
        weighted = self.series.weights * residuals
        rss = float(weighted @ residuals)
        # At the minimum rss + penalty is the product of data and residuals.
        cost = float(weighted @ self.series.y)
        lost = ROUNDING_MARGIN * max(ratio, 1.0)
        if rss < lost**2 * len(residuals) or cost < lost * len(residuals):
            # Rounding shows. Strong smoothing makes the equations ill-conditioned but not the
            # residuals, with which one step of iterative refinement is taken.
            misfit = self.rows.transposed(weighted)
            bending = self.weights * (self.derivatives @ coefficients)
            gradient = misfit - smoothing * self.derivatives.transposed(bending)
            coefficients += dpbtrs(factor, gradient, lower=1)[0]
            residuals = self.series.y - self.rows @ coefficients
            rss = float(self.series.weights @ residuals**2)
            penalty = float(self.weights @ (self.derivatives @ coefficients) ** 2)
            cost = rss + smoothing * penalty
        return Solution(ratio, coefficients, factor, rss, cost)

    def likelihood(self, solution: Solution) -> tuple[float, float]:
        """Return -2 log(restricted likelihood) and the standard deviation of the noise.

        Polynomials of degree below p are free; deviations from them are a priori Gaussian with
        the inverse of the penalty for covariance, and the rest of the data is noise. The constant
        that is left out depends on data and basis alone, so that likelihoods compare across local
        weights too.
        """
        free = len(self.series.x) - self.order
        variance = max(solution.cost / free, EPS**2)
        # With much smoothing the determinant of the normal equations tends to that of the penalty
        # on p-th derivatives, times what depends on basis and data alone.
        prior = (self.size - self.order) * float(np.log(solution.ratio * self.unit))
        prior += self._log_prior_determinant
        score = free * np.log(variance) + _log_determinant(solution.factor) - prior
        return float(score), float(np.sqrt(variance))

    def cross_validation(self, solution: Solution) -> tuple[float, float]:
        """Return n log(generalised cross-validation) and the standard deviation of the noise."""
        n = len(self.series.x)
        freedom = max(n - self.effective_parameters(solution.ratio), 1e-3)
        score = n * (np.log(max(solution.rss, EPS**2)) - 2 * np.log(freedom))
        return float(score), float(np.sqrt(solution.rss / freedom))

    def effective_parameters(self, ratio: float) -> float:
        """Return the trace of the matrix that maps data to fitted values."""
        logs = []
        for step in (LOG_STEP, -LOG_STEP):
            factor = self._factor(ratio * np.exp(step) * self.unit)
            if factor is None:
                return float(self.order)
            logs.append(_log_determinant(factor))
        return self.size - (logs[0] - logs[1]) / (2 * LOG_STEP)

    def _factor(self, smoothing: float) -> Array | None:
        """Return the banded Cholesky factor of the normal equations; None if they are singular."""
        factor, failed = dpbtrf(self.gram + smoothing * self.penalty, lower=1, overwrite_ab=1)
        return None if failed else factor

    @cached_property
    def _gauss(self) -> tuple[Array, Array]:
        return self.basis.gauss_points(self.order)

    @cached_property
    def _derivative_basis(self) -> BandedRows:
        """The B-splines of which p-th derivatives consist, at the Gauss points."""
        return BSplines(self.basis.breakpoints, self.order - 1).rows(self.points)

    @cached_property
    def _log_prior_determinant(self) -> float:
        """The log determinant of the penalty as a function of p-th derivatives."""
        gram = self._derivative_basis.gram(self.weights)
        return _log_determinant(dpbtrf(gram, lower=1, overwrite_ab=1)[0])


def _log_determinant(factor: Array) -> float:
    """Return the log determinant of a matrix with a banded Cholesky factor."""
    return 2 * float(np.log(factor[0]).sum())
