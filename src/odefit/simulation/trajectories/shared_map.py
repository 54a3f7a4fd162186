"""Conditions that begin with the same values, with shared segments integrated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.binding import dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.propagation.propagation import Propagation, sensitivity_pattern
from odefit.simulation.trajectories.shared_segments import SharedRows, shared_segments
from odefit.simulation.trajectories.trajectory import Trajectory, switched_scalars


class _Branch(NamedTuple):
    """The integration of a shared segment."""

    # Events and engines, with sensitivities to the unknowns that act on all its conditions.
    propagation: Propagation
    directions: int  # Number m of these
    columns: IntArray | None  # The parent's directions among them; None if they are the same
    # The rows that lie in it, with the directions among those of the condition, shape (m,).
    rows: Sequence[tuple[SharedRows, IntArray | None]]
    # In the same form, the rows at its start with the values after the events.
    rows_after: Sequence[tuple[SharedRows, IntArray | None]]
    following: list[int]  # Numbers of the segments that follow


class Limb(NamedTuple):
    """Segments that can be integrated separately once the trunk is known."""

    segments: range  # Numbers of the segments; none for conditions that end in the trunk
    conditions: tuple[int, ...]  # Numbers of the conditions that end in them


class Trunk(NamedTuple):
    """The integrated segments that all conditions share, and the values that follow."""

    after: EngineChoice
    # Initial values by the number of a segment.
    begins: dict[int, Values]
    trajectories: dict[
        int, Trajectory
    ]  # The trajectories by condition, filled as far as they are known


class SharedMap:
    """The forward map of conditions that begin with the same values.

    A segment that several conditions share has sensitivities to the unknowns that act on all of
    them. Other unknowns enter at its end, where their sensitivities are zero.

    `limbs` are the parts that can be integrated separately, in their order.
    """

    def __init__(
        self,
        field: VectorField,
        conditions: Sequence[Condition],
        members: Sequence[int],
        engines: Engines,
        sensitivities: bool = True,
        further: frozenset[str] = frozenset(),
    ) -> None:
        self._field = field
        self._conditions = {c: conditions[c] for c in members}
        self._unknowns: dict[int, tuple[int, ...]] = {}
        for c, condition in self._conditions.items():
            active = dynamic_unknowns(condition, field.scalars) if sensitivities else set()
            self._unknowns[c] = tuple(sorted(active))
        expressions = (*field.model.observables.values(), *field.model.algebraic.values())
        observed = {n for e in expressions for n in e.names} | further
        self._switched = {
            c: {n: j for n, j in switched_scalars(field, conditions[c]).items() if n in observed}
            for c in members
        }
        self._segments = shared_segments(field, conditions, members)
        self._branches: list[_Branch] = []
        directions: list[tuple[int, ...]] = []
        for number, shared in enumerate(self._segments):
            parts = [conditions[c] for c in shared.conditions]
            common = set.intersection(*(set(self._unknowns[c]) for c in shared.conditions))
            unknowns = tuple(sorted(common))
            directions.append(unknowns)
            columns = None
            if shared.parent >= 0:
                self._branches[shared.parent].following.append(number)
                columns = _positions(directions[shared.parent], unknowns)
            pattern = sensitivity_pattern(field, parts, unknowns)
            propagation = Propagation(field, parts[0], engines, unknowns, None, pattern)
            rows, rows_after = (
                [(r, _positions(unknowns, self._unknowns[r.condition])) for r in some_rows]
                for some_rows in (shared.rows, shared.rows_after)
            )
            self._branches.append(
                _Branch(
                    propagation=propagation,
                    directions=len(unknowns),
                    columns=columns,
                    rows=rows,
                    rows_after=rows_after,
                    following=[],
                )
            )
        self._trunk, self.limbs = self._cut()

    def _cut(self) -> tuple[range, list[Limb]]:
        """Return the segments before the first fork, and the limbs."""
        fork = 0
        while len(self._branches[fork].following) == 1:
            fork = self._branches[fork].following[0]
        starts = self._branches[fork].following
        stops = [*starts[1:], len(self._segments)]
        limbs = [
            Limb(range(start, stop), self._segments[start].conditions)
            for start, stop in zip(starts, stops, strict=False)
        ]
        gone = {c for limb in limbs for c in limb.conditions}
        ended = tuple(c for c in self._conditions if c not in gone)
        if ended:
            limbs.insert(0, Limb(range(0), ended))
        return range(fork + 1), limbs

    def begin(self, vector: Array, choice: EngineChoice) -> Trunk | Failure:
        """Integrate the trunk."""
        root = self._branches[0].propagation
        trajectories = {c: self._empty(c) for c in self._conditions}
        with np.errstate(all="ignore"):
            started = self._start(root, vector, trajectories)
            if isinstance(started, EngineFailure):
                return Failure(root.condition.name, started.time, started.reason, choice)
            trunk = Trunk(choice, {0: started}, trajectories)
            after = self._run(self._trunk, trunk, vector, choice)
        return after if isinstance(after, Failure) else trunk._replace(after=after)

    def go_on(
        self, number: int, trunk: Trunk, vector: Array, choice: EngineChoice
    ) -> tuple[dict[int, Trajectory], EngineChoice] | Failure:
        """Return the trajectories that end in one limb by condition, and the next choice."""
        limb = self.limbs[number]
        with np.errstate(all="ignore"):
            after = self._run(limb.segments, trunk, vector, choice)
        if isinstance(after, Failure):
            return after
        return {c: trunk.trajectories[c] for c in limb.conditions}, after

    def _run(
        self, numbers: range, trunk: Trunk, vector: Array, choice: EngineChoice
    ) -> EngineChoice | Failure:
        """Integrate consecutive segments, and store the requested values in the trajectories."""
        for number in numbers:
            shared, branch = self._segments[number], self._branches[number]
            propagation = branch.propagation
            now = trunk.begins[number]
            sizes = propagation.sizes(vector)
            for assignment in shared.events:
                now = propagation.after_event(assignment, shared.start, vector, sizes, now)
            if branch.rows_after:
                after = propagation.consistent(shared.start, vector, now)
                if isinstance(after, EngineFailure):
                    name = propagation.condition.name
                    return Failure(name, after.time, after.reason, choice)
                here = after.as_solution()
                for rows, columns in branch.rows_after:
                    self._store(trunk.trajectories[rows.condition], rows, columns, here, now, sizes)
            solution = None
            if shared.segment is not None:
                outcome, choice = propagation.integrate(shared.segment, now, choice)
                if isinstance(outcome, EngineFailure):
                    outcome = propagation.explained(outcome, vector, now, shared.segment)
                    name = propagation.condition.name
                    return Failure(name, float(outcome.time), outcome.reason, choice)
                solution = outcome
                for rows, columns in branch.rows:
                    self._store(
                        trunk.trajectories[rows.condition], rows, columns, solution, now, sizes
                    )
            for child in branch.following:
                position = self._segments[child].position
                at = now
                if solution is not None and position >= 0:
                    at = solution.at(position, now)
                below = self._branches[child]
                trunk.begins[child] = _with_directions(at, below.columns, below.directions)
        return choice

    def _empty(self, number: int) -> Trajectory:
        """Return the trajectory of a condition, to be filled."""
        condition, unknowns = self._conditions[number], self._unknowns[number]
        count, m = len(condition.times), len(unknowns)
        n, a = len(self._field.states), len(self._field.algebraic)
        return Trajectory(
            times=condition.times,
            states=np.empty((count, n)),
            algebraic=np.empty((count, a)),
            unknowns=unknowns,
            sensitivities=np.zeros((count, n, m)),
            algebraic_sensitivities=np.zeros((count, a, m)),
            switched={
                name: (np.empty(count), np.zeros((count, m))) for name in self._switched[number]
            },
        )

    def _start(
        self, root: Propagation, vector: Array, out: Mapping[int, Trajectory]
    ) -> Values | EngineFailure:
        """Return the values at t0, and store them where they are needed."""
        sizes = root.sizes(vector)
        begun = root.begin(vector, sizes)
        if isinstance(begun, EngineFailure):
            return begun
        now, t0 = begun.values, root.condition.t0
        first = begun.as_solution()
        unknowns = root.unknowns
        for c, trajectory in out.items():
            at_start = len(trajectory.times) and trajectory.times[0] == t0
            if at_start and not self._conditions[c].sees_events(t0):
                rows = SharedRows(c, slice(0, 1), slice(0, 1))
                columns = _positions(unknowns, trajectory.unknowns)
                self._store(trajectory, rows, columns, first, now, sizes)
        return now

    def _store(
        self,
        trajectory: Trajectory,
        shared: SharedRows,
        columns: IntArray | None,
        solution: SegmentSolution,
        now: Values,
        sizes: Array,
    ) -> None:
        """Store the rows of one condition that lie in a segment."""
        rows, at = shared.rows, shared.positions
        every = slice(None) if columns is None else columns
        trajectory.states[rows] = solution.states[at]
        trajectory.sensitivities[rows][..., every] = solution.sensitivities[at] / sizes
        if self._field.algebraic:
            trajectory.algebraic[rows] = solution.algebraic[at]
            trajectory.algebraic_sensitivities[rows][..., every] = (
                solution.algebraic_sensitivities[at] / sizes
            )
        for name, j in self._switched[shared.condition].items():
            values, by_unknown = trajectory.switched[name]
            values[rows] = now.scalars[j]
            by_unknown[rows][..., every] = now.scalar_sensitivities[j] / sizes


def _positions(some: Sequence[int], every: Sequence[int]) -> IntArray | None:
    """Return the positions of some numbers among others; None if they are the same."""
    if tuple(some) == tuple(every):
        return None
    return np.searchsorted(np.array(every, dtype=np.intp), np.array(some, dtype=np.intp))


def _with_directions(at: Values, columns: IntArray | None, count: int) -> Values:
    """Return values with further directions, along which nothing has changed so far."""
    if columns is None:
        return at
    sensitivities = np.zeros((len(at.states), count))
    sensitivities[:, columns] = at.sensitivities
    scalar_sensitivities = np.zeros((len(at.scalars), count))
    scalar_sensitivities[:, columns] = at.scalar_sensitivities
    return at._replace(sensitivities=sensitivities, scalar_sensitivities=scalar_sensitivities)
