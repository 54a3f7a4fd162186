"""Linear equations between many events at known times, in the coordinates of their eigenvectors.

Doses by the hundred are as many segments, each of which an engine would begin anew. Where the
equations are linear, and events change the states linearly, a segment is a product with known
factors. All factors of a condition are computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.expressions import NON_SMOOTH, TIME, Expression
from odefit.problem.condition import Condition
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, Symbol, symbols_of
from odefit.simulation.engines.closed_form import Complex, Eigenvectors, summed
from odefit.simulation.engines.cut_off import NANOSECONDS, count_work, cut_off
from odefit.simulation.engines.engine import Values
from odefit.simulation.engines.segments import TimelineEntry
from odefit.simulation.propagation.propagation import Propagation

STEP = 12_000.0  # time of a product with known factors, in ns

Assignment = Mapping[str, Expression]


@dataclass(frozen=True, eq=False)
class _Plan:
    """The way of a condition through its events.

    Each step is an event, by its number (`event` is not negative) or a time without one, by the
    number of its length among `durations`; then the row of the trajectory that it leads to, -1 if
    there is none.
    """

    assignments: Sequence[tuple[Assignment, float]]  # each with the time of its first use
    durations: Array
    steps: Sequence[tuple[int, int, int]]  # event, duration, row


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


class LinearWalk:
    """The walk of one condition, whose equations and events are linear in the states."""

    def __init__(self, propagation: Propagation) -> None:
        self._propagation = propagation
        self._plans: dict[int, tuple[Sequence[TimelineEntry], _Plan]] = {}

    def __call__(
        self, vector: Array, sizes: Array, begun: Values, entries: Sequence[TimelineEntry]
    ) -> Rows | None:
        """Return the rows of all entries; None where another engine has to integrate."""
        propagation = self._propagation
        form = propagation.closed_form()
        vectors = None if form is None or cut_off().reached else form.eigenvectors(begun)
        if vectors is None:
            return None
        if id(entries) not in self._plans:
            self._plans[id(entries)] = entries, _plan(entries, propagation.condition.t0)
        plan = self._plans[id(entries)][1]
        if not len(plan.durations) or not vectors.can_reach(float(plan.durations.max())):
            return None
        with np.errstate(all="ignore"):
            changes = [
                _change(propagation, vectors, vector, sizes, begun, assignment, time)
                for assignment, time in plan.assignments
            ]
            found = _walked(vectors, plan, changes, begun)
        count_work(STEP * len(plan.steps) / NANOSECONDS)
        return found


def is_linear(condition: Condition, states: Sequence[str]) -> bool:
    """Return whether all events of a condition are at known times, and change states linearly."""
    if condition.located or not all(
        name in states for assignment in condition.assignments for name in assignment
    ):
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
    moving = [values[name].sx for name in names if name in states]
    if not isinstance(value, Symbol) or not moving:
        return True
    column = ca.vertcat(*moving)
    return not ca.depends_on(ca.jacobian(value.sx, column), column)


def _plan(entries: Sequence[TimelineEntry], t0: float) -> _Plan:
    numbers: dict[tuple[tuple[str, Expression], ...], int] = {}
    assignments: list[tuple[Assignment, float]] = []
    lengths: dict[float, int] = {}
    steps: list[tuple[int, int, int]] = []
    time = t0
    for entry in entries:
        for assignment in entry.events:
            key = tuple(sorted(assignment.items(), key=lambda item: item[0]))
            if key not in numbers:
                numbers[key] = len(assignments)
                assignments.append((assignment, time))
            steps.append((numbers[key], -1, -1))
        if entry.row_after >= 0:
            steps.append((-1, -1, entry.row_after))
        if entry.segment is None:
            continue
        for end, row in zip(entry.segment.times.tolist(), entry.rows, strict=True):
            steps.append((-1, lengths.setdefault(end - time, len(lengths)), row))
            time = end
    return _Plan(assignments, np.array(list(lengths)), steps)


def _change(
    propagation: Propagation,
    vectors: Eigenvectors,
    vector: Array,
    sizes: Array,
    begun: Values,
    assignment: Assignment,
    time: float,
) -> _Change:
    """Return an event in the coordinates of the eigenvectors, from its values at unit vectors."""
    n, m = begun.sensitivities.shape
    still = np.zeros((n, m))

    def after(states: Array) -> Values:
        before = begun._replace(states=states, sensitivities=still)
        return propagation.after_event(assignment, time, vector, sizes, before)

    zero, units = after(np.zeros(n)), [after(unit) for unit in np.eye(n)]
    matrix = np.stack([unit.states - zero.states for unit in units], axis=1)
    along = np.stack([unit.sensitivities - zero.sensitivities for unit in units], axis=2)
    w, v = vectors.inverse, vectors.vectors
    constant, constant_along = w @ zero.states, w @ zero.sensitivities
    if not along.any() and np.array_equal(matrix, np.eye(n)):
        return _Change(constant, constant_along, None, None)
    turned = np.tensordot(w, along, axes=(1, 0)) @ v
    return _Change(constant, constant_along, w @ matrix @ v, turned)


def _walked(
    vectors: Eigenvectors, plan: _Plan, changes: Sequence[_Change], begun: Values
) -> Rows | None:
    """Go through the steps of a plan; None is returned where digits are lost."""
    n, m = begun.sensitivities.shape
    y, r = vectors.inverse @ begun.states, vectors.inverse @ begun.sensitivities
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
    rows, modes, modes_along = [], [], []
    for event, length, row in plan.steps:
        if event >= 0:
            change = changes[event]
            if change.matrix is None:
                y, r = y + change.constant, r + change.constant_along
            else:
                r = change.matrix @ r + change.along @ y + change.constant_along
                y = change.matrix @ y + change.constant
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
        if row >= 0:
            rows.append(row)
            modes.append(y)
            modes_along.append(r)
    if not rows:
        return None
    stacked = np.transpose(modes_along, (1, 0, 2))
    found = summed(vectors.vectors, np.transpose(modes), stacked)
    return None if found is None else Rows(np.array(rows, dtype=np.intp), *found)
