"""Row spaces modulo a prime, built row by row."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import BoolArray
from odefit.structure.series.deadline import NEVER, PER_CALL, Deadline
from odefit.structure.series.number_fields import PRIME, Residues

PER_NUMBER = 2.0
"""Operations that one residue of the rows takes when another row is added to a span."""


class Echelon:
    """The span of the rows given so far, as `rows` in reduced echelon form, shape (rank, width).

    Each row is 1 in its column of `pivots`, and all others are 0 there.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows = np.zeros((0, width), dtype=np.int64)
        self.pivots: list[int] = []

    @classmethod
    def of(cls, rows: Residues, deadline: Deadline = NEVER) -> Echelon:
        """Return the span of all `rows`, shape (rows, width).

        Raises UnfinishedError at the deadline.
        """
        result = cls(rows.shape[1])
        for row in rows:
            deadline.check()
            deadline.spend(6 * PER_CALL + PER_NUMBER * (1 + result.rank) * result.width)
            result.add(row)
        return result

    @classmethod
    def reduced(cls, rows: Residues) -> Echelon | None:
        """Return the span of rows that are in reduced echelon form; None if they are not."""
        single = np.count_nonzero(rows, axis=0) == 1
        result = cls(rows.shape[1])
        for row in rows:
            columns = np.flatnonzero(single & (row == 1))
            if not len(columns):
                return None
            result.pivots.append(int(columns[0]))
        result.rows = np.array(rows, dtype=np.int64)
        return result

    @property
    def rank(self) -> int:
        """Number of independent rows."""
        return len(self.pivots)

    def add(self, row: Residues) -> bool:
        """Add `row` to the span, and return whether it is independent of the others."""
        left = self._remainder(row)
        nonzero = np.flatnonzero(left)
        if not len(nonzero):
            return False
        pivot = int(nonzero[0])
        left = left * pow(int(left[pivot]), -1, PRIME) % PRIME
        if len(self.rows):
            self.rows = (self.rows - self.rows[:, pivot, None] * left % PRIME) % PRIME
        self.rows = np.vstack([self.rows, left])
        self.pivots.append(pivot)
        return True

    @property
    def determined(self) -> BoolArray:
        """The unit rows that are in the span, as booleans, shape (width,)."""
        # A row of the span is the sum of the basis rows with its own entries at their pivots: a
        # unit row in the span is one of the basis rows.
        result = np.zeros(self.width, dtype=bool)
        alone = np.count_nonzero(self.rows, axis=1) == 1
        result[np.array(self.pivots, dtype=np.intp)[alone]] = True
        return result

    def null_space(self) -> Residues:
        """Return a basis of the null space of the rows, shape (width - rank, width)."""
        free = [k for k in range(self.width) if k not in self.pivots]
        basis = np.zeros((len(free), self.width), dtype=np.int64)
        for i, k in enumerate(free):
            basis[i, k] = 1
            basis[i, self.pivots] = -self.rows[:, k] % PRIME
        return basis

    def _remainder(self, row: Residues) -> Residues:
        """Return the remainder of a row after subtracting its part in the span."""
        # No row has an entry at another one's pivot, so that all can be subtracted at once.
        left = np.asarray(row, dtype=np.int64) % PRIME
        if not self.pivots:
            return left
        return np.asarray(left - (left[self.pivots, None] * self.rows % PRIME).sum(axis=0)) % PRIME
