"""Penalised least squares in B-splines at a cost proportional to the number of data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpbtrf, dpbtrs

from odefit.common.arrays import Array
from odefit.methods.smoothing.smoother import EPS, NormalisedSeries
from odefit.methods.smoothing.splines.bsplines import BandedRows, BSplines, breakpoints_among

LOG_STEP = 0.1  # step in the logarithm of the smoothing parameter for differences of determinants

MAX_SHARED_SIZE = 1000
"""The largest number of times for which the design is cached: beyond, its memory matters more than
its computation."""

MAX_SHARED_DESIGNS = 8  # number of designs cached for other series at the same times


class Factorisation(NamedTuple):
    """The normal equations for one smoothing parameter."""

    factor: Array | None  # their banded Cholesky factor; None where rounding makes them singular
    log_determinant: float  # logarithm of their determinant; NaN where they are singular


@dataclass(frozen=True, eq=False)
class PenalisedDesign:
    """The B-splines at the times of the data, with the penalty on their p-th derivative.

    All matrices are banded: a factorisation costs O(n p^2), and so does the determinant in the
    restricted likelihood. The trace in cross-validation is the derivative of that determinant's
    logarithm, computed by differences.

    The states of an experiment are mostly measured at the same times, and so are the data sets of a
    study. The design computed for one is cached for the others.
    """

    # normalised times and the weights of the data there, shape (n,)
    x: Array
    data_weights: Array
    basis: BSplines  # the B-splines, of degree 2p - 1
    _known: dict[float, Factorisation] = field(default_factory=dict, repr=False)

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
        return self.basis.rows(self.x)

    @cached_property
    def gram(self) -> Array:
        """The weighted products of the B-splines at the data, banded."""
        return self.rows.gram(self.data_weights)

    @property
    def points(self) -> Array:
        """The Gauss points, by which squares of the penalised derivative are integrated exactly."""
        return self._gauss[0]

    @property
    def quadrature(self) -> Array:
        """The quadrature weights of the Gauss points."""
        return self._gauss[1]

    @cached_property
    def derivatives(self) -> BandedRows:
        """The p-th derivatives of the B-splines at the Gauss points."""
        return self.basis.rows(self.points, self.order)

    @cached_property
    def penalty(self) -> Array:
        """The integrals of products of the p-th derivatives, banded."""
        return self.derivatives.gram(self.quadrature)

    @property
    def unit(self) -> float:
        """The lambda that gives data and penalty equal weights where data are densest."""
        return self._densities[0]

    @property
    def unevenness(self) -> float:
        """The ratio to `unit` of the lambda where data are sparsest, without the sparsest tenth."""
        return self._densities[1] / self._densities[0]

    def factorisation(self, ratio: float) -> Factorisation:
        """Return the factorised normal equations with lambda = ratio * unit."""
        factors = self._known.get(ratio)
        if factors is None:
            normal = self.gram + (ratio * self.unit) * self.penalty
            factor, failed = dpbtrf(normal, lower=1, overwrite_ab=1)
            factors = (
                Factorisation(None, math.nan)
                if failed
                else Factorisation(factor, _log_determinant(factor))
            )
            if len(self.x) <= MAX_SHARED_SIZE:
                self._known[ratio] = factors
        return factors

    def effective_parameters(self, ratio: float) -> float:
        """Return the trace of the matrix that maps data to fitted values."""
        above, below = (
            self.factorisation(ratio * float(np.exp(step))) for step in (LOG_STEP, -LOG_STEP)
        )
        if above.factor is None or below.factor is None:
            return float(self.order)
        difference = above.log_determinant - below.log_determinant
        return self.size - difference / (2 * LOG_STEP)

    @cached_property
    def _densities(self) -> tuple[float, float]:
        ratios = np.sort(self.gram[0] / self.penalty[0])
        rare = self.size // 10
        return float(ratios[rare]), float(ratios[-1 - rare])

    @cached_property
    def _gauss(self) -> tuple[Array, Array]:
        return self.basis.gauss_points(self.order)


def penalised_design(series: NormalisedSeries, order: int, pieces: int) -> PenalisedDesign:
    """Return the design for times and weights of a series, shared by series at the same times.

    The number of polynomial pieces is at most the number of times minus one.
    """
    if len(series.x) > MAX_SHARED_SIZE:
        return _design(series.x, series.weights, order, pieces)
    return _shared(series.x.tobytes(), series.weights.tobytes(), order, pieces)


@lru_cache(MAX_SHARED_DESIGNS)
def _shared(x: bytes, weights: bytes, order: int, pieces: int) -> PenalisedDesign:
    return _design(np.frombuffer(x), np.frombuffer(weights), order, pieces)


def _design(x: Array, weights: Array, order: int, pieces: int) -> PenalisedDesign:
    return PenalisedDesign(x, weights, BSplines(breakpoints_among(x, pieces), 2 * order - 1))


def _log_determinant(factor: Array) -> float:
    """Return the log determinant of a matrix with a banded Cholesky factor."""
    return 2 * float(np.log(factor[0]).sum())


ROUNDING_MARGIN = 1e4 * EPS  # rounding error relative to data and smoothing parameter


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimum for one value of the smoothing parameter."""

    ratio: float  # smoothing parameter over `PenalisedDesign.unit`
    coefficients: Array = field(repr=False)  # coefficients of the B-splines, shape (m,)
    factor: Array = field(repr=False)  # banded Cholesky factor of the normal equations
    rss: float  # weighted sum of squared residuals
    cost: float  # weighted sum of squared residuals plus the penalty


@dataclass(frozen=True, eq=False)
class PenalisedProblem:
    """sum_i w_i (y_i - f(x_i))^2 + lambda * integral of (f^(p))^2 over B-splines f."""

    series: NormalisedSeries  # normalised data
    design: PenalisedDesign  # everything that does not depend on the measured values
    right: Array = field(repr=False)  # weighted products of the B-splines with the data, shape (m,)

    @classmethod
    def of(cls, series: NormalisedSeries, design: PenalisedDesign) -> PenalisedProblem:
        """Return the problem of a series at the times and with the weights of a design."""
        return cls(series, design, design.rows.transposed(series.weights * series.y))

    @classmethod
    def in_pieces(cls, series: NormalisedSeries, order: int, pieces: int) -> PenalisedProblem:
        """Return the problem with a penalty on the derivative of an `order`, in some pieces."""
        return cls.of(series, penalised_design(series, order, pieces))

    @property
    def basis(self) -> BSplines:
        """The B-splines, of degree 2p - 1."""
        return self.design.basis

    @property
    def order(self) -> int:
        """The order p of the derivative that is penalised."""
        return self.design.order

    def solve(self, ratio: float) -> Solution | None:
        """Return the minimum with lambda = ratio * unit; None if rounding prevents it."""
        design = self.design
        smoothing = ratio * design.unit
        factor = design.factorisation(ratio).factor
        if factor is None:
            return None
        coefficients, _ = dpbtrs(factor, self.right, lower=1)
        residuals = self.series.y - design.rows @ coefficients
        weighted = self.series.weights * residuals
        rss = float(weighted @ residuals)
        # At the minimum rss + penalty is the product of data and residuals.
        cost = float(weighted @ self.series.y)
        lost = ROUNDING_MARGIN * max(ratio, 1.0)
        if rss < lost**2 * len(residuals) or cost < lost * len(residuals):
            # Rounding errors matter. Strong smoothing makes the equations ill-conditioned but not
            # the residuals, which allow one step of iterative refinement.
            misfit = design.rows.transposed(weighted)
            bending = design.quadrature * (design.derivatives @ coefficients)
            gradient = misfit - smoothing * design.derivatives.transposed(bending)
            coefficients += dpbtrs(factor, gradient, lower=1)[0]
            residuals = self.series.y - design.rows @ coefficients
            rss = float(self.series.weights @ residuals**2)
            penalty = float(design.quadrature @ (design.derivatives @ coefficients) ** 2)
            cost = rss + smoothing * penalty
        return Solution(ratio, coefficients, factor, rss, cost)

    def likelihood(self, solution: Solution) -> tuple[float, float]:
        """Return -2 log(restricted likelihood) and the standard deviation of the noise.

        Polynomials of degree below p are free; deviations from them are a priori Gaussian with the
        inverse of the penalty for covariance, and the rest of the data is noise. The omitted
        constant depends only on data and basis.
        """
        design = self.design
        free = len(self.series.x) - design.order
        variance = max(solution.cost / free, EPS**2)
        # With strong smoothing the determinant of the normal equations tends to this power of the
        # smoothing parameter, times a constant of basis and data.
        prior = (design.size - design.order) * float(np.log(solution.ratio * design.unit))
        determinant = design.factorisation(solution.ratio).log_determinant
        score = free * np.log(variance) + determinant - prior
        return float(score), float(np.sqrt(variance))

    def cross_validation(self, solution: Solution) -> tuple[float, float]:
        """Return n log(generalised cross-validation) and the standard deviation of the noise."""
        n = len(self.series.x)
        freedom = max(n - self.design.effective_parameters(solution.ratio), 1e-3)
        score = n * (np.log(max(solution.rss, EPS**2)) - 2 * np.log(freedom))
        return float(score), float(np.sqrt(solution.rss / freedom))
