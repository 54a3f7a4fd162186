"""Enclosures through one segment of a condition: an event at its start, then step after step.

Many equal steps are powers of an affine map if the equations are linear.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.discretisation.discretisation import MESH_TIME_TOLERANCE
from odefit.discretisation.mesh import Segment
from odefit.discretisation.schemes import Scheme
from odefit.enclosure.affine_maps import AffinePowers, is_autonomous_affine
from odefit.enclosure.arithmetic.taylor_models import MIN_KEPT_SHARE, Monomials, TaylorModel
from odefit.enclosure.discretised.krawczyk import KrawczykSolver, PointEnclosure
from odefit.enclosure.discretised.projection_bound import Readout
from odefit.enclosure.discretised.right_hand_sides import (
    RightHandSides,
    StepEquations,
    step_equations,
)
from odefit.enclosure.residuals import Residuals, ResidualsAtTime, known_at
from odefit.enclosure.system import System
from odefit.simulation.engines.cut_off import cut_off

MIN_REPEATS = 24
"""Number of equal steps above which powers of their map cost less."""

EQUALITY_TOLERANCE = 1e-11
"""Relative difference of the coefficients up to which steps count as equal.

The difference itself is accounted for by the enclosure.
"""

MAX_COMPARED = 8
"""Number of different steps, the last ones, with which a step is compared."""


@dataclass(frozen=True, eq=False)
class StepSequence:
    """Equal steps of the kind with one number, of which only the last point is needed later."""

    count: int
    kind: int


class RepeatedSteps:
    """The sequences of equal steps in a segment that are long enough for powers of their map.

    `last_use` is the number of the last step that needs each point. `different` holds one step of
    each kind, `differences` the largest relative difference of coefficients within each kind, and
    `sequences` the sequences by the number of their first step.
    """

    def __init__(self, steps: Sequence[StepEquations], last_use: Mapping[int, int]) -> None:
        self.different: list[StepEquations] = []
        self.differences: list[float] = []
        self.sequences: dict[int, StepSequence] = {}
        kinds: list[int | None] = []
        for number, step in enumerate(steps):
            later = any(last_use.get(k, 0) > number for k in step.new[:-1])
            end = last_use.get(step.new[-1], 0) > number + 1
            single = later or end or not step.one_step
            kinds.append(None if single else self._kind(step))
        number = 0
        for kind, equal in itertools.groupby(kinds):
            count = len(list(equal))
            if kind is not None and kinds.count(kind) >= MIN_REPEATS:
                self.sequences[number] = StepSequence(count, kind)
            number += count

    def _kind(self, step: StepEquations) -> int:
        """Return the number of the different step to which a step is equal."""
        count = len(self.different)
        for kind in range(count - 1, max(count - MAX_COMPARED, 0) - 1, -1):
            difference = self.different[kind].difference(step)
            if difference <= EQUALITY_TOLERANCE:
                self.differences[kind] = max(self.differences[kind], difference)
                return kind
        self.different.append(step)
        self.differences.append(0.0)
        return count


def step_powers(solver: KrawczykSolver, step: StepEquations) -> AffinePowers:
    """Return the powers of the map of a step.

    The map is computed from the solutions that start at zero and at each unit vector: the solver
    has ``(n + 1) B`` boxes, the sequence of all boxes repeated n + 1 times.
    """
    n, equations = solver.states, solver.rhs
    boxes = solver.boxes // (n + 1)
    c = np.zeros((n, len(equations.monomials), (n + 1) * boxes))
    for j in range(n):
        c[j, 0, j * boxes : (j + 1) * boxes] = 1.0
    start = PointEnclosure(c, np.zeros((n, (n + 1) * boxes)))
    models = solver.step(step, start).models(equations.monomials)

    def end(i: int, j: int) -> TaylorModel:
        """Return state i of the solution from unit vector j, or from zero for j = n."""
        return models[i].take(np.arange(j * boxes, (j + 1) * boxes))

    shift = [end(i, n) for i in range(n)]
    places = np.argwhere(equations.dependence).tolist()
    matrix = {(i, j): end(i, j) - shift[i] for i, j in places}
    return AffinePowers.of(equations.groups, matrix, shift)


class OpenBoxes:
    """The boxes that the residuals so far do not exclude, and the `residuals` of all boxes.

    `squares`, shape (B,), are lower bounds of earlier residuals' sums of squares; a box is excluded
    above `limit`. `unknowns` are Taylor models in the open boxes, by entry of the tape.
    """

    def __init__(
        self,
        system: System,
        monomials: Monomials,
        models: Sequence[TaylorModel],
        squares: Array,
        limit: float,
    ) -> None:
        self._monomials, self._limit = monomials, limit
        self.unknowns = dict(zip(system.unknowns, models, strict=True))
        self._open = np.arange(len(squares))
        self._squares = squares
        self.residuals = Residuals.zeros(system.condition.size, len(monomials), len(squares))
        self.residuals.remainder[:] = np.inf

    def __len__(self) -> int:
        return len(self._open)

    def measure(self, measured: ResidualsAtTime, point: PointEnclosure) -> None:
        """Add the residuals at one time."""
        residuals_now = measured.of(point.models(self._monomials), self.unknowns, self._monomials)
        self._squares[self._open] += residuals_now.squares_bound()
        places = np.ix_(np.array(measured.places), self._open)
        self.residuals.remainder[places] = residuals_now.remainder
        for i, place in enumerate(measured.places):
            self.residuals.c[place][:, self._open] = residuals_now.c[i]

    def not_excluded(self) -> IntArray | None:
        """Return which open boxes are not excluded; None if these are most of them.

        Then computing some excluded boxes costs less than making smaller arrays.
        """
        mask = self._squares[self._open] <= self._limit
        return np.flatnonzero(mask) if mask.sum() < MIN_KEPT_SHARE * len(self) else None

    def keep(self, chosen: IntArray) -> None:
        """Keep the selected open boxes."""
        self._open = self._open[chosen]
        self.unknowns = {i: m.take(chosen) for i, m in self.unknowns.items()}


class SegmentEnclosure:
    """One segment of a condition: an event at its start, then the equations of its steps.

    `repeated_steps` is None if the equations are not linear or depend on time.
    """

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
        self._steps = list(step_equations(segment))
        begin = float(segment.mesh[0])
        self._jump = None
        if any(name in system.problem.model.states for name in segment.assign):
            self._jump = system.jump(segment.assign, begin)
        self._readouts = list(_readouts(segment, scheme, [m.time for m in measured]))
        # The step at which a measurement can be read, and the last step that needs a point.
        self._last_use = {k: i for i, step in enumerate(self._steps) for k in step.old}
        self._ready: list[list[int]] = [[] for _ in self._steps]
        for i, readout in enumerate(self._readouts):
            used = {*readout.states, *readout.right_hand_sides}
            at = next(k for k, step in enumerate(self._steps) if step.new[-1] >= max(used))
            self._ready[at].append(i)
            for k in used:
                self._last_use[k] = max(self._last_use.get(k, 0), at)
        self.points = len(segment.relations.times)
        self.repeated_steps: RepeatedSteps | None = None
        mode = system.mode_at(begin)
        if is_autonomous_affine(system, mode):
            self.repeated_steps = RepeatedSteps(self._steps, self._last_use)

    @property
    def explicit(self) -> bool:
        """True if each point follows from earlier ones."""
        return all(step.explicit for step in self._steps)

    @property
    def continuous(self) -> bool:
        """True if no state jumps at the start."""
        return self._jump is None

    def readouts(
        self, by_right_hand_sides: bool = False
    ) -> Iterator[tuple[ResidualsAtTime, Readout]]:
        """Yield the residuals at each time, with the states there as combinations of points.

        With `by_right_hand_sides`, only the states at the first point and right-hand sides are
        combined.
        """
        readouts = self._readouts
        if by_right_hand_sides and self._measured:
            readouts = [_by_right_hand_sides(r, self._integrals) for r in readouts]
        yield from zip(self._measured, readouts, strict=True)

    @cached_property
    def _integrals(self) -> Array:
        """States at all points, by the first one and by all right-hand sides, shape (P, 1 + P)."""
        relations = self._segment.relations
        a, b = relations.states.toarray(), relations.rhs.toarray()
        known = np.hstack([-a[:, :1], b])
        first = np.eye(1, known.shape[1])
        return np.vstack([first, np.linalg.solve(a[:, 1:], known)])

    def after_event(
        self, point: PointEnclosure, unknowns: Mapping[int, TaylorModel]
    ) -> PointEnclosure:
        """Return the states after the event at the start."""
        if self._jump is None:
            return point
        places, program = self._jump
        time = float(self._segment.mesh[0])
        known = known_at(
            self._system, point.models(self._monomials), unknowns, self._monomials, time
        )
        after = program.evaluate(self._monomials, known, point.c.shape[2])
        c, deviation = point.c.copy(), point.deviation.copy()
        for place, term in zip(places, program.terms, strict=True):
            c[place], deviation[place] = after[term.index].c[:, 0], after[term.index].remainder
        return PointEnclosure(c, deviation)

    def __call__(self, point: PointEnclosure, boxes: OpenBoxes) -> PointEnclosure:
        """Return the last point from the first one; all residuals between are added to `boxes`."""
        if not self._steps:
            return point
        solver = self._solver(boxes)
        # Right-hand sides from an earlier segment may belong to other equations.
        point = PointEnclosure(point.c, point.deviation)
        points, error = {0: point}, point.error_bound()
        powers = self._powers(boxes)
        sequences = {} if self.repeated_steps is None else self.repeated_steps.sequences
        sequence: StepSequence | None = None
        origin, begun = point, 0
        for number, step in enumerate(self._steps):
            if number in sequences:
                sequence, origin, begun = sequences[number], points[step.old[0]], number
            if sequence is None:
                error = solver.solve(step, points, error)
            else:
                # All points of a sequence follow from its first one, by as few maps as possible.
                last = number + 1 == begun + sequence.count
                if self._ready[number]:
                    start = _after(powers[sequence.kind], origin, number - begun)
                    points = {step.old[0]: start}
                    solver.solve(step, points, start.error_bound())
                if last:
                    end = _after(powers[sequence.kind], origin, sequence.count)
                    points[step.new[-1]] = end
                    error, sequence = end.error_bound(), None
                elif not self._ready[number]:
                    continue
            for i in self._ready[number]:
                boxes.measure(self._measured[i], solver.read(points, self._readouts[i]))
            points = {
                k: p
                for k, p in points.items()
                if self._last_use.get(k, 0) > number or k == step.new[-1]
            }
            chosen = boxes.not_excluded()
            if chosen is not None:
                boxes.keep(chosen)
                points = {k: p.take(chosen) for k, p in points.items()}
                error, origin = error.take(chosen), origin.take(chosen)
                solver = self._solver(boxes)
                powers = {kind: p.take(chosen) for kind, p in powers.items()}
            if not len(boxes) or cut_off().reached:
                break
        return points[step.new[-1]]

    def _solver(
        self, boxes: OpenBoxes, times: int = 1, coefficient_error: float = 0.0
    ) -> KrawczykSolver:
        """Return a solver in all open boxes, repeated `times` times."""
        unknowns = boxes.unknowns
        if times > 1:
            unknowns = {i: m.tiled(times) for i, m in unknowns.items()}
        equations = self._system, self._segment, self._monomials
        return KrawczykSolver(
            RightHandSides(*equations, unknowns, times * len(boxes)), coefficient_error
        )

    def _powers(self, boxes: OpenBoxes) -> dict[int, AffinePowers]:
        """Return the powers of the map of each kind of steps that are combined."""
        powers: dict[int, AffinePowers] = {}
        if self.repeated_steps is None:
            return powers
        for kind in {sequence.kind for sequence in self.repeated_steps.sequences.values()}:
            times = len(self._system.states) + 1
            solver = self._solver(boxes, times, self.repeated_steps.differences[kind])
            step = self.repeated_steps.different[kind]
            powers[kind] = step_powers(solver, step)
        return powers


def _after(powers: AffinePowers, point: PointEnclosure, count: int) -> PointEnclosure:
    """Return the point after some equal steps."""
    if not count:
        return point
    return PointEnclosure.of(powers(point.models(powers.monomials), count))


def _readouts(segment: Segment, scheme: Scheme, times: Sequence[float]) -> Iterator[Readout]:
    """Yield the states at each time as combinations of values at points of the segment."""
    if not times:
        return
    weights = scheme.interpolation(segment.mesh, segment.relations, np.array(times))
    for i, time in enumerate(times):
        point = _point_at(segment, time)
        if point is not None:
            yield Readout({point: 1.0}, {})
            continue
        rows = [w[[i]] for w in weights]
        yield Readout(*(dict(zip(r.indices.tolist(), r.data.tolist(), strict=True)) for r in rows))


def _point_at(segment: Segment, time: float) -> int | None:
    """Return the mesh point of a measurement, as in a transcription, if there is one."""
    mesh = segment.mesh
    nearest = 1 + int(np.argmin(np.abs(mesh[1:] - time)))
    if abs(time - mesh[nearest]) <= MESH_TIME_TOLERANCE * (mesh[-1] - mesh[0]):
        return int(segment.relations.boundary[nearest])
    return None


def _by_right_hand_sides(readout: Readout, integrals: Array) -> Readout:
    """Return a readout of the first state and of right-hand sides instead of states at points."""
    total = np.zeros(integrals.shape[1])
    for point, weight in readout.states.items():
        total += weight * integrals[point]
    for point, weight in readout.right_hand_sides.items():
        total[1 + point] += weight
    used = np.flatnonzero(total[1:])
    return Readout({0: float(total[0])}, {int(k): float(total[1 + k]) for k in used})
