"""Least squares with a Chebyshev polynomial whose degree an information criterion chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from odefit.common.arrays import Array
from odefit.common.option_checks import whole
from odefit.methods.smoothing.expansion import ChebyshevBasis
from odefit.methods.smoothing.smoother import (
    Interpolant,
    NormalisedSeries,
    SeriesSmoother,
    bic,
)

MAX_DEGREE = 60  # highest degree that the criterion may choose


def max_least_squares_degree(n: int) -> int:
    """Return the degree up to which least squares in `n` points is well-conditioned.

    In equidistant points it is ill-conditioned beyond 2 sqrt(n); short series without noise gain
    from a somewhat higher degree.
    """
    return min(n - 3, 3 * n // 4, int(2 * np.sqrt(n)) + 6, MAX_DEGREE)


@dataclass(frozen=True)
class Chebyshev(SeriesSmoother):
    """One polynomial over the whole interval, by least squares.

    Attributes
    ----------
    degree
        Degree of the polynomial; None for the one that Schwarz's criterion prefers.
    """

    degree: int | None = None

    name: ClassVar[str] = "Chebyshev polynomial"

    def __post_init__(self) -> None:
        if self.degree is not None:
            whole(self.degree, "Chebyshev, degree", 0)

    @property
    def min_points(self) -> int:
        """The smallest number of points: 4, or 2 more than the given degree."""
        return 4 if self.degree is None else self.degree + 2

    def fit_normalised(self, series: NormalisedSeries) -> Interpolant:
        """Return the polynomial, and polynomials of higher degrees to compare it with."""
        x, y = series.x, series.y
        n = len(x)
        highest = max(max_least_squares_degree(n), self.degree or 0)
        q, r = np.linalg.qr(ChebyshevBasis(min(highest + 3, n - 1)).values(x))
        b = q.T @ y
        rss = np.append(np.cumsum((b**2)[::-1])[::-1][1:], 0.0) + float(np.sum((y - q @ b) ** 2))
        sds = np.sqrt(rss / (n - 1 - np.arange(len(b))))
        degree = self.degree
        if degree is None:
            degree = int(np.argmin([bic(float(rss[d]), n, d + 1) for d in range(highest + 1)]))
        return LeastSquaresPolynomial(r, b, sds, degree)


@dataclass(frozen=True, eq=False)
class LeastSquaresPolynomial:
    """A least-squares polynomial, and polynomials of higher degrees to compare it with."""

    # R and Q^T y of the factorised problem of the highest degree, shapes (m, m) and (m,)
    triangle: Array
    right: Array
    # standard deviation of the noise estimated by the polynomial of each degree, shape (m,)
    sds: Array
    degree: int  # degree that was chosen

    @property
    def sd(self) -> float:
        """Estimated standard deviation of the noise."""
        return float(self.sds[self.degree])

    def coefficients(self, degree: int) -> Array:
        """Return the least-squares Chebyshev coefficients of a degree, shape (degree + 1,)."""
        size = degree + 1
        solution = solve_triangular(self.triangle[:size, :size], self.right[:size])
        return np.asarray(solution, dtype=float)

    def __call__(self, times: Array) -> Array:
        """Return the values at `times`."""
        values = np.polynomial.chebyshev.chebval(times, self.coefficients(self.degree))
        return np.asarray(values, dtype=float)

    def taylor(self, at: float, order: int) -> Array:
        """Return the Taylor coefficients, shape (order + 1,); they are zero above the degree."""
        return self._series(self.degree, at, order)[0]

    def errors(self, at: float, order: int) -> Array:
        """Return standard deviations plus the difference from the degree higher by two.

        For an order above the degree, a polynomial of that degree is used; the error is infinite if
        the data allow none.
        """
        coefficients, sds = self._series(self.degree, at, order)
        highest = len(self.right) - 1
        result: Array = np.full(order + 1, np.inf)
        for k in range(order + 1):
            other_degree = min(max(self.degree + 2, k), highest)
            if k > other_degree:
                break
            other, other_sds = self._series(other_degree, at, k)
            result[k] = np.hypot(sds[k], other[k] - coefficients[k])
            if k > self.degree:
                result[k] = np.hypot(result[k], other_sds[k])
        return result

    def _series(self, degree: int, at: float, order: int) -> tuple[Array, Array]:
        """Return the Taylor coefficients with a degree, and their standard deviations."""
        size = degree + 1
        rows = ChebyshevBasis(size).taylor(at, order)
        spread = solve_triangular(self.triangle[:size, :size], rows.T, trans="T")
        return rows @ self.coefficients(degree), self.sds[degree] * np.linalg.norm(spread, axis=0)
