"""Local searches between the times at which an event passes a measurement.

If the time of an event is unknown, the cost has a kink, or jumps, where it equals the time of a
measurement. Between two of these times the cost is smooth. So a search is confined to one such
interval, and continues in the next one if the cost falls there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import Expression
from odefit.expressions.formulas import Part, linear_in
from odefit.methods.local.scaling import Scaling
from odefit.methods.local.stopping import Minimum, Quadratic, Tolerances
from odefit.methods.local.trust_region import minimise
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem

MARGIN = 1e-9
"""Distance from the ends of an interval within which a search stays, relative to its length."""

SAME_PLACE = 1e-9
"""Distance of two places, relative to that of the first from the last, that is rounding."""

AT_AN_END = 1e-6
"""Relative rise of the cost by :data:`MARGIN` at an end of an interval that does not matter."""

MOST_INTERVALS = 30
"""Largest number of intervals in which one search continues."""


_known: WeakKeyDictionary[Problem, list[Array]] = WeakKeyDictionary()
"""Values of each unknown by problem: a problem has many starts."""


def event_places(problem: Problem, scaling: Scaling, columns: IntArray) -> list[Array]:
    """Return the coordinates at which events pass measurements, sorted, for each of `columns`."""
    if problem not in _known:
        _known[problem] = _values(problem)
    chosen = []
    for column in columns:
        values = _known[problem][column]
        inside = (values > problem.lower[column]) & (values < problem.upper[column])
        values = values[inside]
        if scaling.logarithmic[column]:
            values = np.log10(values[values > 0])
        if len(values):  # doses at 12 h intervals and measurements give the same place many times
            apart = np.diff(values, prepend=-np.inf) > SAME_PLACE * (values[-1] - values[0])
            values = values[apart]
        chosen.append(values)
    return chosen


def _values(problem: Problem) -> list[Array]:
    """Return the values of each unknown at which an event passes a measurement, sorted."""
    values: list[set[float]] = [set() for _ in problem.unknowns]
    for condition in problem.conditions:
        times = condition.times[np.isfinite(condition.times)]
        for event in condition.located:
            line = _line(event.time, condition)
            if line is not None:
                index, level, slope = line
                values[index] |= set(((times - level) / slope).tolist())
    return [np.array(sorted(of_unknown)) for of_unknown in values]


def _line(
    time: int | float | Expression | None, condition: Condition
) -> tuple[int, float, float] | None:
    """Return the unknown on which a time depends linearly, the constant part and the slope.

    Returns None if it depends on no unknown, or in another way.
    """
    if isinstance(time, int):
        return time, 0.0, 1.0
    if not isinstance(time, Expression):
        return None
    bounds = {name: condition.scalars.get(name) for name in time.names}
    unknown = [name for name, bound in bounds.items() if isinstance(bound, int)]
    known = {name: bound for name, bound in bounds.items() if isinstance(bound, float)}
    if len(unknown) != 1 or len(known) + 1 != len(bounds):
        return None
    linear = linear_in(Part(time.program), unknown[0])
    if linear is None:
        return None
    parts = (linear.constant, linear.slope)
    level, slope = (float(p.expression().evaluate(known, NUMPY)) for p in parts)
    index = bounds[unknown[0]]
    assert isinstance(index, int)
    return (index, level, slope) if slope and np.isfinite([level, slope]).all() else None


def minimise_between(
    evaluate: Callable[[Array], Quadratic | None],
    first: Minimum,
    lower: Array,
    upper: Array,
    tolerances: Tolerances,
    stop: Callable[[], bool],
    sizes: Array | None,
    places: Sequence[Array],
) -> Minimum:
    """Minimise a cost within an interval from the end of another search, and in the next ones.

    `first` is the end of a search across intervals, and `places` are the ends of the intervals of
    each coordinate; the other arguments are those of
    :func:`odefit.methods.local.trust_region.minimise`.
    """
    here, count, x = first, first.evaluations, first.vector
    refused: set[tuple[int, int]] = set()
    for number in range(MOST_INTERVALS):
        left = replace(tolerances, evaluations=tolerances.evaluations - count)
        if stop() or left.evaluations <= 0:
            break
        low, high = _interval(x, lower, upper, places)
        end = minimise(evaluate, np.clip(x, low, high), low, high, left, stop, sizes=sizes)
        count += end.evaluations
        slack = AT_AN_END * abs(_cost(here)) if number == 0 else 0.0
        if _cost(end) < _cost(here) + slack:
            here, refused = end, set()
        crossing = _crossing(here, (lower, upper), places, refused)
        if crossing is None:
            break
        refused.add(crossing)
        j, side = crossing
        x = here.vector.copy()
        x[j] = _across(x[j], side, places[j])
    return replace(here, evaluations=count)


def _cost(minimum: Minimum) -> float:
    return math.inf if minimum.evaluation is None else minimum.evaluation.cost


def _crossing(
    here: Minimum,
    bounds: tuple[Array, Array],
    places: Sequence[Array],
    refused: AbstractSet[tuple[int, int]],
) -> tuple[int, int] | None:
    """Return a coordinate at an end of its interval beyond which the cost may fall, and the side.

    Returns None if all of them are in `refused` or at a bound, beyond which there is no interval.
    """
    assert here.evaluation is not None
    slope = here.evaluation.jacobian.T @ here.evaluation.residuals
    interval = _interval(here.vector, *bounds, places)
    for j, ends in enumerate(places):
        for side, end, bound in zip((-1, 1), interval, bounds, strict=True):
            at_end = len(ends) > 0 and here.vector[j] == end[j] != bound[j]
            if at_end and side * slope[j] <= 0 and (j, side) not in refused:
                return j, side
    return None


def _interval(x: Array, lower: Array, upper: Array, places: Sequence[Array]) -> tuple[Array, Array]:
    """Return bounds within the interval of each coordinate."""
    low, high = lower.copy(), upper.copy()
    for j, ends in enumerate(places):
        if len(ends):
            before, after, margin = _around(int(np.searchsorted(ends, x[j])), ends)
            low[j], high[j] = max(low[j], before + margin), min(high[j], after - margin)
    return low, high


def _across(value: float, side: int, ends: Array) -> float:
    """Return the coordinate just beyond the nearest end of an interval on one side."""
    k = int(np.searchsorted(ends, value))
    before, after, margin = _around(k + side, ends)
    return float(before + margin if side > 0 else after - margin)


def _around(k: int, ends: Array) -> tuple[float, float, float]:
    """Return the ends of interval `k` and the margin within it; the first has no lower end."""
    before = float(ends[k - 1]) if k > 0 else -math.inf
    after = float(ends[k]) if k < len(ends) else math.inf
    length = after - before
    if not math.isfinite(length):
        length = float(ends[-1] - ends[0]) or abs(float(ends[0])) or 1.0
    return before, after, MARGIN * length
