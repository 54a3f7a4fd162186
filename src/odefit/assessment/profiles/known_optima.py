"""Profiles from known optima besides the estimate, and the resulting intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from odefit.assessment.profiles.parts import OPEN, Side
from odefit.assessment.profiles.tasks import Optimum, Task
from odefit.assessment.profiles.valleys import LOWER, between, whole_curve
from odefit.common.arrays import Array
from odefit.common.effects import undetermined
from odefit.methods.local.cost_tolerance import close
from odefit.methods.local.scaling import Scaling
from odefit.problem.variants.sizes import expected_sizes, sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

NEAR = 1e-2
"""Relative difference of all determined unknowns up to which known optima are the same."""


def known_optima(
    forward: ForwardMap, best: Optimum, known: Sequence[Array], sides: Mapping[Task, Side]
) -> list[Array]:
    """Return the known optima that fit within the limit and are not on any curve.

    The curves are `sides` that begin at the estimate: an optimum that all of them pass is one of
    its own valley.
    """
    first = forward.evaluate(best.vector, UNDECIDED)
    assert isinstance(first, Evaluation), "the estimate has been evaluated before"
    ignored = undetermined(first.information, sizes_at(best.problem, best.vector))
    sizes = expected_sizes(best.problem)
    optima = [best.vector]
    for vector in known:
        at = forward.evaluate(vector, UNDECIDED)
        if isinstance(at, Failure) or best.deviance.at(at.cost) > best.limit:
            continue
        if not any(close(vector, x, NEAR, sizes, ignored) for x in optima) and not _passed(
            forward, best, vector, at, sides
        ):
            optima.append(vector)
    return optima[1:]


def _passed(
    forward: ForwardMap, best: Optimum, vector: Array, at: Evaluation, sides: Mapping[Task, Side]
) -> bool:
    """Return whether the curves of all quantities pass a point, or are below it."""
    deviance = best.deviance.at(at.cost)
    coordinates = Scaling.of(best.problem).coordinates(vector)
    lowest: dict[str, float] = {}
    for task, side in sides.items():
        here = float(coordinates[task.index])
        if task.quantity is not None:
            here = task.quantity.at(forward, vector, at.choice)[0]
        if task.sign * (here - best.first(task)) >= 0:
            curve = whole_curve(best, task, side)
            on_curve = float(between(*curve, np.array([here]))[0])
            lowest[task.key] = min(on_curve, lowest.get(task.key, math.inf))
    return all(value <= deviance + LOWER * best.limit for value in lowest.values())


def separate_intervals(
    best: Optimum, task: Task, sides: Mapping[Task, Side]
) -> tuple[tuple[float, float], ...]:
    """Return the intervals from the curves of several optima, if they do not overlap.

    The intervals are in the coordinate of `task`, a side. The result is empty if one interval
    contains all values that fit, or if an end of a curve is unknown.
    """
    ends: dict[tuple[float, ...], list[float]] = {}
    for t, side in sides.items():
        if t.key == task.key and not t.fit and not t.inward:
            reach = side.limit if side.end == "limit" else math.nan
            if side.end in OPEN:
                reach = t.sign * math.inf
            ends.setdefault(t.start, [math.nan, math.nan])[t.sign > 0] = reach
    if any(math.isnan(end) for pair in ends.values() for end in pair):
        return ()
    joined: list[tuple[float, float]] = []
    for low, high in sorted((low, high) for low, high in ends.values()):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return tuple(joined) if len(joined) > 1 else ()
