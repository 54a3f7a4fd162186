"""The fields over which tapes are run: complex numbers, and residues modulo a prime.

Sums of products modulo the prime are exact: one factor is split into parts of 16 bits, so that the
sums fit into 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from odefit.common.arrays import IntArray

Scalars = TypeVar("Scalars", np.complex128, np.int64)

Residues = npt.NDArray[np.int64]
"""An array of residues modulo :data:`PRIME`."""

PRIME = 2_147_483_647
"""The field of exact computations, 2^31 - 1: products of two residues fit in 64 bits."""


LOW_BITS = (1 << 16) - 1
"""The mask of the lower part of a residue."""

MAX_TERMS = 1 << 15
"""Number of products of 16 and 31 bits whose sum certainly fits into 64 bits."""


def residues_product(left: Residues, right: Residues) -> Residues:
    """Return the product of two matrices of residues, with at most :data:`MAX_TERMS` columns."""
    low, high = left & LOW_BITS, left >> 16
    return np.asarray(((high @ right) % PRIME * (1 << 16) + low @ right) % PRIME)


class Numbers(Protocol[Scalars]):
    """A field over which a tape is run, with arrays as its elements."""

    dtype: type[Scalars]

    def exact(self, value: Fraction) -> Any:
        """Return a rational number as an element of the field."""

    def reduced(self, values: npt.NDArray[Scalars]) -> npt.NDArray[Scalars]:
        """Return sums and products reduced to the range of the field's elements."""

    def inverse(self, values: npt.NDArray[Scalars]) -> npt.NDArray[Scalars]:
        """Return the reciprocals of the elements."""

    def convolved(
        self, matrix: MatrixSeries[Scalars], x: npt.NDArray[Scalars], j: int
    ) -> npt.NDArray[Scalars]:
        """Return coefficient `j` of the product of two series, shape (batch, rows, n).

        `x`, shape (batch, orders, columns, n), is known up to order `j`.
        """


class ComplexNumbers:
    """The complex numbers in double precision; undefined results are infinite or NaN."""

    dtype = np.complex128

    def exact(self, value: Fraction) -> complex:
        return complex(value)

    def reduced(self, values: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
        return values

    def inverse(self, values: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
        return 1.0 / values

    def convolved(
        self, matrix: MatrixSeries[np.complex128], x: npt.NDArray[np.complex128], j: int
    ) -> npt.NDArray[np.complex128]:
        # One product of long matrices: batches are large, and their matrices small.
        series = matrix.dense
        batch, _, m, n = x.shape
        reverse = series[:, j::-1].transpose(0, 2, 1, 3).reshape(batch, series.shape[2], -1)
        return np.asarray(reverse @ x[:, : j + 1].reshape(batch, (j + 1) * m, n))


class PrimeField:
    """The residues modulo :data:`PRIME`.

    :meth:`inverse` raises ZeroDivisionError at unlucky points.
    """

    dtype = np.int64

    def exact(self, value: Fraction) -> int:
        return value.numerator * pow(value.denominator, -1, PRIME) % PRIME

    def reduced(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return values % PRIME

    def inverse(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if not np.all(values % PRIME):
            raise ZeroDivisionError("division by zero in the prime field")
        result, square, left = np.ones_like(values), values % PRIME, PRIME - 2
        while left:
            if left % 2:
                result = result * square % PRIME
            square = square * square % PRIME
            left //= 2
        return result

    def convolved(
        self, matrix: MatrixSeries[np.int64], x: npt.NDArray[np.int64], j: int
    ) -> npt.NDArray[np.int64]:
        rows, columns = matrix.shape
        batch, _, _, n = x.shape
        counts = np.bincount(matrix.rows, minlength=rows)
        result = np.zeros((batch, rows, n), dtype=np.int64)
        # As many orders at once as sums of products of 16 and 31 bits fit into 64 bits.
        length = max(MAX_TERMS // max(int(counts.max(initial=1)), 1), 1)
        for first in range(0, j + 1, length):
            orders = np.arange(first, min(first + length, j + 1))
            starts = np.concatenate([[0], np.cumsum(counts)]) * len(orders)
            places = (matrix.columns[:, None] + columns * np.arange(len(orders))).reshape(-1)
            for b in range(batch):
                values = matrix.values[j - orders, :, b].T.reshape(-1)
                right = x[b, orders].reshape(len(orders) * columns, n)
                for part, weight in ((values & LOW_BITS, 1), (values >> 16, 1 << 16)):
                    left = csr_matrix((part, places, starts), (rows, len(right)))
                    result[b] += (left @ right) % PRIME * weight % PRIME
        return np.asarray(result % PRIME)


@dataclass(frozen=True, eq=False)
class MatrixSeries(Generic[Scalars]):
    """A matrix of Taylor series, most of which are zero.

    `rows` and `columns` are the places of the nonzero series, row by row; `values`, shape (orders,
    places, batch), are their coefficients.
    """

    shape: tuple[int, int]
    rows: IntArray
    columns: IntArray
    values: npt.NDArray[Scalars]

    @cached_property
    def dense(self) -> npt.NDArray[Scalars]:
        """All coefficients, shape (batch, orders, rows, columns)."""
        orders, _, batch = self.values.shape
        result = np.zeros((batch, orders, *self.shape), dtype=self.values.dtype)
        result[:, :, self.rows, self.columns] = self.values.transpose(2, 0, 1)
        return result


COMPLEX = ComplexNumbers()
"""The field of numerical computations."""

MODULAR = PrimeField()
"""The field of exact computations."""
