"""Where a trajectory with located events stands, what happens next, and why it cannot go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.expressions.expressions import Expression
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.events.event_assignments import Values

LOOK_AHEAD = 4.0
"""Factor of the time ahead in which the next event is looked for: over the time that the last event
took to come, or over the time ahead before, where none came."""

SHORTENED = 0.9
"""Part of the time that a solution has covered which is integrated again where the solution ended
before the time ahead did."""

MAX_FAILURES = 15
"""Number of solutions that end early, one after the other without an event, after which a
trajectory is given up."""


class Moment(NamedTuple):
    """An event at its time."""

    assign: Mapping[str, Expression]
    # How its time changes along the directions, shape (m,); None for a known time.
    change: Array | None
    measured_after: bool  # Whether measurements at its time see the values after it


@dataclass
class Walk:
    """Where a trajectory stands."""

    # The time, and the values there; algebraic variables have shape (a,).
    time: float
    now: Values
    algebraic: Array
    choice: EngineChoice
    # Which of the comparisons that trigger events hold from now on, shape (comparisons,).
    flags: BoolArray
    ahead: float  # The time ahead in which changes of these are looked for at once
    triggered: int = 0  # Number of triggered events so far
    # The comparison that has triggered the last one, and when.
    last: tuple[int, float] = (-1, -np.inf)
    failures: int = 0  # Number of solutions since then that have ended earlier than was wanted

    def may_end_earlier(self, end: float, small: float) -> bool:
        """Return whether to look less far ahead, where a solution ends at `end`.

        Not after many such ends without an event, nor where no more than `small` time is left.
        """
        return self.failures < MAX_FAILURES and SHORTENED * (end - self.time) > small

    def end_earlier(self, end: float) -> None:
        """Look less far ahead than to `end`."""
        self.failures += 1
        self.ahead = SHORTENED * (end - self.time)


class StoppedError(Exception):
    """A trajectory cannot go on beyond a time.

    `time`, `reason`, `choice`: the time, the reason in words, and the choice of an engine for the
    next integration.
    """

    def __init__(self, time: float, reason: str, choice: EngineChoice) -> None:
        super().__init__(reason)
        self.time, self.reason, self.choice = time, reason, choice


class EarlyEndError(Exception):
    """A solution ends before the time to which it was wanted.

    `time`: the time at which it ends.
    """

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time
