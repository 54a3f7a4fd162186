"""The joint optimum of parts that share only the noise, from the ends of each.

The joint noise differs from that of a part. With other weights of its measurements another end of a
part may be the best. So the ends of each part are compared again at the joint noise until no choice
changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import START_SEARCH
from odefit.problem.problem import Problem
from odefit.problem.variants.parts import Part
from odefit.simulation import ForwardMap

ENDS_OF_ALL = 3
"""Number of combinations of the parts' ends, the best first, from which joint searches begin."""

ENDS_COMPARED = 4
"""Number of distinct ends of a part that are compared at the joint noise."""

ROUNDS = 5
"""Number of comparisons of the parts' ends at a new noise."""


def composed(problem: Problem, parts: Sequence[Part], ends: Sequence[Start]) -> tuple[Array, Array]:
    """Return the start and the end, shape (n,) each, combined from ends of all parts.

    An unknown of several parts takes the geometric mean of its values there. The standard deviation
    of all measurements, which no part has, takes the root mean square.
    """
    begin, vector = np.full((2, len(problem.unknowns)), math.nan)
    shared: dict[int, list[float]] = {}
    for part, end in zip(parts, ends, strict=True):
        begin[part.places], vector[part.places] = end.start, end.vector
        for place, value in zip(part.places.tolist(), end.vector.tolist(), strict=True):
            if place in part.shared:
                shared.setdefault(place, []).append(value)
    missing = sorted(set[int]().union(*(p.shared for p in parts)) - shared.keys())
    squares = sum(end.objective for end in ends)
    vector[missing] = math.sqrt(max(squares, np.finfo(float).tiny) / problem.size)
    for place, values in shared.items():
        positive = min(values) > 0.0
        vector[place] = math.exp(np.mean(np.log(values))) if positive else float(np.mean(values))
    changed = [*missing, *shared]
    vector[changed] = np.clip(vector[changed], problem.lower[changed], problem.upper[changed])
    begin[changed] = vector[changed]
    return begin, vector


def joined_ends(
    problem: Problem,
    parts: Sequence[Part],
    orders: Sequence[Sequence[Start]],
    further: Sequence[Sequence[Start]],
    control: Control,
) -> list[Start]:
    """Return the ends of joint searches, the first from the best ends of all parts.

    `orders` holds the ends of each part, the best first, and `further` holds other combinations.
    """
    forward = ForwardMap(problem)
    starts: list[Start] = []
    usual = list(zip(*orders, strict=False))[:ENDS_OF_ALL]
    for i, ends in enumerate([*usual, *further]):
        if starts and control.should_stop():
            break
        end = _searched(forward, parts, ends, i, control)
        chosen = list(ends)
        for _ in range(0 if i or _alone(parts) else ROUNDS):
            better = [
                _best_at(part, order, chosen_ends, end.vector, control)
                for part, order, chosen_ends in zip(parts, orders, chosen, strict=True)
            ]
            if control.should_stop() or all(b is c for b, c in zip(better, chosen, strict=True)):
                break
            again = _searched(forward, parts, better, i, control)
            if not again.cost < end.cost:
                break
            end, chosen = again, better
        starts.append(end)
    return starts


def _alone(parts: Sequence[Part]) -> bool:
    """Return whether the unknowns of the noise leave the optima of the parts unchanged."""
    return all(len(part.unshared) == len(part.places) for part in parts)


def _searched(
    forward: ForwardMap, parts: Sequence[Part], ends: Sequence[Start], index: int, control: Control
) -> Start:
    """Return the end of a joint search from the ends of the parts."""
    begin, vector = composed(forward.problem, parts, ends)
    end = START_SEARCH.run(forward, index, vector, control)
    worst = next((s for s in ends if s.status is not Status.CONVERGED), None)
    if worst is not None and end.status is Status.CONVERGED:
        end = replace(end, status=worst.status, message=worst.message)
    return replace(
        end,
        start=begin,
        evaluations=end.evaluations + sum(s.evaluations for s in ends),
        seconds=end.seconds + sum(s.seconds for s in ends),
    )


def _best_at(
    part: Part, order: Sequence[Start], chosen: Start, vector: Array, control: Control
) -> Start:
    """Return the best end of a part at the noise of `vector`, the unknowns of all parts."""
    forward = ForwardMap(part.problem)
    tolerance = CostTolerance.of(forward)
    distinct = [chosen]
    for end in order:
        if len(distinct) < ENDS_COMPARED and not any(tolerance.same(end, d) for d in distinct):
            distinct.append(end)
    if len(distinct) == 1:
        return chosen
    free = [k for k, place in enumerate(part.places.tolist()) if place not in part.shared]
    at = ForwardMap(part.alone_at(vector))
    runs = [START_SEARCH.run(at, end.index, end.vector[free], control) for end in distinct]
    best = min(runs, key=lambda s: s.cost)
    if not best.cost < runs[0].cost - tolerance.absolute:
        return chosen
    moved = distinct[runs.index(best)].vector.copy()
    moved[free] = best.vector
    return replace(distinct[runs.index(best)], vector=moved)
