"""The passage of a condition through time: its initial values, events, and integrations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY, Dual
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.binding import Binding, Bound, Computed, scalar_value, unknowns_of
from odefit.problem.condition import Condition, LocatedEvent
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine import (
    ConsistentValues,
    EngineFailure,
    Values,
)
from odefit.simulation.engines.engine_choice import EngineChoice, Integrated
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.linear.closed_form import ClosedForm
from odefit.simulation.engines.passages import Passing
from odefit.simulation.engines.segments import (
    Segment,
    before_rest,
    input_value,
    inputs_before,
    segment_between,
)
from odefit.simulation.events.event_assignments import EventAssignments
from odefit.simulation.modes.modes import Inputs, Modes
from odefit.simulation.modes.rest import rest_in_a_mode
from odefit.simulation.modes.surfaces import Surfaces
from odefit.simulation.modes.walk import ModeWalk
from odefit.simulation.propagation.algebraic import consistent
from odefit.simulation.propagation.edges import Course, edges_of, not_defined, rates_while_held
from odefit.simulation.propagation.passage import Passage
from odefit.simulation.propagation.steep import RestingStates, first_step, is_steep
from odefit.simulation.steady.steady_state import SteadyStateSearch, Surroundings

MANY_SEGMENTS = 6
"""Least number of events for linear equations to be solved in closed form, shared by segments."""


class PeriodicBeginning(Protocol):
    """Computes the values with which a condition begins after repeated events."""

    def __call__(
        self, propagation: Propagation, vector: Array, sizes: Array, now: Values
    ) -> ConsistentValues | EngineFailure:
        """Return the periodic state, or why it is missing."""


class Propagation:
    """Initial values, events and segments of a condition, with sensitivities by some unknowns.

    For error control the sizes of unknowns are at least `minimal_sizes`. The sparsity pattern of
    the scalars' sensitivities is by default that of the condition.
    """

    # Computes the periodic state of repeated events with which the condition begins, if any.
    periodic: PeriodicBeginning | None = None

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: Engines,
        unknowns: Sequence[int],
        minimal_sizes: Array | None = None,
        pattern: SensitivityPattern | None = None,
        known: dict[Any, Computed] | None = None,
    ) -> None:
        self.field = field
        self.condition = condition
        self._engines = engines
        self.limited = engines.steps is not None
        """True if trajectories that need much work are given up, as in a search."""
        scalars = condition.scalars
        self._algebraic_guess = np.array([condition.algebraic_guess[z] for z in field.algebraic])
        self._initial = Binding([condition.initial[s] for s in field.states], scalars, known)
        self._scalars = Binding([scalars[s] for s in field.scalars], scalars, known)
        self.unknowns = tuple(unknowns)
        self._indices = np.array(unknowns, dtype=np.intp)
        self._minimal_sizes = 0.0 if minimal_sizes is None else minimal_sizes[self._indices]
        self._column = {unknown: k for k, unknown in enumerate(unknowns)}
        self._pattern = pattern or sensitivity_pattern(field, [condition], unknowns)
        self._events: dict[int, EventAssignments] = {}
        self._resting: dict[VectorField, RestingStates | None] = {}
        surfaces = Surfaces.of(field)
        self._modes = None if surfaces is None else Modes(surfaces)
        self.repeated = len(condition.events) + len(condition.located) >= MANY_SEGMENTS
        """True if many segments share the eigenvectors of linear equations."""
        self._fixed = np.array([isinstance(scalars[s], float) for s in field.scalars], dtype=bool)

    def sizes(self, vector: Array) -> Array:
        """Return the unit step along each direction: the unknown's own size, shape (m,).

        Error control then works with numbers of the states' own size.
        """
        sizes = np.maximum(np.abs(vector[self._indices]), self._minimal_sizes)
        sizes[sizes == 0.0] = 1.0
        return sizes

    def begin(
        self, vector: Array, sizes: Array, *, at_rest: bool | None = None
    ) -> ConsistentValues | EngineFailure:
        """Return the values before any event with which the condition begins, or a failure.

        `sizes` are unit steps along the directions, shape (m,). By default the condition decides
        whether it begins at the steady state; `at_rest` overrides it.
        """
        now, t0 = self._start(vector, sizes), self.condition.t0
        if isinstance(now, EngineFailure):
            return now
        begun = self.consistent(t0, vector, now)
        if isinstance(begun, EngineFailure):
            return begun
        if not (self.condition.steady_start if at_rest is None else at_rest):
            return begun
        if self.periodic is not None:
            return self.periodic(self, vector, sizes, now)
        inputs = inputs_before(self.condition, self.field.inputs)
        rest = self._rest(begun.values, Surroundings(t0, inputs, self._fixed, True))
        if isinstance(rest, EngineFailure):
            return replace(rest, reason=f"before the experiment, {rest.reason}")
        return rest

    def _start(self, vector: Array, sizes: Array) -> Values | EngineFailure:
        """Return the initial values; a failure if a state is not finite."""
        states, by_unknown = self._initial.at(vector, self._indices)
        scalars, scalars_by_unknown = self._scalars.at(vector, self._indices)
        changes = by_unknown * sizes, scalars_by_unknown * sizes
        now = Values(states, scalars, *changes, self._algebraic_guess)
        if not np.isfinite(now.states).all():
            name = self.field.states[int(np.flatnonzero(~np.isfinite(now.states))[0])]
            reason = f"the initial value of {name} is not finite"
            return EngineFailure(self.condition.t0, reason)
        return now

    def consistent(
        self, time: float, vector: Array, now: Values
    ) -> ConsistentValues | EngineFailure:
        """Return values with the algebraic variables that solve their equations.

        Returns a failure if no solution is found from the present algebraic variables.
        """
        if not len(now.algebraic):
            return ConsistentValues(now, np.zeros((0, len(self._indices))))
        values = self._named_values(time, vector, now)
        solved = consistent(self.field, values, now.algebraic, time, len(self._indices))
        if isinstance(solved, EngineFailure):
            return solved
        return ConsistentValues(now._replace(algebraic=solved[0]), solved[1])

    def after_event(
        self,
        assignment: Mapping[str, Expression],
        time: float,
        vector: Array,
        sizes: Array,
        before: Values,
        clock: Mapping[str, Array] | None = None,
        chosen: Values | None = None,
    ) -> Values:
        """Return the values after an event, all of them computed from the values before.

        `chosen` has the new values if they were computed earlier.

        If the time of the event changes along the directions, `clock` has the changes of time and
        of inputs by name, each of shape (m,).
        """
        key = id(assignment)  # the condition holds the assignment
        if key not in self._events:
            self._events[key] = EventAssignments(
                self.field, self.condition, assignment, self._indices
            )
        if chosen is not None:
            return self._events[key].taken(chosen, before)
        return self._events[key](time, vector, sizes, before, clock)

    def integrate(self, segment: Segment, now: Values, choice: EngineChoice) -> Integrated:
        """Integrate a segment from these values; a segment without end ends at a steady state."""
        if np.isinf(segment.times[-1]):
            return self._to_rest(segment, now, choice)
        if self._modes is not None:
            return ModeWalk(self._modes, self._in_mode, segment, now, choice).run()
        return self._integrate(self.field, self._engines, segment, now, choice)

    def closed_form(self) -> ClosedForm | None:
        """Return the closed form of the equations; None if they are not linear."""
        return self._engines.closed_form(self.field, self._pattern)

    def passing(self) -> Passing | None:
        """Return the passage of an engine through many events in one call, if there is one."""
        plain = not (self._modes or self.field.inputs or self.field.algebraic)
        usable = plain and self._resting_in(self.field, self._engines) is None
        return self._engines.passing(self.field, self._pattern) if usable else None

    def _in_mode(
        self, field: VectorField, segment: Segment, now: Values, choice: EngineChoice
    ) -> Integrated:
        return self._integrate(field, self._engines.of_mode(field), segment, now, choice)

    def _integrate(
        self,
        field: VectorField,
        engines: Engines,
        segment: Segment,
        now: Values,
        choice: EngineChoice,
    ) -> Integrated:
        """Integrate a field that does not switch, through the edges of its domain."""
        solved, choice = self._once(field, engines, segment, now, choice)
        if isinstance(solved, EngineFailure) and _may_pass(field, solved):
            crossed = () if self._modes is None else self._modes.surfaces.quantities
            passage = Passage(field, engines, self._once, segment, now, choice, crossed)
            return passage.through(solved)
        return solved, choice

    def _once(
        self,
        field: VectorField,
        engines: Engines,
        segment: Segment,
        now: Values,
        choice: EngineChoice,
    ) -> Integrated:
        """Integrate a field by an engine, up to an edge of its domain."""
        resting = self._resting_in(field, engines)
        if resting is not None:
            field, engines = resting.without(now)
            if isinstance(begun := _begun(field, segment, now), EngineFailure):
                return begun, choice
            segment, now = begun
        return engines.integrate(field, self._pattern, segment, now, choice, repeated=self.repeated)

    def _resting_in(self, field: VectorField, engines: Engines) -> RestingStates | None:
        """Return the handler of states that rest at zero, if the field has roots or powers."""
        if field not in self._resting:
            steep = not field.algebraic and is_steep(field)
            self._resting[field] = RestingStates(field, engines) if steep else None
        return self._resting[field]

    def rates(self, time: float, now: Values) -> Array | None:
        """Return the rates of the states, shape (n,), if the right-hand side does not give them.

        It does not at a switch, or if a state is at an edge of its domain.
        """
        if self._modes is None and now.states.all():
            return None
        segment = segment_between(self.condition, self.field.inputs, time, np.array([time + 1.0]))
        if self._modes is None:
            here = Course(np.array([time]), segment.polynomials[:1], now.states[None], now.scalars)
            return None if self.field.algebraic else rates_while_held(self.field, here)
        point = self._modes.point(time, now, Inputs(np.zeros(0), segment.polynomials[:1]), 0)
        return self._modes.speed(self._modes.begin(point, 1.0)[0], point)

    def _to_rest(self, segment: Segment, now: Values, choice: EngineChoice) -> Integrated:
        """Integrate past all events and changes, and add the steady state approached then."""
        before, time, reached = before_rest(segment), segment.start, None
        if before is not None:
            solved, choice = self.integrate(before, now, choice)
            if isinstance(solved, EngineFailure):
                return solved, choice
            time, now, reached = float(before.times[-1]), solved.at(-1, now), solved
        inputs = segment.polynomials[-1][:, 1]
        rest = self._rest(now, Surroundings(time, inputs, self._fixed, False))
        if isinstance(rest, EngineFailure):
            return rest, choice
        last = rest.as_solution()
        if reached is None:
            return last, choice
        return reached.followed_by(last, len(segment.times) - 1), choice

    def nearby_rest(self, time: float, now: Values) -> ConsistentValues | None:
        """Return the steady state to which these values certainly lead, if they are close to it."""
        inputs = np.array(
            [self.condition.inputs[n](np.array([time]))[0] for n in self.field.inputs]
        )
        around = Surroundings(time, inputs, self._fixed, True)
        return SteadyStateSearch(self.field, self._pattern, self._engines, now, around).nearby()

    def _rest(self, now: Values, around: Surroundings) -> ConsistentValues | EngineFailure:
        """Return the steady state that is approached from these values."""
        if self._modes is not None:
            rest = rest_in_a_mode(
                self._modes, self._engines, self._pattern, self._in_mode, now, around
            )
            if rest is not None:
                return rest
        field, engines = self.field, self._engines
        resting = self._resting_in(field, engines)
        if resting is not None:
            field, engines = resting.without(now)
        return SteadyStateSearch(field, self._pattern, engines, now, around).run()

    def explained(
        self, failure: EngineFailure, vector: Array, now: Values, segment: Segment
    ) -> EngineFailure:
        """Return a failure that names the state at fault, if the segment's start shows it."""
        if not self.field.algebraic:
            named = self._named_values(segment.start, vector, now, derivatives=False)
            values = {name: np.float64(value.value) for name, value in named.items()}
            rhs = self.field.rhs(values, NUMPY)  # without derivatives: searches often fail
            for name, value in zip(self.field.states, rhs, strict=True):
                if not np.isfinite(value):
                    place = f"not finite at t = {segment.start:g}"
                    place += not_defined(self.field, self.field.complete(values, NUMPY))
                    return replace(failure, reason=f"the right-hand side of {name} is {place}")
        return failure

    def _named_values(
        self, time: float, vector: Array, now: Values, *, derivatives: bool = True
    ) -> dict[str, Dual]:
        """Return all names but the algebraic variables, with derivatives along the directions."""
        sizes = self.sizes(vector)
        values = {}
        for name in self.condition.scalars:
            scalar = scalar_value(name, self.condition.scalars, vector)
            partials = {
                self._column[k]: d * sizes[self._column[k]]
                for k, d in scalar.partials.items()
                if derivatives and k in self._column
            }
            values[name] = Dual(scalar.value, partials)
        for names, numbers, sensitivities in (
            (self.field.scalars, now.scalars, now.scalar_sensitivities),
            (self.field.states, now.states, now.sensitivities),
        ):
            for i, name in enumerate(names):
                along = dict(enumerate(sensitivities[i])) if derivatives else {}
                values[name] = Dual(numbers[i], along)
        for name, signal in self.condition.inputs.items():
            values[name] = Dual(signal(np.array([time]))[0])
        values[TIME] = Dual(time)
        return values


def _may_pass(field: VectorField, failure: EngineFailure) -> bool:
    """Return whether an engine may have failed at an edge of the domain."""
    long = failure.out_of_steps and math.isfinite(failure.steps_ahead)
    if long or cut_off().reached or field.algebraic:
        return False
    return bool(edges_of(field))


def _begun(
    field: VectorField, segment: Segment, now: Values
) -> tuple[Segment, Values] | EngineFailure:
    """Return a segment and its values just after a point with unbounded derivatives."""
    first = min(float(segment.times[0]), *segment.breakpoints.tolist(), math.inf)

    def inputs(time: float) -> list[float]:
        return [float(input_value(p, time)) for p in segment.polynomials[0]]

    begun = first_step(field, segment.start, first, inputs, now)
    if begun is None or isinstance(begun, EngineFailure):
        return begun or (segment, now)
    return replace(segment, start=begun[0], left_zero=now.states == 0.0), begun[1]


def sensitivity_pattern(
    field: VectorField, conditions: Sequence[Condition], unknowns: Sequence[int]
) -> SensitivityPattern:
    """Return the run-time scalars that may change along each direction in some conditions.

    Scalars that events assign change with the dependencies of the new value: along no direction if
    it is a number, along all directions if it depends on states.
    """
    column = {unknown: k for k, unknown in enumerate(unknowns)}
    entries: set[tuple[int, int]] = set()
    for condition in conditions:
        reach = _reach(field, condition, set(unknowns))
        entries |= {
            (j, column[k])
            for j, name in enumerate(field.scalars)
            for k in reach[name]
            if k in column
        }
    return SensitivityPattern(len(column), frozenset(entries))


def _reach(field: VectorField, condition: Condition, every: set[int]) -> dict[str, set[int]]:
    """Return the unknowns that may act on each scalar at some time of a condition."""
    scalars = condition.scalars
    reach = {name: unknowns_of(bound, scalars) for name, bound in scalars.items()}
    states = set(field.states)
    assignments = [(name, e) for event in condition.assignments for name, e in event.items()]
    for event in condition.located:
        moves = _moves(event, scalars, every)
        for name, expression in event.assign.items():
            if name in reach and moves and expression.names & {TIME, *condition.inputs}:
                reach[name] = reach[name] | moves
    changed = True
    while changed:
        changed = False
        for name, expression in assignments:
            if name not in reach:
                continue
            acting = every if expression.names & states else set()
            for other in expression.names & scalars.keys():
                acting = acting | reach[other]
            if not acting <= reach[name]:
                reach[name] = reach[name] | acting
                changed = True
    return reach


def _moves(event: LocatedEvent, scalars: Mapping[str, Bound], every: set[int]) -> set[int]:
    """Return the unknowns on which the time of an event may depend."""
    return every if event.time is None else unknowns_of(event.time, scalars)
