"""B-splines, of which few are nonzero at a point, and their banded matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import factorial

import numpy as np

from odefit.common.arrays import Array, IntArray


@dataclass(frozen=True, eq=False)
class BSplines:
    """All m = len(breakpoints) - 1 + degree B-splines of one degree between breakpoints."""

    breakpoints: Array  # ends of the polynomial pieces, increasing
    degree: int  # degree of the pieces

    @property
    def size(self) -> int:
        """The number of B-splines, m."""
        return len(self.breakpoints) - 1 + self.degree

    @cached_property
    def knots(self) -> Array:
        """The knots: the breakpoints, with the outer ones repeated."""
        ends = np.ones(self.degree)
        first, last = self.breakpoints[0] * ends, self.breakpoints[-1] * ends
        return np.concatenate([first, self.breakpoints, last])

    def rows(self, x: Array, order: int = 0) -> BandedRows:
        """Return values, or derivatives of an order up to the degree, at points `x`, shape (n,).

        The recurrence of Cox and de Boor is used up to degree - order, and that of derivatives from
        there on; beyond the ends the outer polynomials continue. SciPy's design matrix has only
        values.
        """
        t, k = self.knots, self.degree
        i = np.clip(np.searchsorted(t, x, side="right") - 1, k, self.size - 1)
        values = np.ones((1, len(x)))
        steps = np.arange(1, k - order + 1)[:, None]
        right, left = t[i + steps] - x, x - t[i + 1 - steps]
        for d in range(1, k - order + 1):
            below = left[d - 1 :: -1]
            part = values / (right[:d] + below)
            values = np.empty((d + 1, len(x)))
            values[:d] = right[:d] * part
            values[d] = 0.0
            values[1:] += below * part
        for d in range(k - order + 1, k + 1):
            j = i + np.arange(1 - d, 1)[:, None]
            part = d * values / (t[j + d] - t[j])
            values = np.empty((d + 1, len(x)))
            values[0] = 0.0
            values[1:] = part
            values[:d] -= part
        return BandedRows(values, i - k, self.size)

    def values(self, x: Array) -> Array:
        """Return the values of all B-splines at points `x`, shape (n, m)."""
        return self.rows(x).dense()

    def taylor(self, at: float, order: int) -> Array:
        """Return their Taylor coefficients, zero above the degree, shape (order + 1, m)."""
        result = np.zeros((order + 1, self.size))
        for k in range(min(order, self.degree) + 1):
            result[k] = self.rows(np.array([at]), k).dense()[0] / factorial(k)
        return result

    def gauss_points(self, count: int) -> tuple[Array, Array]:
        """Return `count` Gauss points in each polynomial piece, and their quadrature weights."""
        nodes, weights = _legendre(count)
        half = np.diff(self.breakpoints)[:, None] / 2
        points = self.breakpoints[:-1, None] + half * (1 + nodes)
        return points.ravel(), (half * weights).ravel()


@dataclass(frozen=True, eq=False)
class BandedRows:
    """A matrix whose rows have a few adjacent entries, like B-splines at points."""

    values: Array  # entries, shape (bandwidth, n)
    first: IntArray  # column of the first entry of each row, shape (n,)
    size: int  # number of columns

    @cached_property
    def columns(self) -> IntArray:
        """The column of each entry, shape (bandwidth, n)."""
        columns: IntArray = self.first + np.arange(len(self.values))[:, None]
        return columns

    def __matmul__(self, vector: Array) -> Array:
        """Return the product with a vector, shape (n,)."""
        product: Array = np.einsum("ij,ij->j", self.values, vector[self.columns])
        return product

    def dense(self) -> Array:
        """Return the matrix with its zeros, shape (n, size)."""
        matrix = np.zeros((self.values.shape[1], self.size))
        np.put_along_axis(matrix, self.columns.T, self.values.T, axis=1)
        return matrix

    def transposed(self, vector: Array) -> Array:
        """Return the product of the transpose with a vector, shape (size,)."""
        return self._column_sums(self.columns, self.values * vector)

    def gram(self, weights: Array) -> Array:
        """Return the lower bands of R^T diag(weights) R as LAPACK stores them.

        Their shape is (bandwidth, size).
        """
        count = len(self.values)
        weighted = self.values * weights
        bands = [
            self._column_sums(self.columns[: count - d], weighted[: count - d] * self.values[d:])
            for d in range(count)
        ]
        return np.array(bands)

    def _column_sums(self, columns: IntArray, entries: Array) -> Array:
        sums = np.bincount(columns.ravel(), weights=entries.ravel(), minlength=self.size)
        return np.asarray(sums, dtype=float)


@lru_cache
def _legendre(count: int) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(nodes, dtype=float), np.asarray(weights, dtype=float)


def breakpoints_among(x: Array, pieces: int) -> Array:
    """Return some of the points `x`, chosen so that pieces contain about equally many of them."""
    chosen = np.round(np.linspace(0, len(x) - 1, min(pieces, len(x) - 1) + 1)).astype(int)
    return np.asarray(x[chosen], dtype=float)
