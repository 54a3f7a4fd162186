"""Penalised least squares in B-splines at a cost proportional to the number of data."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpbtrf, dpbtrs

from odefit.methods.smoothing.local_splines import LocalSplines, Rows, breaks_among
from odefit.methods.smoothing.smoother import EPS
from odefit.problem.arrays import Array

STEP = 0.1
"""Of the logarithm of the smoothing by which determinants are differenced."""

ROUNDING = 1e4 * EPS
"""Error of a solution that rounding may make, relative to the data and the amount of smoothing."""


@dataclass(frozen=True, eq=False)
class Series:
    """Normalised data with relative weights.

    Attributes
    ----------
    x, y
        Times and values, shape (n,).
    weights
        Inverse variances relative to their mean, shape (n,).
    """

    x: Array
    y: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimum for one amount of smoothing.

    Attributes
    ----------
    ratio
        The amount, relative to `Penalised.unit`.
    coefficients
        Of the B-splines, shape (m,).
    factor
        Banded Cholesky factor of the normal equations.
    rss
        Weighted sum of squared residuals.
    cost
        The same plus the penalty.
    """

    ratio: float
    coefficients: Array = field(repr=False)
    factor: Array = field(repr=False)
    rss: float
    cost: float

    @property
    def log_determinant(self) -> float:
        """Of the normal equations."""
        return _log_determinant(self.factor)


@dataclass(frozen=True, eq=False)
class Penalised:
    """sum_i w_i (y_i - f(x_i))^2 + lambda * integral of v (f^(p))^2 over B-splines f.

    All matrices are banded: a solution costs O(n p^2), and so does the determinant that
    restricted maximum likelihood asks for. The trace of cross-validation is the derivative of
    that determinant's logarithm, for which differences serve.

    Attributes
    ----------
    series
        Data.
    basis
        The B-splines, of degree 2p - 1.
    local
        v at the Gauss points; None for 1.
    """

    series: Series
    basis: LocalSplines
    local: Array | None = None

    @classmethod
    def in_pieces(cls, series: Series, order: int, pieces: int) -> Penalised:
        """With the derivative of an `order` penalised, and breaks at as many data as asked for."""
        return cls(series, LocalSplines(breaks_among(series.x, pieces), 2 * order - 1))

    def localised(self, local: Array) -> Penalised:
        """The same with another local weight of the penalty, given at the Gauss points."""
        new = Penalised(self.series, self.basis, local)
        # What does not depend on it has been computed.
        for name in ("rows", "gram", "right", "_gauss", "bends", "_inner"):
            new.__dict__[name] = getattr(self, name)
        return new

    @property
    def order(self) -> int:
        """Of the derivative that is penalised, p."""
        return (self.basis.degree + 1) // 2

    @property
    def size(self) -> int:
        """Number of splines."""
        return self.basis.size

    @cached_property
    def rows(self) -> Rows:
        """B-splines at the data."""
        return self.basis.rows(self.series.x)

    @cached_property
    def gram(self) -> Array:
        """Their weighted products, banded."""
        return self.rows.gram(self.series.weights)

    @cached_property
    def right(self) -> Array:
        """Their weighted products with the data."""
        return self.rows.transposed(self.series.weights * self.series.y)

    @property
    def points(self) -> Array:
        """Gauss points, by which squares of the penalised derivative are integrated exactly."""
        return self._gauss[0]

    @property
    def quadrature(self) -> Array:
        """Their weights."""
        return self._gauss[1]

    @cached_property
    def weights(self) -> Array:
        """Their weights times v."""
        return self.quadrature if self.local is None else self.quadrature * self.local

    @cached_property
    def bends(self) -> Rows:
        """p-th derivatives of the B-splines at the Gauss points."""
        return self.basis.rows(self.points, self.order)

    @cached_property
    def penalty(self) -> Array:
        """Their products, banded."""
        return self.bends.gram(self.weights)

    @property
    def unit(self) -> float:
        """The lambda at which data and penalty weigh alike where data are densest."""
        return self._balance[0]

    @property
    def unevenness(self) -> float:
        """How many times that it is where they are sparsest; the rarest tenth set aside."""
        return self._balance[1] / self._balance[0]

    @cached_property
    def _balance(self) -> tuple[float, float]:
        shares = np.sort(self.gram[0] / self.penalty[0])
        rare = self.size // 10
        return float(shares[rare]), float(shares[-1 - rare])

    def solve(self, ratio: float) -> Solution | None:
        """Minimum with lambda = ratio * unit; None where rounding prevents it."""
        strength = ratio * self.unit
        factor, failed = dpbtrf(self.gram + strength * self.penalty, lower=1, overwrite_ab=1)
        if failed:
            return None
        coefficients, _ = dpbtrs(factor, self.right, lower=1)
        residuals = self.series.y - self.rows @ coefficients
        weighted = self.series.weights * residuals
        rss = float(weighted @ residuals)
        # At the minimum rss + penalty is the product of data and residuals.
        cost = float(weighted @ self.series.y)
        lost = ROUNDING * max(ratio, 1.0)
        if rss < lost**2 * len(residuals) or cost < lost * len(residuals):
            # Rounding shows. Strong smoothing makes the equations ill-conditioned, not so the
            # residuals, with which one step more is taken.
            pull = self.rows.transposed(weighted)
            bend = self.bends.transposed(self.weights * (self.bends @ coefficients))
            coefficients += dpbtrs(factor, pull - strength * bend, lower=1)[0]
            residuals = self.series.y - self.rows @ coefficients
            rss = float(self.series.weights @ residuals**2)
            cost = rss + strength * float(self.weights @ (self.bends @ coefficients) ** 2)
        return Solution(ratio, coefficients, factor, rss, cost)

    def likelihood(self, found: Solution) -> tuple[float, float]:
        """-2 log(restricted likelihood) up to a constant of data and basis, and the noise.

        Polynomials of degree below p are free, deviations from them a priori Gaussian with
        the inverse of the penalty for covariance, the data's noise the rest.
        """
        free = len(self.series.x) - self.order
        variance = max(found.cost / free, EPS**2)
        score = free * np.log(variance) + found.log_determinant - self._prior(found.ratio)
        return float(score), float(np.sqrt(variance))

    def cross_validation(self, found: Solution) -> tuple[float, float]:
        """N log(generalised cross-validation), and the noise."""
        n = len(self.series.x)
        freedom = max(n - self.parameters(found.ratio), 1e-3)
        score = n * (np.log(max(found.rss, EPS**2)) - 2 * np.log(freedom))
        return float(score), float(np.sqrt(found.rss / freedom))

    def parameters(self, ratio: float) -> float:
        """Effective number of parameters: the trace of the matrix from data to fitted values."""
        logs = []
        for log in (STEP, -STEP):
            strength = ratio * np.exp(log) * self.unit
            factor, failed = dpbtrf(self.gram + strength * self.penalty, lower=1, overwrite_ab=1)
            if failed:
                return float(self.order)
            logs.append(_log_determinant(factor))
        return self.size - (logs[0] - logs[1]) / (2 * STEP)

    def _prior(self, ratio: float) -> float:
        """What the determinant of the normal equations tends to with much smoothing.

        There it is that of the penalty on p-th derivatives times what depends on basis and data
        alone: likelihoods compare across local weights by it.
        """
        return (self.size - self.order) * float(np.log(ratio * self.unit)) + self._bent

    @cached_property
    def _gauss(self) -> tuple[Array, Array]:
        nodes, weights = np.polynomial.legendre.leggauss(self.order)
        breaks = self.basis.breaks
        half = np.diff(breaks)[:, None] / 2
        return (breaks[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()

    @cached_property
    def _inner(self) -> Rows:
        """B-splines of which p-th derivatives consist, at the Gauss points."""
        return LocalSplines(self.basis.breaks, self.order - 1).rows(self.points)

    @cached_property
    def _bent(self) -> float:
        factor, _ = dpbtrf(self._inner.gram(self.weights), lower=1, overwrite_ab=1)
        return _log_determinant(factor)


def _log_determinant(factor: Array) -> float:
    return 2 * float(np.log(factor[0]).sum())
