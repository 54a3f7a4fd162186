"""States moved along an experiment, segment by segment, through its events.

Between events they follow their Taylor series (:mod:`odefit.structure.taylor_integration`); on
the way back an event is undone: its assignments are solved for the values before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, ComplexArray
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.binding import scalar_value
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.expansion import Expansion
from odefit.structure.solutions.auxiliary_states import fill_dependent_states
from odefit.structure.taylor_integration import taylor_integrate

MAX_NEWTON_STEPS = 30
"""The largest number of Newton steps that undo an event; a dose, the usual case, takes one."""


@dataclass(frozen=True, eq=False)
class StateTransport:
    """Moves the states of one expansion between t0 and other times of its experiment."""

    system: DifferentiatedSystem  # differentiated system with free states
    k: int  # index of the expansion
    vector: Array  # unknowns of the problem, which events may depend on

    @property
    def expansion(self) -> Expansion:
        """The expansion whose states are moved."""
        return self.system.expansions[self.k]

    def from_start(self, values: ComplexArray, time: float) -> ComplexArray | None:
        """Return the unknowns of the system with the states moved from t0 to `time`.

        The states of `values` are those before any event. At an event, those returned are before
        the event, unless it is t0. None is returned if the trajectory does not reach the time.
        """
        now = self.expansion.condition.t0
        for at, assign in self._events_before(time):
            there = taylor_integrate(self.system, self.k, values, now, at)
            if there is None:
                return None
            now, values = at, self._after_event(there, at, assign)
        return taylor_integrate(self.system, self.k, values, now, time)

    def to_start(self, values: ComplexArray, time: float) -> ComplexArray | None:
        """Return the unknowns of the system with the states moved from `time` back to t0.

        A state that an event sets to a number keeps its value after the event.
        """
        now = time
        for at, assign in reversed(self._events_before(time)):
            there = taylor_integrate(self.system, self.k, values, now, at)
            if there is None:
                return None
            now, values = at, self._before_event(there, at, assign)
        return taylor_integrate(self.system, self.k, values, now, self.expansion.condition.t0)

    def _events_before(self, time: float) -> list[tuple[float, Mapping[str, Expression]]]:
        condition = self.expansion.condition
        return [(t, a) for t, a in condition.events if t < time or t == condition.t0]

    def _columns(self, assign: Mapping[str, Expression]) -> dict[str, int]:
        """Return the place of each assigned state among the unknowns of the system."""
        states = self.expansion.states
        return {n: self.system.names.index(states[n]) for n in assign if n in states}

    def _values_of_names(
        self, values: ComplexArray, time: float, assign: Mapping[str, Expression]
    ) -> dict[str, Dual]:
        """Return the values of the names in the assignments of an event."""
        states, condition = self.expansion.states, self.expansion.condition
        known: dict[str, Dual] = {}
        for name in {n for e in assign.values() for n in e.names}:
            if name == TIME:
                value = time
            elif name in states:
                value = float(values[self.system.names.index(states[name])].real)
            elif name in condition.inputs:
                value = float(condition.inputs[name](np.array([time]))[0])
            else:
                value = float(scalar_value(name, condition.scalars, self.vector).value)
            known[name] = Dual(value)
        return known

    def _after_event(
        self, values: ComplexArray, time: float, assign: Mapping[str, Expression]
    ) -> ComplexArray:
        known = self._values_of_names(values, time, assign)
        result = values.copy()
        for name, column in self._columns(assign).items():
            result[column] = float(assign[name].evaluate(known, DUAL).value)
        return fill_dependent_states(self.system, self.k, result, time)

    def _before_event(
        self, values: ComplexArray, time: float, assign: Mapping[str, Expression]
    ) -> ComplexArray:
        """Solve the assignments for the states before them, by Newton's method."""
        columns = self._columns(assign)
        known = self._values_of_names(values, time, assign)
        after = values[list(columns.values())].real
        x = after.copy()
        for _ in range(MAX_NEWTON_STEPS):
            known |= {n: Dual(x[i], {i: 1.0}) for i, n in enumerate(columns) if n in known}
            with np.errstate(all="ignore"):
                assigned = [assign[n].evaluate(known, DUAL) for n in columns]
            residuals = np.array([float(d.value) for d in assigned]) - after
            jacobian = np.array([d.gradient(len(x)) for d in assigned]).reshape(len(x), len(x))
            if not (np.isfinite(residuals).all() and np.isfinite(jacobian).all()):
                break
            step = np.linalg.lstsq(jacobian, residuals, rcond=None)[0]
            x = x - step
            if (np.abs(step) <= 1e-14 * np.abs(x)).all():
                break
        result = values.copy()
        result[list(columns.values())] = x
        return fill_dependent_states(self.system, self.k, result, time, before=True)
