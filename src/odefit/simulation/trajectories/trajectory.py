"""Trajectories of one condition, with sensitivities, by whichever engine suits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.binding import Computed, dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.segments import Segment, TimelineEntry, timeline
from odefit.simulation.events.event_assignments import Values
from odefit.simulation.propagation.propagation import Beginning, Propagation


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
        Indices of the unknowns that the sensitivities are with respect to, shape (m,).
    sensitivities
        Derivatives of the states by these unknowns, shape (k, n, m).
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
    """Return the same states without derivatives, which what is computed from them then saves."""
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

    `condition`: initial values, scalars, inputs and events; `minimal_sizes`: sizes that unknowns
    count with at least for error control, shape (unknowns,); `known`: expressions that other
    conditions have, see :class:`odefit.problem.binding.Binding`.
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
        self._one_segment = not condition.events and not field.algebraic
        self._guess = np.array([condition.algebraic_guess[z] for z in field.algebraic])
        self._timelines: dict[bytes, tuple[int, list[TimelineEntry]]] = {}

    def _timeline(self, times: Array) -> tuple[int, list[TimelineEntry]]:
        key = times.tobytes()
        if key not in self._timelines:
            self._timelines[key] = timeline(self.condition, self.field.inputs, times)
        return self._timelines[key]

    def __call__(
        self, vector: Array, times: Array | None = None, choice: EngineChoice = UNDECIDED
    ) -> Trajectory | Failure:
        """Return the trajectory at `times` (the data times), or why there is none.

        `times`: times, increasing, not before t0.
        """
        with np.errstate(all="ignore"):
            return self._run(vector, self.condition.times if times is None else times, choice)

    def _run(self, vector: Array, times: Array, choice: EngineChoice) -> Trajectory | Failure:
        field, condition, m = self.field, self.condition, len(self.unknowns)
        at_start, entries = self._timeline(times)
        propagation = self.propagation
        sizes = propagation.sizes(vector)
        begun = propagation.begin(vector, sizes, self._guess)
        if isinstance(begun, EngineFailure):
            return self._failure(begun.time, begun.reason, choice)
        now, guess = begun.values, begun.algebraic
        if self._one_segment and len(entries) == 1 and entries[0].segment is not None:
            return self._single_segment(
                vector, times, at_start, entries[0].segment, now, sizes, choice
            )
        count, n, a = len(times), len(field.states), len(field.algebraic)
        switched = {name: (np.empty(count), np.empty((count, m))) for name in self._switched}
        states, sensitivities = np.empty((count, n)), np.empty((count, n, m))
        algebraic, algebraic_sensitivities = np.empty((count, a)), np.empty((count, a, m))
        if at_start:
            states[0], sensitivities[0] = now.states, now.sensitivities
            algebraic[0], algebraic_sensitivities[0] = guess, begun.algebraic_sensitivities
            self._store_switched(switched, slice(0, 1), now)
        time = condition.t0
        for entry in entries:
            for assignment in entry.events:
                now = propagation.after_event(assignment, time, vector, sizes, now)
            row = entry.row_after
            if row >= 0:
                solved = propagation.consistent(time, vector, now, guess)
                if isinstance(solved, EngineFailure):
                    return self._failure(solved.time, solved.reason, choice)
                states[row], sensitivities[row] = now.states, now.sensitivities
                algebraic[row], algebraic_sensitivities[row] = solved
                self._store_switched(switched, slice(row, row + 1), now)
            segment = entry.segment
            if segment is None:
                continue
            time = float(segment.times[-1])
            found, choice = propagation.integrate(segment, now, guess, choice)
            if isinstance(found, EngineFailure):
                reason = propagation.explain(found, vector, now, segment)
                return self._failure(found.time, reason, choice)
            kept = [row for row in entry.rows if row >= 0]
            if kept:
                rows, inside = slice(kept[0], kept[-1] + 1), slice(0, len(kept))
                states[rows] = found.states[inside]
                sensitivities[rows] = found.sensitivities[inside]
                algebraic[rows] = found.algebraic[inside]
                algebraic_sensitivities[rows] = found.algebraic_sensitivities[inside]
                self._store_switched(switched, rows, now)
            now = now._replace(states=found.states[-1], sensitivities=found.sensitivities[-1])
            if a:
                guess = found.algebraic[-1]
        sensitivities /= sizes
        algebraic_sensitivities /= sizes
        for _, by_unknown in switched.values():
            by_unknown /= sizes
        return Trajectory(
            times,
            states,
            algebraic,
            self.unknowns,
            sensitivities,
            algebraic_sensitivities,
            switched,
            choice,
        )

    def _single_segment(
        self,
        vector: Array,
        times: Array,
        at_start: int,
        segment: Segment,
        now: Values,
        sizes: Array,
        choice: EngineChoice,
    ) -> Trajectory | Failure:
        """Integrate the common case, without events and algebraic variables, with one copy."""
        found, choice = self.propagation.integrate(segment, now, self._guess, choice)
        if isinstance(found, EngineFailure):
            reason = self.propagation.explain(found, vector, now, segment)
            return self._failure(found.time, reason, choice)
        states, sensitivities = found.states, found.sensitivities
        if at_start:
            states = np.concatenate([now.states[None], states])
            sensitivities = np.concatenate([now.sensitivities[None], sensitivities])
        count, m = len(times), len(self.unknowns)
        return Trajectory(
            times,
            states,
            np.zeros((count, 0)),
            self.unknowns,
            sensitivities / sizes,
            np.zeros((count, 0, m)),
            {},
            choice,
        )

    def _store_switched(
        self, switched: Mapping[str, tuple[Array, Array]], rows: slice, now: Values
    ) -> None:
        for name, j in self._switched.items():
            values, sensitivities = switched[name]
            values[rows], sensitivities[rows] = now.scalars[j], now.scalar_sensitivities[j]

    def _failure(self, time: float, reason: str, choice: EngineChoice) -> Failure:
        return Failure(self.condition.name, float(time), reason, choice)


def switched_scalars(field: VectorField, condition: Condition) -> dict[str, int]:
    """Return the run-time scalars that events of a condition assign, with their numbers."""
    return {
        name: field.scalars.index(name)
        for event in condition.assignments
        for name in event
        if name in field.scalars
    }


class Recording:
    """The values at the times of a trajectory, as they are found.

    `times`: the times, shape (k,); `shape`: numbers of states, algebraic variables and directions;
    `switched`: scalars that events assign, with their numbers.
    """

    def __init__(
        self, times: Array, shape: tuple[int, int, int], switched: Mapping[str, int]
    ) -> None:
        count, (n, a, m) = len(times), shape
        self.times = times
        self._times, self._numbers = times, switched
        self._states, self._sensitivities = np.empty((count, n)), np.empty((count, n, m))
        self._algebraic = np.empty((count, a))
        self._algebraic_sensitivities = np.empty((count, a, m))
        self._switched = {name: (np.empty(count), np.empty((count, m))) for name in switched}

    def part(self, now: Values, found: SegmentSolution, wanted: Array, places: Any) -> None:
        """Keep the values at some of the times, which stand at `places` of a solution."""
        if not len(wanted):
            return
        first = int(np.searchsorted(self._times, wanted[0]))
        rows = slice(first, first + len(wanted))
        self._states[rows] = found.states[places]
        self._sensitivities[rows] = found.sensitivities[places]
        self._algebraic[rows] = found.algebraic[places]
        self._algebraic_sensitivities[rows] = found.algebraic_sensitivities[places]
        self._scalars(rows, now)

    def moment(self, time: float, found: Beginning) -> None:
        """Keep the values at a time, if the trajectory has it, in place of earlier ones."""
        row = int(np.searchsorted(self._times, time))
        if row == len(self._times) or self._times[row] != time:
            return
        now, self._algebraic[row], self._algebraic_sensitivities[row] = found
        self._states[row], self._sensitivities[row] = now.states, now.sensitivities
        self._scalars(slice(row, row + 1), now)

    def _scalars(self, rows: slice, now: Values) -> None:
        for name, j in self._numbers.items():
            values, sensitivities = self._switched[name]
            values[rows], sensitivities[rows] = now.scalars[j], now.scalar_sensitivities[j]

    def trajectory(self, unknowns: Sequence[int], sizes: Array, choice: EngineChoice) -> Trajectory:
        """Return the trajectory, with derivatives by unknowns whose steps have these sizes."""
        return Trajectory(
            self._times,
            self._states,
            self._algebraic,
            tuple(unknowns),
            self._sensitivities / sizes,
            self._algebraic_sensitivities / sizes,
            {name: (values, s / sizes) for name, (values, s) in self._switched.items()},
            choice,
        )
