"""Linear algebra with exact fractions, for small matrices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = list[Fraction]


def inverse(matrix: Sequence[Sequence[Fraction | None]]) -> list[Row] | None:
    """Return the inverse; None if an entry is not known, or the matrix is singular."""
    n, rows = len(matrix), list[Row]()
    for i, row in enumerate(matrix):
        own = [a for a in row if a is not None]
        if len(own) < n:
            return None
        rows.append(own + [Fraction(i == j) for j in range(n)])
    reduced, pivots = _reduced_row_echelon_form(rows, n)
    return [row[n:] for row in reduced] if len(pivots) == n else None


def null_space(matrix: Sequence[Sequence[Fraction]], columns: int) -> list[Row]:
    """Return a basis of all vectors that every row of a matrix maps to zero."""
    reduced, pivots = _reduced_row_echelon_form(matrix, columns)
    found = []
    for free in (k for k in range(columns) if k not in pivots):
        w = [Fraction(k == free) for k in range(columns)]
        for row, k in zip(reduced, pivots, strict=False):
            w[k] = -row[free]
        found.append(w)
    return found


def _reduced_row_echelon_form(
    matrix: Sequence[Sequence[Fraction]], columns: int
) -> tuple[list[Row], list[int]]:
    """Return the reduced row echelon form by the first columns, and the columns of its pivots."""
    rows = [list(row) for row in matrix]
    pivots: list[int] = []
    for k in range(columns):
        at = len(pivots)
        pivot = next((r for r in range(at, len(rows)) if rows[r][k]), None)
        if pivot is None:
            continue
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [a / rows[at][k] for a in rows[at]]
        for r in range(len(rows)):
            if r != at and rows[r][k]:
                factor = rows[r][k]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[at], strict=True)]
        pivots.append(k)
    return rows, pivots
