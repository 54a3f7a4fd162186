"""Rough trajectories of many vectors of unknowns at once, through triggered events.

Locating a single event takes about a millisecond with any engine. A search that compares thousands
of points integrates all of them side by side in NumPy arrays instead. They share the steps of the
classical Runge-Kutta method, and events are where a straight line through the compared quantity is
zero within a step. That is accurate enough to compare points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.binding import Bound, bound_value
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.registry import import_problem
from odefit.simulation.events.triggers import triggers_of
from odefit.simulation.lane_edges import INSIDE, Edges, edges_of
from odefit.simulation.trajectories.located_events import SEARCHED_TRIGGERED
from odefit.simulation.trajectories.trajectory import Trajectory, switched_scalars

if TYPE_CHECKING:
    from odefit.simulation.lane_steps import Steps

STEPS = 128  # smallest number of steps over the time span of a condition

MAX_AT_ONCE = 8
"""Largest number of times within a step at which events of a lane happen: more count as
chattering."""


class Lanes:
    """The rough trajectories of one condition, of many vectors of unknowns at once."""

    def __init__(self, field: VectorField, condition: Condition) -> None:
        self.field, self.condition = field, condition
        self.comparisons, self.triggers = triggers_of(condition)
        self.timed = [e for e in condition.located if e.time is not None]
        self.events = [*(t.event for t in self.triggers), *self.timed]
        self.switched = tuple(switched_scalars(field, condition))
        expressions = [c.difference for c in self.comparisons]
        expressions += [e.delay for e in self.events if e.delay is not None]
        expressions += [e for assign in condition.assignments for e in assign.values()]
        names = {n for e in expressions for n in e.names}
        self.scalars = [n for n in condition.scalars if n in field.scalars or n in names]
        # The comparisons that depend on assigned values, by event.
        self.touched = [
            np.array([bool(c.difference.names & e.assign.keys()) for c in self.comparisons])
            for e in self.events
        ]
        self.steps = self._compiled() if not import_problem("llvmlite") else None

    def _compiled(self) -> Steps | None:
        from odefit.simulation.lane_steps import steps_of

        field, inputs = self.field, self.condition.inputs
        differences = [c.difference for c in self.comparisons]
        signs = [c.sign for c in self.comparisons]
        return steps_of(field, self.scalars, field.folded, inputs, differences, signs)

    @staticmethod
    def can_follow(field: VectorField, condition: Condition) -> bool:
        """Return whether lanes can follow the trajectories of a condition."""
        rest = condition.steady_start or bool(np.isinf(condition.times).any())
        special = any(
            e.priority is not None or e.early or not e.persistent for e in condition.located
        )
        return not (field.algebraic or rest or special or condition.repeated is not None)

    def __call__(self, vectors: Array, end: float) -> list[Trajectory | None]:
        """Return the trajectories at the data times up to `end`, of vectors of shape (lanes, n).

        None replaces a trajectory that is not finite, or whose events follow each other too fast.
        """
        with np.errstate(all="ignore"):
            return _Course(self, vectors, end).trajectories()


class _Course:
    """One integration of all lanes, whose number is the last axis of all arrays."""

    def __init__(self, of: Lanes, vectors: Array, end: float) -> None:
        condition = of.condition
        self.of, self.count = of, len(vectors)
        self.step = (condition.end - condition.t0) / STEPS
        self.times = condition.times[condition.times <= end]
        columns = list(vectors.T)

        def bound(quantity: Bound) -> Array:
            value = bound_value(quantity, condition.scalars, columns, NUMPY)
            return np.array(np.broadcast_to(value, self.count), dtype=float)

        self.folded = {n: np.float64(v) for n, v in of.field.folded.items()}
        rows = [bound(condition.scalars[n]) for n in of.scalars]
        self.numbers = np.stack(rows) if rows else np.zeros((0, self.count))
        self.scalars = dict(zip(of.scalars, self.numbers, strict=True))  # each row by its name
        self.states = np.stack([bound(condition.initial[n]) for n in of.field.states])
        # The time of each pending event, shape (events, lanes).
        self.due = np.full((len(of.events), self.count), np.inf)
        for k, event in enumerate(of.timed, len(of.triggers)):
            assert event.time is not None
            at = bound(event.time)
            self.due[k] = np.where(at >= condition.t0, at, np.inf)
        self.happened = np.zeros(self.count, dtype=np.intp)
        self.recorded = np.full((len(self.times), *self.states.shape), np.nan)
        self.switched = np.array([of.scalars.index(n) for n in of.switched], dtype=np.intp)
        self.recorded_scalars = np.zeros((len(self.times), len(self.switched), self.count))
        self.reached = np.full(self.count, condition.t0)
        self.place, self.tries = np.zeros((2, self.count), dtype=np.intp)

    def trajectories(self) -> list[Trajectory | None]:
        """Return the trajectories."""
        condition, every = self.of.condition, np.arange(self.count)
        edges = edges_of(condition, self.times, self.step)
        self.values = self._differences(every, self.reached, self.states)
        self.flags = self._holds(self.values)
        initially = np.array([t.event.initially for t in self.of.triggers], dtype=bool)
        self.truths = self._true(self.flags) & initially.reshape(-1, 1)
        ready = self.due <= condition.t0
        self._happen(every, self.reached, self.flags, ready, np.zeros_like(self.flags))
        self._arrive(every, edges)
        while True:
            lanes = np.flatnonzero(
                (self.place < len(edges.times) - 1) & np.isfinite(self.states).all(axis=0)
            )
            if self.of.steps is not None:
                before = self.place[lanes]
                self._go_on(self.of.steps, edges, lanes)
                self.tries[lanes[self.place[lanes] > before]] = 0
                lanes = lanes[self.place[lanes] < len(edges.times) - 1]
            if not len(lanes):
                break
            self._step(lanes, edges)
        good: BoolArray = np.asarray(np.isfinite(self.recorded).all(axis=(0, 1)))
        return [self._trajectory(k) if good[k] else None for k in range(self.count)]

    def _go_on(self, steps: Steps, edges: Edges, lanes: IntArray) -> None:
        """Advance lanes by compiled steps until an event may happen."""
        from odefit.simulation.lane_steps import advance

        due = self.due.min(axis=0, initial=np.inf)
        advance(
            steps,
            edges,
            lanes,
            due,
            self.numbers,
            self.states,
            self.values,
            self.flags,
            self.reached,
            self.place,
            self.recorded,
            self.switched,
            self.recorded_scalars,
        )

    def _arrive(self, lanes: IntArray, edges: Edges) -> None:
        """Store the states of lanes at their edges, and apply events of known times there."""
        place = self.place[lanes]
        halts = edges.halts[place]
        self._keep(lanes[~halts], edges.rows[place[~halts]])
        for edge in np.unique(place[halts]):
            here, time = lanes[place == edge], float(edges.times[edge])
            row = np.full(len(here), edges.rows[edge])
            if time not in self.of.condition.measured_after:
                self._keep(here, row)
            self._happen_at(here, time)
            if time in self.of.condition.measured_after:
                self._keep(here, row)

    def _keep(self, lanes: IntArray, rows: IntArray) -> None:
        lanes, rows = lanes[rows >= 0], rows[rows >= 0]
        self.recorded[rows, :, lanes] = self.states[:, lanes].T
        self.recorded_scalars[rows, :, lanes] = self.numbers[np.ix_(self.switched, lanes)].T

    def _trajectory(self, lane: int) -> Trajectory:
        k, n = len(self.times), len(self.states)
        nothing, none = np.zeros((k, n, 0)), np.zeros((k, 0))
        switched = {
            name: (self.recorded_scalars[:, j, lane], none)
            for j, name in enumerate(self.of.switched)
        }
        states = self.recorded[:, :, lane]
        return Trajectory(self.times, states, none, (), nothing, nothing[:, :0], switched)

    # Values ---------------------------------------------------------------------------------------

    def _known(self, lanes: IntArray) -> dict[str, Any]:
        return {**self.folded, **{n: v[lanes] for n, v in self.scalars.items()}}

    def _at(self, known: dict[str, Any], times: Array, states: Array) -> dict[str, Any]:
        """Add time-dependent quantities to the values of names."""
        known.update(zip(self.of.field.states, states, strict=True))
        known[TIME] = times
        for n, signal in self.of.condition.inputs.items():
            known[n] = signal(times)
        return known

    def _differences(self, lanes: IntArray, times: Array, states: Array) -> Array:
        """Return the compared quantities, shape (comparisons, lanes)."""
        values = self._at(self._known(lanes), times, states)
        differences = np.empty((len(self.of.comparisons), len(lanes)))
        for row, comparison in zip(differences, self.of.comparisons, strict=True):
            row[:] = comparison.difference.evaluate(values, NUMPY)
        return differences

    def _holds(self, differences: Array) -> BoolArray:
        true = np.empty(differences.shape, dtype=bool)
        for row, comparison, d in zip(true, self.of.comparisons, differences, strict=True):
            row[:] = comparison.holds(d)
        return true

    def _true(self, flags: BoolArray) -> BoolArray:
        """Return the events whose conditions hold, shape (triggers, lanes)."""
        true = np.empty((len(self.of.triggers), flags.shape[1]), dtype=bool)
        for row, trigger in zip(true, self.of.triggers, strict=True):
            row[:] = trigger.holds(flags)
        return true

    def _moved(self, lanes: IntArray, start: Array, length: Array) -> Array:
        """Return the states after a step of the classical Runge-Kutta method."""
        if self.of.steps is not None:
            from odefit.simulation.lane_steps import moved

            return moved(self.of.steps, lanes, start, length, self.numbers, self.states)
        field, known, states = self.of.field, self._known(lanes), self.states[:, lanes]
        rates = np.empty((4, *states.shape))
        for k, part in enumerate((0.0, 0.5, 0.5, 1.0)):
            at = states + part * length * rates[k - 1] if k else states
            times = start + min(max(part, INSIDE), 1.0 - INSIDE) * length
            values = self._at(known, times, at)
            slopes = (field if field.model.algebraic else field.model).rhs(values, NUMPY)
            for row, rate in zip(rates[k], slopes, strict=True):
                row[:] = rate
        mean = (rates[0] + 2.0 * (rates[1] + rates[2]) + rates[3]) / 6.0
        return np.asarray(states + length * mean)

    # Steps and events -----------------------------------------------------------------------------

    def _step(self, lanes: IntArray, edges: Edges) -> None:
        """Move lanes to their next edges, or to the events before.

        Lanes advance independently: while some reach an event, others continue, so that events of
        many lanes are handled together, whenever they happen.
        """
        now, ends = self.reached[lanes], edges.times[self.place[lanes] + 1]
        moved = self._moved(lanes, now, ends - now)
        values = self._differences(lanes, ends, moved)
        flags = self._holds(values)
        truths = self._true(flags)
        stops = (truths & ~self.truths[:, lanes]).any(axis=0)
        stops |= (self.due[:, lanes] <= ends).any(axis=0)
        on = lanes[~stops]
        self.states[:, on], self.values[:, on] = moved[:, ~stops], values[:, ~stops]
        self.flags[:, on], self.truths[:, on] = flags[:, ~stops], truths[:, ~stops]
        self.reached[on] = ends[~stops]
        self.place[on] += 1
        self.tries[on] = 0
        if stops.any():
            held = lanes[stops]
            self.reached[held] = self._to_events(
                held, now[stops], ends[stops], values[:, stops], flags[:, stops]
            )
            self.tries[held] += 1
            self.states[:, held[self.tries[held] == MAX_AT_ONCE]] = np.nan
        self._arrive(on, edges)

    def _to_events(
        self, lanes: IntArray, now: Array, ends: Array, after: Array, flags: BoolArray
    ) -> Array:
        """Move lanes to their first events within a step, and return the times of these.

        The compared quantities have the values `after` at the ends of the steps; `flags` tell which
        comparisons hold.
        """
        before, held = self.values[:, lanes], self.flags[:, lanes]
        share = np.clip(np.nan_to_num(before / (before - after)), 0.0, 1.0)
        share[flags == held] = np.inf
        first = share.min(axis=0, initial=np.inf)
        due = self.due[:, lanes].min(axis=0, initial=np.inf)
        crossing = np.where(np.isfinite(first), now + first * (ends - now), np.inf)
        at: Array = np.clip(np.minimum(crossing, due), now, ends)
        crossed = (share == first) & np.isfinite(share) & (crossing <= due)
        self.states[:, lanes] = self._moved(lanes, now, at - now)
        held = np.where(crossed, flags, held)
        self._happen(lanes, at, held, self.due[:, lanes] <= at, crossed)
        return at

    def _happen(
        self, lanes: IntArray, at: Array, flags: BoolArray, ready: BoolArray, driven: BoolArray
    ) -> None:
        """Apply events: those in `ready`, and all whose conditions become true.

        The quantities in `driven`, which triggered them, are zero up to rounding; `flags` are true
        where they hold.
        """
        ready, driven = ready.copy(), driven.copy()
        for _ in range(MAX_AT_ONCE):
            truths = self._true(flags)
            new = truths & ~self.truths[:, lanes]
            self.flags[:, lanes], self.truths[:, lanes] = flags, truths
            for k in np.flatnonzero(new.any(axis=1)):
                delay, which = self.of.events[k].delay, new[k]
                if delay is None:
                    ready[k] |= which
                    continue
                values = self._at(self._known(lanes), at, self.states[:, lanes])
                waits = np.broadcast_to(delay.evaluate(values, NUMPY), len(lanes))
                self.due[k, lanes[which]] = (at + waits)[which]
            for k in np.flatnonzero(ready.any(axis=1)):
                lanes_ready = ready[k]
                self.due[k, lanes[lanes_ready]] = np.inf
                self._assign(lanes[lanes_ready], at[lanes_ready], self.of.events[k].assign)
                self.happened[lanes[lanes_ready]] += 1
                driven &= ~(self.of.touched[k][:, None] & lanes_ready)
            differences = self._differences(lanes, at, self.states[:, lanes])
            self.values[:, lanes] = differences
            if not ready.any():
                break
            flags, ready = np.where(driven, flags, self._holds(differences)), np.zeros_like(ready)
        many = self.happened[lanes] > max(SEARCHED_TRIGGERED, len(self.of.condition.times))
        self.states[:, lanes[many]] = np.nan

    def _happen_at(self, lanes: IntArray, time: float) -> None:
        """Apply the events of a known time."""
        at = np.full(len(lanes), time)
        for known, assign in self.of.condition.events:
            if known == time:
                self._assign(lanes, at, assign)
        flags = self._holds(self._differences(lanes, at, self.states[:, lanes]))
        nothing = np.zeros((len(self.due), len(lanes)), dtype=bool)
        self._happen(lanes, at, flags, nothing, np.zeros_like(flags))

    def _assign(self, lanes: IntArray, at: Array, assign: Mapping[str, Expression]) -> None:
        values = self._at(self._known(lanes), at, self.states[:, lanes])
        new = {n: e.evaluate(values, NUMPY) for n, e in assign.items()}
        for n, value in new.items():
            target = self.scalars.get(n)
            if target is None:
                target = self.states[self.of.field.states.index(n)]
            target[lanes] = value
