"""Linear equations of many conditions at once, between their events and at their data times.

Subjects of a study have the same equations and few measurements each. One by one, calls would take
longer than arithmetic. Here all events of the same rank happen together, and all values between
events are computed in one step. The results for a condition do not depend on the others of its
batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.problem.binding import Computed
from odefit.problem.condition import Condition
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.cut_off import NANOSECONDS, count_work
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.engines.linear.equations import LinearEquations, linear_equations
from odefit.simulation.engines.linear.forms import FEWEST
from odefit.simulation.engines.linear.stacked import Coefficients, Stacked
from odefit.simulation.events.roots import ROUNDING
from odefit.simulation.trajectories.linear_walk import is_linear
from odefit.simulation.trajectories.located_map import LocatedMap
from odefit.simulation.trajectories.stacked_binding import Quantity, StackedBinding
from odefit.simulation.trajectories.stacked_events import Changes, Event, StackedEvents
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory

MOST_STATES, MOST_OUTPUTS = 12, 100
"""Largest numbers of states and of data times: beyond them, the engines are as fast."""

MOST_AT_ONCE = 500_000
"""Largest number of divided differences of one call; there are n^2 for each time and condition."""

BEGINNING, OUTPUT = 30_000.0, 1_000.0  # time of a condition, and of each of its times, in ns


def can_join(field: VectorField, condition: Condition) -> bool:
    """Return whether a condition of linear equations may be computed together with others."""
    return not (
        condition.inputs
        or condition.steady_start
        or condition.repeated is not None
        or condition.has_triggers
        or not 0 < len(condition.times) <= MOST_OUTPUTS
        or not np.isfinite(condition.times).all()
    ) and is_linear(condition, field.states)


def batches_of(
    parts: Mapping[int, ConditionMap | LocatedMap], known: dict[Any, Computed]
) -> list[tuple[LinearBatch, dict[int, int]]]:
    """Return the parts that are computed together, each with its place among the others."""
    field = next(iter(parts.values())).field
    equations = linear_equations(field) if len(field.states) <= MOST_STATES else None
    if equations is None:
        return []
    groups: dict[int, list[int]] = {}
    for number, part in parts.items():
        if can_join(field, part.condition):
            groups.setdefault(len(part.unknowns), []).append(number)
    batches = []
    for numbers in groups.values():
        if len(numbers) < FEWEST:
            continue
        batch = LinearBatch(equations, [parts[k] for k in numbers], known)
        batches.append((batch, {number: place for place, number in enumerate(numbers)}))
    return batches


class LinearBatch:
    """Conditions with the same linear equations and equally many unknowns.

    With several `points`, `parts` without sensitivities are repeated for each of them.
    """

    def __init__(
        self,
        equations: LinearEquations,
        parts: Sequence[ConditionMap | LocatedMap],
        known: dict[Any, Computed],
        points: int = 1,
    ) -> None:
        self._equations = equations
        field, conditions = parts[0].field, [part.condition for part in parts]
        self._unknowns = [part.unknowns for part in parts]
        shape = len(parts), len(parts[0].unknowns)
        self._columns = np.array(self._unknowns, dtype=np.intp).reshape(shape)
        self._times = [c.times for c in conditions]
        last = max(map(len, self._times))
        self._rows = np.array([np.append(t, [t[-1]] * (last - len(t))) for t in self._times])
        self._t0 = np.array([c.t0 for c in conditions])
        self._end = self._rows[:, -1]
        self._span = np.where(self._end > self._t0, self._end - self._t0, 1.0)
        scalars = [c.scalars for c in conditions]
        quantities: list[Quantity] = [
            (k, c.initial[name]) for k, c in enumerate(conditions) for name in field.states
        ]
        quantities += [
            (k, c.scalars[name]) for k, c in enumerate(conditions) for name in field.scalars
        ]
        self._sizes = len(field.states), len(field.scalars)
        self._place_events(conditions, field, quantities)
        self._binding = StackedBinding(quantities, scalars, self._columns, known, points)
        self._of = np.array([k for k, _ in quantities], dtype=np.intp)

    def _place_events(
        self, conditions: Sequence[Condition], field: VectorField, quantities: list[Quantity]
    ) -> None:
        """Give each event a place: those at known times of a condition first, then the others."""
        most = max(len(c.events) + len(c.located) for c in conditions)
        shape = len(conditions), most
        self._known_times = np.full(shape, np.inf)
        self._after = np.zeros(shape, dtype=bool)
        events: list[Event] = []
        located: list[tuple[int, int, int]] = []
        for k, condition in enumerate(conditions):
            for i, (time, assignment) in enumerate(condition.events):
                self._known_times[k, i] = time
                self._after[k, i] = time in condition.measured_after
                events.append((k, i, assignment))
            for i, event in enumerate(condition.located, len(condition.events)):
                assert event.time is not None
                located.append((k, i, len(quantities)))
                quantities.append((k, event.time))
                self._after[k, i] = event.measured_after
                events.append((k, i, event.assign))
        self._located = np.array(located, dtype=np.intp).reshape(-1, 3).T
        scalars = [c.scalars for c in conditions]
        self._events = StackedEvents(field.states, scalars, events, shape, quantities)

    def __call__(
        self, vectors: Array, chosen: IntArray, choices: Sequence[EngineChoice]
    ) -> list[Trajectory | None]:
        """Return the trajectories of some conditions, by their numbers in the batch.

        `vectors` are the values of the unknowns at the points of the batch, shape (points, n).

        None replaces a trajectory that has to be computed otherwise, because digits would be lost
        or values are not finite. `choices` are stored in the trajectories.
        """
        with np.errstate(all="ignore"):
            made = _Evaluated(self, vectors)
            trajectories: list[Trajectory | None] = [None] * len(chosen)
            coefficients = made.coefficients(self._equations)
            usable = chosen[coefficients.finite[chosen] & made.usable[chosen]]
            place = {number: k for k, number in enumerate(chosen.tolist())}
            forced = bool((self._equations.columns == self._equations.states).any())
            times = self._rows.shape[1] + self._known_times.shape[1]
            work = len(usable) * times * self._equations.states**2
            for part in np.array_split(usable, 1 + work // MOST_AT_ONCE):
                for numbers, stacked in _decomposed(coefficients, part, forced):
                    self._solve(made, numbers, stacked, trajectories, place, choices)
        count_work((BEGINNING + OUTPUT * self._rows.shape[1]) * len(chosen) / NANOSECONDS)
        return trajectories

    def _solve(
        self,
        made: _Evaluated,
        numbers: IntArray,
        stacked: Stacked,
        trajectories: list[Trajectory | None],
        place: dict[int, int],
        choices: Sequence[EngineChoice],
    ) -> None:
        """Add the trajectories of conditions whose eigenvectors are known."""
        states, sensitivities, good = made.walked(numbers, stacked, self._equations.cycles)
        sensitivities /= made.sizes[numbers][:, None, None]
        n, m = states.shape[2], sensitivities.shape[3]
        for k, number in enumerate(numbers.tolist()):
            if not good[k]:
                continue
            times, at = self._times[number], place[number]
            count = len(times)
            trajectories[at] = Trajectory(
                times=times,
                states=states[k, :count].reshape(count, n),
                algebraic=np.zeros((count, 0)),
                unknowns=self._unknowns[number],
                sensitivities=sensitivities[k, :count],
                algebraic_sensitivities=np.zeros((count, 0, m)),
                switched={},
                choice=choices[at],
            )


class _Evaluated:
    """The quantities of a batch at its points, and the order of its events."""

    def __init__(self, batch: LinearBatch, vectors: Array) -> None:
        self.batch = batch
        n, p = batch._sizes
        count, m = batch._columns.shape
        self.sizes = np.abs(vectors[0][batch._columns])  # several points have no sensitivities
        self.sizes[self.sizes == 0.0] = 1.0
        values, along = batch._binding(vectors)
        along *= self.sizes[batch._of]
        first, second = count * n, count * (n + p)
        self.begun = values[:first].reshape(count, n)
        self.begun_along = along[:first].reshape(count, n, m)
        self._scalars = values[first:second].reshape(count, p)
        self._scalars_along = along[first:second].reshape(count, p, m)
        self._order_events(values, along)
        self._changes = batch._events(values, along)
        self.usable &= np.isfinite(self.begun).all(axis=1)

    def _order_events(self, values: Array, along: Array) -> None:
        """Bring the events into the order of their times, and find those before each row.

        Times that differ from a known time or a row only by rounding are set equal to it. `usable`
        is False if two known times or rows differ only by rounding.
        """
        batch = self.batch
        times, (k, i, rows) = batch._known_times.copy(), batch._located
        moves = np.zeros((*times.shape, along.shape[1]))
        if len(rows):
            times[k, i], moves[k, i] = values[rows], along[rows]
            # A time is replaced by the first near one among t0, the known times and the rows.
            points = np.concatenate([batch._t0[:, None], batch._known_times, batch._rows], axis=1)
            at = times[k, i]
            near = ROUNDING * np.maximum(np.abs(at), batch._span[k])
            close = np.abs(points[k] - at[:, None]) <= near[:, None]
            first = points[k, close.argmax(axis=1)]
            times[k, i] = np.where(close.any(axis=1), first, at)
        happens = (times >= batch._t0[:, None]) & (times <= batch._end[:, None])
        times = np.where(happens, times, np.inf)
        moves[~happens] = 0.0
        self.order = np.argsort(times, axis=1, kind="stable")
        self.times = np.take_along_axis(times, self.order, 1)
        self.moves = np.take_along_axis(moves, self.order[..., None], 1)
        after = np.take_along_axis(batch._after, self.order, 1)
        apart = np.diff(self.times, axis=1)
        near = ROUNDING * np.maximum(np.abs(self.times[:, 1:]), batch._span[:, None])
        rounding = (apart > 0.0) & (apart <= near) & np.isfinite(apart)
        self.usable: BoolArray = ~rounding.any(axis=1)
        equal = self.times[:, None] == batch._rows[..., None]
        before = (self.times[:, None] < batch._rows[..., None]).sum(axis=2)
        sees = (equal & after[:, None]).any(axis=2)
        self.happened = before + np.where(sees, equal.sum(axis=2), 0)  # of each row
        self.starts = np.concatenate([batch._t0[:, None], self.times], axis=1)

    def coefficients(self, equations: LinearEquations) -> Coefficients:
        """Return the coefficients of all conditions."""
        n = equations.states
        count, _, m = self._scalars_along.shape
        by_condition = equations.coefficients(list(self._scalars.T), count)
        entries = len(equations.rows)
        along = np.zeros((entries, count, m))
        by_scalar = self._scalars_along[:, equations.scalar].transpose(1, 0, 2)
        slopes = by_condition[entries:, :, None] * by_scalar
        np.add.at(along, equations.derivative, slopes)
        both, by_direction = np.zeros((count, n, n + 1)), np.zeros((count, n, n + 1, m))
        both[:, equations.rows, equations.columns] = by_condition[:entries].T
        by_direction[:, equations.rows, equations.columns] = along.transpose(1, 0, 2)
        return Coefficients(
            both[..., :n], both[..., n], by_direction[:, :, :n], by_direction[:, :, n]
        )

    def walked(
        self, numbers: IntArray, stacked: Stacked, cycles: bool
    ) -> tuple[Array, Array, BoolArray]:
        """Return states, sensitivities and their validity, for conditions by number."""
        batch, happened = self.batch, self.happened[numbers]
        n, m = self.begun.shape[1], self.begun_along.shape[2]
        starts, rows = self.starts[numbers], batch._rows[numbers]
        ends = starts[:, 1:]
        between = np.where(np.isfinite(ends), ends - starts[:, :-1], 0.0)
        since = rows - np.take_along_axis(starts, happened, 1)
        durations = np.concatenate([between, since], axis=1)
        functions = stacked.functions(durations)
        events = between.shape[1]
        y = (stacked.inverse @ self.begun[numbers][..., None])[..., 0]
        r = stacked.inverse @ self.begun_along[numbers]
        every = np.empty((events + 1, len(numbers), n), dtype=y.dtype)
        every_along = np.empty((events + 1, len(numbers), n, m), dtype=y.dtype)
        every[0], every_along[0] = y, r
        changes = self._in_coordinates(numbers, stacked)
        moves = self.moves[numbers]
        moving = bool(len(batch._located[0]))
        for k in range(events):
            y, r = stacked.moved(functions.part(slice(k, k + 1)), y[:, None], r[:, None])
            y, r = y[:, 0], r[:, 0]
            if moving:
                r = r + stacked.rates(y)[..., None] * moves[:, k, None]
            y, r = _changed(changes, k, y, r)
            if moving:
                r = r - stacked.rates(y)[..., None] * moves[:, k, None]
            every[k + 1], every_along[k + 1] = y, r
        at = happened.T, np.arange(len(numbers))
        y, r = every[at].swapaxes(0, 1), every_along[at].swapaxes(0, 1)
        y, r = stacked.moved(functions.part(slice(events, None)), y, np.ascontiguousarray(r))
        states, along, good = stacked.summed(y, r)
        # States without any change so far are exact.
        still = (happened == 0) & (since == 0.0)
        states = np.where(still[..., None], self.begun[numbers][:, None], states)
        along = np.where(still[..., None, None], self.begun_along[numbers][:, None], along)
        if cycles:
            good &= stacked.can_reach(durations.max(axis=1))
        return states, along, good

    def _in_coordinates(self, numbers: IntArray, stacked: Stacked) -> Changes:
        """Return the changes by events in the coordinates of eigenvectors, in their order."""
        order = self.order[numbers]
        happens = np.isfinite(self.times[numbers])

        def sorted_(array: Array, without: Array | float) -> Array:
            ordered = array[numbers[:, None], order]
            more = (1,) * (ordered.ndim - 2)
            return np.where(happens.reshape(*happens.shape, *more), ordered, without)

        changes, inverse = self._changes, stacked.inverse[:, None]
        constant = sorted_(changes.constant, 0.0)
        constant_along = inverse @ sorted_(changes.constant_along, 0.0)
        constant = (inverse @ constant[..., None])[..., 0]
        if changes.matrix is None or changes.matrix_along is None:
            return Changes(constant, constant_along, None, None)
        vectors = stacked.vectors[:, None]
        matrix = sorted_(changes.matrix, np.eye(constant.shape[2]))
        along = sorted_(changes.matrix_along, 0.0)
        turned = inverse[:, None] @ along @ vectors[:, None]
        return Changes(constant, constant_along, inverse @ matrix @ vectors, turned)


def _changed(changes: Changes, k: int, y: Array, r: Array) -> tuple[Array, Array]:
    """Return coordinates after event number `k` of each condition."""
    if changes.matrix is not None and changes.matrix_along is not None:
        moved = (changes.matrix_along[:, k] @ y[:, None, :, None])[..., 0].swapaxes(1, 2)
        r = changes.matrix[:, k] @ r + moved
        y = (changes.matrix[:, k] @ y[..., None])[..., 0]
    return y + changes.constant[:, k], r + changes.constant_along[:, k]


def _decomposed(
    coefficients: Coefficients, numbers: IntArray, forced: bool
) -> list[tuple[IntArray, Stacked]]:
    """Return the eigenvectors of conditions by number, those with real eigenvalues first.

    Matrices with too few eigenvectors are left out.
    """
    if not len(numbers):
        return []
    matrices = coefficients.part(numbers)
    values, vectors = np.linalg.eig(matrices.a)
    stacks = []
    real = np.asarray((values.imag == 0.0).all(axis=1))
    for chosen, is_real in ((real, True), (~real, False)):
        if not chosen.any():
            continue
        which, of = values[chosen], vectors[chosen]
        if is_real:
            which, of = which.real, of.real
        part = matrices.part(chosen)
        try:
            stacks.append((numbers[chosen], Stacked.of(which, of, part, forced=forced)))
        except np.linalg.LinAlgError:
            for k, number in enumerate(numbers[chosen].tolist()):
                one = slice(k, k + 1)
                try:
                    alone = Stacked.of(which[one], of[one], part.part(one), forced=forced)
                except np.linalg.LinAlgError:
                    continue
                stacks.append((np.array([number]), alone))
    return stacks
