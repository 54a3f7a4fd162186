"""The position of a trajectory with located events, their effects, and its approach to rest.

The derivatives are explained in :mod:`odefit.simulation.trajectories.located_map`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import ConsistentValues, EngineFailure, Values
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.events.roots import NOISE, ROUNDING
from odefit.simulation.events.triggers import (
    Comparison,
    MovingExpression,
    Trigger,
    clock_of,
    rates_at,
    text_of,
)
from odefit.simulation.propagation.propagation import Propagation
from odefit.simulation.steady.steady_state import LEAST_FACTOR
from odefit.simulation.trajectories.trajectory import Recording

LOOK_AHEAD = 4.0
"""Ratio of the time ahead in which the next event is sought to the time before the last event, or
to the previous time ahead if there was no event."""

SHORTENED = 0.9
"""Part of the time covered by a solution that is integrated again if the solution ended early."""

MAX_FAILURES = 15
"""Number of consecutive solutions that end early without an event after which a trajectory is given
up."""


class Moment(NamedTuple):
    """An event at its time."""

    assign: Mapping[str, Expression]
    # Changes of its time along the directions, shape (m,); None for a known time.
    change: Array | None
    measured_after: bool  # Whether measurements at its time see the values after it


class Due(NamedTuple):
    """An event whose condition has become true and which is about to happen."""

    trigger: Trigger
    number: int  # The number of the trigger
    time: float
    change: Array | None  # Changes of its time along the directions, shape (m,)
    chosen: Values | None  # The new values, if they were computed at that moment


@dataclass
class Walk:
    """The position of a trajectory."""

    time: float
    now: Values
    choice: EngineChoice
    # Which of the comparisons that trigger events hold from now on, shape (comparisons,).
    flags: BoolArray
    ahead: float  # The time ahead in which changes of these are sought at once
    due: list[Due] = field(default_factory=list)  # Pending events
    triggered: int = 0  # Number of triggered events so far
    burst: tuple[float, int] = (-np.inf, 0)  # The time of the last ones, and their number
    # The comparison that triggered the last one, and its time.
    last: tuple[int, float] = (-1, -np.inf)
    # Rates of the states just before, if the right-hand side switches and they are known
    arrival: Array | None = None
    # Draws the first of several simultaneous events; each evaluation draws the same.
    draws: random.Random = field(default_factory=lambda: random.Random(1))
    failures: int = 0  # Number of solutions since then that ended early

    def may_end_earlier(self, end: float, small: float) -> bool:
        """Return whether to look less far ahead if a solution ends at `end`.

        False after many such ends without an event, or if at most the time `small` is left.
        """
        return self.failures < MAX_FAILURES and SHORTENED * (end - self.time) > small

    def end_earlier(self, end: float) -> None:
        """Look less far ahead than to `end`."""
        self.failures += 1
        self.ahead = SHORTENED * (end - self.time)


class StoppedError(Exception):
    """A trajectory cannot continue beyond a time."""

    def __init__(self, time: float, reason: str, choice: EngineChoice) -> None:
        super().__init__(reason)
        self.time, self.reason, self.choice = time, reason, choice


class EarlyEndError(Exception):
    """A solution ends before its requested time."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time


MAX_TRIGGERED = 100_000
"""Largest number of triggered events of one trajectory."""

MAX_AT_ONCE = 1000
"""Largest number of triggered events at one time: with more, events follow each other ever
faster."""

SEARCHED_TRIGGERED = 50
"""Largest number of triggered events if engines have few steps, as in a search, or the number of
output times if that is larger. Fast switching, which no data show, would take most of the time of a
search.
"""


@dataclass
class LocatedEvents:
    """The events of one trajectory: they move its position, and are stored in its recording."""

    field: VectorField
    condition: Condition
    propagation: Propagation  # Moves states and sensitivities
    # The comparisons, and the events that they trigger.
    comparisons: Sequence[Comparison]
    triggers: Sequence[Trigger]
    differences: Sequence[MovingExpression]  # The compared quantities with their derivatives
    # Delay and priority of each trigger's event.
    waiting: Sequence[Sequence[MovingExpression | None]]
    # The unknowns of the problem, and the sizes of those with sensitivities.
    vector: Array
    sizes: Array
    span: float
    choice: EngineChoice
    recording: Recording  # The requested values of the trajectory

    def happen(
        self,
        walk: Walk,
        moments: list[Moment],
        before: BoolArray,
        driver: int = -1,
        change: Array | None = None,
    ) -> None:
        """Apply pending events, and all events that they trigger.

        `before` has the conditions that held. `driver` is the comparison that has just changed, and
        `change` the change of its time along the directions, shape (m,). After each event all
        conditions are evaluated again.
        """
        after = False
        values = self._values(walk) if moments or walk.due or driver >= 0 else None
        for moment in moments:
            self._apply(walk, moment)
            after, change = after or moment.measured_after, moment.change
        crossed, walk.flags = walk.flags, self.flags(walk, values, driver)
        if driver >= 0:
            walk.flags[driver] = crossed[driver]
        while True:
            truths = self.truths(walk.flags)
            walk.due = [d for d in walk.due if d.trigger.event.persistent or truths[d.number]]
            walk.due += [self._due(walk, int(k), change) for k in np.flatnonzero(truths & ~before)]
            ready = [d for d in walk.due if d.time <= walk.time + self.near(walk.time)]
            if not ready:
                break
            one = self._first(walk, ready) if ready[1:] else ready[0]
            walk.due = [d for d in walk.due if d is not one]
            self.count(walk, before)
            before, values, change = truths, self._values(walk), one.change
            event = one.trigger.event
            moment = Moment(event.assign, change, event.measured_after)
            self._apply(walk, moment, one.chosen)
            after |= event.measured_after
            if driver >= 0 and self._values(walk)[driver] != values[driver]:
                driver = -1  # an event has moved it away from zero
            walk.flags = self.flags(walk, values, driver)
        if after:
            self.recording.moment(walk.time, self._consistent(walk.time, walk.now))

    def near(self, time: float) -> float:
        """Return the difference up to which times count as equal."""
        return ROUNDING * max(abs(time), self.span)

    def _due(self, walk: Walk, number: int, change: Array | None) -> Due:
        """Return an event whose condition has just become true, with its time."""
        trigger, time, now = self.triggers[number], walk.time, walk.now
        delay, _ = self.waiting[number]
        chosen = None
        if trigger.event.early:
            chosen, clock = now, None
            if change is not None and change.any():
                chosen, clock = self._moved(walk, change)
            chosen = self.propagation.after_event(
                trigger.event.assign, time, self.vector, self.sizes, chosen, clock
            )
        if delay is None:
            return Due(trigger, number, time, change, chosen)
        waits = delay(time, self.vector, self.sizes, now, self.rates(time, now, walk.arrival))
        if not waits.value >= 0.0:
            raise StoppedError(
                time,
                f"the delay {trigger.event.delay} of an event is {waits.value:g}, and must not be "
                "negative",
                walk.choice,
            )
        later = waits.changes if change is None else change + waits.changes + waits.rate * change
        return Due(trigger, number, time + waits.value, later, chosen)

    def _first(self, walk: Walk, ready: Sequence[Due]) -> Due:
        """Return the event of highest priority, a random one of equal given priorities (SBML)."""
        best, candidates = -np.inf, list(ready)
        for due in ready:
            _, priority = self.waiting[due.number]
            rank = 0.0
            if priority is not None:
                rank = priority.at(walk.time, self.vector, walk.now)
            candidates = [*candidates, due] if rank == best else candidates
            if rank > best:
                best, candidates = rank, [due]
        if any(d.trigger.event.priority is None for d in candidates):
            return candidates[0]
        return walk.draws.choice(candidates)

    def _moved(self, walk: Walk, change: Array) -> tuple[Values, dict[str, Array]]:
        """Return values with the sensitivities for a time that changes, and its clock."""
        time, now = walk.time, walk.now
        moved = now.sensitivities + np.outer(self.rates(time, now, walk.arrival), change)
        return now._replace(sensitivities=moved), clock_of(self.condition.inputs, time, change)

    def _apply(self, walk: Walk, moment: Moment, chosen: Values | None = None) -> None:
        """Apply one event, with the jump of the sensitivities.

        `chosen` has the new values if they were computed before.
        """
        now, time, change = walk.now, walk.time, moment.change
        clock = None
        if change is not None and change.any():
            now, clock = self._moved(walk, change)
        walk.arrival = None
        after = self.propagation.after_event(
            moment.assign, time, self.vector, self.sizes, now, clock, chosen
        )
        if change is not None and change.any():
            after = self._consistent(time, after).values
            jump = np.outer(self.rates(time, after), change)
            after = after._replace(sensitivities=after.sensitivities - jump)
        walk.now = after

    def _consistent(self, time: float, now: Values) -> ConsistentValues:
        solved = self.propagation.consistent(time, self.vector, now)
        if isinstance(solved, EngineFailure):
            raise StoppedError(solved.time, solved.reason, self.choice)
        return solved

    def rates(self, time: float, now: Values, arrival: Array | None = None) -> Array:
        """Return the derivatives of the states in time, shape (n,); `arrival` if it is known."""
        if arrival is not None:
            return arrival
        switching = self.propagation.rates(time, now)
        if switching is not None:
            return switching
        return rates_at(self.field, self.condition.inputs, time, now)

    def _values(self, walk: Walk) -> Array:
        """Return the compared quantities, shape (comparisons,)."""
        return np.array([d.at(walk.time, self.vector, walk.now) for d in self.differences])

    def flags(self, walk: Walk, before: Array | None = None, driver: int = -1) -> BoolArray:
        """Return which comparisons hold from now on.

        A quantity that has just changed sign, above all the `driver`, is zero up to rounding, and
        its rate decides. If an event has moved it there, it counts as zero: `before` has the
        quantities just before.
        """
        values = self._values(walk)
        flags = np.array(
            [bool(c.holds(v)) for c, v in zip(self.comparisons, values, strict=True)], dtype=bool
        )
        if before is None or not len(values):
            return flags
        speed = self.rates(walk.time, walk.now)
        near = NOISE * max(abs(walk.time), self.span)
        for k, moving in enumerate(self.differences):
            _, rate = moving.value_and_rate(walk.time, self.vector, walk.now, speed)
            small = near * abs(rate)
            at_zero = k == driver or abs(values[k]) <= small
            if at_zero and rate:
                moved = abs(values[k] - before[k]) > small
                flags[k] = bool(self.comparisons[k].holds(0.0 if moved else rate))
        return flags

    def truths(self, flags: BoolArray) -> BoolArray:
        """Return the events whose conditions hold for these comparisons."""
        return np.array([bool(t.holds(flags)) for t in self.triggers], dtype=bool)

    def count(self, walk: Walk, before: BoolArray, more: int = 1) -> None:
        """Count `more` triggered events.

        Raises StoppedError if there are too many.
        """
        since, count = walk.burst
        if walk.time - since > NOISE * max(abs(walk.time), self.span):
            since, count = walk.time, 0
        walk.burst = since, count + more
        walk.triggered += more
        searched = max(SEARCHED_TRIGGERED, len(self.recording.times))
        most = searched if self.propagation.limited else MAX_TRIGGERED
        at_once = walk.burst[1] > MAX_AT_ONCE
        if at_once or walk.triggered > most:
            most = MAX_AT_ONCE if at_once else most
            raise StoppedError(
                walk.time,
                f"{text_of(self.triggers, before, walk.flags)} triggers an endless series of "
                f"events, more than {most} or ever faster ones; let it be true from a margin on",
                walk.choice,
            )


WATCHED_SPANS = 16
"""Number of time spans, each ten times the last, over which conditions are watched before the
search for a steady state is given up."""


def come_to_rest(
    walk: Walk,
    first: float,
    watch: Callable[[Walk, float], None],
    nearby: Callable[[Walk], ConsistentValues | None],
    flags: Callable[[Walk], BoolArray],
) -> ConsistentValues:
    """Move a trajectory to the steady state that it approaches, through the events before it.

    `first` is the length of the first time span. `watch` moves the walk to a time, or to the next
    event before it. `nearby` returns the steady state to which the walk certainly leads without
    events, if it is close. `flags` returns which comparisons hold at the walk's values. Raises
    StoppedError if no steady state is approached.
    """
    start, span = walk.time, first
    for _ in range(WATCHED_SPANS):
        while walk.time < start + span:
            watch(walk, start + span)
        rest = nearby(walk)
        if rest is not None:
            before, held = walk.now, walk.flags
            walk.now = rest.values
            if np.array_equal(flags(walk), held):
                return rest
            walk.now = before
        span *= LEAST_FACTOR
    reason = (
        "no steady state is approached while the conditions of events are watched: the solution "
        "may oscillate or grow without bound"
    )
    raise StoppedError(walk.time, reason, walk.choice)


def refuse_time(field: VectorField, condition: Condition, times: Array) -> None:
    """Refuse steady states with delayed events, or if the time or an input acts."""
    conditions = [e.when for e in condition.located if e.when is not None]
    if not conditions or not (condition.steady_start or (len(times) and np.isinf(times[-1]))):
        return
    if any(event.delay is not None for event in condition.located):
        raise InputError(
            f'experiment "{condition.name}": steady states cannot be found beside events with delay'
        )
    expressions = [*field.model.ode.values(), *field.model.algebraic.values()]
    for event in condition.located:
        expressions += [e for e in (event.when, *event.assign.values()) if e is not None]
    if any(e.names & {TIME, *field.inputs} for e in expressions):
        raise InputError(
            f'experiment "{condition.name}": steady states cannot be found beside events with '
            "when, where equations or events contain the time or inputs"
        )
