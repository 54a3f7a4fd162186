"""Newton's equations for a steady state at one point, and its linearised differential equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import Array, IntArray

SINGULAR = 1e-15
"""Reciprocal condition number of Newton's equations, with rows of equal size, below which they are
singular."""


@dataclass(frozen=True, eq=False)
class NewtonSystem:
    """Newton's equations at one point: F(y) = 0, conservation in the place of some rows.

    Attributes
    ----------
    value
        The left-hand sides, shape (n + a,).
    places
        Rows in whose place conservation stands, shape (k,).
    inverse, rows, sizes
        The inverse of the matrix with its columns times sizes and its rows over `rows`.
    """

    value: Array
    places: IntArray
    inverse: Array
    rows: Array
    sizes: Array

    def instead(self, right: Array, totals: Array) -> Array:
        """Return a right-hand side with the rows of conservation put in."""
        made = right.copy()
        made[self.places] = totals
        return made

    def solve(self, right: Array) -> Array:
        """Return the solution for a right-hand side, shape (n + a,) or (n + a, m)."""
        column = (slice(None),) + (None,) * (right.ndim - 1)
        return np.asarray(self.sizes[column] * (self.inverse @ (right / self.rows[column])))


def scaled_inverse(matrix: Array) -> Array | None:
    """Return the inverse; None for a matrix that is singular to roundoff."""
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    condition = np.abs(matrix).sum(axis=0).max(initial=0.0) * np.abs(inverse).sum(axis=0).max(
        initial=0.0
    )
    return np.asarray(inverse, dtype=float) if condition * SINGULAR < 1.0 else None


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
