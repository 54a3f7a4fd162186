"""Candidates: solutions of the polynomial system as vectors of the problem's unknowns.

Their states are moved along an experiment, segment by segment, through its events. Between events
they follow their Taylor series (:mod:`odefit.structure.taylor_integration`); on the way back an
event is undone by solving its assignments for the values before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, ComplexArray
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import TIME, Expression
from odefit.methods.algebraic.preparation import Preparation
from odefit.problem.binding import Binding, scalar_value
from odefit.problem.variants.start_ranges import ranges
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.expansion import Expansion
from odefit.structure.solutions.auxiliary_states import fill_dependent_states
from odefit.structure.taylor_integration import taylor_integrate

MAX_NEWTON_STEPS = 30  # Newton steps that undo an event; a dose, the usual case, takes one


@dataclass(frozen=True, eq=False)
class StateTransport:
    """Moves the states of one expansion between t0 and other times of its experiment."""

    system: DifferentiatedSystem  # differentiated system with free states
    k: int  # index of the expansion
    vector: Array  # unknowns of the problem, on which events may depend

    @property
    def expansion(self) -> Expansion:
        """The expansion whose states are moved."""
        return self.system.expansions[self.k]

    def from_start(self, values: ComplexArray, time: float) -> ComplexArray | None:
        """Return the unknowns of the system with the states moved from t0 to `time`.

        The states in `values` are those before any event. At the time of an event, the returned
        states are those before it, unless that time is t0. Returns None if the trajectory does not
        reach the time.
        """
        now = self.expansion.condition.t0
        for at, assign in self._events_before(time):
            moved = taylor_integrate(self.system, self.k, values, now, at)
            if moved is None:
                return None
            now, values = at, self._after_event(moved, at, assign)
        return taylor_integrate(self.system, self.k, values, now, time)

    def to_start(self, values: ComplexArray, time: float) -> ComplexArray | None:
        """Return the unknowns of the system with the states moved from `time` back to t0.

        A state that an event sets to a number keeps its value after the event.
        """
        now = time
        for at, assign in reversed(self._events_before(time)):
            moved = taylor_integrate(self.system, self.k, values, now, at)
            if moved is None:
                return None
            now, values = at, self._before_event(moved, at, assign)
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
        """Solve the assignments for the states before the event, by Newton's method."""
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


REAL_TOLERANCE = 1e-6  # relative imaginary part up to which a solution counts as real


@dataclass(frozen=True, eq=False)
class Candidate:
    """A solution of the polynomial system, converted to unknowns of the problem."""

    vector: Array  # unknowns, shape (n,): the real parts of the solution
    imaginary: float  # largest relative imaginary part of the solution
    origin: str  # how the data were differentiated, in words


def imaginary_part(values: ComplexArray) -> float:
    """Return the largest imaginary part, each relative to the magnitude of its number."""
    scale = np.abs(values) + 1e-9 * np.abs(values).max(initial=0.0) + 1e-300
    return float((np.abs(values.imag) / scale).max(initial=0.0))


def candidate(
    preparation: Preparation, values: ComplexArray, times: tuple[float, ...], origin: str
) -> Candidate | None:
    """Return the candidate of one solution; None if its trajectory does not reach back to t0.

    `values` are all unknowns of the system, with the states of each expansion at its time.
    """
    system, problem = preparation.system, preparation.problem
    at_start = values.real.astype(complex)
    column = {name: i for i, name in enumerate(system.names)}
    vector = np.array([float(r.at(np.array(0.5))) for r in ranges(problem)])
    for i, unknown in enumerate(problem.unknowns):
        if unknown.parameter.guess is not None:
            vector[i] = unknown.parameter.guess
        if unknown.key in column and unknown.kind != "noise":
            vector[i] = at_start[column[unknown.key]].real
    if system.free_states:
        for k, time in enumerate(times):
            moved = StateTransport(system, k, vector).to_start(at_start, time)
            if moved is None:
                return None
            at_start = moved
    for i, unknown in enumerate(problem.unknowns):
        if unknown.kind == "initial" and unknown.key not in column:
            for expansion in system.expansions:
                here = unknown.experiment in (None, expansion.condition.name)
                if here and unknown.name in expansion.states:
                    vector[i] = at_start[column[expansion.states[unknown.name]]].real
                    break
    if not np.isfinite(vector).all():
        return None
    return Candidate(vector, imaginary_part(values[preparation.square.solved]), origin)


def solution_of(
    preparation: Preparation, vector: Array, times: tuple[float, ...]
) -> ComplexArray | None:
    """Return the unknowns of the system that belong to a vector of unknowns of the problem.

    Each expansion has its states at its time. Returns None if a trajectory does not reach the
    times.
    """
    system, problem = preparation.system, preparation.problem
    column = {name: i for i, name in enumerate(system.names)}
    values = np.ones(len(system.names), dtype=complex)
    for i, unknown in enumerate(problem.unknowns):
        if unknown.key in column:
            values[column[unknown.key]] = vector[i]
    for k, (expansion, time) in enumerate(zip(system.expansions, times, strict=True)):
        condition = expansion.condition
        states = [s for s in problem.model.states if s in expansion.states]
        bounds = [condition.initial[s] for s in states]
        for state, value in zip(states, Binding(bounds, condition.scalars)(vector), strict=True):
            values[column[expansion.states[state]]] = value
        values = fill_dependent_states(system, k, values, condition.t0)
        if system.free_states:
            moved = StateTransport(system, k, vector).from_start(values, time)
            if moved is None:
                return None
            values = moved
    return values
