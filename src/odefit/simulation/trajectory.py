"""Trajectories of one condition, with sensitivities, by whichever engine suits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array
from odefit.problem.binding import Binding, dynamic_unknowns, scalar_value
from odefit.problem.condition import Condition
from odefit.problem.expressions import TIME, Expression
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.algebraic import consistent
from odefit.simulation.engine import EngineFailure, InitialState, SegmentSolution
from odefit.simulation.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines import Engines
from odefit.simulation.failure import Failure
from odefit.simulation.segments import Segment, TimelineEntry, timeline


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


class ConditionMap:
    """The forward map of one condition.

    Parameters
    ----------
    field
        The equations.
    condition
        Initial values, scalars, inputs and events.
    engines
        Engines, shared by all conditions of a problem.
    sensitivities
        Whether sensitivities are wanted.
    minimal_sizes
        Sizes that unknowns count with at least for error control, shape (unknowns,).
    """

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: Engines,
        sensitivities: bool = True,
        minimal_sizes: Array | None = None,
    ) -> None:
        self.field = field
        self.condition = condition
        self._engines = engines
        self._initial = Binding([condition.initial[s] for s in field.states], condition.scalars)
        self._scalars = Binding([condition.scalars[s] for s in field.scalars], condition.scalars)
        active = sorted(dynamic_unknowns(condition, field.scalars)) if sensitivities else []
        self.unknowns = tuple(active)
        self._indices = np.array(active, dtype=np.intp)
        self._minimal_sizes = 0.0 if minimal_sizes is None else minimal_sizes[self._indices]
        self._column = {unknown: k for k, unknown in enumerate(active)}
        entries = {(j, self._column[k]) for j, k in self._scalars.entries() if k in self._column}
        self._switched = {
            name: field.scalars.index(name)
            for _, event in condition.events
            for name in event
            if name in field.scalars
        }
        for j in self._switched.values():
            entries |= {(j, k) for k in range(len(active))}
        self._pattern = SensitivityPattern(len(active), frozenset(entries))
        self._one_segment = not condition.events and not field.algebraic
        self._guess = np.array([condition.algebraic_guess[z] for z in field.algebraic])
        self._timelines: dict[bytes, tuple[int, list[TimelineEntry]]] = {}

    def __call__(
        self, vector: Array, times: Array | None = None, choice: EngineChoice = UNDECIDED
    ) -> Trajectory | Failure:
        """Return the trajectory at `times` (the data times), or why there is none.

        Parameters
        ----------
        vector
            Unknowns of the problem, shape (unknowns,).
        times
            Times, increasing, not before t0.
        choice
            The choice of an engine, as the integration before has returned it.
        """
        with np.errstate(all="ignore"):
            return self._run(vector, self.condition.times if times is None else times, choice)

    def _run(self, vector: Array, times: Array, choice: EngineChoice) -> Trajectory | Failure:
        field, condition, m = self.field, self.condition, len(self.unknowns)
        key = times.tobytes()
        if key not in self._timelines:
            self._timelines[key] = timeline(condition, field.inputs, times)
        at_start, entries = self._timelines[key]
        sizes = self._sizes(vector)
        now = _Values(
            self._initial(vector),
            self._scalars(vector),
            self._initial.derivative(vector, self._indices) * sizes,
            self._scalars.derivative(vector, self._indices) * sizes,
        )
        if not np.isfinite(now.states).all():
            name = field.states[int(np.flatnonzero(~np.isfinite(now.states))[0])]
            reason = f"the initial value of {name} is not finite"
            return self._failure(condition.t0, reason, choice)
        if self._one_segment and len(entries) == 1 and entries[0].segment is not None:
            return self._single_segment(
                vector, times, at_start, entries[0].segment, now, sizes, choice
            )
        count, n, a = len(times), len(field.states), len(field.algebraic)
        switched = {name: (np.empty(count), np.empty((count, m))) for name in self._switched}
        states, sensitivities = np.empty((count, n)), np.empty((count, n, m))
        algebraic, algebraic_sensitivities = np.empty((count, a)), np.empty((count, a, m))
        guess = self._guess
        if at_start:
            states[0], sensitivities[0] = now.states, now.sensitivities
            self._store_switched(switched, slice(0, 1), now)
        if a:
            values = self._named_values(condition.t0, vector, now)
            solved = consistent(field, values, guess, condition.t0, m)
            if isinstance(solved, EngineFailure):
                return self._failure(solved.time, solved.reason, choice)
            guess = solved[0]
            if at_start:
                algebraic[0], algebraic_sensitivities[0] = solved
        time = condition.t0
        for entry in entries:
            for assignment in entry.events:
                now = self._after_event(assignment, time, vector, now)
            segment = entry.segment
            if segment is None:
                continue
            time = float(segment.times[-1])
            found, choice = self._integrate(segment, now, guess, choice)
            if isinstance(found, EngineFailure):
                reason = self._explain(found, vector, now, segment)
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
        now: _Values,
        sizes: Array,
        choice: EngineChoice,
    ) -> Trajectory | Failure:
        """Integrate the common case, without events and algebraic variables, with one copy."""
        found, choice = self._integrate(segment, now, self._guess, choice)
        if isinstance(found, EngineFailure):
            return self._failure(found.time, self._explain(found, vector, now, segment), choice)
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

    def _integrate(
        self, segment: Segment, now: _Values, guess: Array, choice: EngineChoice
    ) -> tuple[SegmentSolution | EngineFailure, EngineChoice]:
        initial = InitialState(
            now.states, now.scalars, now.sensitivities, now.scalar_sensitivities, guess
        )
        return self._engines.integrate(self.field, self._pattern, segment, initial, choice)

    def _store_switched(
        self, switched: Mapping[str, tuple[Array, Array]], rows: slice, now: _Values
    ) -> None:
        for name, j in self._switched.items():
            values, sensitivities = switched[name]
            values[rows], sensitivities[rows] = now.scalars[j], now.scalar_sensitivities[j]

    def _after_event(
        self, assignment: Mapping[str, Expression], time: float, vector: Array, before: _Values
    ) -> _Values:
        """Return the values after an event, all of them computed from the values before."""
        field, m = self.field, len(self.unknowns)
        values = self._named_values(time, vector, before)
        new = _Values(*(part.copy() for part in before))
        for name, expression in assignment.items():
            value = expression.evaluate(values, DUAL)
            if name in field.states:
                i = field.states.index(name)
                new.states[i], new.sensitivities[i] = value.value, value.gradient(m)
            elif name in field.scalars:
                i = field.scalars.index(name)
                new.scalars[i], new.scalar_sensitivities[i] = value.value, value.gradient(m)
        return new

    def _named_values(self, time: float, vector: Array, now: _Values) -> dict[str, Dual]:
        """Return all names but the algebraic variables, with derivatives along the directions."""
        sizes = self._sizes(vector)
        values = {}
        for name in self.condition.scalars:
            scalar = scalar_value(name, self.condition.scalars, vector)
            partials = {
                self._column[k]: d * sizes[self._column[k]]
                for k, d in scalar.partials.items()
                if k in self._column
            }
            values[name] = Dual(scalar.value, partials)
        for i, name in enumerate(self.field.scalars):
            values[name] = Dual(now.scalars[i], dict(enumerate(now.scalar_sensitivities[i])))
        for i, name in enumerate(self.field.states):
            values[name] = Dual(now.states[i], dict(enumerate(now.sensitivities[i])))
        for name, given in self.condition.inputs.items():
            values[name] = Dual(given(np.array([time]))[0])
        values[TIME] = Dual(time)
        return values

    def _sizes(self, vector: Array) -> Array:
        """Return what a unit step along each direction is: the unknown's own size.

        The error control then sees numbers of the states' own size.
        """
        sizes = np.maximum(np.abs(vector[self._indices]), self._minimal_sizes)
        sizes[sizes == 0.0] = 1.0
        return sizes

    def _explain(
        self, failure: EngineFailure, vector: Array, start: _Values, segment: Segment
    ) -> str:
        """Return the reason, with the state at fault where the segment's start shows it."""
        if not self.field.algebraic:
            rhs = self.field.rhs(self._named_values(segment.start, vector, start), DUAL)
            for name, value in zip(self.field.states, rhs, strict=True):
                if not np.isfinite(value.value):
                    return f"the right-hand side of {name} is not finite at t = {segment.start:g}"
        return failure.reason

    def _failure(self, time: float, reason: str, choice: EngineChoice) -> Failure:
        return Failure(self.condition.name, float(time), reason, choice)


class _Values(NamedTuple):
    """Values at one time of a trajectory, and their changes along the scaled directions."""

    states: Array
    scalars: Array
    sensitivities: Array
    scalar_sensitivities: Array
