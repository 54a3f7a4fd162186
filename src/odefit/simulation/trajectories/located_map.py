"""Trajectories of a condition with events whose times depend on the unknowns or on the states.

The time tau of an event is located separately for each vector of unknowns. If it is an expression,
its derivative tau' with respect to an unknown follows from that. If a condition triggers the event,
tau is the root of a comparison g(t, x, p), and tau' = -(dg/dtheta)/(dg/dt) along the trajectory. At
the event the states jump from x- to x+ = h(tau, x-, p); sensitivities become (Rozenvasser 1967)

    S+ = h_x (S- + f- tau') + h_t tau' + h_p P- - f+ tau'.

If two events coincide, or an event and a measurement, derivatives are one-sided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.problem.binding import Binding, Computed, dynamic_unknowns
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import ConsistentValues, EngineFailure, SegmentSolution
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.engines import Engines
from odefit.simulation.engines.failure import Failure
from odefit.simulation.engines.segments import segment_between
from odefit.simulation.events.roots import NOISE, ROUNDING, change_time, cubic_root, near_extrema
from odefit.simulation.events.triggers import (
    TANGENT,
    MovingExpression,
    rates_of,
    text_of,
    triggers_of,
)
from odefit.simulation.propagation.propagation import Propagation
from odefit.simulation.trajectories.located_events import (
    LOOK_AHEAD,
    MAX_AT_ONCE,
    EarlyEndError,
    LocatedEvents,
    Moment,
    StoppedError,
    Walk,
    come_to_rest,
    refuse_time,
)
from odefit.simulation.trajectories.trajectory import (
    Recording,
    Trajectory,
    passes_events,
    switched_scalars,
    walk_through_events,
)

MONITORED = 64
"""Number of points in the time ahead between which changes of conditions are sought."""

FRACTIONS = np.concatenate(
    [
        np.geomspace(1e-6, 1.0 / MONITORED, 8, endpoint=False),
        np.linspace(0.0, 1.0, MONITORED + 1)[1:],
    ]
)
"""These points, as fractions of the time ahead; close to its beginning there are more."""

REFINEMENTS = 6  # rounds of adding points where a condition may have changed twice


class LocatedMap:
    """The forward map of one condition with located events."""

    def __init__(
        self,
        field: VectorField,
        condition: Condition,
        engines: Engines,
        sensitivities: bool = True,
        minimal_sizes: Array | None = None,
        known: dict[Any, Computed] | None = None,
    ) -> None:
        self.field, self.condition = field, condition
        active = sorted(dynamic_unknowns(condition, field.scalars)) if sensitivities else []
        self.unknowns = tuple(active)
        self._indices = np.array(active, dtype=np.intp)
        self.propagation = Propagation(
            field, condition, engines, active, minimal_sizes, known=known
        )
        self._switched = switched_scalars(field, condition)
        self._timed = [e for e in condition.located if e.time is not None]
        at = [e.time for e in self._timed if e.time is not None]
        self._times = Binding(at, condition.scalars, known)
        self._comparisons, self._triggers = triggers_of(condition)
        self._differences = [
            MovingExpression(c.difference, field, condition, self._indices)
            for c in self._comparisons
        ]
        self._walk = None if self._triggers else walk_through_events(self.propagation)
        self.passes_events = passes_events(self._walk)
        about = field, condition, self._indices
        self._waiting = [
            [None if e is None else MovingExpression(e, *about) for e in t.event.waiting]
            for t in self._triggers
        ]

    def __call__(
        self, vector: Array, times: Array | None = None, choice: EngineChoice = UNDECIDED
    ) -> Trajectory | Failure:
        """Return the trajectory at `times` (the data times), or a failure.

        Raises InputError for a steady state if conditions are watched and the time acts.
        """
        at = self.condition.times if times is None else times
        refuse_time(self.field, self.condition, at)
        with np.errstate(all="ignore"):
            try:
                return _LocatedCourse(self, vector, at, choice).trajectory()
            except StoppedError as stopped:
                time, name = float(stopped.time), self.condition.name
                return Failure(name, time, stopped.reason, stopped.choice)


class _LocatedCourse:
    """One evaluation of a :class:`LocatedMap`."""

    def __init__(
        self, whole: LocatedMap, vector: Array, times: Array, choice: EngineChoice
    ) -> None:
        self.whole, self.vector, self.times, self.choice = whole, vector, times, choice
        self.propagation = whole.propagation
        self.sizes = self.propagation.sizes(vector)
        self.recording = Recording(times, whole.field, whole.unknowns, whole._switched)
        t0 = whole.condition.t0
        self.end = float(times[-1]) if len(times) else t0
        finite = times[np.isfinite(times)]
        self.span = float(finite[-1] - t0) if len(finite) and finite[-1] > t0 else 1.0
        self.events = LocatedEvents(
            field=whole.field,
            condition=whole.condition,
            propagation=self.propagation,
            comparisons=whole._comparisons,
            triggers=whole._triggers,
            differences=whole._differences,
            waiting=whole._waiting,
            vector=vector,
            sizes=self.sizes,
            span=self.span,
            choice=choice,
            recording=self.recording,
        )

    # The trajectory ---------------------------------------------------------------------------

    def trajectory(self) -> Trajectory:
        """Return the trajectory."""
        whole, t0 = self.whole, self.whole.condition.t0
        watched = bool(whole._triggers)
        begun = self.propagation.begin(self.vector, self.sizes, at_rest=False if watched else None)
        if isinstance(begun, EngineFailure):
            raise StoppedError(begun.time, begun.reason, self.choice)
        flags = np.zeros(len(whole._comparisons), dtype=bool)
        walk = Walk(time=t0, now=begun.values, choice=self.choice, flags=flags, ahead=self.end - t0)
        schedule = self._schedule()
        walk.flags = self.events.flags(walk)
        before = self.events.truths(walk.flags)
        before &= np.array([t.event.initially for t in whole._triggers], dtype=bool)
        if watched and whole.condition.steady_start:
            # The state of the triggers carries over into the experiment.
            begun, before = self._before_experiment(walk, before)
        self.recording.moment(t0, begun)
        if whole._walk is not None:
            walked = whole._walk.located(
                *(self.vector, self.sizes, begun.values, self.times, schedule, self.choice)
            )
            if walked is not None:
                self.recording.rows(walked.rows, walked.states, walked.sensitivities)
                if walked.last is None:
                    return self.recording.trajectory(whole.unknowns, self.sizes, self.choice)
                walk.time, walk.now = (
                    max([t for t in schedule if t <= self.end], default=t0),
                    walked.last,
                )
                schedule.clear()
        self.events.happen(walk, schedule.pop(t0, []), before)
        while walk.time < self.end:
            stop = min([t for t in schedule if t <= self.end], default=self.end)
            if walk.due:
                first = min(d.time for d in walk.due)
                stop = min(stop, self._stop_at(first, schedule))
            finite = self.times[np.isfinite(self.times) & (self.times > walk.time)]
            if watched and np.isinf(stop) and not len(finite):
                self.recording.moment(stop, self._rest(walk))
                break
            if watched and np.isinf(stop):
                stop = float(finite[-1])
            (self._watch if watched else self._proceed)(walk, stop)
            if walk.time < stop:
                continue
            moments = schedule.pop(walk.time, [])
            seen = [m.measured_after for m in moments]
            seen += [d.trigger.event.measured_after for d in walk.due if d.time <= stop]
            if walk.time < self.end or any(seen):
                self.events.happen(walk, moments, self.events.truths(walk.flags))
        return self.recording.trajectory(whole.unknowns, self.sizes, walk.choice)

    def _before_experiment(
        self, walk: Walk, before: BoolArray
    ) -> tuple[ConsistentValues, BoolArray]:
        """Move from the initial values to the steady state, where the experiment begins."""
        t0, self.times = walk.time, np.zeros(0)
        self.events.happen(walk, [], before)
        begun = self._rest(walk)
        self.times, walk.time, walk.last = self.recording.times, t0, (-1, -np.inf)
        return begun, self.events.truths(walk.flags)

    def _rest(self, walk: Walk) -> ConsistentValues:
        def nearby(at: Walk) -> ConsistentValues | None:
            return self.propagation.nearby_rest(at.time, at.now)

        return come_to_rest(walk, self.span, self._watch, nearby, self.events.flags)

    def _schedule(self) -> dict[float, list[Moment]]:
        """Return the events at known times and at expressions, by time."""
        condition = self.whole.condition
        schedule: dict[float, list[Moment]] = {}
        for time, assign in condition.events:
            after = time in condition.measured_after
            schedule.setdefault(time, []).append(Moment(assign, None, after))
        self._known_times = sorted({condition.t0, *schedule, *self.times.tolist()})
        located, changes = self.whole._times.at(self.vector, self.whole._indices)
        changes = changes * self.sizes
        for event, time, change in zip(self.whole._timed, located.tolist(), changes, strict=True):
            if condition.t0 <= time <= self.end and np.isfinite(time):
                at = self._stop_at(time, schedule)
                if at not in schedule:
                    insort(self._known_times, at)
                moment = Moment(event.assign, change, event.measured_after)
                schedule.setdefault(at, []).append(moment)
        return schedule

    def _stop_at(self, time: float, schedule: Mapping[float, Any]) -> float:
        """Return the time, or a scheduled one from which only rounding separates it."""
        near, known = self.events.near(time), self._known_times
        close = known[bisect_left(known, time - near) : bisect_right(known, time + near)]
        first = [t for t in close if t == self.whole.condition.t0 or t in schedule]
        return float([*first, *close, time][0])

    # One span ---------------------------------------------------------------------------------

    def _proceed(self, walk: Walk, stop: float) -> None:
        """Integrate to the next stop, and store the requested values on the way."""
        outputs = self.times[(self.times > walk.time) & (self.times <= stop)]
        solution = self._integrated(walk, np.unique(np.append(outputs, stop)))
        self.recording.times_of(outputs, walk.now, solution, np.arange(len(outputs)))
        self._move(walk, stop, solution, -1)

    def _integrated(
        self, walk: Walk, times: Array, watched: bool = False, event_within: float = 0.0
    ) -> SegmentSolution:
        """Integrate through times; `watched` if an event may happen before the solution ends."""
        about = self.whole.condition, self.whole.field.inputs
        segment = segment_between(*about, walk.time, times, event_within)
        solution, choice = self.propagation.integrate(segment, walk.now, walk.choice)
        if isinstance(solution, EngineFailure):
            if watched and walk.may_end_earlier(solution.time, ROUNDING * self.span):
                raise EarlyEndError(solution.time)
            walk.choice = choice
            solution = self.propagation.explained(solution, self.vector, walk.now, segment)
            raise StoppedError(solution.time, solution.reason, walk.choice)
        walk.choice = choice
        return solution

    def _move(self, walk: Walk, time: float, solution: SegmentSolution, place: int) -> None:
        walk.time, walk.now = time, solution.at(place, walk.now)
        walk.arrival = solution.arrival if place == -1 else None

    # Watching conditions ----------------------------------------------------------------------

    def _watch(self, walk: Walk, stop: float) -> None:
        """Integrate to the next stop, or to the next triggered event, which then happens.

        A solution may end soon after an undetected event, for example if the event resets a state
        that would grow without bound: then shorter times are integrated.
        """
        try:
            self._look_ahead(walk, stop)
        except EarlyEndError as stopped:
            walk.end_earlier(stopped.time)

    def _look_ahead(self, walk: Walk, stop: float) -> None:
        whole, ahead = self.whole, max(walk.ahead, NOISE * self.span)
        end = min(stop, walk.time + ahead)
        if end > stop - NOISE * (stop - walk.time):
            end = stop
        start, outputs = walk.time, self.times[(self.times > walk.time) & (self.times <= end)]
        inside = start + FRACTIONS * (end - start) if end - start > NOISE * self.span else outputs
        grid = np.unique(np.concatenate([outputs, inside[inside < end], [end]]))
        for refinement in range(REFINEMENTS + 1):
            solution = self._integrated(walk, grid, True)
            times, values, rates = self._differences(walk, grid, solution)
            more = [near_extrema(times, v, r) for v, r in zip(values, rates, strict=True)]
            if refinement == REFINEMENTS or not any(map(len, more)):
                break
            added = np.setdiff1d(np.concatenate(more), grid)
            if not len(added):
                break
            grid = np.union1d(grid, added)
        holds = np.array([c.holds(v) for c, v in zip(whole._comparisons, values, strict=True)])
        holds[:, 0] = walk.flags  # at the start, rounding would decide
        truths = np.array([np.broadcast_to(t.holds(holds), times.shape) for t in whole._triggers])
        fired = np.flatnonzero((truths[:, 1:] & ~truths[:, :-1]).any(axis=0))
        last = int(fired[0]) if len(fired) else len(grid)  # grid points before the first event
        places = np.searchsorted(grid, outputs)
        places = places[places < last]
        self.recording.times_of(grid[places], walk.now, solution, places)
        if last:
            self._move(walk, float(grid[last - 1]), solution, last - 1)
        walk.flags = holds[:, last]
        walk.due = [
            d for d in walk.due if d.trigger.event.persistent or truths[d.number, : last + 1].all()
        ]
        if len(fired):
            ends = slice(last, last + 2)
            self._fire(walk, times[ends], values[:, ends], rates[:, ends], holds[:, ends])
            further = 1.0 if walk.failures else LOOK_AHEAD
            walk.ahead = further * max(walk.time - start, NOISE * self.span)
            walk.failures = 0
        else:
            walk.ahead = LOOK_AHEAD * ahead

    def _differences(
        self, walk: Walk, grid: Array, solution: SegmentSolution
    ) -> tuple[Array, Array, Array]:
        """Return times from the present one, and compared quantities with their rates."""
        times = np.append(walk.time, grid)
        states = np.concatenate([walk.now.states[None], solution.states])
        algebraic = np.concatenate([walk.now.algebraic[None], solution.algebraic])
        field, inputs, scalars = self.whole.field, self.whole.condition.inputs, walk.now.scalars
        speeds = rates_of(field, inputs, times, states, scalars, algebraic)
        h = TANGENT * np.maximum(np.abs(times), self.span)
        where = self.vector, states, scalars
        pairs = [d.with_rates(times, *where, speeds, h) for d in self.whole._differences]
        return times, np.array([v for v, _ in pairs]), np.array([r for _, r in pairs])

    def _fire(
        self, walk: Walk, times: Array, values: Array, rates: Array, holds: BoolArray
    ) -> None:
        """Locate the first change between two times that triggers an event, and apply it."""
        whole, before = self.whole, self.events.truths(walk.flags)
        changed = np.flatnonzero(holds[:, 0] != holds[:, 1])
        holds_at = [c.holds for c in whole._comparisons]
        roots = [cubic_root(holds_at[k], times, values[k], rates[k]) for k in changed]
        flags = walk.flags.copy()
        place, driver = 0, int(changed[0])
        for place in np.argsort(roots, kind="stable").tolist():
            driver = int(changed[place])
            flags[driver] = not flags[driver]
            if (self.events.truths(flags) & ~before).any():
                break
        self._to_root(walk, driver, float(times[1]), roots[place])
        walk.flags = flags
        soon = self.events.near(walk.time)
        stuck = walk.last[0] == driver and walk.time - walk.last[1] <= soon
        self.events.count(walk, before, MAX_AT_ONCE if stuck else 1)
        walk.last = driver, walk.time
        moving = whole._differences[driver]
        speed = self.events.rates(walk.time, walk.now, walk.arrival)
        difference = moving(walk.time, self.vector, self.sizes, walk.now, speed)
        if difference.rate == 0.0 and difference.changes.any():
            raise StoppedError(
                walk.time,
                f"{text_of(whole._triggers, before, flags)} becomes true where nothing moves, so "
                "that the time of its event has no derivative",
                walk.choice,
            )
        change = -difference.changes / difference.rate if len(self.sizes) else np.zeros(0)
        self.events.happen(walk, [], before, driver, change)

    def _to_root(self, walk: Walk, driver: int, high: float, guess: float) -> None:
        """Move to the point where a comparison changes."""
        comparison, moving = self.whole._comparisons[driver], self.whole._differences[driver]
        start, before = walk.time, bool(walk.flags[driver])
        small = self.events.near(high)
        within = max(2.0 * small, NOISE * self.span)
        last: tuple[float, SegmentSolution] | None = None  # the last integrated field, and its end

        def at(time: float) -> tuple[float, float]:
            nonlocal last
            solution = self._integrated(walk, np.array([time]), event_within=within)
            last = time, solution
            values = solution.at(-1, walk.now)
            speed = self.events.rates(time, values, solution.arrival)
            return moving.value_and_rate(time, self.vector, values, speed)

        time = change_time(
            at,
            lambda value: bool(comparison.holds(value)) == before,
            start,
            high,
            guess,
            small,
            NOISE * self.span,
        )
        same = self.times[np.abs(self.times - time) <= small]
        if len(same) and start < same[0] <= high:
            time = float(same[0])
        if time - start <= small:
            return  # an event at the very beginning of the span
        at_data = self.times[(self.times > start) & (self.times <= time)]
        if len(at_data):
            along = np.unique(np.append(at_data, time))
            solution = self._integrated(walk, along, event_within=within)
            self.recording.times_of(at_data, walk.now, solution, np.arange(len(at_data)))
        elif last is not None and last[0] == time:
            solution = last[1]
        else:
            solution = self._integrated(walk, np.array([time]), event_within=within)
        self._move(walk, time, solution, -1)
