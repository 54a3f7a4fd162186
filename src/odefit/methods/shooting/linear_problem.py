"""The linearised problem (8) at a point, which can be solved for any values of F.

The condensed problem (13) is least squares under linear equations and bounds. The generalised
inverse of (9) to (11) is that of the problem without inner nodes. Equations are solved by their
singular values, and the directions that they leave free enter the least squares rows. Directions
that neither determines do not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array
from odefit.methods.shooting.condensing import CondensedProblem, CondensedRightHandSides
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem

EQUATION_RANK = 1e-11  # largest singular value of the equations that is zero, relative
ROW_RANK = 1e-9  # largest singular value of the least squares rows that is zero, relative
FEASIBILITY = 1e-9  # largest violation of an inequality, relative to the sizes


class GeneralisedInverse:
    """The solution operator of min |R y - z| under E y = e; of all solutions the shortest.

    `free` is a basis of the directions that the equations leave free, shape (w, f), `undetermined`
    a basis of the undetermined directions, shape (w, u).
    """

    def __init__(self, conditions: Array, rows: Array) -> None:
        width = rows.shape[1]
        # Equations of very different sizes are nevertheless exact.
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
        """Return the part of `conditions` that no y can satisfy, relative to the sizes."""
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
    """Return the inequalities that hold as equations at the minimum; None if no y satisfies all.

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
    # y + C v adds |v|^2 to the squares; undetermined directions may move at almost no cost.
    root = np.concatenate(
        [inverse.covariance_root(), inverse.undetermined * _cheap(inverse)], axis=1
    )
    g = inequalities.matrix @ root
    norms = np.linalg.norm(g, axis=1)
    moves = norms > 0
    if (missing[~moves] > FEASIBILITY).any():
        return None
    matrix = (g[moves] / norms[moves, None]).T
    targets = missing[moves] / norms[moves]
    size = float(np.max(np.abs(targets), initial=0.0)) or 1.0
    stacked = np.vstack([matrix, targets / size])
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


@dataclass(frozen=True, eq=False)
class LinearisedConstraints:
    """Equations or inequalities of the user, linearised in unknowns and kept nodes."""

    values: Array  # values that should be zero, or not negative, shape (c,)
    by_unknown: Array  # their derivatives by coordinates of the unknowns, shape (c, n)
    # their derivatives by each node, by the node's number, shape (c, N) each
    by_node: dict[int, Array]

    @property
    def finite(self) -> bool:
        """True if all values and derivatives are finite."""
        parts = (self.values, self.by_unknown, *self.by_node.values())
        return all(np.isfinite(part).all() for part in parts)

    @classmethod
    def none(cls, unknowns: int) -> LinearisedConstraints:
        """Return no constraints."""
        return cls(np.zeros(0), np.zeros((0, unknowns)), {})


class UserConstraints(NamedTuple):
    """The user's constraints, linearised at a point."""

    equations: LinearisedConstraints
    inequalities: LinearisedConstraints

    @property
    def finite(self) -> bool:
        """True if all values and derivatives are finite."""
        return self.equations.finite and self.inequalities.finite


class LinearProblem:
    """The linearised problem min |J1 dw + F1| with J2 dw + F2 = 0, within bounds.

    `sizes` are typical sizes of the coordinates, shape (n,). The columns of its generalised
    `inverse` are scaled by the sizes of coordinates and nodes; the first n are the coordinates. It
    is `feasible` if some step satisfies the inequalities.
    """

    def __init__(
        self, shooting: ShootingProblem, at: Linearisation, sizes: Array, user: UserConstraints
    ) -> None:
        self._shooting = shooting
        chains = shooting.chains
        self._n, self._size = chains.unknowns, chains.size
        self.unit = sizes
        self._condensed = CondensedProblem(
            chains, at.by_node, at.by_unknown, at.rows_by_node, at.rows_by_unknown
        )
        self._first = {
            int(k): slope for k, slope in zip(chains.firsts, at.first_by_unknown, strict=True)
        }
        self._free = [int(k) for k in chains.retained if int(k) not in self._first]
        self._place = {k: self._n + i * self._size for i, k in enumerate(self._free)}
        self._scale = np.concatenate([sizes, np.tile(shooting.sizes, len(self._free))])
        c = self._condensed
        ends = [
            self._columns(m, a, b)
            for m, (a, b) in zip(c.conditions, chains.kept_pairs, strict=True)
        ]
        rows = [self._columns(m, a, b) for m, (a, b) in zip(c.rows, chains.kept_pairs, strict=True)]
        rows += [self._columns(m, int(k)) for m, k in zip(c.last_rows, chains.lasts, strict=True)]
        self._rows = np.concatenate(rows)
        self._equations = np.concatenate([*ends, self._user(user.equations)])
        self._inequalities = np.concatenate([*self._bounds(), self._user(user.inequalities)])
        self._active = np.zeros(len(self._inequalities), dtype=bool)
        self.inverse = GeneralisedInverse(self._equations, self._rows)
        self.feasible = True

    def step(self, at: Linearisation, user: UserConstraints) -> Point:
        """Return the increment from the point of linearisation; find the active bounds."""
        e, z, sides = self._sides(at, user.equations)
        missing = self._missing(at, user.inequalities)
        y = self.inverse.solve(e, z)
        if (self._inequalities @ y < missing - FEASIBILITY).any():
            active = active_set(
                self._equations, e, self._rows, z, Inequalities(self._inequalities, missing)
            )
            if active is None:
                self.feasible = False
            else:
                self._active = active
                all_equations = np.concatenate([self._equations, self._inequalities[active]])
                self.inverse = GeneralisedInverse(all_equations, self._rows)
                y = self.inverse.solve(np.concatenate([e, missing[active]]), z)
        return self._expanded(y, sides)

    def correction(self, at: Linearisation, user: UserConstraints) -> Point:
        """Return the increment for F at another point with the derivatives of this one (15)."""
        e, z, sides = self._sides(at, user.equations)
        missing = self._missing(at, user.inequalities)[self._active]
        return self._expanded(self.inverse.solve(np.concatenate([e, missing]), z), sides)

    def contradiction(self, at: Linearisation, user: UserConstraints) -> float:
        """Return the part of the equations that no step can satisfy, relative to the sizes."""
        held = self._missing(at, user.inequalities)[self._active]
        e = self._sides(at, user.equations)[0]
        return self.inverse.contradiction(np.concatenate([e, held]))

    def length(self, step: Point) -> float:
        """Return the norm of an increment, for level functions and for steps (17)."""
        scaled = step.nodes / self._shooting.sizes
        return float(np.sqrt(np.sum((step.coordinates / self.unit) ** 2) + np.sum(scaled**2)))

    def largest(self, step: Point) -> float:
        """Return the largest component of an increment, relative to the sizes."""
        nodes = np.abs(step.nodes / self._shooting.sizes).max(initial=0.0)
        return float(max(np.abs(step.coordinates / self.unit).max(initial=0.0), nodes))

    # Columns and right-hand sides -------------------------------------------------------------

    def _sides(
        self, at: Linearisation, equations: LinearisedConstraints
    ) -> tuple[Array, Array, CondensedRightHandSides]:
        sides = self._condensed.reduce(-at.gaps, -at.residuals)
        e = np.concatenate([sides.conditions.ravel(), -equations.values])
        return e, np.concatenate([sides.rows.ravel(), sides.last_rows.ravel()]), sides

    def _missing(self, at: Linearisation, inequalities: LinearisedConstraints) -> Array:
        """Return the right-hand sides of the inequalities."""
        scaling, z = self._shooting.scaling, at.point.coordinates
        low, high = np.isfinite(scaling.lower), np.isfinite(scaling.upper)
        return np.concatenate(
            [
                ((scaling.lower - z) / self.unit)[low],
                ((z - scaling.upper) / self.unit)[high],
                -inequalities.values,
            ]
        )

    def _bounds(self) -> tuple[Array, Array]:
        scaling = self._shooting.scaling
        unit = np.eye(len(self._scale))[: self._n]
        return unit[np.isfinite(scaling.lower)], -unit[np.isfinite(scaling.upper)]

    def _columns(self, matrix: Array, left: int, right: int | None = None) -> Array:
        """Return coefficients of one or two nodes and the unknowns in all columns, scaled."""
        wide = np.zeros((len(matrix), len(self._scale)))
        wide[:, : self._n] = matrix[:, -self._n :]
        for i, node in enumerate([left] if right is None else [left, right]):
            self._add(wide, matrix[:, i * self._size : (i + 1) * self._size], node)
        return np.asarray(wide * self._scale)

    def _add(self, wide: Array, coefficients: Array, node: int) -> None:
        if node in self._first:  # determined by the unknowns
            wide[:, : self._n] += coefficients @ self._first[node]
        else:
            place = self._place[node]
            wide[:, place : place + self._size] += coefficients

    def _user(self, conditions: LinearisedConstraints) -> Array:
        wide = np.zeros((len(conditions.values), len(self._scale)))
        wide[:, : self._n] = conditions.by_unknown
        for node, coefficients in conditions.by_node.items():
            self._add(wide, coefficients, node)
        return np.asarray(wide * self._scale)

    def _expanded(self, y: Array, sides: CondensedRightHandSides) -> Point:
        y = y * self._scale
        unknowns = y[: self._n]
        nodes = np.zeros((self._shooting.nodes, self._size))
        nodes[self._free] = y[self._n :].reshape(-1, self._size)
        for node, slope in self._first.items():
            nodes[node] = slope @ unknowns
        self._condensed.expand(nodes, unknowns, sides)
        return Point(unknowns, nodes)
