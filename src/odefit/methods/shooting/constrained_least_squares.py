"""The condensed problem (13): least squares under linear equations and bounds, and its solution.

The generalised inverse of (9) to (11) is that of the problem without inner nodes: equations are
solved by their singular values, what they leave free goes into the least squares rows, and what
neither determines stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array

EQUATION_RANK = 1e-11
"""Singular values of the equations that count as zero, relative to the largest."""

ROW_RANK = 1e-9
"""Singular values of the least squares rows that count as zero, relative to the largest."""

FEASIBILITY = 1e-9  # by how much an inequality may be violated, relative to the sizes


class GeneralisedInverse:
    """The solution operator of min |R y - z| under E y = e; of all solutions the shortest.

    `free` is a basis of the directions that the equations leave free, shape (w, f), `undetermined`
    one of the directions that nothing determines, shape (w, u).
    """

    def __init__(self, conditions: Array, rows: Array) -> None:
        width = rows.shape[1]
        # Equations of very different sizes are all the same exact.
        norms = np.linalg.norm(conditions, axis=1)
        self._norms = np.where(norms > 0, norms, 1.0)
        u, s, vt = np.linalg.svd(conditions / self._norms[:, None], full_matrices=True)
        rank = int(np.sum(s > EQUATION_RANK * s[0])) if len(s) else 0
        self._u, self._s, self._v = u[:, :rank], s[:rank], vt[:rank].T
        self._lost = u[:, rank:]
        self.free = vt[rank:].T if len(s) else np.eye(width)
        self._rows = rows
        a, t, bt = np.linalg.svd(rows @ self.free, full_matrices=False)
        full = np.linalg.svd(rows @ self.free)[2] if bt.shape[0] < bt.shape[1] else bt
        keep = int(np.sum(t > ROW_RANK * t[0])) if len(t) else 0
        self._a, self._t = a[:, :keep], t[:keep]
        self._b = self.free @ full[:keep].T
        self.undetermined = self.free @ full[keep:].T

    def solve(self, conditions: Array, rows: Array) -> Array:
        """Return y for the right-hand sides e, shape (k,), and z, shape (r,)."""
        particular = self._v @ ((self._u.T @ (conditions / self._norms)) / self._s)
        rest = rows - self._rows @ particular
        return np.asarray(particular + self._b @ ((self._a.T @ rest) / self._t))

    def contradiction(self, conditions: Array) -> float:
        """Return how much of `conditions` no y can satisfy, relative to the sizes."""
        return float(np.linalg.norm(self._lost.T @ (conditions / self._norms)))

    def covariance_root(self) -> Array:
        """Return C, shape (w, d), with the covariance C C' of y for rows of unit variance."""
        return np.asarray(self._b / self._t)


@dataclass(frozen=True, eq=False)
class Inequalities:
    """Inequalities G y >= g."""

    # G and g, shapes (c, w) and (c,)
    matrix: Array
    values: Array


def active_set(
    conditions: Array, e: Array, rows: Array, z: Array, inequalities: Inequalities
) -> npt.NDArray[np.bool_] | None:
    """Return which inequalities hold as equations at the minimum; None if no y satisfies all.

    As a least distance problem, by non-negative least squares (C. L. Lawson and R. J. Hanson,
    Solving least squares problems, 1974, chapter 23).
    """
    from scipy.optimize import nnls

    inverse = GeneralisedInverse(conditions, rows)
    y = inverse.solve(e, z)
    missing = inequalities.values - inequalities.matrix @ y
    active = np.zeros(len(missing), dtype=bool)
    if not (missing > FEASIBILITY).any():
        return active
    # y + C v adds |v|^2 to the squares; what nothing determines may move at next to no price.
    root = np.concatenate(
        [inverse.covariance_root(), inverse.undetermined * _cheap(inverse)], axis=1
    )
    g = inequalities.matrix @ root
    norms = np.linalg.norm(g, axis=1)
    moves = norms > 0
    if (missing[~moves] > FEASIBILITY).any():
        return None
    matrix = (g[moves] / norms[moves, None]).T
    wanted = missing[moves] / norms[moves]
    size = float(np.max(np.abs(wanted), initial=0.0)) or 1.0
    stacked = np.vstack([matrix, wanted / size])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    multipliers, residual = nnls(stacked, target, maxiter=100 * stacked.shape[1])
    if residual < 1e-10:
        return None
    active[np.flatnonzero(moves)[multipliers > 0]] = True
    return active


def _cheap(inverse: GeneralisedInverse) -> float:
    root = inverse.covariance_root()
    return 1e3 * (float(np.abs(root).max()) if root.size else 1.0)
