"""Trajectories of one condition, with sensitivities, by whichever engine suits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.binding import Computed, dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import (
    ConsistentValues,
    EngineFailure,
    SegmentSolution,
    Values,
)
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.segments import Segment, TimelineEntry, timeline
from odefit.simulation.propagation.propagation import Propagation

if TYPE_CHECKING:
    from odefit.simulation.trajectories.event_walk import EventWalk
    from odefit.simulation.trajectories.linear_walk import LinearWalk


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States of one condition at some times, and their sensitivities.

    Attributes
    ----------
    times
        Times, shape (k,).
    states
        Differential states, shape (k, n).
    algebraic
        Algebraic variables that an engine solved for, shape (k, a).
    unknowns
        Indices of the unknowns of the sensitivities, shape (m,).
    sensitivities
        Derivatives of the states with respect to these unknowns, shape (k, n, m).
    algebraic_sensitivities
        Derivatives of the algebraic variables, shape (k, a, m).
    switched
        Scalars that events assign, by name: values, shape (k,), and their sensitivities, shape
        (k, m).
    choice
        The choice of an engine for the next integration.
    """

    times: Array
    states: Array
    algebraic: Array
    unknowns: tuple[int, ...]
    sensitivities: Array
    algebraic_sensitivities: Array
    switched: Mapping[str, tuple[Array, Array]]
    choice: EngineChoice = field(default=UNDECIDED, repr=False)


def without_sensitivities(trajectory: Trajectory) -> Trajectory:
    """Return the same states without derivatives, which saves the derivatives of results."""
    count = len(trajectory.times)
    return replace(
        trajectory,
        unknowns=(),
        sensitivities=np.zeros((*trajectory.states.shape, 0)),
        algebraic_sensitivities=np.zeros((*trajectory.algebraic.shape, 0)),
        switched={n: (v, np.zeros((count, 0))) for n, (v, _) in trajectory.switched.items()},
    )


class ConditionMap:
    """The forward map of one condition.

    For error control the sizes of unknowns are at least `minimal_sizes`, shape (unknowns,). `known`
    has expressions of other conditions, see :class:`odefit.problem.binding.Binding`.
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: Engines,
        sensitivities: bool = True,
        minimal_sizes: Array | None = None,
        known: dict[Any, Computed] | None = None,
    ) -> None:
        self.field = field
        self.condition = condition
        active = sorted(dynamic_unknowns(condition, field.scalars)) if sensitivities else []
        self.unknowns = tuple(active)
        self.propagation = Propagation(
            field, condition, engines, active, minimal_sizes, known=known
        )
        self._switched = switched_scalars(field, condition)
        self._walk = walk_through_events(self.propagation)
        self.passes_events = passes_events(self._walk)
        self._one_segment = not condition.events and not field.algebraic
        self._timelines: dict[bytes, tuple[int, list[TimelineEntry]]] = {}

    def _timeline(self, times: Array) -> tuple[int, list[TimelineEntry]]:
        key = times.tobytes()
        if key not in self._timelines:
            self._timelines[key] = timeline(self.condition, self.field.inputs, times)
        return self._timelines[key]

    def __call__(
        self, vector: Array, times: Array | None = None, choice: EngineChoice = UNDECIDED
    ) -> Trajectory | Failure:
        """Return the trajectory at `times` (the data times), or a failure."""
        with np.errstate(all="ignore"):
            outcome = self._traverse(
                vector, self.condition.times if times is None else times, choice
            )
        if isinstance(outcome, Trajectory):
            return outcome
        failure, choice = outcome
        return Failure(self.condition.name, float(failure.time), failure.reason, choice)

    def _traverse(
        self, vector: Array, times: Array, choice: EngineChoice
    ) -> Trajectory | tuple[EngineFailure, EngineChoice]:
        """Traverse the events and segments of the condition in the order of time."""
        propagation = self.propagation
        at_start, entries = self._timeline(times)
        sizes = propagation.sizes(vector)
        begun = propagation.begin(vector, sizes)
        if isinstance(begun, EngineFailure):
            return begun, choice
        now = begun.values
        if self._one_segment and len(entries) == 1 and entries[0].segment is not None:
            segment, first = entries[0].segment, now if at_start else None
            return self._single_segment(vector, sizes, times, segment, now, first, choice)
        recording = Recording(times, self.field, self.unknowns, self._switched)
        if at_start:
            recording.row(0, begun)
        if self._walk is not None and np.isfinite(times).all():
            walked = self._walk(vector, sizes, now, entries, choice)
            if walked is not None:
                recording.rows(walked.rows, walked.states, walked.sensitivities)
                if walked.last is None:
                    return recording.trajectory(self.unknowns, sizes, choice)
                now, entries = walked.last, [replace(entries[-1], events=(), row_after=-1)]
        time = self.condition.t0
        for entry in entries:
            for assignment in entry.events:
                now = propagation.after_event(assignment, time, vector, sizes, now)
            if entry.row_after >= 0:
                after = propagation.consistent(time, vector, now)
                if isinstance(after, EngineFailure):
                    return after, choice
                recording.row(entry.row_after, after)
            if entry.segment is None:
                continue
            time = float(entry.segment.times[-1])
            solved, choice = propagation.integrate(entry.segment, now, choice)
            if isinstance(solved, EngineFailure):
                return propagation.explained(solved, vector, now, entry.segment), choice
            rows = [row for row in entry.rows if row >= 0]
            if rows:
                recording.part(rows[0], now, solved, slice(0, len(rows)))
            now = solved.at(-1, now)
        return recording.trajectory(self.unknowns, sizes, choice)

    def _single_segment(
        self,
        vector: Array,
        sizes: Array,
        times: Array,
        segment: Segment,
        now: Values,
        first: Values | None,
        choice: EngineChoice,
    ) -> Trajectory | tuple[EngineFailure, EngineChoice]:
        """Integrate the common case, without events and algebraic variables, with one copy.

        `first` are the values of the first row, if that is t0.
        """
        solved, choice = self.propagation.integrate(segment, now, choice)
        if isinstance(solved, EngineFailure):
            return self.propagation.explained(solved, vector, now, segment), choice
        states, sensitivities = solved.states, solved.sensitivities
        if first is not None:
            states = np.concatenate([first.states[None], states])
            sensitivities = np.concatenate([first.sensitivities[None], sensitivities])
        count, m = len(times), len(self.unknowns)
        return Trajectory(
            times=times,
            states=states,
            algebraic=np.zeros((count, 0)),
            unknowns=self.unknowns,
            sensitivities=sensitivities / sizes,
            algebraic_sensitivities=np.zeros((count, 0, m)),
            switched={},
            choice=choice,
        )


def walk_through_events(propagation: Propagation) -> LinearWalk | EventWalk | None:
    """Return the walk through many events in one call, if the equations have one."""
    if not propagation.repeated:
        return None
    if propagation.closed_form() is None:
        if propagation.passing() is None:
            return None
        from odefit.simulation.trajectories.event_walk import event_walk

        return event_walk(propagation)
    from odefit.simulation.trajectories.linear_walk import LinearWalk, is_linear

    linear = is_linear(propagation.condition, propagation.field.states)
    return LinearWalk(propagation) if linear else None


def passes_events(walk: LinearWalk | EventWalk | None) -> bool:
    """Return whether a walk is that of an engine through many events."""
    return walk is not None and walk.by_engine


def switched_scalars(field: VectorField, condition: Condition) -> dict[str, int]:
    """Return the run-time scalars that events of a condition assign, with their numbers."""
    return {
        name: field.scalars.index(name)
        for event in condition.assignments
        for name in event
        if name in field.scalars
    }


class Recording:
    """The values at the times of a trajectory, collected between and at events."""

    def __init__(
        self,
        times: Array,
        field: VectorField,
        unknowns: Sequence[int],
        switched: Mapping[str, int],
    ) -> None:
        count, n, a, m = len(times), len(field.states), len(field.algebraic), len(unknowns)
        self.times = times
        self._numbers = switched
        self._states, self._sensitivities = np.empty((count, n)), np.empty((count, n, m))
        self._algebraic = np.empty((count, a))
        self._algebraic_sensitivities = np.empty((count, a, m))
        self._switched = {name: (np.empty(count), np.empty((count, m))) for name in switched}

    def part(
        self, first: int, now: Values, solution: SegmentSolution, places: IntArray | slice
    ) -> None:
        """Store the values at `places` of a solution, in rows from `first` on."""
        states = solution.states[places]
        rows = slice(first, first + len(states))
        self._states[rows] = states
        self._sensitivities[rows] = solution.sensitivities[places]
        self._algebraic[rows] = solution.algebraic[places]
        self._algebraic_sensitivities[rows] = solution.algebraic_sensitivities[places]
        for name, j in self._numbers.items():
            values, sensitivities = self._switched[name]
            values[rows], sensitivities[rows] = now.scalars[j], now.scalar_sensitivities[j]

    def times_of(
        self, times: Array, now: Values, solution: SegmentSolution, places: IntArray
    ) -> None:
        """Store the values at some of the times, which are at `places` of a solution."""
        if len(times):
            self.part(int(np.searchsorted(self.times, times[0])), now, solution, places)

    def row(self, row: int, consistent: ConsistentValues) -> None:
        """Store the values of one row, replacing earlier ones."""
        self.part(row, consistent.values, consistent.as_solution(), slice(0, 1))

    def rows(self, rows: IntArray, states: Array, sensitivities: Array) -> None:
        """Keep the values of some rows, where events assign no scalars."""
        self._states[rows], self._sensitivities[rows] = states, sensitivities

    def moment(self, time: float, consistent: ConsistentValues) -> None:
        """Store the values at a time, if the trajectory has it, replacing earlier ones."""
        row = int(np.searchsorted(self.times, time))
        if row < len(self.times) and self.times[row] == time:
            self.row(row, consistent)

    def trajectory(self, unknowns: Sequence[int], sizes: Array, choice: EngineChoice) -> Trajectory:
        """Return the trajectory, with derivatives by unknowns whose steps have these sizes."""
        return Trajectory(
            times=self.times,
            states=self._states,
            algebraic=self._algebraic,
            unknowns=tuple(unknowns),
            sensitivities=self._sensitivities / sizes,
            algebraic_sensitivities=self._algebraic_sensitivities / sizes,
            switched={name: (values, s / sizes) for name, (values, s) in self._switched.items()},
            choice=choice,
        )
