"""Equations between many events, each of which changes the states linearly, in one call.

Hundreds of doses make as many segments, and most of the time would be spent between Python and the
engine. Here the explicit engine passes through all of them. It gives up where equations are stiff
or need care otherwise: segments are then integrated one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.condition import Condition
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, column_of, symbols_of
from odefit.simulation.engines.comparison import Comparison
from odefit.simulation.engines.cut_off import NANOSECONDS, count_work, cut_off
from odefit.simulation.engines.engine import Values
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.engines.passages import Events, Passing, Stretches
from odefit.simulation.engines.segments import TimelineEntry
from odefit.simulation.engines.steps import StepCosts, usual_steps
from odefit.simulation.propagation.propagation import Propagation
from odefit.simulation.trajectories.linear_walk import Rows

Assignment = Mapping[str, Expression]

MOST_STATES = 50
"""Largest number of states: beyond, the time between Python and the engine hardly counts."""

BETWEEN = 3e5
"""Time in ns that a walk may take for a segment beyond a usual integration by the implicit engine.

Most of it is time between Python and the engine, which the walk saves.
"""

ENGINE = "runge-kutta"


class EventWalk:
    """The walk of one condition, whose events change states alone, and linearly."""

    by_engine = True  # whether an engine integrates

    def __init__(
        self, propagation: Propagation, passing: Passing, matrices: Mapping[str, Array]
    ) -> None:
        self._propagation, self._passing, self._matrices = propagation, passing, matrices
        self._costs = StepCosts.of(propagation.field, len(propagation.unknowns))
        self._keys = {id(a): key_of(a) for a in propagation.condition.assignments}
        self._most: dict[int, int] = {}
        self._to_the_end = passing.to_the_end
        self._known: dict[str, Values] = {}
        self._plans: dict[int, tuple[Sequence[TimelineEntry], _Plan]] = {}

    def __call__(
        self,
        vector: Array,
        sizes: Array,
        begun: Values,
        entries: Sequence[TimelineEntry],
        choice: EngineChoice,
    ) -> Rows | None:
        """Return the rows of all entries; None if segments have to be integrated one by one."""
        if choice.stiff:
            return None
        if id(entries) not in self._plans:
            plan = _Plan(self._propagation.condition.t0, self._keys)
            for entry in entries:
                for assignment in entry.events:
                    plan.event(assignment)
                plan.after(entry.row_after)
                if entry.segment is not None and (entry is not entries[-1] or self._to_the_end):
                    plan.outputs(entry.segment.times.tolist(), entry.rows)
            self._plans[id(entries)] = entries, plan
        return self._through(vector, sizes, begun, self._plans[id(entries)][1])

    def located(
        self,
        vector: Array,
        sizes: Array,
        begun: Values,
        times: Array,
        schedule: Mapping[float, Sequence[tuple[Assignment, Array | None, bool]]],
        choice: EngineChoice,
    ) -> Rows | None:
        """Return the rows at increasing times, with events at times that depend on the unknowns.

        See :meth:`odefit.simulation.trajectories.linear_walk.LinearWalk.located`.
        """
        t0 = time = self._propagation.condition.t0
        end = float(times[-1]) if len(times) else time
        if choice.stiff or not np.isfinite(end):
            return None
        plan, numbers = _Plan(t0, self._keys), {at: row for row, at in enumerate(times.tolist())}
        stops = {time, *(t for t in schedule if t <= end)} | ({end} if self._to_the_end else set())
        for stop in sorted(stops):
            inside = times[(times > time) & (times < stop)].tolist()
            if stop > time:
                outputs = [*inside, stop]
                plan.outputs(outputs, [numbers.get(at, -1) for at in outputs])
                time = stop
            events = schedule.get(stop, ())
            after = any(measured_after for _, _, measured_after in events)
            if stop < end or after:
                for assignment, change, _ in events:
                    plan.event(assignment, change)
            if after:
                plan.after(numbers.get(stop, -1))
        return self._through(vector, sizes, begun, plan)

    def _through(self, vector: Array, sizes: Array, begun: Values, plan: _Plan) -> Rows | None:
        rows = plan.all_rows
        if cut_off().reached:
            return None
        jumped = [
            self._jump(key, assignment, vector, sizes, begun) for key, assignment in plan.kinds
        ]
        n, m = begun.sensitivities.shape
        moves = np.array([np.zeros(m) if move is None else move for move in plan.moves])
        moves = moves.reshape(len(plan.moves), m)
        stretches = Stretches(
            events=Events(
                first=np.array(plan.first),
                number=np.array(plan.number, dtype=np.intp),
                moving=np.array(moves.any(axis=-1), dtype=np.intp),
                moves=moves,
                matrix=np.array([self._matrices[key] for key, _ in plan.kinds]).reshape(-1, n, n),
                constant=np.array([jump.states for jump in jumped]).reshape(-1, n),
                along=np.array([jump.sensitivities for jump in jumped]).reshape(len(jumped), n, m),
            ),
            starts=np.array(plan.starts),
            after=np.array(plan.row_after),
            begin=np.array(plan.begin),
            times=np.array(plan.times, dtype=float),
            rows=np.array(plan.rows, dtype=np.intp),
            count=max(rows, default=-1) + 1,
            most_steps=np.array(
                [self._steps(k) for k in np.diff(plan.begin).tolist()], dtype=np.intp
            ),
        )
        passed = self._passing.through(stretches, begun)
        if passed is None:
            return None
        count_work(passed.steps * self._costs.work_of_step(ENGINE) / NANOSECONDS)
        if passed.last is None:
            return None
        values, sensitivities = passed.states[rows], passed.sensitivities[rows]
        last = None if self._to_the_end else passed.last
        return Rows(np.array(rows, dtype=np.intp), values, sensitivities, last)

    def _steps(self, outputs: int) -> int:
        """Return the largest number of steps of a stretch, which equations need that are stiff."""
        if outputs not in self._most:
            comparison = Comparison.of(self._costs, ENGINE, outputs)
            usual = comparison.explicit_limit(usual_steps(outputs))
            self._most[outputs] = usual + int(BETWEEN / self._costs.of_step(ENGINE))
        return self._most[outputs]

    def _jump(
        self, key: str, assignment: Assignment, vector: Array, sizes: Array, begun: Values
    ) -> Values:
        """Return the values to which an event moves states that are zero."""
        if key in self._known:
            return self._known[key]
        zero = begun._replace(
            states=np.zeros_like(begun.states), sensitivities=np.zeros_like(begun.sensitivities)
        )
        t0 = self._propagation.condition.t0  # the time does not matter
        after = self._propagation.after_event(assignment, t0, vector, sizes, zero)
        states = set(self._propagation.field.states)
        if all(expression.names <= states for expression in assignment.values()):
            self._known[key] = after
        return after


class _Plan:
    """The stretches and events of a walk, step by step."""

    def __init__(self, t0: float, keys: Mapping[int, str]) -> None:
        self._keys = keys
        self.starts, self.first, self.begin, self.row_after = [t0], [0, 0], [0, 0], [-1]
        self.number: list[int] = []
        self.moves: list[Array | None] = []
        self.times: list[float] = []
        self.rows: list[int] = []
        self._kinds: dict[str, tuple[int, Assignment]] = {}

    @property
    def kinds(self) -> list[tuple[str, Assignment]]:
        """The kinds of events by their keys, in the order of their numbers."""
        return [(key, assignment) for key, (_, assignment) in self._kinds.items()]

    @property
    def all_rows(self) -> list[int]:
        """All rows that the walk gives."""
        return sorted({row for row in (*self.rows, *self.row_after) if row >= 0})

    def event(self, assignment: Assignment, change: Array | None = None) -> None:
        """Add an event at the present time, which changes along the directions, shape (m,)."""
        key = self._keys[id(assignment)]
        self.number.append(self._kinds.setdefault(key, (len(self._kinds), assignment))[0])
        self.moves.append(change)
        self.first[-1] += 1

    def after(self, row: int) -> None:
        """Set the row for the values after the events of the present time."""
        self.row_after[-1] = row

    def outputs(self, times: Sequence[float], rows: Sequence[int]) -> None:
        """Move on to the last of some times, with a row for each, or -1."""
        self.times += times
        self.rows += rows
        self.begin[-1] += len(times)
        self.starts.append(times[-1])
        self.first.append(self.first[-1])
        self.begin.append(self.begin[-1])
        self.row_after.append(-1)


def key_of(assignment: Assignment) -> str:
    """Return a text that is the same for equal assignments."""
    return "; ".join(f"{name}={assignment[name].text}" for name in sorted(assignment))


def event_walk(propagation: Propagation) -> EventWalk | None:
    """Return the walk through many events; None if segments have to be integrated one by one."""
    passing = propagation.passing()
    if passing is None or not 0 < len(propagation.field.states) <= MOST_STATES:
        return None
    condition, states = propagation.condition, propagation.field.states
    if any(event.time is None for event in condition.located):
        return None
    matrices: dict[str, Array] = {}
    for assignment in condition.assignments:
        key = key_of(assignment)
        if key not in matrices:
            matrix = _matrix(assignment, condition, states)
            if matrix is None:
                return None
            matrices[key] = matrix
    return EventWalk(propagation, passing, matrices)


def _matrix(assignment: Assignment, condition: Condition, states: Sequence[str]) -> Array | None:
    """Return the constant derivatives of the states after an event by those before, (n, n).

    Returns None if they are not constant, or if the event changes more than states.
    """
    matrix = np.eye(len(states))
    for name, expression in assignment.items():
        if name not in states:
            return None
        names = sorted(expression.names)
        if expression.functions & NON_SMOOTH or {TIME, *condition.inputs} & expression.names:
            return None
        symbols = ca.SX.sym("x", len(names))
        values = dict(zip(names, symbols_of(symbols), strict=True))
        value = expression.evaluate(values, CasadiAlgebra())
        read = [name for name in names if name in states]
        row = ca.jacobian(value.sx, column_of(values[name] for name in read))
        if ca.symvar(row):
            return None
        numbers = np.array(ca.DM(row)).ravel() if read else np.zeros(0)
        matrix[states.index(name)] = 0.0
        for other, number in zip(read, numbers, strict=True):
            matrix[states.index(name), states.index(other)] = number
    return matrix
