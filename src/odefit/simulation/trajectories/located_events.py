"""What happens at an event that had to be located, and which further events it triggers.

The derivatives follow the module's text of :mod:`odefit.simulation.trajectories.located_map`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import EngineFailure
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.events.event_assignments import Values
from odefit.simulation.events.triggers import Comparison, Trigger, text_of
from odefit.simulation.propagation.moving import MovingExpression, clock_of, rates_of
from odefit.simulation.propagation.propagation import Beginning, Propagation
from odefit.simulation.propagation.walk import Moment, StoppedError, Walk
from odefit.simulation.trajectories.recording import Recording

MAX_TRIGGERED = 1000
"""Largest number of triggered events of one trajectory: more follow each other ever faster."""

NOISE = 1e-9
"""Differences of times, relative to the time or the time span, that count as none where times are
roots, which are found among the errors of an integration."""


@dataclass
class LocatedEvents:
    """The events of one trajectory: they move its walk, and are kept by its recording."""

    field: VectorField
    condition: Condition
    propagation: Propagation  # How states and sensitivities go on
    # What is compared, and which events the comparisons trigger.
    comparisons: Sequence[Comparison]
    triggers: Sequence[Trigger]
    differences: Sequence[MovingExpression]  # The compared quantities with their derivatives
    # The unknowns of the problem, and the sizes of those with sensitivities.
    vector: Array
    sizes: Array
    span: float
    choice: EngineChoice
    recording: Recording  # What is wanted of the trajectory

    def happen(
        self, walk: Walk, moments: list[Moment], before: BoolArray, driver: int = -1
    ) -> None:
        """Let events happen, and those that they trigger; conditions held `before` or not.

        `driver` is the comparison whose change has triggered them.
        """
        after, waiting = False, moments
        while True:
            values = self._values(walk) if waiting else None
            for moment in waiting:
                self._apply(walk, moment)
                after |= moment.measured_after
            walk.flags = self.flags(walk, values, driver)
            truths = self.truths(walk.flags)
            change = waiting[-1].change if waiting else None
            waiting = [
                Moment(t.event.assign, change, t.event.measured_after)
                for t, now, was in zip(self.triggers, truths, before, strict=True)
                if now and not was
            ]
            if not waiting:
                break
            self.count(walk, before)
            before = truths
        if after:
            solved = self._consistent(walk.time, walk.now, walk.algebraic)
            self.recording.moment(walk.time, Beginning(walk.now, *solved))

    def _apply(self, walk: Walk, moment: Moment) -> None:
        """Let one event happen, with the jump of the sensitivities."""
        now, time = walk.now, walk.time
        if moment.change is None or not moment.change.any():
            walk.now = self.propagation.after_event(
                moment.assign, time, self.vector, self.sizes, now
            )
            return
        change = moment.change
        speed = self.rates(time, now, walk.algebraic)
        moved = now._replace(sensitivities=now.sensitivities + np.outer(speed, change))
        clock = clock_of(self.condition.inputs, time, change)
        after = self.propagation.after_event(
            moment.assign, time, self.vector, self.sizes, moved, clock
        )
        algebraic = self._consistent(time, after, walk.algebraic)[0]
        speed = self.rates(time, after, algebraic)
        walk.now = after._replace(sensitivities=after.sensitivities - np.outer(speed, change))
        walk.algebraic = algebraic

    def _consistent(self, time: float, now: Values, guess: Array) -> tuple[Array, Array]:
        solved = self.propagation.consistent(time, self.vector, now, guess)
        if isinstance(solved, EngineFailure):
            raise StoppedError(solved.time, solved.reason, self.choice)
        return solved

    def rates(self, time: float, now: Values, algebraic: Array) -> Array:
        """Return the derivatives of the states in time, shape (n,)."""
        inputs, at = self.condition.inputs, np.array([time])
        states = now.states[None]
        found = rates_of(self.field, inputs, at, states, now.scalars, algebraic[None])
        return np.asarray(found[0])

    def _values(self, walk: Walk) -> Array:
        """Return the compared quantities, shape (comparisons,)."""
        at, states = np.array([walk.time]), walk.now.states[None]
        return np.array(
            [d.along(at, self.vector, states, walk.now.scalars)[0] for d in self.differences]
        )

    def flags(self, walk: Walk, before: Array | None = None, driver: int = -1) -> BoolArray:
        """Return which comparisons hold from now on.

        One that has just changed, the `driver` above all, stands at zero but for rounding; then its
        rate decides, unless an event has moved it there: `before` has the quantities just before.
        """
        values = self._values(walk)
        flags = np.array(
            [bool(c.holds(v)) for c, v in zip(self.comparisons, values, strict=True)], dtype=bool
        )
        if before is None or not len(values):
            return flags
        speed = self.rates(walk.time, walk.now, walk.algebraic)
        near = NOISE * max(abs(walk.time), self.span)
        for k, moving in enumerate(self.differences):
            rate = moving(walk.time, self.vector, self.sizes, walk.now, speed).rate
            small = near * abs(rate)
            at_zero = k == driver or abs(values[k]) <= small
            if at_zero and abs(values[k] - before[k]) <= small and rate:
                flags[k] = bool(self.comparisons[k].holds(rate))
        return flags

    def truths(self, flags: BoolArray) -> BoolArray:
        """Return which events' conditions hold where these comparisons hold."""
        return np.array([bool(t.holds(flags)) for t in self.triggers], dtype=bool)

    def count(self, walk: Walk, before: BoolArray, more: int = 1) -> None:
        """Count `more` triggered events.

        Raises StoppedError: there are too many.
        """
        walk.triggered += more
        if walk.triggered > MAX_TRIGGERED:
            raise StoppedError(
                walk.time,
                f"{text_of(self.triggers, before, walk.flags)} triggers events without end, "
                f"more than {MAX_TRIGGERED} or ever faster ones; let it be true from a margin on",
                walk.choice,
            )
