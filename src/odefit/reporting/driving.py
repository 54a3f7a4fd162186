"""Inputs, doses, and constants that events change: curves of a run, or stems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.problem.binding import bound_value
from odefit.problem.building.switches import PREFIX
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem

POINTS = 240
"""Number of equidistant times of the curve of an input."""


class DrivingKind(StrEnum):
    """The kinds of curves that drive a run."""

    INPUT = "input"
    DOSE = "dose"
    LEVEL = "level"


@dataclass(frozen=True, eq=False)
class Driving:
    """An input, the doses into a state, or a constant that events change, in one run.

    `values`, shape (k,), are those of the input or constant at the `times`, or the amounts of
    the doses that are given then. `span` has the first and the last time of the run.
    """

    experiment: str
    name: str
    kind: DrivingKind
    times: Array
    values: Array
    unit: str
    time_unit: str
    span: tuple[float, float]


def driving(problem: Problem, condition: Condition, vector: Array, end: float) -> list[Driving]:
    """Return the curves that drive a run from its start to a time, at some values of the unknowns.

    Doses at times that depend on the unknowns, and events with a condition, are left out.
    """
    curves = []
    start = condition.t0
    if not end > start:
        return []
    for name, signal in condition.inputs.items():
        corners = signal.times[(signal.times > start) & (signal.times < end)]
        before = corners - 1e-9 * (end - start)
        times = np.unique(np.concatenate([np.linspace(start, end, POINTS), corners, before]))
        curves.append((name, DrivingKind.INPUT, times, np.asarray(signal(times), dtype=float)))
    states = set(problem.model.states)
    assigned = dict.fromkeys(n for _, assign in condition.events for n in assign)
    for name in assigned:
        if name.startswith(PREFIX):
            continue  # a switch of the equations, and nothing that anybody does
        if name in states:
            doses = list(_doses(condition, name, vector, end))
            if doses:
                times, amounts = np.array(doses).T
                curves.append((name, DrivingKind.DOSE, times, amounts))
        elif name in condition.scalars:
            times, values = _level(condition, name, vector, end)
            curves.append((name, DrivingKind.LEVEL, times, values))
    return [
        Driving(
            condition.name, name, kind, times, values, problem.units.get(name, ""),
            problem.time_unit, (start, end),
        )
        for name, kind, times, values in curves
        if np.isfinite(values).all()
    ]  # fmt: skip


def event_times(problem: Problem, condition: Condition) -> tuple[float, ...]:
    """Return the times of events that figures mark, in their order."""
    # Knots of an estimated function are switches of its pieces, and no events to a reader.
    pieces = PREFIX if problem.model.unknown_functions else "\0"
    events = condition.events
    return tuple(sorted({t for t, a in events if not all(n.startswith(pieces) for n in a)}))


def _doses(
    condition: Condition, state: str, vector: Array, end: float
) -> Iterator[tuple[float, float]]:
    """Yield times and amounts of events that add to a state, whatever its value."""
    for time, assign in condition.events:
        if state not in assign or not condition.t0 <= time <= end:
            continue
        amount = _value(assign[state], condition, vector, {state: 0.0})
        more = _value(assign[state], condition, vector, {state: 1.0})
        if amount is not None and more is not None and abs(more - amount - 1.0) < 1e-9:
            yield time, amount


def _level(condition: Condition, name: str, vector: Array, end: float) -> tuple[Array, Array]:
    """Return the steps of a constant that events change."""
    now = _value(condition.scalars[name], condition, vector, {})
    times, values = [condition.t0], [np.nan if now is None else now]
    for time, assign in condition.events:
        if name in assign and time <= end:
            new = _value(assign[name], condition, vector, {name: values[-1]})
            times += [time, time]
            values += [values[-1], np.nan if new is None else new]
    return np.array([*times, end]), np.array([*values, values[-1]])


def _value(
    bound: int | float | Expression, condition: Condition, vector: Array, known: Mapping[str, float]
) -> float | None:
    """Return a quantity as a number; None if it depends on more than is `known`."""
    try:
        scalars = {**condition.scalars, **known}
        return float(np.asarray(bound_value(bound, scalars, list(vector), NUMPY)))
    except (KeyError, TypeError, ValueError):
        return None
