"""Penalised least squares in B-splines at a cost proportional to the number of data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.lapack import dpbtrs

from odefit.common.arrays import Array
from odefit.methods.smoothing.smoother import EPS, NormalisedSeries
from odefit.methods.smoothing.splines.bsplines import BSplines
from odefit.methods.smoothing.splines.penalised_design import PenalisedDesign, penalised_design

ROUNDING_MARGIN = 1e4 * EPS
"""The error that rounding may cause in a solution, relative to data and smoothing parameter."""


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
        """Return the minimum with lambda = ratio * unit; None where rounding prevents it."""
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
            # Rounding shows. Strong smoothing makes the equations ill-conditioned but not the
            # residuals, with which one step of iterative refinement is taken.
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

        Polynomials of degree below p are free; deviations from them are a priori Gaussian with
        the inverse of the penalty for covariance, and the rest of the data is noise. The constant
        that is left out depends on data and basis alone.
        """
        design = self.design
        free = len(self.series.x) - design.order
        variance = max(solution.cost / free, EPS**2)
        # With much smoothing the determinant of the normal equations tends to this power of the
        # smoothing parameter, times what depends on basis and data alone.
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
