"""The linearised problem (8) at a point, ready to be solved for any values of F."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.shooting.condensing import CondensedProblem, CondensedRightHandSides
from odefit.methods.shooting.constrained_least_squares import (
    FEASIBILITY,
    GeneralisedInverse,
    Inequalities,
    active_set,
)
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem


@dataclass(frozen=True, eq=False)
class LinearisedConstraints:
    """Equations or inequalities of the user, linearised in unknowns and kept nodes."""

    values: Array  # values that should be zero, or not negative, shape (c,)
    by_unknown: Array  # their derivatives by coordinates of the unknowns, shape (c, n)
    # their derivatives by each node, by the node's number, shape (c, N) each
    by_node: dict[int, Array]

    @property
    def finite(self) -> bool:
        """Whether all values and derivatives are finite."""
        parts = (self.values, self.by_unknown, *self.by_node.values())
        return all(np.isfinite(part).all() for part in parts)

    @classmethod
    def none(cls, unknowns: int) -> LinearisedConstraints:
        """Return no constraints."""
        return cls(np.zeros(0), np.zeros((0, unknowns)), {})


class LinearProblem:
    """The linearised problem min |J1 dw + F1| with J2 dw + F2 = 0, within bounds.

    `sizes` are typical sizes of the coordinates, shape (n,). The columns of its generalised
    `inverse` are scaled by the sizes of coordinates and nodes; the first n are the coordinates. It
    is `feasible` if some step satisfies the inequalities.
    """

    def __init__(
        self,
        shooting: ShootingProblem,
        at: Linearisation,
        sizes: Array,
        equations: LinearisedConstraints,
        inequalities: LinearisedConstraints,
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
        self._free = [int(k) for k in chains.kept if int(k) not in self._first]
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
        self._equations = np.concatenate([*ends, self._user(equations)])
        self._inequalities = np.concatenate([*self._bounds(), self._user(inequalities)])
        self._active = np.zeros(len(self._inequalities), dtype=bool)
        self.inverse = GeneralisedInverse(self._equations, self._rows)
        self.feasible = True

    def step(
        self,
        at: Linearisation,
        equations: LinearisedConstraints,
        inequalities: LinearisedConstraints,
    ) -> Point:
        """Return the increment from the point of linearisation; find the active bounds."""
        e, z, sides = self._sides(at, equations)
        missing = self._missing(at, inequalities)
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

    def correction(
        self,
        at: Linearisation,
        equations: LinearisedConstraints,
        inequalities: LinearisedConstraints,
    ) -> Point:
        """Return the increment for F at another point with the derivatives of this one (15)."""
        e, z, sides = self._sides(at, equations)
        missing = self._missing(at, inequalities)[self._active]
        return self._expanded(self.inverse.solve(np.concatenate([e, missing]), z), sides)

    def contradiction(
        self,
        at: Linearisation,
        equations: LinearisedConstraints,
        inequalities: LinearisedConstraints,
    ) -> float:
        """Return how much of the equations no step can satisfy, relative to the sizes."""
        held = self._missing(at, inequalities)[self._active]
        return self.inverse.contradiction(np.concatenate([self._sides(at, equations)[0], held]))

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
        if node in self._first:  # it follows from the unknowns
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
