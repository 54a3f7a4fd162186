"""B-splines by those few that are not zero at a point, and the banded matrices they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from odefit.problem.arrays import Array

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class LocalSplines:
    """All B-splines of one degree between breaks: m = len(breaks) - 1 + degree of them.

    Attributes
    ----------
    breaks
        Ends of the pieces, increasing.
    degree
        Of the pieces.
    """

    breaks: Array
    degree: int

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.breaks) - 1 + self.degree

    @cached_property
    def knots(self) -> Array:
        """The breaks, the outer ones repeated."""
        ends = np.ones(self.degree)
        return np.concatenate([self.breaks[0] * ends, self.breaks, self.breaks[-1] * ends])

    def rows(self, x: Array, order: int = 0) -> Rows:
        """Values, or derivatives of an order up to the degree, at points `x`, shape (n,).

        By the recurrence of Cox and de Boor up to degree - order, the rest by that of derivatives;
        beyond the ends the last polynomials continue.
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
        return Rows(values, i - k, self.size)


@dataclass(frozen=True, eq=False)
class Rows:
    """A matrix whose rows have few entries beside each other, as those of B-splines have.

    Attributes
    ----------
    values
        The entries, shape (bandwidth, n).
    first
        Column of the first of each row, shape (n,).
    size
        Columns.
    """

    values: Array
    first: Indices
    size: int

    @cached_property
    def columns(self) -> Indices:
        """Of each entry, shape (bandwidth, n)."""
        found: Indices = self.first + np.arange(len(self.values))[:, None]
        return found

    def __matmul__(self, vector: Array) -> Array:
        """Product with a vector, shape (n,)."""
        product: Array = np.einsum("ij,ij->j", self.values, vector[self.columns])
        return product

    def transposed(self, vector: Array) -> Array:
        """Product of the transpose with a vector, shape (size,)."""
        products = (self.values * vector).ravel()
        sums = np.bincount(self.columns.ravel(), weights=products, minlength=self.size)
        return np.asarray(sums, dtype=float)

    def gram(self, weights: Array) -> Array:
        """R^T diag(weights) R: lower bands, as LAPACK stores them, shape (bandwidth, size)."""
        count = len(self.values)
        weighted = self.values * weights
        bands = np.zeros((count, self.size))
        for d in range(count):
            products = weighted[: count - d] * self.values[d:]
            bands[d] = np.bincount(
                self.columns[: count - d].ravel(),
                weights=products.ravel(),
                minlength=self.size,
            )
        return bands


def breaks_among(x: Array, pieces: int) -> Array:
    """Breaks at some of the points `x`, about equally many points in each piece."""
    chosen = np.round(np.linspace(0, len(x) - 1, min(pieces, len(x) - 1) + 1)).astype(int)
    return np.asarray(x[chosen], dtype=float)
