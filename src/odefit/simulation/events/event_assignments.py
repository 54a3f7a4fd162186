"""The assignments of an event, their derivatives along directions, and their adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import TIME, Expression
from odefit.expressions.gradients import Gradient
from odefit.problem.binding import Binding, unknowns_of
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import Values


class EventAssignments:
    """The assignments of an event, with their derivatives along the directions."""

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        assignment: Mapping[str, Expression],
        unknowns: IntArray,
    ) -> None:
        self._unknowns = unknowns
        self._condition = condition
        self._states = {name: i for i, name in enumerate(field.states)}
        self._scalars = {name: j for j, name in enumerate(field.scalars)}
        names = {n for e in assignment.values() for n in e.names}
        known = condition.scalars
        self._others = sorted((names & known.keys()) - self._scalars.keys())
        self._binding = Binding([known[n] for n in self._others], known)
        self._inputs = sorted(names & condition.inputs.keys())
        self._names = names
        moving = {*self._states, *self._scalars, TIME, *self._inputs}
        moving |= {n for n in self._others if unknowns_of(known[n], known)}
        constants = {n: e.constant for n, e in assignment.items() if e.constant is not None}
        self._gradients = [
            (name, Gradient(e, moving)) for name, e in assignment.items() if name not in constants
        ]
        # Most switches are set to numbers, and often many at one time.
        fixed = [n for n in constants if n in self._scalars]
        self._fixed_scalars = np.array([self._scalars[n] for n in fixed], dtype=np.intp)
        self._fixed_values = np.array([constants[n] for n in fixed], dtype=float)
        self._fixed_states = [
            (self._states[n], float(v)) for n, v in constants.items() if n in self._states
        ]
        self._assigned_states = np.array(
            [self._states[n] for n in assignment if n in self._states], dtype=np.intp
        )
        self._assigned_scalars = np.array(
            [self._scalars[n] for n in assignment if n in self._scalars], dtype=np.intp
        )
        self._moves_states = bool(assignment.keys() & self._states.keys())

    def __call__(
        self,
        time: float,
        vector: Array,
        sizes: Array,
        before: Values,
        clock: Mapping[str, Array] | None,
    ) -> Values:
        """Return the values after the event."""
        new = before._replace(
            scalars=before.scalars.copy(), scalar_sensitivities=before.scalar_sensitivities.copy()
        )
        if self._moves_states:
            new = new._replace(
                states=before.states.copy(), sensitivities=before.sensitivities.copy()
            )
        if len(self._fixed_scalars):
            new.scalars[self._fixed_scalars] = self._fixed_values
            new.scalar_sensitivities[self._fixed_scalars] = 0.0
        for i, number in self._fixed_states:
            new.states[i], new.sensitivities[i] = number, 0.0
        if not self._gradients:
            return new
        values = self._values(time, vector, before)
        rows: dict[str, Array] = dict(clock or {})
        for name in self._names:
            if name in self._states:
                rows[name] = before.sensitivities[self._states[name]]
            elif name in self._scalars:
                rows[name] = before.scalar_sensitivities[self._scalars[name]]
        if self._others:
            derivatives = self._binding.derivative(vector, self._unknowns) * sizes
            rows |= zip(self._others, derivatives, strict=True)
        for name, gradient in self._gradients:
            value, partials = gradient(values)
            changes = np.zeros(len(self._unknowns))
            for other, partial in partials.items():
                row = rows.get(other)
                if row is None:
                    continue  # the time and inputs, of an event at a known time
                if np.isfinite(partial):
                    changes += partial * row
                else:
                    changes += np.where(row == 0.0, 0.0, partial * row)
            if name in self._states:
                new.states[self._states[name]] = value
                new.sensitivities[self._states[name]] = changes
            elif name in self._scalars:
                new.scalars[self._scalars[name]] = value
                new.scalar_sensitivities[self._scalars[name]] = changes
        return new

    def taken(self, chosen: Values, before: Values) -> Values:
        """Return the values after the event, with the assigned ones as chosen earlier."""
        new = before._replace(
            states=before.states.copy(),
            sensitivities=before.sensitivities.copy(),
            scalars=before.scalars.copy(),
            scalar_sensitivities=before.scalar_sensitivities.copy(),
        )
        states, scalars = self._assigned_states, self._assigned_scalars
        new.states[states] = chosen.states[states]
        new.sensitivities[states] = chosen.sensitivities[states]
        new.scalars[scalars] = chosen.scalars[scalars]
        new.scalar_sensitivities[scalars] = chosen.scalar_sensitivities[scalars]
        return new

    def pull_back(
        self, time: float, vector: Array, before: Values, by_states: Array, by_scalars: Array
    ) -> Array:
        """Convert derivatives of a scalar after the event to derivatives before it.

        Derivatives with respect to the states and scalars after the event, shapes (n,) and (p,),
        become those with respect to the values before. Returns the contribution of the assignments
        to those with respect to the unknowns, shape (m,).
        """
        by_unknowns = np.zeros(len(self._unknowns))
        after_states, after_scalars = by_states.copy(), by_scalars.copy()
        by_states[self._assigned_states] = 0.0
        by_scalars[self._assigned_scalars] = 0.0
        if not self._gradients:
            return by_unknowns
        values = self._values(time, vector, before)
        by_others = np.zeros(len(self._others))
        for name, gradient in self._gradients:
            if name in self._states:
                after = after_states[self._states[name]]
            elif name in self._scalars:
                after = after_scalars[self._scalars[name]]
            else:
                continue
            if after == 0.0:
                continue
            _, partials = gradient(values)
            for other, partial in partials.items():
                if other in self._states:
                    by_states[self._states[other]] += after * partial
                elif other in self._scalars:
                    by_scalars[self._scalars[other]] += after * partial
                elif other in self._others:
                    by_others[self._others.index(other)] += after * partial
        if by_others.any():
            by_unknowns += by_others @ self._binding.derivative(vector, self._unknowns)
        return by_unknowns

    def _values(self, time: float, vector: Array, before: Values) -> dict[str, Any]:
        """Return the values of all names that the event reads."""
        values: dict[str, Any] = {TIME: np.float64(time)}
        for name in self._names:
            if name in self._states:
                values[name] = before.states[self._states[name]]
            elif name in self._scalars:
                values[name] = before.scalars[self._scalars[name]]
        if self._others:
            values |= zip(self._others, self._binding(vector), strict=True)
        for name in self._inputs:
            values[name] = self._condition.inputs[name](np.array([time]))[0]
        return values
