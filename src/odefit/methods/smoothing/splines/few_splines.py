"""Penalised least squares in a few B-splines, to the last digit.

Factorisations are orthogonal and dense, so that smoothing parameters can be distinguished down to
rounding errors. Quantities that do not depend on the measured values are shared by all series at
the same times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.smoothing.bayesian_regression import VARIANCE_RATIOS, RidgeModel
from odefit.methods.smoothing.expansion import Expansion, average, posterior_weights
from odefit.methods.smoothing.smoother import EPS, NormalisedSeries
from odefit.methods.smoothing.splines.bsplines import BSplines

CANDIDATES_PER_RATIO = 4  # smoothing parameters from one of `VARIANCE_RATIOS` to the next
MAX_SHARED_SIZE = 1000  # largest number of times whose factorisations are kept
MAX_SHARED_DESIGNS = 8  # factorisations kept for other series at the same times


def _candidates() -> Array:
    """Return the candidates for the smoothing parameter, as noise over prior variance."""
    grid = np.arange(CANDIDATES_PER_RATIO * (len(VARIANCE_RATIOS) - 1) + 1)
    known = CANDIDATES_PER_RATIO * np.arange(len(VARIANCE_RATIOS))
    return np.exp(np.interp(grid, known, np.log(VARIANCE_RATIOS)))


CANDIDATES = _candidates()


@dataclass(frozen=True, eq=False)
class FewSplines:
    """B-splines on equal intervals at the times of the data, as a mixed model.

    Polynomials of degree below p are free; deviations from them are a priori Gaussian. An
    orthogonal factorisation eliminates the polynomials, and another one diagonalises the
    deviations.
    """

    basis: BSplines  # m B-splines, of degree 2p - 1
    roots: Array  # roots of the weights of the data, shape (n,)
    # orthonormal basis of the span of the B-splines at the data, shape (n, k)
    q: Array = field(repr=False)
    # singular values and left singular vectors of the deviations, where they do not act as
    # polynomials do
    singular: Array = field(repr=False)
    left: Array = field(repr=False)
    # coefficients of the deviations along these singular vectors, shape (m, r)
    directions: Array = field(repr=False)
    # coefficients of the polynomials for each of the first p projections, shape (m, p)
    polynomials: Array = field(repr=False)

    @classmethod
    def of(cls, x: Array, weights: Array, order: int, size: int) -> FewSplines:
        """Return `size` B-splines of an order at normalised times `x`, shape (n,)."""
        basis = equal_bsplines(2 * order - 1, size)
        free, penalised = _split(order, size)
        roots = np.sqrt(weights)
        design = roots[:, None] * basis.values(x)
        # Only a small triangle of a long series is needed from here on.
        q, triangle = np.linalg.qr(np.hstack([design @ free, design @ penalised]))
        # The free polynomials explain the first p rows; the others form a ridge regression.
        u, s, vt = np.linalg.svd(triangle[order:, order:], full_matrices=False)
        # The part of the polynomials that is in the smooth deviations is returned to them.
        polynomial_part, taken = triangle[:order, :order], triangle[:order, order:]
        directions = (penalised - free @ np.linalg.solve(polynomial_part, taken)) @ vt.T
        return cls(basis, roots, q, s, u, directions, free @ np.linalg.inv(polynomial_part))

    def fit(self, y: Array, criterion: Literal["reml", "gcv"]) -> AveragedSpline:
        """Return the spline of normalised values `y`, averaged over likely smoothing parameters."""
        n, p = len(y), self.polynomials.shape[1]
        weighted = self.roots * y
        right = self.q.T @ weighted
        unexplained = float(np.sum((weighted - self.q @ right) ** 2)) if n > len(right) else 0.0
        b = self.left.T @ right[p:]
        unexplained += float(np.sum((right[p:] - self.left @ b) ** 2))
        model = RidgeModel(self.singular, b, unexplained, n - p)
        if criterion == "reml":
            scores, variances = model.likelihood(CANDIDATES, self._log_determinants)
            chosen, weights = posterior_weights(scores, np.ones(len(scores)))
        else:
            scores, variances = model.cross_validation(CANDIDATES)
            chosen, weights = np.array([np.argmin(scores)]), np.ones(1)
        polynomial = self.polynomials @ right[:p]
        return AveragedSpline(
            self, polynomial, b, CANDIDATES[chosen], variances[chosen], np.asarray(weights)
        )

    @cached_property
    def _log_determinants(self) -> Array:
        """The log determinants of singular values squared plus each candidate."""
        return np.asarray(np.log(self.singular**2 + CANDIDATES[:, None]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class AveragedSpline:
    """A spline of :class:`FewSplines`, averaged over likely values of the smoothing parameter."""

    design: FewSplines  # the B-splines
    # coefficients of the part that polynomials explain, shape (m,)
    polynomial: Array = field(repr=False)
    # data along the singular vectors of the deviations, shape (r,)
    projections: Array = field(repr=False)
    # The smoothing parameters, noise over prior variance; the prior variances; their posterior
    # weights, with the sum 1. Shape (k,).
    ratios: Array
    variances: Array
    weights: Array

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise."""
        return float(np.sqrt(self.weights @ self._sds**2))

    @cached_property
    def coefficients(self) -> Array:
        """The averaged coefficients of the B-splines, shape (m,)."""
        deviations = self.weights @ self._shrunk
        return np.asarray(self.polynomial + self.design.directions @ deviations, dtype=float)

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`, in the shape of `times`."""
        flat = np.asarray(times, dtype=float).ravel()
        values: Array = self.design.basis.rows(flat) @ self.coefficients
        return values.reshape(np.shape(times))

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1,)."""
        return self.design.basis.taylor(at, order) @ self.coefficients

    def errors(self, at: float, order: int) -> Array:
        """Return standard deviations, shape (order + 1,); they are infinite above the degree."""
        return self._expansion.errors(at, order)

    @cached_property
    def _sds(self) -> Array:
        """Standard deviation of the noise with each smoothing parameter, shape (k,)."""
        return np.maximum(np.sqrt(self.ratios * self.variances), EPS)

    @property
    def _shrunk(self) -> Array:
        """The deviations along the singular vectors with each smoothing parameter, shape (k, r)."""
        s = self.design.singular
        return np.asarray(s / (s**2 + self.ratios[:, None]) * self.projections, dtype=float)

    @cached_property
    def _expansion(self) -> Expansion:
        """Return the same spline with the covariance of its coefficients."""
        design, s2 = self.design, self.design.singular**2
        members = []
        for r, v, sd, shrunk in zip(
            self.ratios, self.variances, self._sds, self._shrunk, strict=True
        ):
            spread = np.sqrt(v * r / (s2 + r))
            root = np.hstack([design.directions * spread, sd * design.polynomials])
            mean = self.polynomial + design.directions @ shrunk
            members.append(Expansion(design.basis, mean, root, float(sd)))
        return average(members, self.weights)


def few_splines(series: NormalisedSeries, order: int, size: int) -> FewSplines:
    """Return `size` B-splines of an order at the times of a series, shared with other series."""
    if len(series.x) > MAX_SHARED_SIZE:
        return FewSplines.of(series.x, series.weights, order, size)
    return _shared(series.x.tobytes(), series.weights.tobytes(), order, size)


@lru_cache(MAX_SHARED_DESIGNS)
def _shared(x: bytes, weights: bytes, order: int, size: int) -> FewSplines:
    return FewSplines.of(np.frombuffer(x), np.frombuffer(weights), order, size)


def equal_bsplines(degree: int, size: int) -> BSplines:
    """Return `size` B-splines on equal intervals of [-1, 1]."""
    return BSplines(np.linspace(-1, 1, size - degree + 1), degree)


@lru_cache(MAX_SHARED_DESIGNS)
def _split(order: int, size: int) -> tuple[Array, Array]:
    """Return combinations without p-th derivative, and the others scaled to a penalty of 1."""
    basis = equal_bsplines(2 * order - 1, size)
    # These Gauss points integrate the square of the derivative, a polynomial, exactly.
    points, weights = basis.gauss_points(order)
    roughness = np.sqrt(weights)[:, None] * basis.rows(points, order).dense()
    # The full right factor is needed if there are fewer Gauss points than B-splines.
    _, s, vt = np.linalg.svd(roughness, full_matrices=len(points) < size)
    rank = vt.shape[0] - order
    return vt[rank:].T, vt[:rank].T / s[:rank]
