"""Extrapolation: how far a prediction leaves the fitted ranges, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from odefit.assessment.predictions.prediction_runs import Run
from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem

TOLERANCE = 1e-9
"""Fraction of a range by which a value may exceed it and still count as inside."""


class Kind(Enum):
    """The kinds of quantities that may leave their fitted range."""

    TIME = "time"
    INPUT = "input"
    CONSTANT = "constant"
    INITIAL = "initial value"
    DOSE = "dose"


@dataclass(frozen=True)
class Extrapolation:
    """A quantity of a run that leaves the range that it has in the fitted experiments.

    `low` and `high` are its range in the run, `fitted` that of all experiments; a pair of NaN means
    that no experiment had any, such as doses.
    """

    run: str
    kind: Kind
    name: str
    low: float
    high: float
    fitted: tuple[float, float]


def extrapolations(problem: Problem, run: Run, vector: Array) -> list[Extrapolation]:
    """Return the quantities in which a run leaves the ranges of the fitted experiments.

    Times count from the initial time of each experiment. Inputs count as far as measurements, or
    the prediction, reach; initial values and constants by their values at the estimate.
    """
    fitted = [_ranges(c, c.end, vector) for c in problem.conditions]
    known: dict[tuple[Kind, str], tuple[float, float]] = {}
    for ranges in fitted:
        for key, (low, high) in ranges.items():
            before = known.get(key, (np.inf, -np.inf))
            known[key] = min(before[0], low), max(before[1], high)
    finite = run.times[np.isfinite(run.times)]
    end = float(finite.max(initial=run.condition.t0))
    extrapolated = []
    for (kind, name), (low, high) in _ranges(run.condition, end, vector).items():
        bottom, top = known.get((kind, name), (np.nan, np.nan))
        if kind in (Kind.CONSTANT, Kind.INITIAL) and np.isnan(bottom):
            continue
        slack = TOLERANCE * max(abs(bottom), abs(top), top - bottom)
        below, above = low < bottom - slack, high > top + slack
        # Smaller times and doses than those fitted lie between these and none.
        if above or np.isnan(bottom) or (below and kind not in (Kind.TIME, Kind.DOSE)):
            extrapolated.append(
                Extrapolation(run.condition.name, kind, name, low, high, (bottom, top))
            )
    return extrapolated


def _ranges(
    condition: Condition, end: float, vector: Array
) -> dict[tuple[Kind, str], tuple[float, float]]:
    """Return the ranges of all quantities of a condition up to a time."""
    ranges = {(Kind.TIME, ""): (end - condition.t0, end - condition.t0)}
    for name, signal in condition.inputs.items():
        inside = signal.times[(signal.times >= condition.t0) & (signal.times <= end)]
        values = signal(np.union1d(inside, [condition.t0, end]))
        ranges[Kind.INPUT, name] = float(values.min()), float(values.max())
    scalars = condition.scalars
    for name, bound in scalars.items():
        if not isinstance(bound, int) and not name.startswith("__"):
            value = _value(bound, scalars, vector)
            ranges[Kind.CONSTANT, name] = value, value
    for name, bound in condition.initial.items():
        value = _value(bound, scalars, vector)
        ranges[Kind.INITIAL, name] = value, value
    for name, amount in _doses(condition.events, end):
        low, high = ranges.get((Kind.DOSE, name), (np.inf, -np.inf))
        ranges[Kind.DOSE, name] = min(low, amount), max(high, amount)
    return ranges


def _value(
    bound: int | float | Expression, scalars: Mapping[str, int | float | Expression], vector: Array
) -> float:
    return float(np.asarray(bound_value(bound, scalars, list(vector), NUMPY)))


def _doses(
    events: Sequence[tuple[float, Mapping[str, Expression]]], end: float
) -> Iterator[tuple[str, float]]:
    """Yield how much events add to a name, or the rate that they set, where these are numbers."""
    for time, assign in events:
        for name, expression in assign.items():
            if time > end or name.startswith("__") or not expression.names <= {name}:
                continue
            at = [float(np.asarray(expression.evaluate({name: x}, NUMPY))) for x in (0.0, 1.0)]
            added = at[1] - at[0] == 1.0 or not expression.names
            if added:
                yield name, at[0]
