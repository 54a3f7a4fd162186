"""Gaussian elimination without pivoting, with a fixed pattern and order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csc_array
from scipy.sparse.linalg import splu

from odefit.common.arrays import Array, IntArray
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.programs import Indices

SMALLEST_PIVOT = 1e-8
"""Smallest reliable pivot, relative to the largest of the terms of which it is the sum.

Pivots and these terms have no unit. Multipliers have the unit of one state over another, so that
their size carries no information.
"""


class Elimination(NamedTuple):
    """The positions of the entries of I - c J, and of its factors L and U, in one array.

    Row k of U and column k of L are stored side by side, so that elimination reads memory in
    order. The multipliers of L have a unit diagonal; the diagonal of U is stored inverted.
    """

    # Position of each diagonal entry, shape (n,). Column k of L follows it, then row k of U.
    diagonal: Indices
    # Column k of L has the entries `lower_start[k]` to `lower_start[k + 1] - 1`; their rows.
    lower_start: Indices
    lower_row: Indices
    # Row k of U has the entries `upper_start[k]` to `upper_start[k + 1] - 1`; their columns.
    upper_start: Indices
    upper_column: Indices
    target: Indices  # Positions changed by elimination, in the order of the changes
    # If an entry of column k of L and its mirror image in row k of U may both be nonzero:
    # the positions of both, from `pair_start[k]` to `pair_start[k + 1] - 1`.
    pair_start: Indices
    pair_lower: Indices
    pair_upper: Indices
    pair_row: Indices  # The row of the former
    jacobian: Indices  # Position of each nonzero of the Jacobian
    # Number of positions, and of the states: elimination needs one more position for each state.
    size: int


def minimum_degree(rows: IntArray, columns: IntArray, n: int) -> IntArray:
    """Return an order of elimination with little fill-in, by minimum degree."""
    # SuperLU orders and factorises together; a dominant diagonal makes all pivots acceptable.
    dominant = csc_array(
        coo_array((np.full(len(rows), -1e-3), (rows, columns)), shape=(n, n))
        + coo_array((np.full(n, float(n)), (np.arange(n), np.arange(n))), shape=(n, n))
    )
    factors = splu(
        dominant,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(factors.perm_c)


def elimination(rows: IntArray, columns: IntArray, n: int) -> Elimination:
    """Return the fixed elimination of I - c J, in the given order of the rows."""
    below: list[set[int]] = [set() for _ in range(n)]
    right: list[set[int]] = [set() for _ in range(n)]
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        if i > j:
            below[j].add(i)
        elif j > i:
            right[i].add(j)
    for k in range(n):
        for i in below[k]:
            for j in right[k]:
                if i > j:
                    below[j].add(i)
                elif j > i:
                    right[i].add(j)
    position: dict[tuple[int, int], int] = {}
    for k in range(n):
        position[k, k] = len(position)
        for i in sorted(below[k]):
            position[i, k] = len(position)
        for j in sorted(right[k]):
            position[k, j] = len(position)
    lower = [(i, k) for k in range(n) for i in sorted(below[k])]
    upper = [(k, j) for k in range(n) for j in sorted(right[k])]
    target = [position[i, j] for k in range(n) for i in sorted(below[k]) for j in sorted(right[k])]
    pairs = [sorted(below[k] & right[k]) for k in range(n)]
    jacobian = [position[e] for e in zip(rows.tolist(), columns.tolist(), strict=True)]
    return Elimination(
        diagonal=_indices([position[k, k] for k in range(n)]),
        lower_start=_indices(np.cumsum([0, *(len(b) for b in below)])),
        lower_row=_indices([i for i, _ in lower]),
        upper_start=_indices(np.cumsum([0, *(len(r) for r in right)])),
        upper_column=_indices([j for _, j in upper]),
        target=_indices(target),
        pair_start=_indices(np.cumsum([0, *(len(p) for p in pairs)])),
        pair_lower=_indices([position[i, k] for k in range(n) for i in pairs[k]]),
        pair_upper=_indices([position[k, i] for k in range(n) for i in pairs[k]]),
        pair_row=_indices([i for k in range(n) for i in pairs[k]]),
        jacobian=_indices(jacobian),
        size=len(position) + n,
    )


def _indices(values: object) -> Indices:
    return np.asarray(values, dtype=np.uint32)


@compiled
def factorise(e: Elimination, c: float, jacobian: Array, lu: Array) -> bool:
    """Write the factors of I - c J to `lu`; return whether they are reliable."""
    n = e.diagonal.shape[0]
    for k in range(lu.shape[0]):
        lu[k] = 0.0
    for k in range(n):
        lu[e.diagonal[k]] = 1.0
    for k in range(jacobian.shape[0]):
        lu[e.jacobian[k]] -= c * jacobian[k]
    largest = lu[e.size - n :]  # of the terms of each diagonal entry
    for k in range(n):
        largest[k] = max(1.0, abs(lu[e.diagonal[k]]))
    at = 0
    trusted = True
    for k in range(n):
        pivot = lu[e.diagonal[k]]
        inverse = 1.0 / pivot
        lu[e.diagonal[k]] = inverse
        trusted = trusted and np.isfinite(inverse) and abs(pivot) > SMALLEST_PIVOT * largest[k]
        for pair in range(e.pair_start[k], e.pair_start[k + 1]):
            term = abs(lu[e.pair_lower[pair]] * inverse * lu[e.pair_upper[pair]])
            i = e.pair_row[pair]
            largest[i] = max(largest[i], term)
        lower = e.diagonal[k] + 1
        upper = lower + e.lower_start[k + 1] - e.lower_start[k]
        end = upper + e.upper_start[k + 1] - e.upper_start[k]
        for i in range(lower, upper):
            multiplier = lu[i] * inverse
            lu[i] = multiplier
            for j in range(upper, end):
                lu[e.target[at]] -= multiplier * lu[j]
                at += 1
    return trusted


@compiled
def solve(e: Elimination, lu: Array, x: Array) -> None:
    """Solve with factors `lu` for all columns of `x`, shape (n, w), in place."""
    n, w = x.shape
    for k in range(n):
        at = e.diagonal[k] + 1
        for a in range(e.lower_start[k], e.lower_start[k + 1]):
            i = e.lower_row[a]
            multiplier = lu[at]
            at += 1
            for q in range(w):
                x[i, q] -= multiplier * x[k, q]
    for reverse in range(n):
        k = n - 1 - reverse
        at = e.diagonal[k] + 1 + e.lower_start[k + 1] - e.lower_start[k]
        for a in range(e.upper_start[k], e.upper_start[k + 1]):
            j = e.upper_column[a]
            multiplier = lu[at]
            at += 1
            for q in range(w):
                x[k, q] -= multiplier * x[j, q]
        multiplier = lu[e.diagonal[k]]
        for q in range(w):
            x[k, q] *= multiplier


@compiled
def solve_one(e: Elimination, lu: Array, x: Array) -> None:
    """Solve with factors `lu` for one right-hand side `x`, shape (n,), in place."""
    n = x.shape[0]
    for k in range(n):
        value = x[k]
        at = e.diagonal[k] + 1
        for a in range(e.lower_start[k], e.lower_start[k + 1]):
            x[e.lower_row[a]] -= lu[at] * value
            at += 1
    for reverse in range(n):
        k = n - 1 - reverse
        value = x[k]
        at = e.diagonal[k] + 1 + e.lower_start[k + 1] - e.lower_start[k]
        for a in range(e.upper_start[k], e.upper_start[k + 1]):
            value -= lu[at] * x[e.upper_column[a]]
            at += 1
        x[k] = value * lu[e.diagonal[k]]


@compiled
def solve_transposed(e: Elimination, lu: Array, x: Array) -> None:
    """Solve the transposed equations with factors `lu` for `x`, shape (n,), in place."""
    n = x.shape[0]
    for k in range(n):
        value = x[k] * lu[e.diagonal[k]]
        x[k] = value
        at = e.diagonal[k] + 1 + e.lower_start[k + 1] - e.lower_start[k]
        for a in range(e.upper_start[k], e.upper_start[k + 1]):
            x[e.upper_column[a]] -= lu[at] * value
            at += 1
    for reverse in range(n):
        k = n - 1 - reverse
        value = x[k]
        at = e.diagonal[k] + 1
        for a in range(e.lower_start[k], e.lower_start[k + 1]):
            value -= lu[at] * x[e.lower_row[a]]
            at += 1
        x[k] = value
