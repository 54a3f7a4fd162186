"""Segments that conditions have in common, found from the structure of the problem alone.

Conditions follow one trajectory as long as everything that acts is the same: initial values, the
scalars of the vector field, events and inputs. So their segments form trees. A condition leaves the
common segment at its first event that the others lack, or where its inputs begin to differ.
Conditions that differ only in their observation never separate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import Expression
from odefit.problem.binding import bound_key
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.segments import Segment, inputs_before, segment_between


@dataclass(frozen=True, eq=False)
class SharedRows:
    """The rows of one condition that lie in a segment."""

    condition: int
    rows: slice  # Rows of its times, which are consecutive
    positions: IntArray | slice  # Numbers of the same times in the segment


@dataclass(frozen=True, eq=False)
class SharedSegment:
    """A segment, the events before it, and the conditions that share it."""

    conditions: tuple[int, ...]
    parent: int  # Number of the segment that it follows; -1 if it begins with the initial values
    position: int  # The time of the parent at which it begins; -1 for the parent's own start
    start: float
    # Assignments of the events at its start, in the order in which they happen.
    events: tuple[Mapping[str, Expression], ...]
    segment: Segment | None  # Times and inputs; None if no values are wanted after the start
    rows: tuple[SharedRows, ...]  # Rows of the conditions that lie in it
    # Rows of the conditions at its start with the values after the events, one each.
    rows_after: tuple[SharedRows, ...]


def groups_with_equal_starts(
    field: VectorField, conditions: Sequence[Condition]
) -> list[tuple[int, ...]]:
    """Return the numbers of the conditions by equal initial values, in the order of the first."""
    equations = (*field.model.ode.values(), *field.model.algebraic.values())
    used = {n for e in equations for n in e.names}
    inputs = [name for name in field.inputs if name in used]
    groups: dict[Any, list[int]] = {}
    for number, condition in enumerate(conditions):
        scalars = condition.scalars
        key = (
            condition.t0,
            tuple(bound_key(condition.initial[s], scalars) for s in field.states),
            tuple(bound_key(scalars[s], scalars) for s in field.scalars),
            tuple(condition.algebraic_guess[z] for z in field.algebraic),
            inputs_before(condition, inputs).tobytes() if condition.steady_start else None,
            None if condition.repeated is None else number,
        )
        groups.setdefault(key, []).append(number)
    return [tuple(group) for group in groups.values()]


def shared_segments(
    field: VectorField, conditions: Sequence[Condition], members: Sequence[int]
) -> list[SharedSegment]:
    """Return the tree of segments of conditions that begin with the same values.

    Parents come before children; `members` are the numbers of the conditions with the same
    beginning.
    """
    tree = _Tree(field, conditions)
    start = conditions[members[0]].t0
    tree.add(
        _Beginning(
            conditions=tuple(members),
            parent=-1,
            position=-1,
            start=start,
            events=(),
            passed=dict.fromkeys(members, 0),
        )
    )
    return tree.segments


@dataclass(frozen=True)
class _Event:
    """The events of a condition at one time, and a key that is equal for equal effects."""

    time: float
    assignments: tuple[Mapping[str, Expression], ...]
    key: Any


@dataclass(frozen=True)
class _Beginning:
    """The beginning of a shared segment; `passed` counts the past events of each condition."""

    conditions: tuple[int, ...]
    parent: int
    position: int
    start: float
    events: tuple[Mapping[str, Expression], ...]
    passed: Mapping[int, int]


class _Tree:
    """The state of :func:`shared_segments`."""

    def __init__(self, field: VectorField, conditions: Sequence[Condition]) -> None:
        self.segments: list[SharedSegment] = []
        self._field = field
        self._conditions = conditions
        self._events: dict[int, list[_Event]] = {}
        equations = (*field.model.ode.values(), *field.model.algebraic.values())
        used = {n for e in equations for n in e.names}
        self._inputs = [k for k, name in enumerate(field.inputs) if name in used]

    def add(self, beginning: _Beginning) -> None:
        """Add a segment and all that follow it."""
        start, members, passed = beginning.start, beginning.conditions, beginning.passed
        stops = {c: self._stop(c, passed[c]) for c in members}
        # The others leave the condition that continues longest.
        main = max(members, key=lambda c: (stops[c], -c))
        leaves = {c: min(stops[c], self._same_inputs_until(main, c, start)) for c in members}
        goes_on = {c: leaves[c] < stops[c] or passed[c] < len(self._events_of(c)) for c in members}
        rows = {c: self._rows(c, start, leaves[c]) for c in members}
        times = [self._conditions[c].times[rows[c]] for c in members]
        ends = [leaves[c] for c in members if goes_on[c] and leaves[c] > start]
        union = np.unique(np.concatenate([*times, ends]))
        number = len(self.segments)
        segment = None
        if len(union):
            segment = segment_between(self._conditions[main], self._field.inputs, start, union)
        shared = [
            SharedRows(c, rows[c], _numbers(union, own_times))
            for c, own_times in zip(members, times, strict=True)
            if len(own_times)
        ]
        self.segments.append(
            SharedSegment(
                conditions=members,
                parent=beginning.parent,
                position=beginning.position,
                start=start,
                events=beginning.events,
                segment=segment,
                rows=tuple(shared),
                rows_after=tuple(self._rows_after(members, start)) if beginning.events else (),
            )
        )
        following: dict[Any, list[int]] = {}
        for c in members:
            if goes_on[c]:
                following.setdefault(self._key(c, leaves[c], stops[c], passed[c]), []).append(c)
        for group in following.values():
            time = leaves[group[0]]
            position = int(np.searchsorted(union, time)) if time > start else -1
            events: tuple[Mapping[str, Expression], ...] = ()
            behind = {c: passed[c] for c in group}
            if time == stops[group[0]]:
                events = self._events_of(group[0])[passed[group[0]]].assignments
                behind = {c: passed[c] + 1 for c in group}
            self.add(
                _Beginning(
                    conditions=tuple(group),
                    parent=number,
                    position=position,
                    start=time,
                    events=events,
                    passed=behind,
                )
            )

    def _key(self, condition: int, leaves: float, stops: float, passed: int) -> Any:
        """Return a key that is equal for conditions that leave a segment together."""
        if leaves == stops:
            return (leaves, self._events_of(condition)[passed].key)
        return (leaves, self._polynomials(condition, leaves).tobytes())

    def _stop(self, condition: int, passed: int) -> float:
        """Return the time of the condition's next event, or its last time."""
        events = self._events_of(condition)
        if passed < len(events):
            return events[passed].time
        times = self._conditions[condition].times
        t0 = self._conditions[condition].t0
        return float(times[-1]) if len(times) else t0

    def _rows(self, condition: int, start: float, stop: float) -> slice:
        """Return the rows after `start` up to `stop`, without one that sees values after events."""
        times = self._conditions[condition].times
        excluded = self._conditions[condition].sees_events(stop)
        first = int(np.searchsorted(times, start, side="right"))
        last = int(np.searchsorted(times, stop, side="left" if excluded else "right"))
        return slice(first, max(first, last))

    def _rows_after(self, members: Sequence[int], start: float) -> Iterator[SharedRows]:
        """Yield the rows of conditions at the time of events with the values after them."""
        for c in members:
            row = int(np.searchsorted(self._conditions[c].times, start))
            here = self._conditions[c].times[row : row + 1] == start
            if here.any() and self._conditions[c].sees_events(start):
                yield SharedRows(c, slice(row, row + 1), slice(0, 1))

    def _events_of(self, number: int) -> list[_Event]:
        """Return the events of a condition that act on measured quantities."""
        if number not in self._events:
            condition = self._conditions[number]
            end = condition.times[-1] if len(condition.times) else condition.t0
            by_time: dict[float, list[Mapping[str, Expression]]] = {}
            for time, assignment in condition.events:
                if time < end or (time == end and condition.sees_events(time)):
                    by_time.setdefault(time, []).append(assignment)
            self._events[number] = [
                _Event(t, tuple(a), tuple(self._assignment_key(condition, t, one) for one in a))
                for t, a in by_time.items()
            ]
        return self._events[number]

    def _assignment_key(
        self, condition: Condition, time: float, assignment: Mapping[str, Expression]
    ) -> Any:
        scalars = condition.scalars
        parts = []
        for name in sorted(assignment):
            expression = assignment[name]
            # The vector field's own scalars are the same before the event.
            others = sorted((expression.names & scalars.keys()) - set(self._field.scalars))
            bounds = tuple((n, bound_key(scalars[n], scalars)) for n in others)
            inputs = sorted(expression.names & condition.inputs.keys())
            values = tuple(float(condition.inputs[n](np.array([time]))[0]) for n in inputs)
            parts.append((name, expression.program, bounds, values))
        return tuple(parts)

    # Inputs -----------------------------------------------------------------------------------

    def _same_inputs_until(self, first: int, second: int, start: float) -> float:
        """Return the first time from `start` on at which the inputs of two conditions differ."""
        if not self._inputs or first == second:
            return np.inf
        both = [self._conditions[first].inputs, self._conditions[second].inputs]
        names = [self._field.inputs[k] for k in self._inputs]
        corners = np.unique(np.concatenate([g[name].times for g in both for name in names]))
        for time in [start, *corners[corners > start]]:
            a, b = (self._polynomials(c, float(time)) for c in (first, second))
            if not np.array_equal(a, b):
                return float(time)
        return np.inf

    def _polynomials(self, number: int, time: float) -> Array:
        """Return the polynomials of the inputs that act, from `time` on, shape (inputs, 5)."""
        after = np.array([np.nextafter(time, np.inf)])
        segment = segment_between(self._conditions[number], self._field.inputs, time, after)
        return np.asarray(segment.polynomials[0][self._inputs])


def _numbers(union: Array, times: Array) -> IntArray | slice:
    """Return the positions of `times` times in the union, as a slice if they are consecutive."""
    positions = np.searchsorted(union, times)
    first, last = int(positions[0]), int(positions[-1])
    return slice(first, last + 1) if last + 1 - first == len(positions) else positions
