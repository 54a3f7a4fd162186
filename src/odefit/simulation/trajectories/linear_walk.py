"""Linear equations between many events at known times, in the coordinates of their eigenvectors.

Hundreds of doses make as many segments, and an engine would restart at each. If the equations are
linear, and events change the states linearly, a segment is a product with known factors. All
factors of a condition are computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.condition import Condition
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, column_of, symbols_of
from odefit.simulation.engines.cut_off import NANOSECONDS, count_work, cut_off
from odefit.simulation.engines.engine import Values
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.linear.closed_form import Complex, Eigenvectors, summed
from odefit.simulation.engines.segments import TimelineEntry
from odefit.simulation.propagation.propagation import Propagation

STEP = 12_000.0  # time of a product with known factors, in ns

Assignment = Mapping[str, Expression]


class Step(NamedTuple):
    """A step of a walk: an event or a time without one, then a row of the trajectory.

    `event` and `length` are numbers of an event and of a duration, `row` that of a row; -1 without
    one. `change` has the changes of the event's time along the directions, shape (m,).
    """

    event: int
    length: int
    row: int
    change: Array | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps of a condition through its events.

    Each of the `assignments` has the time of its first use and the number of its uses.
    """

    assignments: Sequence[tuple[Assignment, float, int]]
    durations: Array
    steps: Sequence[Step]


@dataclass(frozen=True, eq=False)
class _Change:
    """An event in the coordinates of the eigenvectors: y becomes `matrix` y + `constant`.

    A matrix that is the identity, and does not change, is None.
    """

    constant: Complex  # shape (n,)
    constant_along: Complex  # shape (n, m)
    matrix: Complex  # shape (n, n)
    along: Complex  # shape (n, m, n)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a trajectory, with states and sensitivities there."""

    rows: IntArray
    states: Array
    sensitivities: Array
    last: Values | None = None  # the values after the last event, if an engine takes over there


class LinearWalk:
    """The walk of one condition, whose equations and events are linear in the states."""

    by_engine = False  # whether an engine integrates

    def __init__(self, propagation: Propagation) -> None:
        self._propagation = propagation
        self._plans: dict[int, tuple[Sequence[TimelineEntry], Plan]] = {}

    def __call__(
        self,
        vector: Array,
        sizes: Array,
        begun: Values,
        entries: Sequence[TimelineEntry],
        choice: EngineChoice = UNDECIDED,
    ) -> Rows | None:
        """Return the rows of all entries; None if another engine has to integrate."""
        if id(entries) not in self._plans:
            self._plans[id(entries)] = entries, _plan(entries, self._propagation.condition.t0)
        return self.through(vector, sizes, begun, self._plans[id(entries)][1])

    def located(
        self,
        vector: Array,
        sizes: Array,
        begun: Values,
        times: Array,
        schedule: Mapping[float, Sequence[tuple[Assignment, Array | None, bool]]],
        choice: EngineChoice = UNDECIDED,
    ) -> Rows | None:
        """Return the rows at increasing times, with events at times that depend on the unknowns.

        Each event has its assignment, the changes of its time along the directions, and whether
        measurements at its time see the values after it. Returns None if another engine has to
        integrate.
        """
        time = self._propagation.condition.t0
        end = float(times[-1]) if len(times) else time
        if not np.isfinite(end):
            return None
        plans, rows = Plans(), {at: row for row, at in enumerate(times.tolist())}
        for stop in sorted({time, end, *(t for t in schedule if t <= end)}):
            for at in [*times[(times > time) & (times < stop)].tolist(), stop]:
                if at > time:
                    plans.pass_on(at - time, rows.get(at, -1))
                    time = at
            events = schedule.get(stop, ())
            after = any(measured_after for _, _, measured_after in events)
            if stop < end or after:
                for assignment, change, _ in events:
                    plans.event(assignment, stop, change)
            if after and stop in rows:
                plans.row(rows[stop])
        return self.through(vector, sizes, begun, plans.plan())

    def through(self, vector: Array, sizes: Array, begun: Values, plan: Plan) -> Rows | None:
        """Return the rows of a plan; None if another engine has to integrate."""
        form = self._propagation.closed_form()
        vectors = None if form is None or cut_off().reached else form.eigenvectors(begun)
        if vectors is None or not len(plan.durations):
            return None
        if not vectors.can_reach(float(plan.durations.max())):
            return None
        with np.errstate(all="ignore"):
            rows = _Walked(self._propagation, vectors, vector, sizes, begun).through(plan)
        count_work(STEP * len(plan.steps) / NANOSECONDS)
        return rows


def is_linear(condition: Condition, states: Sequence[str]) -> bool:
    """Return whether no event has a condition, and all change states alone, linearly."""
    if any(event.time is None for event in condition.located):
        return False
    if any(name not in states for assignment in condition.assignments for name in assignment):
        return False
    seen: set[Expression] = set()
    for assignment in condition.assignments:
        for expression in assignment.values():
            if expression not in seen and not _linear(expression, condition, states):
                return False
            seen.add(expression)
    return True


def _linear(expression: Expression, condition: Condition, states: Sequence[str]) -> bool:
    """Return whether an expression is linear in the states, and does not depend on time."""
    names = sorted(expression.names)
    if expression.functions & NON_SMOOTH or {TIME, *condition.inputs} & expression.names:
        return False
    symbols = ca.SX.sym("x", len(names))
    values = dict(zip(names, symbols_of(symbols), strict=True))
    value = expression.evaluate(values, CasadiAlgebra())
    column = column_of(values[name] for name in names if name in states)
    return not ca.depends_on(ca.jacobian(value.sx, column), column)


class Plans:
    """Makes a plan, step by step."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[str, Expression], ...], int] = {}
        self._assignments: list[tuple[Assignment, float, int]] = []
        self._lengths: dict[float, int] = {}
        self._steps: list[Step] = []

    def event(self, assignment: Assignment, time: float, change: Array | None = None) -> None:
        """Add an event at a time that changes along the directions, shape (m,)."""
        key = tuple(sorted(assignment.items(), key=lambda item: item[0]))
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self._assignments):
            self._assignments.append((assignment, time, 0))
        first, begun, uses = self._assignments[number]
        self._assignments[number] = first, begun, uses + 1
        self._steps.append(Step(number, -1, -1, change))

    def pass_on(self, duration: float, row: int) -> None:
        """Add a time without an event, which leads to a row."""
        number = self._lengths.setdefault(duration, len(self._lengths))
        self._steps.append(Step(-1, number, row))

    def row(self, row: int) -> None:
        """Add a row with the values after the events of its time."""
        self._steps.append(Step(-1, -1, row))

    def plan(self) -> Plan:
        """Return the plan."""
        return Plan(self._assignments, np.array(list(self._lengths)), self._steps)


def _plan(entries: Sequence[TimelineEntry], t0: float) -> Plan:
    plans, time = Plans(), t0
    for entry in entries:
        for assignment in entry.events:
            plans.event(assignment, time)
        if entry.row_after >= 0:
            plans.row(entry.row_after)
        if entry.segment is None:
            continue
        for end, row in zip(entry.segment.times.tolist(), entry.rows, strict=True):
            plans.pass_on(end - time, row)
            time = end
    return plans.plan()


class _Walked:
    """One walk, in the coordinates of the eigenvectors."""

    def __init__(
        self,
        propagation: Propagation,
        vectors: Eigenvectors,
        vector: Array,
        sizes: Array,
        begun: Values,
    ) -> None:
        self._propagation, self._vectors, self._begun = propagation, vectors, begun
        self._vector, self._sizes = vector, sizes
        self._y = vectors.inverse @ begun.states
        self._r = vectors.inverse @ begun.sensitivities

    def through(self, plan: Plan) -> Rows | None:
        """Take the steps of a plan; return None if digits are lost."""
        vectors = self._vectors
        n, m = self._begun.sensitivities.shape
        functions = vectors.functions(plan.durations, np.arange(n))
        factors = np.ascontiguousarray(functions.exponentials.T)
        moved, along, every = vectors.moved, vectors.along, len(vectors.moved) == m
        weights = forces = forces_along = forced_weights = None
        if len(moved):
            weights = np.ascontiguousarray(functions.of_exponentials.transpose(1, 0, 2))
        if vectors.forced:
            integrals = functions.integrals.T
            forces = integrals * vectors.constant
            forces_along = integrals[:, :, None] * vectors.constant_along
            if len(moved):
                forced_weights = functions.of_integrals.transpose(1, 0, 2) * vectors.constant
        changes = [
            self._change(assignment, time) if uses > n + 1 else None
            for assignment, time, uses in plan.assignments
        ]
        by_row: dict[int, tuple[Complex, Complex]] = {}
        for event, length, row, change in plan.steps:
            y, r = self._y, self._r
            if event >= 0:
                self._happen(plan.assignments[event], changes[event], change)
            elif length >= 0:
                factor = factors[length]
                r = factor[:, None] * r
                if weights is not None:
                    weight = weights[length] * y
                    if forced_weights is not None:
                        weight = weight + forced_weights[length]
                    added = (weight[:, None] @ along)[:, 0]
                    if every:
                        r += added
                    else:
                        r[:, moved] += added
                y = factor * y
                if forces is not None and forces_along is not None:
                    y, r = y + forces[length], r + forces_along[length]
                self._y, self._r = y, r
            if row >= 0:
                by_row[row] = self._y, self._r
        if not by_row:
            return None
        modes = np.transpose([y for y, _ in by_row.values()])
        stacked = np.transpose([r for _, r in by_row.values()], (1, 0, 2))
        both = summed(vectors.vectors, modes, stacked)
        return None if both is None else Rows(np.array(list(by_row), dtype=np.intp), *both)

    def _rates(self) -> Complex:
        """Return the rates of the states."""
        return self._vectors.values * self._y + self._vectors.constant

    def _happen(
        self, event: tuple[Assignment, float, int], change: _Change | None, moves: Array | None
    ) -> None:
        """Apply an event whose time `moves` along the directions."""
        vectors, y, r = self._vectors, self._y, self._r
        if moves is not None:
            r = r + np.outer(self._rates(), moves)
        if change is None:
            before = self._begun._replace(states=vectors.states(y), sensitivities=vectors.states(r))
            after = self._propagation.after_event(
                event[0], event[1], self._vector, self._sizes, before
            )
            y, r = vectors.inverse @ after.states, vectors.inverse @ after.sensitivities
        elif change.matrix is None:
            y, r = y + change.constant, r + change.constant_along
        else:
            r = change.matrix @ r + change.along @ y + change.constant_along
            y = change.matrix @ y + change.constant
        self._y = y
        self._r = r if moves is None else r - np.outer(self._rates(), moves)

    def _change(self, assignment: Assignment, time: float) -> _Change:
        """Return an event in the coordinates, from its values at unit vectors."""
        begun = self._begun
        n, m = begun.sensitivities.shape
        still = np.zeros((n, m))

        def after(states: Array) -> Values:
            before = begun._replace(states=states, sensitivities=still)
            return self._propagation.after_event(
                assignment, time, self._vector, self._sizes, before
            )

        zero, units = after(np.zeros(n)), [after(unit) for unit in np.eye(n)]
        matrix = np.stack([unit.states - zero.states for unit in units], axis=1)
        along = np.stack([unit.sensitivities - zero.sensitivities for unit in units], axis=2)
        w, v = self._vectors.inverse, self._vectors.vectors
        constant, constant_along = w @ zero.states, w @ zero.sensitivities
        if not along.any() and np.array_equal(matrix, np.eye(n)):
            return _Change(constant, constant_along, None, None)
        turned = np.tensordot(w, along, axes=(1, 0)) @ v
        return _Change(constant, constant_along, w @ matrix @ v, turned)
