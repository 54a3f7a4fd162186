"""Newton's equations for a steady state at one point, and its linearised differential equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray

SINGULAR = 1e-15
"""Reciprocal condition number of Newton's equations, with rows of equal size, below which they are
singular."""


@dataclass(frozen=True, eq=False)
class NewtonSystem:
    """Newton's equations at one point: F(y) = 0, conservation in the place of some rows."""

    value: Array  # The left-hand sides, shape (n + a,)
    places: IntArray  # Rows in whose place conservation stands, shape (k,)
    # The inverse of the matrix over the largest entries of its rows, and then of its columns.
    inverse: Array
    rows: Array
    columns: Array

    @classmethod
    def of(cls, value: Array, places: IntArray, matrix: Array) -> NewtonSystem | None:
        """Return the equations with a matrix, shape (n + a, n + a); None where it is singular."""
        rows = np.abs(matrix).max(axis=1)
        if not (np.isfinite(matrix).all() and (rows > 0).all()):
            return None
        even = matrix / rows[:, None]
        columns = np.abs(even).max(axis=0)
        if not (columns > 0).all():
            return None
        even = even / columns
        try:
            inverse = np.asarray(np.linalg.inv(even), dtype=float)
        except np.linalg.LinAlgError:
            return None
        condition = np.abs(even).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
        return cls(value, places, inverse, rows, columns) if condition * SINGULAR < 1.0 else None

    def instead(self, right: Array, totals: Array) -> Array:
        """Return a right-hand side with the rows of conservation put in."""
        made = right.copy()
        made[self.places] = totals
        return made

    def solve(self, right: Array) -> Array:
        """Return the solution for a right-hand side, shape (n + a,) or (n + a, m)."""
        along = (slice(None),) + (None,) * (right.ndim - 1)
        return np.asarray((self.inverse @ (right / self.rows[along])) / self.columns[along])


def eigenvalues_of(matrix: Array) -> Array:
    """Return eigenvalues; none of a matrix that is not finite."""
    if not np.isfinite(matrix).all():
        return np.zeros(0)
    return np.asarray(np.linalg.eigvals(matrix))


def ordinary_jacobian(jacobian: Array, n: int) -> Array:
    """Return the Jacobian of the differential equations with the algebraic ones eliminated."""
    if len(jacobian) == n:
        return jacobian
    try:
        by_states = np.linalg.solve(jacobian[n:, n:], jacobian[n:, :n])
    except np.linalg.LinAlgError:
        return np.full((n, n), np.nan)
    return np.asarray(jacobian[:n, :n] - jacobian[:n, n:] @ by_states)
