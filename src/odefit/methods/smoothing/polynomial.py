"""Least squares with a Chebyshev polynomial whose degree the data choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from odefit.methods.smoothing.basis import Polynomials
from odefit.methods.smoothing.criteria import aicc, bic
from odefit.methods.smoothing.smoother import Interpolant, fit_normalised, refuse_weights
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError
from odefit.problem.option_checks import whole

MOST = 60
"""Degree that is not exceeded."""


@dataclass(frozen=True)
class Chebyshev:
    """One polynomial over the whole interval, by least squares.

    Attributes
    ----------
    degree
        Of the polynomial; None for the one that `criterion` prefers.
    criterion
        "bic" or "aicc": the second takes higher degrees, with larger errors at times.
    """

    degree: int | None = None
    criterion: Literal["bic", "aicc"] = "bic"

    def __post_init__(self) -> None:
        if self.degree is not None:
            whole(self.degree, "Chebyshev, degree", 0)
        if self.criterion not in ("bic", "aicc"):
            raise InputError(
                f"Chebyshev, criterion: expected 'bic' or 'aicc', got {self.criterion!r}"
            )

    @property
    def name(self) -> str:
        """Chebyshev polynomial."""
        return "Chebyshev polynomial"

    def fit(self, times: Array, values: Array, sds: Array | None = None) -> Interpolant:
        """Smooth a series of at least 4 points, or 2 more than the degree."""
        refuse_weights(times, sds, self.name)
        least = 4 if self.degree is None else self.degree + 2
        return fit_normalised(times, values, self.name, least, self._fit)

    def _fit(self, x: Array, y: Array) -> Interpolant:
        n = len(x)
        # Beyond 2 sqrt(n), least squares in equidistant points becomes ill-conditioned; short
        # series without noise gain from somewhat more.
        most = max(min(n - 3, 3 * n // 4, int(2 * np.sqrt(n)) + 6, MOST), self.degree or 0)
        q, r = np.linalg.qr(Polynomials(min(most + 3, n - 1)).values(x))
        b = q.T @ y
        left = np.append(np.cumsum((b**2)[::-1])[::-1][1:], 0.0) + float(np.sum((y - q @ b) ** 2))
        sds = np.sqrt(left / (n - 1 - np.arange(len(b))))
        degree = self.degree
        if degree is None:
            charge = bic if self.criterion == "bic" else aicc
            degree = int(np.argmin([charge(float(left[d]), n, d + 1) for d in range(most + 1)]))
        return LeastSquares(r, b, sds, degree)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A least-squares polynomial, and those of higher degrees to compare with.

    Attributes
    ----------
    triangle, right
        R and Q^T y of the factorised problem of the highest degree, shapes (m, m) and (m,).
    sds
        What the polynomial of each degree says of the noise, shape (m,).
    degree
        The one that was chosen.
    """

    triangle: Array
    right: Array
    sds: Array
    degree: int

    @property
    def sd(self) -> float:
        """Estimated noise."""
        return float(self.sds[self.degree])

    def coefficients(self, degree: int) -> Array:
        """Of the Chebyshev polynomials, by least squares with `degree`, shape (degree + 1,)."""
        size = degree + 1
        found = solve_triangular(self.triangle[:size, :size], self.right[:size])
        return np.asarray(found, dtype=float)

    def __call__(self, times: Array) -> Array:
        """Values at `times`."""
        found = np.polynomial.chebyshev.chebval(times, self.coefficients(self.degree))
        return np.asarray(found, dtype=float)

    def taylor(self, at: float, order: int) -> Array:
        """Taylor coefficients, shape (order + 1,); zero beyond the degree."""
        return self._series(self.degree, at, order)[0]

    def errors(self, at: float, order: int) -> Array:
        """Own standard deviation, and the difference from the polynomial of two degrees more.

        An order that the polynomial does not have is judged by one that has it, and is unknown
        (inf) if the data allow none.
        """
        own, spread = self._series(self.degree, at, order)
        highest = len(self.right) - 1
        result: Array = np.full(order + 1, np.inf)
        for k in range(order + 1):
            rival = min(max(self.degree + 2, k), highest)
            if k > rival:
                break
            other, uncertain = self._series(rival, at, k)
            result[k] = np.hypot(spread[k], other[k] - own[k])
            if k > self.degree:
                result[k] = np.hypot(result[k], uncertain[k])
        return result

    def _series(self, degree: int, at: float, order: int) -> tuple[Array, Array]:
        """Taylor coefficients with a degree, and their standard deviations."""
        size = degree + 1
        rows = Polynomials(size).taylor(at, order)
        spread = solve_triangular(self.triangle[:size, :size], rows.T, trans="T")
        return rows @ self.coefficients(degree), self.sds[degree] * np.linalg.norm(spread, axis=0)
