"""Conditions that trigger events, as quantities along a trajectory whose zeros can be located."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.algebras import COMPARISONS as COMPARE
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import PIECEWISE, TIME, Expression
from odefit.expressions.formulas import PARTS, Part, PartAlgebra, call, evaluated, name
from odefit.expressions.gradients import Gradient
from odefit.expressions.grammar import COMPARISONS, CONDITIONS
from odefit.problem.binding import Binding
from odefit.problem.condition import Condition, LocatedEvent
from odefit.problem.experiment import Input
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import Values

TANGENT = 1e-7
"""Step of differences along the tangent of a trajectory, relative to the time or the time span."""


class Moving(NamedTuple):
    """A number on a trajectory."""

    value: float
    changes: Array  # Its changes along the scaled directions at a fixed time, shape (m,)
    rate: float  # Its derivative in time


class MovingExpression:
    """An expression in states, inputs, parameters, constants and the time, on a trajectory."""

    def __init__(
        self, expression: Expression, field: VectorField, condition: Condition, unknowns: IntArray
    ) -> None:
        names, known = expression.names, condition.scalars
        self._expression, self._unknowns = expression, unknowns
        self._states = [(n, i) for i, n in enumerate(field.states) if n in names]
        self._scalars = [(n, j) for j, n in enumerate(field.scalars) if n in names]
        self._others = sorted((names & known.keys()) - set(field.scalars))
        self._binding = Binding([known[n] for n in self._others], known)
        self._inputs = {n: condition.inputs[n] for n in sorted(names & condition.inputs.keys())}
        self._gradient = Gradient(expression, names)

    def along(self, times: Array, vector: Array, states: Array, scalars: Array) -> Array:
        """Return values at times, shape (k,), with states of shape (k, n) and constant scalars."""
        values: dict[str, Any] = {n: states[:, i] for n, i in self._states}
        values |= {n: scalars[j] for n, j in self._scalars}
        values |= zip(self._others, self._binding(vector), strict=True)
        values |= {n: signal(times) for n, signal in self._inputs.items()}
        values_along = self._expression.evaluate({**values, TIME: times}, NUMPY)
        return np.array(np.broadcast_to(values_along, times.shape), dtype=float)

    def at(self, time: float, vector: Array, now: Values) -> float:
        """Return the number at a time."""
        return float(self._expression.evaluate(self._values(time, vector, now), NUMPY))

    def _values(self, time: float, vector: Array, now: Values) -> dict[str, Any]:
        """Return the values of the expression's names at a time, and the time."""
        values: dict[str, Any] = {n: now.states[i] for n, i in self._states}
        values |= {n: now.scalars[j] for n, j in self._scalars}
        values |= zip(self._others, self._binding(vector), strict=True)
        return values | _clock(self._inputs, time)

    def with_rates(
        self, times: Array, vector: Array, states: Array, scalars: Array, speeds: Array, h: Array
    ) -> tuple[Array, Array]:
        """Return values at times and their rates, by differences along the tangent.

        The states change with `speeds`, shape (k, n); `h` are the steps, shape (k,). The rates are
        accurate enough to find extrema.
        """
        values = self.along(times, vector, states, scalars)
        after = self.along(times + h, vector, states + h[:, None] * speeds, scalars)
        return values, (after - values) / h

    def __call__(
        self, time: float, vector: Array, sizes: Array, now: Values, rates: Array
    ) -> Moving:
        """Return the number at a time, where the states change with `rates`, shape (n,)."""
        value, rate, partials = self._with_rate(time, vector, now, rates)
        rows = {n: now.sensitivities[i] for n, i in self._states}
        rows |= {n: now.scalar_sensitivities[j] for n, j in self._scalars}
        by_unknown = self._binding.derivative(vector, self._unknowns) * sizes
        rows |= zip(self._others, by_unknown, strict=True)
        changes = np.zeros(len(sizes))
        for other, partial in partials.items():
            if other in rows:
                changes = changes + np.where(rows[other] == 0.0, 0.0, partial * rows[other])
        return Moving(value, changes, rate)

    def value_and_rate(
        self, time: float, vector: Array, now: Values, rates: Array
    ) -> tuple[float, float]:
        """Return the number and its derivative in time, without its changes with unknowns."""
        return self._with_rate(time, vector, now, rates)[:2]

    def _with_rate(
        self, time: float, vector: Array, now: Values, rates: Array
    ) -> tuple[float, float, Mapping[str, Any]]:
        """Return the number, its derivative in time, and its partial derivatives by name."""
        value, partials = self._gradient(self._values(time, vector, now))
        speeds: dict[str, float] = {n: rates[i] for n, i in self._states}
        speeds |= {n: input_rate(signal, time) for n, signal in self._inputs.items()}
        speeds[TIME] = 1.0
        moving = [(partial, speeds[n]) for n, partial in partials.items() if speeds.get(n)]
        return float(value), sum((float(p) * speed for p, speed in moving), 0.0), partials


def input_rate(signal: Input, time: float) -> float:
    """Return the derivative of an input in time; at a knot the right-sided derivative."""
    piece = int(np.searchsorted(signal.times, time, side="right"))
    c = signal.polynomials()[piece]
    tau = time - signal.times[max(piece - 1, 0)]
    return float(c[1] + tau * (2.0 * c[2] + tau * 3.0 * c[3]))


def clock_of(inputs: Mapping[str, Input], time: float, change: Array) -> dict[str, Array]:
    """Return the changes of time and inputs with an event's time, each of shape (m,)."""
    return {TIME: change, **{n: input_rate(signal, time) * change for n, signal in inputs.items()}}


def rates_of(
    field: VectorField,
    inputs: Mapping[str, Input],
    times: Array,
    states: Array,
    scalars: Array,
    algebraic: Array,
) -> Array:
    """Return the derivatives of the states in time, shape (k, n).

    Times have shape (k,), states (k, n) and algebraic variables (k, a); the scalars are constant.
    """
    values: dict[str, Any] = {n: states[:, i] for i, n in enumerate(field.states)}
    values |= {n: algebraic[:, i] for i, n in enumerate(field.algebraic)}
    values |= dict(zip(field.scalars, scalars, strict=True))
    values |= {n: signal(times) for n, signal in inputs.items()}
    rates = field.rhs({**values, TIME: times}, NUMPY)
    return np.stack([np.broadcast_to(f, times.shape) for f in rates], axis=1)


def rates_at(field: VectorField, inputs: Mapping[str, Input], time: float, now: Values) -> Array:
    """Return the derivatives of the states at a time, shape (n,)."""
    values: dict[str, Any] = dict(zip(field.states, now.states, strict=True))
    values |= zip(field.algebraic, now.algebraic, strict=True)
    values |= zip(field.scalars, now.scalars, strict=True)
    return np.array(field.rhs(values | _clock(inputs, time), NUMPY), dtype=float)


def _clock(inputs: Mapping[str, Input], time: float) -> dict[str, Any]:
    """Return the time and the values of inputs at it."""
    at = np.array([time])
    return {TIME: at[0], **{n: signal(at)[0] for n, signal in inputs.items()}}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of a quantity with zero."""

    difference: Expression  # The quantity: the left side minus the right one
    sign: str

    def holds(self, value: Any) -> Any:
        """Return whether it holds at a value of the quantity; arrays are accepted as well."""
        return COMPARE[self.sign](value, 0.0)


@dataclass(frozen=True, eq=False)
class Trigger:
    """An event that happens each time its condition becomes true."""

    event: LocatedEvent
    # Its condition, with names ``c0``, ``c1``, ... of comparisons that are 0 or 1.
    logic: Expression

    def holds(self, flags: BoolArray) -> Any:
        """Return whether the condition holds for given comparisons, shape (comparisons, ...)."""
        values = {n: flags[int(n[1:])] for n in self.logic.names}
        return self.logic.evaluate(values, NUMPY)


def text_of(triggers: Sequence[Trigger], before: BoolArray, flags: BoolArray) -> str:
    """Return the text of the condition that has become true."""
    for trigger, was in zip(triggers, before, strict=True):
        if not was and trigger.holds(flags) and trigger.event.when is not None:
            return f"the condition {trigger.event.when.text!r}"
    return "the condition of an event"


@dataclass(frozen=True)
class _Flag:
    """A condition: its text, and its form with names of comparisons."""

    program: Part
    logic: Part


class _Comparisons(PartAlgebra):
    """The algebra that finds the comparisons of conditions."""

    def __init__(self) -> None:
        self.by_program: dict[Any, Comparison] = {}

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        if function in COMPARISONS:
            written = call(function, arguments)
            difference = (arguments[0] - arguments[1]).expression()
            keys = list(self.by_program)
            if written.program not in self.by_program:
                keys.append(written.program)
                self.by_program[written.program] = Comparison(difference, function)
            return _Flag(written, name(f"c{keys.index(written.program)}"))
        if function in CONDITIONS:
            programs = [a.program for a in arguments]
            return _Flag(call(function, programs), call(function, [a.logic for a in arguments]))
        if function == PIECEWISE:
            return call(function, [_program(a) for a in arguments])
        return PARTS.call(function, arguments)


def _program(argument: Part | _Flag) -> Part:
    return argument.program if isinstance(argument, _Flag) else argument


def triggers_of(condition: Condition) -> tuple[list[Comparison], list[Trigger]]:
    """Return the comparisons in a condition's triggered events, and the triggers."""
    algebra = _Comparisons()
    triggers = []
    for event in condition.located:
        if event.when is not None:
            flag: Any = evaluated(event.when, {}, algebra)
            triggers.append(Trigger(event, flag.logic.expression()))
    return list(algebra.by_program.values()), triggers
