"""The conditions that trigger events, as comparisons whose changes can be located."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.expressions.algebras import COMPARISONS as COMPARE
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import PIECEWISE, Expression
from odefit.expressions.formulas import PARTS, Part, PartAlgebra, call, evaluated, name
from odefit.expressions.grammar import COMPARISONS, CONDITIONS
from odefit.problem.condition import Condition, LocatedEvent

CUBIC_STEPS = 40
"""Bisections of the cubic between two points, whose root is the first guess of that of the true
quantity."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of a quantity with zero."""

    difference: Expression  # The quantity: the left side less the right one
    sign: str

    def holds(self, value: Any) -> Any:
        """Return whether it holds where the quantity has a value; arrays are taken as well."""
        return COMPARE[self.sign](value, 0.0)


@dataclass(frozen=True, eq=False)
class Trigger:
    """An event that happens each time that a condition becomes true."""

    event: LocatedEvent
    # Its condition, with names ``c0``, ``c1``, ... of comparisons that are 0 or 1.
    logic: Expression

    def holds(self, flags: BoolArray) -> Any:
        """Return whether the condition holds where comparisons do, shape (comparisons, ...)."""
        values = {n: flags[int(n[1:])] for n in self.logic.names}
        return self.logic.evaluate(values, NUMPY)


def text_of(triggers: Sequence[Trigger], before: BoolArray, flags: BoolArray) -> str:
    """Return words for the condition that has become true, as it is written."""
    for trigger, was in zip(triggers, before, strict=True):
        if not was and trigger.holds(flags) and trigger.event.when is not None:
            return f"the condition {trigger.event.when.text!r}"
    return "the condition of an event"


@dataclass(frozen=True)
class _Flag:
    """A condition: as it is written, and by the names of comparisons."""

    program: Part
    logic: Part


class _Comparisons(PartAlgebra):
    """The algebra that finds the comparisons of conditions."""

    def __init__(self) -> None:
        self.found: dict[Any, Comparison] = {}

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        if function in COMPARISONS:
            written = call(function, arguments)
            difference = (arguments[0] - arguments[1]).expression()
            keys = list(self.found)
            if written.program not in self.found:
                keys.append(written.program)
                self.found[written.program] = Comparison(difference, function)
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
    return list(algebra.found.values()), triggers


def near_extrema(times: Array, values: Array, rates: Array) -> Array:
    """Return times at which a quantity may touch or cross zero between points of the same sign.

    `times`, `values`, `rates`: times, shape (k,), and a quantity with its derivative in time there.
    Between two of these it is taken for a cubic. Where that turns around near zero, the time of its
    extremum is returned.
    """
    left, right = values[:-1], values[1:]
    sign = np.sign(left)
    towards = (sign * rates[:-1] < 0) & (sign * rates[1:] > 0) & (np.sign(right) == sign)
    found = []
    for i in np.flatnonzero(towards):
        h = times[i + 1] - times[i]
        s = np.linspace(0.0, 1.0, 65)
        cubic = sign[i] * hermite(s, h, values[i : i + 2].tolist(), rates[i : i + 2].tolist())
        place = int(np.argmin(cubic))
        if cubic[place] < 0.25 * min(abs(left[i]), abs(right[i])) and 0 < place < 64:
            found.append(times[i] + h * s[place])
    return np.array(found)


def hermite(s: Any, h: float, values: Sequence[float], rates: Sequence[float]) -> Any:
    """Return the cubic with given values and derivatives at both ends, at fractions s of h."""
    a, b = values
    da, db = rates[0] * h, rates[1] * h
    back = 1.0 - s
    rise = s * s * ((3.0 - 2.0 * s) * b - back * db)
    return back * back * ((1.0 + 2.0 * s) * a + s * da) + rise


def cubic_root(comparison: Comparison, times: Array, values: Array, rates: Array) -> float:
    """Return where a comparison changes between two times, by the cubic; times, shape (2,)."""
    h = float(times[1] - times[0])
    first = not bool(comparison.holds(values[1]))
    ends, slopes = values.tolist(), rates.tolist()  # faster than arrays of two
    low, high = 0.0, 1.0
    for _ in range(CUBIC_STEPS):
        middle = 0.5 * (low + high)
        if bool(comparison.holds(hermite(middle, h, ends, slopes))) == first:
            low = middle
        else:
            high = middle
    return float(times[0] + h * high)
