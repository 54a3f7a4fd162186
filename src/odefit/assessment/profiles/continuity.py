"""A problem on shooting nodes in coordinates in which equations and data are nearly straight.

If a trajectory follows an unstable solution, one integration from the initial values needs the
unknowns to many digits: best fits then lie in an equally narrow valley. On nodes the valley is wide
(H. G. Bock, Recent advances in parameter identification techniques for O.D.E., 1983). This module
computes residuals and continuity conditions with their derivatives. Unknowns on a logarithmic scale
and the values of nodes have the inverse hyperbolic sine as their coordinate. It is a logarithm
where they are large, and linear where they have little effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.methods.local.scaling import Scaling
from odefit.methods.shooting.node_evaluation import shooting_problem
from odefit.methods.shooting.shooting_problem import Point as NodeValues
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice

SMALL = 1e-4
"""Value of a node, relative to the size of its state, below which its coordinate is linear."""

SLIGHT = 3.0
"""Effect of a change by a factor e below which the coordinate of an unknown is linear."""

CONTINUITY = 10.0
"""Effect of a relative change of the end of an interval, in units of that of a standard
deviation."""

GROWTH = 30.0
"""Growth of a deviation over an interval above which the interval is halved."""

SHORTEST = 1e-4
"""Length of an interval, relative to that of its trajectory, below which it is not halved."""


@dataclass(frozen=True, eq=False)
class Straightened:
    """One coordinate for each unknown: asinh(x/2e) on a logarithmic scale, else x/e.

    `units` are the values e, shape (n,); the bounds are those in coordinates.
    """

    logarithmic: BoolArray
    units: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, problem: Problem, units: Array) -> Straightened:
        """Return the coordinates with these units, shape (n,)."""
        logarithmic = Scaling.of(problem).logarithmic
        coordinates = cls(logarithmic, units, problem.lower, problem.upper)
        return cls(
            logarithmic,
            units,
            coordinates.of_vector(problem.lower),
            coordinates.of_vector(problem.upper),
        )

    def of_vector(self, vector: Array) -> Array:
        """Return the coordinates of a vector in natural units."""
        ratio = vector / self.units
        return np.where(self.logarithmic, np.arcsinh(0.5 * ratio), ratio)

    def natural(self, coordinates: Array) -> Array:
        """Return the vector in natural units that has these coordinates."""
        with np.errstate(over="ignore"):
            bent = 2 * np.sinh(np.where(self.logarithmic, coordinates, 0.0))
        return np.asarray(self.units * np.where(self.logarithmic, bent, coordinates))

    def derivative(self, vector: Array) -> Array:
        """Return the derivatives of the unknowns by their coordinates, shape (n,)."""
        return np.where(self.logarithmic, np.hypot(vector, 2 * self.units), self.units)


def units_by_effect(problem: Problem, vector: Array, effects: Array) -> Array:
    """Return the units of the coordinates, from the effect of a change of each unknown by 1."""
    size = sizes_at(problem, vector, part=0.0)
    with np.errstate(divide="ignore"):
        units = SLIGHT / effects
    width = problem.upper - problem.lower
    widest = np.where(np.isfinite(width) & (width > 0), width, sizes_at(problem, vector))
    logarithmic = Scaling.of(problem).logarithmic
    return np.where(logarithmic, np.clip(units, 1e-3 * size, 1e9 * size), np.minimum(units, widest))


@dataclass(frozen=True, eq=False)
class Joint:
    """Residuals and continuity conditions at a point, with their derivatives by all coordinates.

    The coordinates are those of the n unknowns, then those of all nodes but the first of each
    condition, which the unknowns determine. `nodes`, shape (K, N), includes the first ones. `gaps`
    are the ends of intervals minus the nodes there, shape (q,). `growth` is the largest growth of a
    deviation over each interval that ends at a node.
    """

    unknowns: Array
    nodes: Array
    vector: Array
    cost: float
    residuals: Array
    by_coordinate: Array
    gaps: Array
    gaps_by_coordinate: Array
    growth: Array
    choice: EngineChoice


class JointProblem:
    """The forward map of a problem on nodes, in straightened coordinates.

    The first of each condition's `times` is its t0. The sizes of unmeasured states follow from
    `vector`. `inner` are the numbers of the free nodes, shape (K - conditions,).
    """

    def __init__(self, forward: ForwardMap, times: Sequence[Array], vector: Array) -> None:
        self.times = [np.asarray(t, dtype=float) for t in times]
        self._problem = forward.problem
        self._shooting = shooting_problem(forward, self.times, [], vector)
        self._small = SMALL * self._shooting.sizes
        self.first = self._shooting.starts[:-1]
        self.left = np.setdiff1d(np.arange(self._shooting.nodes), self._shooting.starts[1:] - 1)
        self.inner: IntArray = np.setdiff1d(np.arange(self._shooting.nodes), self.first)

    def of_nodes(self, values: Array) -> Array:
        """Return the coordinates of the values of nodes, shape (K, N)."""
        return np.asarray(np.arcsinh(values / (2 * self._small)))

    def evaluate(
        self, coordinates: Straightened, unknowns: Array, nodes: Array, choice: EngineChoice
    ) -> Joint | str:
        """Return residuals and continuity conditions at a point, or why they are missing."""
        shooting, small = self._shooting, self._small
        with np.errstate(all="ignore"):
            vector = coordinates.natural(unknowns)
            vector = np.clip(vector, self._problem.lower, self._problem.upper)
            start = NodeValues(shooting.scaling.coordinates(vector), 2 * small * np.sinh(nodes))
            at = shooting.linearise(start, choice)
            if isinstance(at, Failure):
                return str(at)
            values = at.point.nodes
            count, size = values.shape
            left, stretch = self.left, np.hypot(values, 2 * small)
            row_nodes = shooting.chains.row_nodes
            by_unknown = np.array(at.rows_by_unknown)
            ends = at.gaps + values[left + 1]
            slope = 1 / np.hypot(ends, 2 * small)
            ends_by_node = slope[:, :, None] * at.by_node
            ends_by_unknown = slope[:, :, None] * at.by_unknown
            for node, first in zip(self.first, at.first_by_unknown, strict=True):
                here = np.flatnonzero(row_nodes == node)
                by_unknown[here] += at.rows_by_node[here] @ first
                for i in np.flatnonzero(left == node):
                    ends_by_unknown[i] += ends_by_node[i] @ first
            rows_by_node = at.rows_by_node * stretch[row_nodes]
            ends_by_node = ends_by_node * stretch[left][:, None, :]
            factor = coordinates.derivative(vector) / shooting.scaling.derivative(vector)
            # Each row has derivatives by one node, each condition by two: only these are written.
            place = np.full(count, -1)
            place[self.inner] = np.arange(len(self.inner))
            inner = place[row_nodes] >= 0
            by_nodes = np.zeros((len(row_nodes), len(self.inner), size))
            by_nodes[inner, place[row_nodes[inner]]] = rows_by_node[inner]
            gaps_by_nodes = np.zeros((len(left), size, len(self.inner), size))
            begun = np.flatnonzero(place[left] >= 0)
            gaps_by_nodes[begun, :, place[left[begun]]] = ends_by_node[begun]
            gaps_by_nodes[np.arange(len(left)), :, place[left + 1]] -= np.eye(size)
            a = by_unknown * factor, by_nodes.reshape(len(row_nodes), -1)
            c = (
                ends_by_unknown.reshape(-1, len(vector)) * factor,
                gaps_by_nodes.reshape(len(left) * size, -1),
            )
            gaps = self.of_nodes(ends) - self.of_nodes(values[left + 1])
        residuals, cost = at.residuals, at.evaluation.cost
        known = [residuals, gaps, ends_by_node, rows_by_node, a[0], c[0]]
        if not (math.isfinite(cost) and all(np.isfinite(k).all() for k in known)):
            return "derivatives on the nodes are not finite"
        growth = np.linalg.norm(ends_by_node, 2, axis=(1, 2)) if len(left) else np.zeros(0)
        return Joint(
            unknowns,
            self.of_nodes(values),
            vector,
            cost,
            residuals,
            np.hstack(a),
            gaps.ravel(),
            np.hstack(c),
            np.asarray(growth),
            at.choice,
        )

    def units(self, at: Joint, coordinates: Straightened) -> Array:
        """Return the units of coordinates suited to the neighbourhood of a point, shape (n,)."""
        n = len(at.vector)
        squares = np.sum(at.by_coordinate[:, :n] ** 2, axis=0)
        squares += CONTINUITY**2 * np.sum(at.gaps_by_coordinate[:, :n] ** 2, axis=0)
        effects = np.sqrt(squares) / coordinates.derivative(at.vector)
        return units_by_effect(self._problem, at.vector, effects)

    def stiffness(self, at: Joint) -> float:
        """Return the largest change of the residuals for a relative change of the unknowns alone.

        It is that of one integration from the initial values; infinite if it overflows.
        """
        n, size = len(at.vector), at.nodes.shape[1]
        place = {int(node): n + i * size for i, node in enumerate(self.inner)}
        response = {int(node): np.zeros((size, n)) for node in self.first}
        jacobian = at.by_coordinate[:, :n].copy()
        with np.errstate(all="ignore"):
            for i, node in enumerate(self.left.tolist()):
                rows = at.gaps_by_coordinate[i * size : (i + 1) * size]
                end = rows[:, :n].copy()
                if node in place:
                    end += rows[:, place[node] : place[node] + size] @ response[node]
                response[node + 1] = end
            for node, start in place.items():
                jacobian += at.by_coordinate[:, start : start + size] @ response[node]
        return float(np.linalg.norm(jacobian, 2)) if np.isfinite(jacobian).all() else math.inf

    def finer(self, at: Joint) -> list[Array] | None:
        """Return node times with all intervals of large growth halved, or None."""
        node_times = []
        for k, times in enumerate(self.times):
            least = SHORTEST * (times[-1] - times[0])
            left_places = self.left[
                (self.left >= self.first[k]) & (self.left < self.first[k] + len(times))
            ]
            growth = at.growth[np.searchsorted(self.left, left_places)]
            halved = (growth > GROWTH) & (np.diff(times) > least)
            middle = 0.5 * (times[:-1] + times[1:])
            node_times.append(np.unique(np.concatenate([times, middle[halved]])))
        return node_times if sum(map(len, node_times)) > len(at.nodes) else None

    def carried(self, coarse: JointProblem, at: Joint, coordinates: Straightened) -> Array | str:
        """Return the coordinates of these nodes on the trajectory of a problem with fewer nodes."""
        nodes, new, begun = [], [], 0
        for old, times in zip(coarse.times, self.times, strict=True):
            before = np.searchsorted(old, times, side="right") - 1
            nodes.append(at.nodes[begun + before])
            new.append(old[before] != times)
            begun += len(old)
        states, fresh = np.concatenate(nodes), np.concatenate(new)
        # A new node begins like the previous one: an interval that could be integrated as a whole
        # can be integrated in part, and the end of that part is the new node.
        ends = self.evaluate(coordinates, at.unknowns, states, at.choice)
        if isinstance(ends, str):
            return ends
        gaps = ends.gaps.reshape(len(self.left), -1)
        for i, node in enumerate(self.left):
            if fresh[node + 1]:
                states[node + 1] = ends.nodes[node + 1] + gaps[i]
        return np.asarray(states)


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second derivatives of the Lagrangian beyond those of Gauss and Newton, in a basis.

    The orthonormal directions have shape (w, k), and the derivatives along them (k, k).
    """

    basis: Array
    matrix: Array

    def on(self, directions: Array) -> Array:
        """Return the second derivatives along other directions, shape (w, j), as (j, j)."""
        parts = self.basis.T @ directions
        return np.asarray(parts.T @ self.matrix @ parts)


class Tangents:
    """The linearised problem at a point: its null space, shortest correction and multipliers.

    `columns` are the numbers of the free coordinates: k unknowns, the `others`, then all nodes,
    shape (w,). `null` is an orthonormal basis of the steps that keep the linearised conditions,
    shape (w, d).
    """

    def __init__(self, at: Joint, others: IntArray) -> None:
        from scipy.sparse import csc_array, eye_array, hstack, vstack
        from scipy.sparse.linalg import splu

        everything, n = at.by_coordinate.shape[1], len(at.vector)
        self.at = at
        self.columns: IntArray = np.concatenate([others, np.arange(n, everything)])
        self.count = len(others)
        self.rows = at.by_coordinate[:, self.columns]
        self.conditions = at.gaps_by_coordinate[:, self.columns]
        self._width, self._equations = len(self.columns), len(at.gaps)
        self._factors = None
        free = self._width - self._equations
        spread = np.random.default_rng(0).normal(size=(self._width, free + 3))
        if self._equations:
            matrix = csc_array(self.conditions)
            upper = hstack([eye_array(self._width), matrix.T])
            lower = hstack([matrix, csc_array((self._equations, self._equations))])
            self._factors = splu(csc_array(vstack([upper, lower])))
            for _ in range(2):  # a second projection removes rounding
                spread = self._solved(spread, np.zeros((self._equations, free + 3)))[: self._width]
        self.null = np.linalg.svd(spread, full_matrices=False)[0][:, :free]

    def _solved(self, first: Array, second: Array) -> Array:
        assert self._factors is not None, "there are conditions"
        return np.asarray(self._factors.solve(np.concatenate([first, second])))

    def correction(self, gaps: Array) -> Array:
        """Return the shortest step that closes some gaps, shape (w,)."""
        if not self._equations:
            return np.zeros(self._width)
        return self._solved(np.zeros(self._width), -gaps)[: self._width]

    def multipliers(self, near: BoolArray) -> Array:
        """Return the multipliers of the conditions at which the gradient nearly vanishes.

        `near` marks unknowns held at a bound, shape (k,).
        """
        if not self._equations:
            return np.zeros(0)
        gradient = self.rows.T @ self.at.residuals
        if near.any():
            basis = self.null[: self.count][near].T
            held = np.flatnonzero(near)
            gradient[held] -= np.linalg.lstsq(basis, self.null.T @ gradient, rcond=1e-10)[0]
        return self._solved(-gradient, np.zeros(self._equations))[self._width :]

    def within(self, near: BoolArray) -> Array:
        """Return a basis of the null space in which some unknowns do not move, shape (w, j)."""
        if not near.any():
            return self.null
        _, s, vt = np.linalg.svd(self.null[: self.count][near])
        rank = int(np.sum(s > 1e-10 * max(float(s.max(initial=0.0)), 1e-300)))
        return np.asarray(self.null @ vt[rank:].T)

    def unmoved(self, step: Array, near: BoolArray) -> Array:
        """Return a step plus a part of the null space, so that some unknowns do not move."""
        if not near.any():
            return step
        moved = np.linalg.lstsq(
            self.null[: self.count][near], step[: self.count][near], rcond=1e-10
        )
        return np.asarray(step - self.null @ moved[0])
