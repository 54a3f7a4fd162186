"""The curve of a penalised spline, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg.lapack import dpbtrs
from scipy.special import gammaln

from odefit.methods.smoothing.amount import Choice
from odefit.problem.arrays import Array


@dataclass(frozen=True, eq=False)
class BandedCurve:
    """A spline, averaged over likely amounts of smoothing.

    Attributes
    ----------
    choice
        The amounts and what they give.
    """

    choice: Choice = field(repr=False)

    @property
    def sd(self) -> float:
        """Estimated noise, that of a measurement of weight 1."""
        return float(np.sqrt(self.choice.weights @ self.choice.sds**2))

    @cached_property
    def coefficients(self) -> Array:
        """Of the B-splines."""
        return self.choice.mean()

    @cached_property
    def spline(self) -> BSpline:
        """The mean curve."""
        basis = self.choice.problem.basis
        return BSpline(basis.knots, self.coefficients, basis.degree)

    def __call__(self, times: Array) -> Array:
        """Values at `times`."""
        return np.asarray(self.spline(np.asarray(times, dtype=float)), dtype=float)

    def taylor(self, at: float, order: int) -> Array:
        """Taylor coefficients, shape (order + 1,); zero beyond the degree."""
        degree = self.choice.problem.basis.degree
        found = np.zeros(order + 1)
        for k in range(min(order, degree) + 1):
            found[k] = float(self.spline(at, nu=k)) / np.exp(gammaln(k + 1.0))
        return found

    def errors(self, at: float, order: int) -> Array:
        """Standard deviations; inf beyond the degree.

        By the posterior of the coefficients, of which a point sees a few: banded systems are
        solved where all of the covariance would be a full matrix.
        """
        problem = self.choice.problem
        found = np.full(order + 1, np.inf)
        count = min(order, problem.basis.degree) + 1
        rows = np.zeros((problem.size, count))
        for k in range(count):
            local = problem.basis.rows(np.array([at]), k)
            rows[local.columns[:, 0], k] = local.values[:, 0] / np.exp(gammaln(k + 1.0))
        mean = rows.T @ self.coefficients
        variance = np.zeros(count)
        parts = zip(self.choice.solutions, self.choice.weights, self.choice.sds, strict=True)
        for solution, weight, sd in parts:
            solved, _ = dpbtrs(solution.factor, rows, lower=1)
            own = sd**2 * np.einsum("mk,mk->k", rows, solved)
            variance += weight * (own + (rows.T @ solution.coefficients - mean) ** 2)
        found[:count] = np.sqrt(np.maximum(variance, 0.0))
        return found
