"""The course of a motion through a segment, from one mode to the next.

A mode is integrated some time ahead, and its possible ends are checked on the way. An end is a
quantity that changes its sign, or a share of a sliding motion that leaves the range from 0 to 1.
That time is located, the sensitivities jump there, and the next mode begins. See
:mod:`odefit.simulation.modes.sliding`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.engine_choice import EngineChoice, Integrated
from odefit.simulation.engines.segments import Segment
from odefit.simulation.events.roots import (
    NOISE,
    ROUNDING,
    change_time,
    cubic_root,
    near_extrema,
)
from odefit.simulation.modes.modes import Guard, Inputs, Modes, Point, jump
from odefit.simulation.modes.surfaces import Mode, with_side

Solve = Callable[[VectorField, Segment, Values, EngineChoice], Integrated]
"""Integrates a field along a segment."""

MONITORED = 64  # points in the time ahead between which ends of modes are sought
REFINEMENTS = 3  # rounds of adding points where a quantity may change its sign twice
LEAST_AHEAD = 1e-3  # smallest time ahead after a switch, relative to the time span
LOOK_AHEAD = 4.0  # ratio of the time ahead to the time before the last switch
SHORTENED = 0.9  # part of the time covered by a failed integration that is tried again
MAX_FAILURES = 15  # consecutive failed integrations, each of which may have missed a switch
MAX_SWITCHES = 1000  # switches within one segment
MAX_STUCK = 20  # consecutive switches without passing time
STEP_AWAY = 1e-12  # length of a step away from a surface, relative to the time span
STEP_FROM_REST = 1e-8  # the same if the surface is left with a rate of zero
NOT_CROSSED = 1e-12  # rounding of a quantity on the other side, relative to its largest
NO_SHARE = 1e-9  # the same for shares


class ModeWalk:
    """One motion along one segment."""

    def __init__(
        self, modes: Modes, solve: Solve, segment: Segment, now: Values, choice: EngineChoice
    ) -> None:
        self._modes, self._solve, self._segment = modes, solve, segment
        self._now, self._choice = now, choice
        self._time, self._end = segment.start, float(segment.times[-1])
        self._span = self._end - segment.start
        self._inputs = Inputs(segment.breakpoints, segment.polynomials)
        self._piece = 0
        self._steps = 0
        self._away = STEP_AWAY
        self._switches = self._stuck = self._failures = 0
        self._last, self._ahead = segment.start, self._span
        self._largest = np.zeros(modes.count)
        self._mode: Mode = ()
        self._before: Mode = ()  # the last mode with progress in time
        self._guards: list[Guard] = []
        self._rounding = np.zeros(0)
        shape = len(segment.times), *now.sensitivities.shape
        self._states, self._sensitivities = np.empty(shape[:2]), np.empty(shape)

    def run(self) -> Integrated:
        """Return the solution at the segment's times, or why it is missing."""
        self._mode, self._now = self._modes.begin(self._point(), self._span)
        while self._time < self._end:
            self._before = self._mode
            failure = self._go_on()
            if failure is not None:
                return failure, self._choice
        self._states[-1], self._sensitivities[-1] = self._now.states, self._now.sensitivities
        solution = SegmentSolution.without_algebraic(self._states, self._sensitivities, self._steps)
        arrival = self._modes.speed(self._before, self._point())
        return replace(solution, arrival=arrival), self._choice

    def _point(self) -> Point:
        return self._modes.point(self._time, self._now, self._inputs, self._piece)

    # One look ahead ---------------------------------------------------------------------------

    def _go_on(self) -> EngineFailure | None:
        """Advance to the next switch, or to the end of the look-ahead; return any failure."""
        small = NOISE * self._span
        end = min(self._end, self._time + max(self._ahead, small))
        if end > self._end - small:
            end = self._end
        ahead = self._looked_ahead(end)
        if isinstance(ahead, EngineFailure):
            if self._time == self._last and ahead.time - self._time <= NOISE * self._span:
                return self._step_away(ahead)
            covered = SHORTENED * (ahead.time - self._time)
            if self._failures == MAX_FAILURES or covered <= ROUNDING * self._span:
                return ahead
            self._failures, self._ahead = self._failures + 1, covered
            return None
        ended = np.flatnonzero((ahead.values < -self._rounding[:, None]).any(axis=0))
        last = int(ended[0]) if len(ended) else len(ahead.times)
        self._move(ahead, last - 1)
        if len(ended):
            return self._end_mode(ahead, last)
        self._ahead *= LOOK_AHEAD
        if self._time == self._end:
            # A quantity that has just reached the other side cannot be detected as crossing later.
            for (k, _, _), value in zip(self._guards, ahead.values[:, -1], strict=True):
                if value < 0.0 and (side := self._mode[k]):
                    if self._segment.event_within:
                        self._end_on(k)
                        continue
                    self._switch(k, with_side(self._mode, k, -side), located=True)
        return None

    def _step_away(self, failure: EngineFailure) -> EngineFailure | None:
        """Make a step by Heun's method away from a surface with unbounded derivatives.

        If a motion leaves it with a rate of zero, no other method leads away from there.
        """
        stops = np.concatenate([self._segment.times, self._segment.breakpoints])
        ahead = float((stops[stops > self._time] - self._time).min())
        step = min(self._away * self._span, 0.5 * ahead)
        begun, speeds = self._now, []
        for share in (1.0, 0.5):
            speeds.append(self._modes.speed(self._mode, self._point()))
            states = begun.states + share * step * np.sum(speeds, axis=0)
            self._now = begun._replace(states=states)
            self._time = self._last + step
        return None if np.isfinite(self._now.states).all() else failure

    def _looked_ahead(self, end: float) -> _Ahead | EngineFailure:
        """Integrate the mode to a time, and check the possible ends on the way."""
        segment, start, refinements = self._segment, self._time, REFINEMENTS
        scalars = self._now.scalars
        outputs = segment.times[(segment.times > start) & (segment.times <= end)]
        corners = segment.breakpoints[(segment.breakpoints > start) & (segment.breakpoints < end)]
        early = np.geomspace(1e-6, 1.0 / MONITORED, 8, endpoint=False)
        fractions = np.concatenate([early, np.linspace(0.0, 1.0, MONITORED + 1)[1:-1]])
        inside = start + fractions * (end - start)
        grid = np.unique(np.concatenate([outputs, corners, inside[inside > start], [end]]))
        self._guards = self._modes.guards(self._mode)
        while True:
            solution = self._integrated(grid)
            if isinstance(solution, EngineFailure):
                return solution
            # A corner of the inputs is checked twice: with the inputs before and after it.
            times = np.concatenate([[start], grid, corners])
            pieces = np.searchsorted(segment.breakpoints, times, side="left")
            pieces[0] = self._piece
            pieces[len(grid) + 1 :] += 1
            places = np.concatenate([[-1], np.arange(len(grid)), np.searchsorted(grid, corners)])
            order = np.lexsort((pieces, times))
            times, pieces, places = times[order], pieces[order], places[order]
            states = np.concatenate([solution.states, self._now.states[None]])[places]
            along = self._modes.along(
                self._mode, times, pieces, states, scalars, self._inputs, self._guards
            )
            more = [near_extrema(times, v, r) for v, r in zip(*along, strict=True)]
            added = np.setdiff1d(np.concatenate([np.zeros(0), *more]), grid)
            if not len(added) or not refinements:
                self._note_sizes(along[0])
                return _Ahead(solution, times, pieces, places, *along)
            grid, refinements = np.union1d(grid, added), refinements - 1

    def _integrated(self, times: Array) -> SegmentSolution | EngineFailure:
        """Integrate the mode from the present point through some times."""
        made, first = self._modes.field(self._mode), self._piece
        corners = self._segment.breakpoints
        inside = corners[(corners > self._time) & (corners < times[-1])]
        polynomials = self._segment.polynomials[first : first + len(inside) + 1]
        if made.derived:
            left, _, one, two, three = np.moveaxis(polynomials[:, made.derived], -1, 0)
            rates = np.stack([left, one, 2.0 * two, 3.0 * three, 0.0 * left], axis=-1)
            polynomials = np.concatenate([polynomials, rates], axis=1)
        segment = Segment(self._time, times, inside, polynomials)
        solution, self._choice = self._solve(made.field, segment, self._now, self._choice)
        self._steps += solution.steps
        return solution

    def _note_sizes(self, values: Array) -> None:
        """Record the largest value of each guard, relative to which rounding is judged."""
        self._rounding = np.full(len(self._guards), NO_SHARE)
        for row, (k, _, _) in enumerate(self._guards):
            if self._mode[k]:
                self._largest[k] = max(self._largest[k], np.abs(values[row]).max(initial=0.0))
                self._rounding[row] = NOT_CROSSED * self._largest[k]

    def _move(self, ahead: _Ahead, row: int) -> None:
        """Move to a row, and store the requested values on the way."""
        if row < 0 or (place := int(ahead.places[row])) < 0:
            return
        times, solved = self._segment.times, ahead.solved
        at = np.flatnonzero((times > self._time) & (times <= ahead.times[row]))
        known = np.searchsorted(ahead.times[: row + 1], times[at])
        places = ahead.places[known]
        self._states[at], self._sensitivities[at] = (
            solved.states[places],
            solved.sensitivities[places],
        )
        self._time, self._now = float(ahead.times[row]), solved.at(place, self._now)
        self._piece = int(np.searchsorted(self._segment.breakpoints, self._time, side="right"))

    # The end of a mode --------------------------------------------------------------------------

    def _end_mode(self, ahead: _Ahead, row: int) -> EngineFailure | None:
        """Find the guard that ends the mode before a row of the look-ahead, and apply it."""
        guards = np.flatnonzero(ahead.values[:, row] < -self._rounding)
        ends = slice(row - 1, row + 1)
        located = row > 0 and ahead.times[row] > self._time
        driver, began = int(guards[0]), self._time
        if located:
            times, values, rates = ahead.times[ends], ahead.values[:, ends], ahead.rates[:, ends]
            roots = [cubic_root(_holds, times, values[g], rates[g]) for g in guards]
            driver = int(guards[int(np.argmin(roots))])
            failure = self._to_end(self._guards[driver], float(times[1]), min(roots))
            if failure is not None:
                return failure
            if self._end - self._time <= self._segment.event_within:
                self._end_on(self._guards[driver].number)
                return None
        self._failures = 0
        self._switches += 1
        passed = self._time - self._last
        self._stuck = 0 if passed > ROUNDING * max(abs(began), self._span) else self._stuck + 1
        self._ahead = max(LOOK_AHEAD * passed, LEAST_AHEAD * self._span)
        self._last = self._time
        number, sign, _ = self._guards[driver]
        if self._switches > MAX_SWITCHES or self._stuck > MAX_STUCK:
            quantity = self._modes.surfaces.quantities[number]
            reason = f"the right-hand side switches without end where {quantity.text} = 0, "
            reason += f"more than {MAX_SWITCHES} times or ever faster; let the condition change "
            reason += "from a margin on"
            return EngineFailure(self._time, reason, steps=self._steps)
        other = with_side(self._mode, number, -(self._mode[number] or sign))
        self._away = STEP_AWAY if self._mode[number] else STEP_FROM_REST
        if located and not self._mode[number]:
            self._mode = other  # its share has reached an end, where both fields are the same
        else:
            self._switch(number, other, located)
        return None

    def _end_on(self, number: int) -> None:
        """End at an event on a surface, which the motion has reached and not yet left."""
        states = self._modes.onto(number, self._point()).states
        self._now, self._time = self._now._replace(states=states), self._end

    def _to_end(self, guard: Guard, high: float, guess: float) -> EngineFailure | None:
        """Move to where a guard passes zero."""
        stopped: list[EngineFailure] = []

        def at(time: float) -> tuple[float, float]:
            outcome = self._integrated(np.array([time]))
            if isinstance(outcome, EngineFailure):
                stopped.append(outcome)
                return 0.0, 1.0
            value, rate = self._modes.along(
                self._mode,
                np.array([time]),
                np.array([self._piece]),
                outcome.states,
                self._now.scalars,
                self._inputs,
                [guard],
            )
            return float(value[0, 0]), float(rate[0, 0])

        small = ROUNDING * max(abs(high), self._span)
        time = change_time(
            at, lambda value: value >= 0.0, self._time, high, guess, small, NOISE * self._span
        )
        if not stopped and time - self._time > small:
            outcome = self._integrated(np.array([time]))
            if isinstance(outcome, EngineFailure):
                stopped.append(outcome)
            else:
                self._time, self._now = time, outcome.at(-1, self._now)
        return stopped[0] if stopped else None

    def _switch(self, number: int, other: Mode, located: bool) -> None:
        """Begin the next mode at a surface, on its `other` side or along it.

        A located time depends on the unknowns, and the sensitivities jump. Otherwise an input has
        jumped.
        """
        modes, old = self._modes, self._mode
        if located:
            # The engines would treat a residue of rounding as a state with its own size.
            self._now = self._now._replace(states=modes.onto(number, self._point()).states)
        point, now = self._point(), self._now
        crossings = [modes.crossing(k, point) for k in range(modes.count)]
        slides = [k for k, side in enumerate(old) if side == 0]
        on = [*slides, number] if located else slides
        mode = modes.settled(point, on, other, crossings) if on else other
        self._mode = other if mode == old else mode
        if located and now.sensitivities.size:
            before, after = modes.speed(old, point), modes.speed(self._mode, point)
            change = jump(crossings[number], now, before, after)
            self._now = now._replace(sensitivities=now.sensitivities + change)
        for k, side in enumerate(self._mode):
            if side == 0 and old[k]:
                self._now = modes.onto(k, self._point())


class _Ahead(NamedTuple):
    """A checked part of a mode: the rows, and their places in the solution."""

    solved: SegmentSolution
    times: Array
    pieces: IntArray
    places: IntArray  # -1 is the present point
    # The guards, negative where the mode has ended, and their rates, shape (guards, rows).
    values: Array
    rates: Array


def _holds(value: float) -> bool:
    return value >= 0.0
