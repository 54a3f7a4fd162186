"""Matrices modulo the prime, reduced by sparse rows and among themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import IntArray
from odefit.structure.series.deadline import PER_CALL, Deadline, UnfinishedError
from odefit.structure.series.number_fields import PRIME, Residues

SparseRow = tuple[IntArray, Residues]
"""Columns, and the residues there."""

CHUNK_ENTRIES = 8_000_000
"""Number of entries of the dense matrix that are reduced at once."""

MAX_ENTRIES = 60_000_000
"""Largest number of entries of a dense matrix: half a gigabyte."""

CHECK_INTERVAL = 32
"""Number of steps of elimination between two checks of the limit."""

PER_ENTRY = 0.7
"""Operations that take as long as reducing an entry of a row by another row."""


def reduced_by(
    pivots: Sequence[SparseRow], rows: Sequence[SparseRow], width: int, deadline: Deadline
) -> tuple[IntArray, Residues]:
    """Reduce `rows` by `pivots`, which begin with 1, each in a column of its own, in column order.

    The results are the columns in which no pivot begins, and the reduced rows there. Raises
    UnfinishedError if the deadline passes or the matrix would be too large.
    """
    begins = np.array([at[0] for at, _ in pivots], dtype=np.intp)
    free = np.setdiff1d(np.arange(width), begins)
    if len(rows) * len(free) > MAX_ENTRIES or width > MAX_ENTRIES:
        raise UnfinishedError("a matrix is too large")
    result = np.zeros((len(rows), len(free)), dtype=np.int64)
    size = max(1, CHUNK_ENTRIES // max(width, 1))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        # Columns lie in memory one after the other: they are what is picked.
        dense = np.zeros((width, len(some)), dtype=np.int64)
        for k, (at, values) in enumerate(some):
            dense[at, k] = values
        for k, (at, values) in enumerate(pivots):
            if k % CHECK_INTERVAL == 0:
                deadline.check()
            factors = PRIME - dense[at[0]]
            touched = np.flatnonzero(factors != PRIME)
            if not len(touched):
                deadline.spend(PER_CALL / 4)
                continue
            deadline.spend(PER_CALL + PER_ENTRY * len(at) * len(touched))
            if 2 * len(touched) > len(some):
                dense[at] = (dense[at] + values[:, None] * factors) % PRIME
            else:
                where = np.ix_(at, touched)
                dense[where] = (dense[where] + values[:, None] * factors[touched]) % PRIME
        result[start : start + size] = dense[free].T
    return free, result


def echelon(matrix: Residues, deadline: Deadline) -> Residues:
    """Return the reduced echelon form, without rows of zeros; `matrix` is overwritten."""
    rank = 0
    for column in range(matrix.shape[1]):
        if column % CHECK_INTERVAL == 0:
            deadline.check()
        if rank == len(matrix):
            break
        found = np.flatnonzero(matrix[rank:, column])
        if not len(found):
            continue
        pivot = rank + int(found[0])
        if pivot != rank:
            matrix[[rank, pivot]] = matrix[[pivot, rank]]
        row = matrix[rank, column:]
        row *= pow(int(row[0]), -1, PRIME)
        row %= PRIME
        others = np.flatnonzero(matrix[:, column])
        others = others[others != rank]
        factors = PRIME - matrix[others, column]
        support = np.flatnonzero(row)
        deadline.spend(2 * PER_CALL + PER_ENTRY * (len(others) * len(support) + len(matrix)))
        where = np.ix_(others, column + support)
        matrix[where] = (matrix[where] + factors[:, None] * row[support]) % PRIME
        rank += 1
    return matrix[:rank]
