"""Newton's equations for a steady state: their sizes, pivots and inverse, compiled.

They are 0 = F(y), with one equation for each conserved quantity replaced by conservation:
L x = L x0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.kernels.kernel import compiled

SMALL_STATE = 1e-3
"""Smallest reference size of a state for distances, relative to its largest value: below, the state
counts as gone."""

ROUNDOFF = 1e-15
"""Size of states and sensitivities, relative to the largest, that roundoff alone may cause in a
state which was always zero; it is the smallest reference size for distances."""

SINGULAR = 1e-15
"""Reciprocal condition number of Newton's equations, with rows of equal size, below which they are
singular."""


@dataclass(frozen=True, eq=False)
class NewtonSystem:
    """Newton's equations at one point: F(y) = 0, with conservation in place of some rows."""

    value: Array  # The left-hand sides, shape (n + a,)
    places: IntArray  # Rows replaced by conservation, shape (k,)
    # The inverse of the matrix over the largest entries of its rows, and then of its columns.
    inverse: Array
    rows: Array
    columns: Array

    @classmethod
    def of(cls, value: Array, places: IntArray, matrix: Array) -> NewtonSystem | None:
        """Return the equations with a matrix, shape (n + a, n + a); None if it is singular."""
        m = Matrices.of_size(len(value), len(places))
        if not factorise(np.array(matrix), m):
            return None
        return cls(value=value, places=places, inverse=m.inverse, rows=m.rows, columns=m.columns)

    def instead(self, right: Array, totals: Array) -> Array:
        """Return a right-hand side with the rows of conservation replaced."""
        made = right.copy()
        made[self.places] = totals
        return made

    def solve(self, right: Array) -> Array:
        """Return the solution for a right-hand side, shape (n + a,) or (n + a, m)."""
        along = (slice(None),) + (None,) * (right.ndim - 1)
        return np.asarray((self.inverse @ (right / self.rows[along])) / self.columns[along])


class Matrices(NamedTuple):
    """Newton's equations at a point as kernels write them, see :class:`NewtonSystem`."""

    value: Array
    places: IntArray
    inverse: Array
    rows: Array
    columns: Array

    @classmethod
    def of_size(cls, size: int, conserved: int) -> Matrices:
        """Return the memory for equations of this size."""
        return cls(
            value=np.zeros(size),
            places=np.zeros(conserved, dtype=np.intp),
            inverse=np.zeros((size, size)),
            rows=np.zeros(size),
            columns=np.zeros(size),
        )


def pivots(weights: Array, sizes: Array) -> IntArray:
    """Return a separate state for each conserved quantity, its largest part if possible."""
    places = np.zeros(len(weights), dtype=np.intp)
    choose_pivots(np.ascontiguousarray(weights), sizes[: weights.shape[1]].copy(), places)
    return places


@compiled
def write_sizes(first: Array, second: Array, largest: Array, sizes: Array) -> None:
    """Write reference sizes for changes between two points."""
    most = 0.0
    for i in range(sizes.shape[0]):
        sizes[i] = max(abs(first[i]), abs(second[i]))
        if i < largest.shape[0]:
            sizes[i] = max(sizes[i], SMALL_STATE * largest[i])
        most = max(most, sizes[i])
    least = ROUNDOFF * most
    if least == 0.0:
        least = 1.0
    for i in range(sizes.shape[0]):
        sizes[i] = max(sizes[i], least)


@compiled
def choose_pivots(weights: Array, sizes: Array, places: IntArray) -> None:
    """Write a separate state for each conserved quantity, its largest part if possible.

    It is the order of a QR factorisation with pivoting.
    """
    count, n = weights.shape
    scaled = np.empty((count, n))
    for i in range(count):
        most = 0.0
        for j in range(n):
            scaled[i, j] = weights[i, j] * sizes[j]
            most = max(most, abs(scaled[i, j]))
        for j in range(n):
            scaled[i, j] /= most
    for k in range(count):
        chosen = 0
        longest = -1.0
        for j in range(n):
            length = 0.0
            for i in range(count):
                length += scaled[i, j] * scaled[i, j]
            if length > longest:
                longest = length
                chosen = j
        places[k] = chosen
        if longest <= 0.0:
            continue
        for j in range(n):
            if j == chosen:
                continue
            along = 0.0
            for i in range(count):
                along += scaled[i, chosen] * scaled[i, j]
            along /= longest
            for i in range(count):
                scaled[i, j] -= along * scaled[i, chosen]
        for i in range(count):
            scaled[i, chosen] = 0.0


@compiled
def invert(matrix: Array, inverse: Array) -> bool:
    """Write the inverse of a matrix, which is overwritten; return whether there is one."""
    n = matrix.shape[0]
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 1.0 if i == j else 0.0
    for k in range(n):
        row = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[row, k]):
                row = i
        if matrix[row, k] == 0.0:
            return False
        if row != k:
            for j in range(n):
                swapped = matrix[k, j]
                matrix[k, j] = matrix[row, j]
                matrix[row, j] = swapped
                swapped = inverse[k, j]
                inverse[k, j] = inverse[row, j]
                inverse[row, j] = swapped
        pivot = 1.0 / matrix[k, k]
        for j in range(k, n):
            matrix[k, j] *= pivot
        for j in range(n):
            inverse[k, j] *= pivot
        for i in range(n):
            factor = matrix[i, k]
            if i == k or factor == 0.0:
                continue
            for j in range(k, n):
                matrix[i, j] -= factor * matrix[k, j]
            for j in range(n):
                inverse[i, j] -= factor * inverse[k, j]
    return True


@compiled
def column_norm(matrix: Array) -> float:
    """Return the largest sum of magnitudes in a column."""
    n = matrix.shape[0]
    sums = np.zeros(n)
    for i in range(n):
        for j in range(n):
            sums[j] += abs(matrix[i, j])
    most = 0.0
    for j in range(n):
        most = max(most, sums[j])
    return most


@compiled
def factorise(matrix: Array, m: Matrices) -> bool:
    """Write the scales and the inverse of a matrix, which is overwritten; False if singular."""
    size = matrix.shape[0]
    for j in range(size):
        m.columns[j] = 0.0
    for i in range(size):
        most = 0.0
        for j in range(size):
            if not abs(matrix[i, j]) < np.inf:
                return False
            most = max(most, abs(matrix[i, j]))
        if most == 0.0:
            return False
        m.rows[i] = most
        for j in range(size):
            matrix[i, j] /= most
            m.columns[j] = max(m.columns[j], abs(matrix[i, j]))
    for j in range(size):
        if m.columns[j] == 0.0:
            return False
    for i in range(size):
        for j in range(size):
            matrix[i, j] /= m.columns[j]
    norm = column_norm(matrix)
    if not invert(matrix, m.inverse):
        return False
    return norm * column_norm(m.inverse) * SINGULAR < 1.0


@compiled
def assemble(
    value: Array, jacobian: Array, weights: Array, moved: Array, sizes: Array, m: Matrices
) -> bool:
    """Write the equations at a point, whose states have moved so far; return if regular."""
    size = value.shape[0]
    matrix = np.empty((size, size))
    for i in range(size):
        m.value[i] = value[i]
        for j in range(size):
            matrix[i, j] = jacobian[i, j]
    if m.places.shape[0] > 0:
        choose_pivots(weights, sizes, m.places)
    for k in range(m.places.shape[0]):
        place = m.places[k]
        total = 0.0
        for j in range(size):
            matrix[place, j] = 0.0
        for j in range(moved.shape[0]):
            matrix[place, j] = weights[k, j]
            total += weights[k, j] * moved[j]
        m.value[place] = total
    return factorise(matrix, m)


@compiled
def solve(m: Matrices, right: Array, solution: Array) -> None:
    """Write the solution of Newton's equations for a right-hand side."""
    size = right.shape[0]
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += m.inverse[i, j] * (right[j] / m.rows[j])
        solution[i] = total / m.columns[i]
