"""Residuals of a discretised problem over boxes of unknowns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from odefit.discretisation.discretisation import MESH_TIME_TOLERANCE
from odefit.discretisation.mesh import Mesh, Segment, segments
from odefit.discretisation.schemes import Scheme
from odefit.enclosure.affine_maps import Composition, Powers, affine
from odefit.enclosure.discretised.block_enclosures import Block, Point, Solver, blocks
from odefit.enclosure.discretised.projection_bound import Weights, least_distance
from odefit.enclosure.discretised.repeated_steps import Plan, powers
from odefit.enclosure.discretised.right_hand_sides import Slopes, repeated
from odefit.enclosure.error_propagation import ErrorBound
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.residuals import (
    Priors,
    Residuals,
    ResidualsAtTime,
    influences,
    known_at,
    variables,
)
from odefit.enclosure.system import System
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array, BoolArray, IntArray
from odefit.problem.problem import Problem

WORTH = 0.7
"""Of the boxes: when fewer are left, the others are dropped."""


class DiscretisedEnclosure:
    """Residuals of a discretised problem over boxes, see :class:`odefit.enclosure.Enclosure`.

    Parameters
    ----------
    problem
        With data; standard deviations must not depend on unknowns.
    scheme, mesh
        How it is discretised.
    degree
        Of the polynomials in the unknowns.

    Attributes
    ----------
    unique_solution
        Whether the discretised equations have one solution for each value of the unknowns.
    """

    def __init__(self, problem: Problem, scheme: Scheme, mesh: Mesh, degree: int = 2) -> None:
        self.problem = problem
        self.monomials = Monomials.of(len(problem.unknowns), degree)
        self._runs = [
            _Condition(problem, number, scheme, mesh, self.monomials)
            for number in range(len(problem.conditions))
        ]
        self._priors = Priors(problem)
        self.size = problem.size + self._priors.size
        self.influence = np.concatenate(
            [*(r.influence for r in self._runs), self._priors.influence]
        )
        self.lower_bound = sum(run.projection_bound() for run in self._runs)
        steps = sum(run.steps for run in self._runs)
        self.scope = f"discretised ({scheme.name}, M = {steps})"
        self.unique_solution = all(run.unique_solution for run in self._runs)

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        """Over boxes with these corners, shapes (B, n).

        What follows when the residuals so far exceed `radius` is not computed: nothing is known
        of it.
        """
        models = variables(self.monomials, lower, upper)
        squares = np.zeros(len(lower))
        with np.errstate(all="ignore"):
            parts = [run(models, squares, radius**2) for run in self._runs]
            parts.append(self._priors.of(models))
        return Residuals.joined(parts)


class _Condition:
    """One condition, from its initial values to its last measurement."""

    def __init__(
        self, problem: Problem, number: int, scheme: Scheme, mesh: Mesh, monomials: Monomials
    ) -> None:
        condition = problem.conditions[number]
        self.system, self.monomials = System(problem, condition), monomials
        inputs = list(problem.model.inputs)
        self._segments = list(segments(number, condition, inputs, scheme, mesh))
        self.steps = sum(len(s.mesh) - 1 for s in self._segments)
        self._measured = [ResidualsAtTime(self.system, row) for row in range(len(condition.times))]
        self.influence = influences(self._measured, condition.size)
        tape, states = self.system.tape, set(self.system.states)
        slopes = [slope for motion in self.system.motions for slope in motion.slopes.terms]
        self.unique_solution = not any(tape.depends(slope) & states for slope in slopes) or all(
            block.explicit for segment in self._segments for block in _blocks(segment)
        )
        self._parts = [
            _Part(self.system, monomials, segment, scheme, self._of(segment))
            for segment in self._segments
        ]

    def projection_bound(self) -> float:
        """What no polynomials between the points can fit."""
        found = 0.0
        # Through the equations, values are made of slopes: fewer unknowns, but not always told
        # apart; and more than are measured if there are more points.
        few = sum(part.points for part in self._parts) <= self.system.condition.size
        for joined in (False, True) if few else (False,):
            pairs = [
                (residual, (number, weights))
                for number, part in enumerate(self._parts)
                for residual, weights in part.measurements(joined)
            ]
            first = bool(self._measured) and self._measured[0].time == self.system.condition.t0
            if first and self._parts and self._parts[0].smooth:
                pairs.append((self._measured[0], (0, ({0: 1.0}, {}))))
            measured = [residual for residual, _ in pairs]
            made_of = [weights for _, weights in pairs]
            bound = least_distance(measured, made_of, self.system.states, self.system.unknowns)
            found = max(found, bound)
        return found

    def _of(self, segment: Segment) -> list[ResidualsAtTime]:
        """What a segment measures."""
        first, last = segment.mesh[0], segment.mesh[-1]
        return [m for m in self._measured if first < m.time <= last]

    def __call__(self, models: Sequence[TaylorModel], squares: Array, most: float) -> Residuals:
        """Given the squares of earlier residuals, shape (B,), which are added to."""
        boxes = _Boxes(self, models, squares, most)
        found = boxes.found
        begun = self.system.initial.still(self.monomials, boxes.unknowns, len(squares))
        start = [begun[term.index] for term in self.system.initial.terms]
        point = Point(np.stack([m.c[:, 0] for m in start]), np.stack([m.remainder for m in start]))
        times = self.system.condition.times
        if len(times) and times[0] == self.system.condition.t0:
            boxes.measure(self._measured[0], point)
        for part in self._parts:
            point = part.jumped(point, boxes.unknowns)
            point = part(point, boxes)
            if not len(boxes):
                break
        return found


class _Boxes:
    """Those that are still of interest, and what is found about all.

    Attributes
    ----------
    unknowns
        Models by entry of the tape, in the boxes that are left.
    found
        Residuals in all boxes.
    """

    def __init__(
        self, run: _Condition, models: Sequence[TaylorModel], squares: Array, most: float
    ) -> None:
        system = run.system
        self._monomials, self._most = run.monomials, most
        self.unknowns = dict(zip(system.unknowns, models, strict=True))
        self._left = np.arange(len(squares))
        self._squares = squares
        self.found = Residuals.empty(system.condition.size, len(run.monomials), len(squares))
        self.found.remainder[:] = np.inf

    def __len__(self) -> int:
        return len(self._left)

    def measure(self, measured: ResidualsAtTime, point: Point) -> None:
        """Residuals at one time."""
        own = measured.of(_models(point), self.unknowns, self._monomials)
        self._squares[self._left] += own.least_squares()
        places = np.ix_(np.array(measured.places), self._left)
        self.found.remainder[places] = own.remainder
        for i, place in enumerate(measured.places):
            self.found.c[place][:, self._left] = own.c[i]

    def worth(self) -> BoolArray:
        """Which of those that are left are not refuted, shape (left,)."""
        return self._squares[self._left] <= self._most

    def keep(self, chosen: IntArray) -> None:
        """Only some of those that are left."""
        self._left = self._left[chosen]
        self.unknowns = {i: m.take(chosen) for i, m in self.unknowns.items()}


def _models(point: Point) -> list[TaylorModel]:
    nothing = np.zeros(point.c.shape[2])
    return [
        TaylorModel(c[:, None, :], None, size, nothing)
        for c, size in zip(point.c, point.sizes, strict=True)
    ]


def _after(powers_of: Powers, point: Point, count: int) -> Point:
    """A point, some equal steps later."""
    if not count:
        return point
    states = powers_of(_models(point), count)
    return Point(np.stack([m.c[:, 0] for m in states]), np.stack([m.remainder for m in states]))


class _Part:
    """One segment of a condition: an event at its start, then blocks of equations."""

    def __init__(
        self,
        system: System,
        monomials: Monomials,
        segment: Segment,
        scheme: Scheme,
        measured: list[ResidualsAtTime],
    ) -> None:
        self._system, self._monomials = system, monomials
        self._segment, self._measured = segment, measured
        self._blocks = _blocks(segment)
        states = self._system.problem.model.states
        self._jump = None
        if any(name in states for name in segment.assign):
            self._jump = self._system.jump(segment.assign, float(segment.mesh[0]))
        self._weights: list[Weights] = []
        if measured:
            times = np.array([m.time for m in measured])
            weights = scheme.interpolation(segment.mesh, segment.relations, times)
            for i, time in enumerate(times.tolist()):
                at = _snapped(segment, time)
                if at is not None:
                    self._weights.append(({at: 1.0}, {}))
                    continue
                pair = [
                    dict(zip(w[[i]].indices.tolist(), w[[i]].data.tolist(), strict=True))
                    for w in weights
                ]
                self._weights.append((pair[0], pair[1]))
        # When a measurement can be read off, and until when a point is needed.
        self._last_use = {k: i for i, block in enumerate(self._blocks) for k in block.old}
        self._ready: list[list[int]] = [[] for _ in self._blocks]
        for i, (a, b) in enumerate(self._weights):
            latest = max([*a, *b])
            at = next(k for k, block in enumerate(self._blocks) if block.new[-1] >= latest)
            self._ready[at].append(i)
            for k in a.keys() | b.keys():
                self._last_use[k] = max(self._last_use.get(k, 0), at)

        self.points = len(segment.relations.times)
        self._plan: Plan | None = None
        motion = system.motion(float(segment.mesh[0]))
        if affine(system, motion):
            self._plan = Plan(self._blocks, self._last_use)
            self._composition = Composition(*motion.order(len(system.states)))

    @property
    def smooth(self) -> bool:
        """No state jumps where it begins."""
        return self._jump is None

    def measurements(self, joined: bool = False) -> Iterator[tuple[ResidualsAtTime, Weights]]:
        """What is measured, and of what the states of that time are made.

        If `joined`, of the value at the first point, and of slopes.
        """
        weights = self._weights
        if joined and self._measured:
            weights = [_joined(w, self._values) for w in weights]
        yield from zip(self._measured, weights, strict=True)

    @cached_property
    def _values(self) -> Array:
        """Values at all points, of the first one and all slopes, shape (P, 1 + P)."""
        relations = self._segment.relations
        states, slopes = relations.states.toarray(), relations.rhs.toarray()
        known = np.hstack([-states[:, :1], slopes])
        first = np.eye(1, known.shape[1])
        return np.vstack([first, np.linalg.solve(states[:, 1:], known)])

    def jumped(self, point: Point, unknowns: Mapping[int, TaylorModel]) -> Point:
        """After the event at the start."""
        if self._jump is None:
            return point
        places, program = self._jump
        time = float(self._segment.mesh[0])
        known = known_at(self._system, _models(point), unknowns, self._monomials, time)
        after = program.static(self._monomials, known, point.c.shape[2])
        c, sizes = point.c.copy(), point.sizes.copy()
        for place, term in zip(places, program.terms, strict=True):
            c[place], sizes[place] = after[term.index].c[:, 0], after[term.index].remainder
        return Point(c, sizes)

    def __call__(self, point: Point, boxes: _Boxes) -> Point:
        """From the first point to the last, with all measurements between."""
        if not self._blocks:
            return point
        solver = self._solver(boxes)
        # Slopes that an earlier segment has left are of its own motion and inputs.
        point = Point(point.c, point.sizes)
        points = {0: point}
        spread = ErrorBound.of(point.sizes.T)
        strides = self._strides(boxes)
        runs = {} if self._plan is None else self._plan.runs
        run, origin, begun = None, point, 0
        for number, block in enumerate(self._blocks):
            if number in runs:
                run, origin, begun = runs[number], points[block.old[0]], number
            if run is None:
                spread = solver.solve(block, points, spread)
            else:
                # All points of a run follow from its first one: by as few maps as there are.
                last = number + 1 == begun + run.count
                if self._ready[number]:
                    start = _after(strides[run.kind], origin, number - begun)
                    points = {block.old[0]: start}
                    solver.solve(block, points, ErrorBound.of(start.sizes.T))
                if last:
                    reached = _after(strides[run.kind], origin, run.count)
                    points[block.new[-1]] = reached
                    spread, run = ErrorBound.of(reached.sizes.T), None
                if not (last or self._ready[number]):
                    continue
            for i in self._ready[number]:
                boxes.measure(self._measured[i], solver.read(points, *self._weights[i]))
            end = block.new[-1]
            points = {
                k: p for k, p in points.items() if self._last_use.get(k, 0) > number or k == end
            }
            worth = boxes.worth()
            # Taking some boxes along costs less than making smaller arrays.
            if worth.sum() < WORTH * len(boxes):
                chosen = np.flatnonzero(worth)
                boxes.keep(chosen)
                points = {k: p.take(chosen) for k, p in points.items()}
                spread, origin = spread.take(chosen), origin.take(chosen)
                solver = self._solver(boxes)
                strides = {kind: s.take(chosen) for kind, s in strides.items()}
            if not len(boxes):
                break
        return points[block.new[-1]]

    def _solver(self, boxes: _Boxes, times: int = 1, doubt: float = 0.0) -> Solver:
        """For all boxes that are left, some times over."""
        segment = self._segment
        motion = self._system.motion(float(segment.mesh[0]))
        unknowns = boxes.unknowns
        if times > 1:
            unknowns = {i: repeated(m, times) for i, m in unknowns.items()}
        count = times * len(boxes)
        slopes = Slopes(self._system, segment, motion, self._monomials, unknowns, count)
        return Solver(slopes, doubt)

    def _strides(self, boxes: _Boxes) -> dict[int, Powers]:
        """For each kind of equal steps that are taken together."""
        if self._plan is None:
            return {}
        found = {}
        for kind in {run.kind for run in self._plan.runs.values()}:
            solver = self._solver(boxes, len(self._system.states) + 1, self._plan.doubts[kind])
            step = self._plan.steps[kind]
            found[kind] = powers(self._composition, self._monomials, solver, step)
        return found


def _joined(weights: Weights, values: Array) -> Weights:
    """With the first value and slopes in place of values at points."""
    of_values, of_slopes = weights
    total = np.zeros(values.shape[1])
    for point, weight in of_values.items():
        total += weight * values[point]
    for point, weight in of_slopes.items():
        total[1 + point] += weight
    used = np.flatnonzero(total[1:])
    return {0: float(total[0])}, {int(k): float(total[1 + k]) for k in used}


def _blocks(segment: Segment) -> list[Block]:
    return list(blocks(segment)) if len(segment.mesh) > 1 else []


def _snapped(segment: Segment, time: float) -> int | None:
    """The mesh point that a measurement is taken at, as the transcription does it, if any."""
    mesh = segment.mesh
    nearest = 1 + int(np.argmin(np.abs(mesh[1:] - time)))
    if abs(time - mesh[nearest]) <= MESH_TIME_TOLERANCE * (mesh[-1] - mesh[0]):
        return int(segment.relations.boundary[nearest])
    return None
