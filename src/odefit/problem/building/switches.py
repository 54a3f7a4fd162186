"""Comparisons that depend on time, replaced by switches: constants that are 0 or 1.

The equations of a model may say ``piecewise(a, t < t_off, b)``. An integrator that steps across
t_off loses its order; one that stops there does not. So each comparison that is linear in time,
with parameters and constants otherwise, becomes a constant that an event sets at the exact time.
Comparisons of parameters and constants alone become constant from the start. The remaining
equations are smooth between events, for all engines and methods. Comparisons of states, of inputs,
or of the time in any other form stay unchanged.

At the time of a switch the states are continuous, so that no measurement depends on the side to
which that time belongs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import PIECEWISE, TIME, Expression, Instruction
from odefit.expressions.formulas import (
    PARTS,
    Part,
    PartAlgebra,
    call,
    evaluated,
    guarded,
    linear_in,
    name,
    number,
    substituted,
)
from odefit.expressions.grammar import COMPARISONS, CONDITIONS
from odefit.problem.binding import Bound, bound_value, unknowns_of
from odefit.problem.condition import Condition, LocatedEvent
from odefit.problem.model import Model

PREFIX = "__switch"
"""Prefix of the names of switches, which users' names cannot have."""

ON, OFF = number(1.0), number(0.0)


@dataclass(frozen=True)
class _Switch:
    """A constant that is 0 or 1."""

    name: str
    test: Part | None  # a condition of parameters and constants; None if the time decides
    time: Part | None  # the time at which it becomes 1, an expression; None if `test` decides

    @property
    def names(self) -> frozenset[str]:
        """The parameters and constants that it depends on."""
        return frozenset().union(*(p.names for p in (self.test, self.time) if p is not None))

    def now(self, time: Part) -> Part:
        """Return its value at a time, as an expression in parameters and constants."""
        test = call(">", [time, self.time]) if self.time is not None else self.test
        assert test is not None
        return call(PIECEWISE, [ON, test, OFF])


@dataclass(frozen=True)
class _Test:
    """A condition: in its given form, and as 0 or 1 if switches decide it."""

    program: Part
    indicator: Part | None


class _Rewriting(PartAlgebra):
    """The algebra that rewrites expressions with switches."""

    def __init__(self, scalars: set[str]) -> None:
        self._scalars = scalars
        self.switches: dict[Any, _Switch] = {}

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """See :class:`odefit.expressions.expressions.Algebra`."""
        if function in COMPARISONS:
            return self._comparison(function, arguments[0], arguments[1])
        if function in CONDITIONS:
            return _joined(function, arguments)
        if function != PIECEWISE:
            return PARTS.call(function, arguments)
        if any(test.indicator is None for test in arguments[1::2]):
            programs = [a.program if isinstance(a, _Test) else a for a in arguments]
            return call(PIECEWISE, programs)
        constants = self._scalars | {s.name for s in self.switches.values()}
        tests = [test.indicator for test in arguments[1::2]]
        values = [*arguments[0:-1:2], arguments[-1]]
        result = guarded(values[-1], partial(_counts, tests, len(tests)), constants)
        for k in reversed(range(len(tests))):
            value = guarded(values[k], partial(_counts, tests, k), constants)
            result = tests[k] * value + (ON - tests[k]) * result
        return result

    def _comparison(self, sign: str, left: Part, right: Part) -> _Test:
        written = call(sign, [left, right])
        names = written.names
        if not names:
            holds = call(PIECEWISE, [ON, written, OFF]).expression().constant
            return _Test(written, ON if holds else OFF)
        if names <= self._scalars:
            return self._switched(self._switch(("test", written.program), written, None), False)
        if not names <= {*self._scalars, TIME}:
            return _Test(written, None)
        difference = linear_in(left - right)
        if difference is None:
            return _Test(written, None)
        if sign in ("==", "!="):  # a single time does not matter in an equation
            return _Test(written, OFF if sign == "==" else ON)
        slope = difference.slope
        if slope.number == 0.0:
            return self._comparison(sign, difference.constant, OFF)
        time = difference.zero()
        key = ("time", time.number if time.number is not None else time.program)
        switch = self._switch(key, None, time)
        rising = sign in (">", ">=")
        if slope.number is not None:
            return self._switched(switch, rising != (slope.number > 0))
        upwards = self._comparison(">", slope, OFF)
        downwards = self._comparison("<", slope, OFF)
        still = _joined("!", [_joined("||", [upwards, downwards])])
        cases = [
            (upwards, self._switched(switch, not rising)),
            (downwards, self._switched(switch, rising)),
            (still, self._comparison(sign, difference.constant, OFF)),
        ]
        first, second, third = (_joined("&&", case) for case in cases)
        return _joined("||", [_joined("||", [first, second]), third])

    def _switch(self, key: Any, test: Part | None, time: Part | None) -> _Switch:
        if key not in self.switches:
            self.switches[key] = _Switch(f"{PREFIX}{len(self.switches) + 1}", test, time)
        return self.switches[key]

    def _switched(self, switch: _Switch, inverted: bool) -> _Test:
        value = name(switch.name)
        written = call("<" if inverted else ">", [value, number(0.5)])
        return _Test(written, ON - value if inverted else value)


def _counts(tests: Sequence[Part], place: int) -> Part:
    """Return whether a branch of ``piecewise`` applies: its condition is the first that holds."""
    part = ON
    for test in tests[:place]:
        part = part * (ON - test)
    return part * tests[place] if place < len(tests) else part


def _joined(sign: str, tests: Sequence[_Test]) -> _Test:
    written = call(sign, [t.program for t in tests])
    values = [t.indicator for t in tests if t.indicator is not None]
    if len(values) < len(tests):
        return _Test(written, None)
    if sign == "!":
        return _Test(written, ON - values[0])
    a, b = values
    return _Test(written, a * b if sign == "&&" else a + b - a * b)


def with_switches(
    model: Model, conditions: Sequence[Condition]
) -> tuple[Model, tuple[Condition, ...]]:
    """Return a model and its conditions with switches for comparisons that time decides.

    Switches are constants of the model. Conditions have a value for each, and events that set it. A
    model without such comparisons is returned unchanged.
    """
    equations = {**model.ode, **model.algebraic}
    if not any(PIECEWISE in e.functions for e in equations.values()):
        return model, tuple(conditions)
    others = {*model.ode, *model.algebraic, *model.inputs, TIME}
    scalars = {n for e in equations.values() for n in e.names} - others
    rewriting = _Rewriting(scalars)
    written = {
        n: evaluated(e, {}, rewriting).expression() if PIECEWISE in e.functions else e
        for n, e in equations.items()
    }
    switches = list(rewriting.switches.values())
    if not switches and all(e.program == written[n].program for n, e in equations.items()):
        return model, tuple(conditions)
    model_with_switches = object.__new__(Model)
    changed = {
        **model.__getstate__(),
        "ode": {n: written[n] for n in model.ode},
        "algebraic": {n: written[n] for n in model.algebraic},
        "constants": {**model.constants, **{s.name: 0.0 for s in switches}},
    }
    model_with_switches.__setstate__(changed)
    return model_with_switches, tuple(_switched(c, switches) for c in conditions)


def _switched(condition: Condition, switches: Sequence[_Switch]) -> Condition:
    """Return a condition with the values of switches and the events that set them."""
    scalars = dict(condition.scalars)
    assignments = [assign for _, assign in condition.events]
    assignments += [event.assign for event in condition.located]
    assigned = {n for assign in assignments for n in assign}
    events: list[tuple[float, Mapping[str, Expression]]] = []
    located: list[LocatedEvent] = []
    on = ON.expression()
    followed: set[str] = set()
    for switch in switches:
        course = _course(switch, condition) if switch.names & assigned else None
        if course is not None:
            scalars[switch.name] = course[0]
            events += course[1]
            followed.add(switch.name)
            continue
        if switch.time is None:
            scalars[switch.name] = known_value(switch.now(OFF).expression(), condition.scalars)
            continue
        time = known_value(switch.time.expression(), condition.scalars)
        start = switch.now(number(condition.t0)).expression()
        scalars[switch.name] = known_value(start, condition.scalars)
        if switch.names & assigned:
            when = call(">", [name(TIME), switch.time]).expression()
            located.append(LocatedEvent(None, when, {switch.name: on}, False))
        elif not isinstance(time, float):
            located.append(LocatedEvent(time, None, {switch.name: on}, False))
        elif time == condition.t0 and not condition.steady_start:
            scalars[switch.name] = 1.0
        elif condition.t0 <= time < np.inf:
            events.append((time, {switch.name: on}))
    moved = [s for s in switches if s.names & assigned and s.name not in followed]
    known = [(t, _with_moved(assign, moved)) for t, assign in condition.events]
    moved_events = (replace(e, assign=_with_moved(e.assign, moved)) for e in condition.located)
    return replace(
        condition,
        scalars=scalars,
        # At equal times a switch comes first.
        events=tuple(sorted([*events, *known], key=lambda event: event[0])),
        located=(*located, *moved_events),
    )


def _course(
    switch: _Switch, condition: Condition
) -> tuple[float, list[tuple[float, Mapping[str, Expression]]]] | None:
    """Return the value of a switch before any event, and the events that set it.

    Return None if unknowns, states or located events affect it; otherwise its times are known.
    """
    located = {n for event in condition.located for n in event.assign}
    if switch.time is None or switch.names & located:
        return None
    moved = {n for _, assign in condition.events for n in assign}
    now = dict(condition.scalars)
    moments: dict[float, dict[str, Bound]] = {}
    for at, assign in condition.events:
        for changed in assign.keys() & switch.names:
            if not assign[changed].names <= now.keys() - moved:
                return None
            value = known_value(assign[changed], now)
            if not isinstance(value, float):
                return None
            moments.setdefault(at, {})[changed] = value
    time = known_value(switch.time.expression(), now)
    if not isinstance(time, float):
        return None
    t0 = condition.t0
    before = 1.0 if time < t0 or (time == t0 and not condition.steady_start) else 0.0
    course: list[tuple[float, Mapping[str, Expression]]] = []
    starts = sorted({t0, *moments})
    for start, stop in zip(starts, [*starts[1:], np.inf], strict=True):
        if start in moments:
            now |= moments[start]
            time = known_value(switch.time.expression(), now)
            if not isinstance(time, float):
                return None
            state = ON if time <= start else OFF
            course.append((start, {switch.name: state.expression()}))
        elif time == start and condition.steady_start:
            course.append((start, {switch.name: ON.expression()}))
        if start < time < stop:
            course.append((time, {switch.name: ON.expression()}))
    return before, course


def _with_moved(
    assign: Mapping[str, Expression], switches: Sequence[_Switch]
) -> Mapping[str, Expression]:
    """Return assignments, and those of the switches that depend on them."""
    follow = {
        s.name: substituted(s.now(name(TIME)).expression(), assign)
        for s in switches
        if s.names & assign.keys()
    }
    return {**assign, **follow} if follow else assign


def crossing(when: Expression, scalars: set[str]) -> tuple[Part, bool, bool] | None:
    """Return the time at which a condition changes, if it is one comparison linear in time.

    The result is an expression without the time. One flag says whether the condition becomes true
    (otherwise false), the other whether it is false at equality. `scalars` are constant.
    """
    sign = when.program[-1].text
    if sign not in ("<", "<=", ">", ">=") or not when.names <= {*scalars, TIME}:
        return None
    sides = when.program[:-1]
    difference = linear_in(Part((*sides, Instruction("binary", "-", 2))))
    if difference is None or not difference.slope.number:
        return None
    rising = (difference.slope.number > 0) == (sign in (">", ">="))
    return difference.zero(), rising, sign in ("<", ">")


def known_value(expression: Expression, scalars: Mapping[str, Bound]) -> Bound:
    """Return an expression in parameters and constants as a number, if it has no unknowns."""
    single = scalars.get(expression.name or "")
    if single is not None:
        return known_value(single, scalars) if isinstance(single, Expression) else single
    if any(unknowns_of(scalars[n], scalars) for n in expression.names):
        return expression
    with np.errstate(all="ignore"):
        return float(bound_value(expression, scalars, (), NUMPY))
