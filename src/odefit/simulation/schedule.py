"""The time line of a condition: legs between events, and corners of the inputs inside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import Array
from odefit.problem.condition import Condition
from odefit.problem.expressions import Expression
from odefit.simulation.engine import Leg


@dataclass(frozen=True, eq=False)
class Stage:
    """Events that happen at one time, then a leg.

    Attributes
    ----------
    assignments
        What happens before the leg, in order.
    leg
        None if nothing is wanted after.
    rows
        Where the leg's times go in the trajectory; the last is -1 if the leg's end is only
        needed to go on from.
    """

    assignments: tuple[Mapping[str, Expression], ...]
    leg: Leg | None
    rows: tuple[int, ...]


def schedule(
    condition: Condition, inputs: tuple[str, ...], times: Array
) -> tuple[int, list[Stage]]:
    """How to come by the states at `times` (increasing, not before t0).

    Returns
    -------
    at_start
        How many of the first times are t0 itself (0 or 1): the values before any event.
    stages
        In the order of time.
    """
    at_start = int(len(times) > 0 and times[0] == condition.t0)
    end = times[-1] if len(times) else condition.t0
    events = [(t, assign) for t, assign in condition.events if t < end]
    cuts = sorted({t for t, _ in events} | {condition.t0})
    stages = []
    for start, stop in zip(cuts, [*cuts[1:], end], strict=True):
        wanted = np.flatnonzero((times > start) & (times <= stop))
        rows = wanted.tolist()
        leg_times = times[wanted]
        if stop > start and (not len(leg_times) or leg_times[-1] < stop):
            leg_times = np.append(leg_times, stop)
            rows.append(-1)
        leg = leg_of(condition, inputs, start, leg_times) if len(leg_times) else None
        assignments = tuple(assign for t, assign in events if t == start)
        stages.append(Stage(assignments, leg, tuple(rows)))
    return at_start, stages


def leg_of(condition: Condition, inputs: tuple[str, ...], start: float, times: Array) -> Leg:
    """The leg from `start` through `times`, with its inputs."""
    given = [condition.inputs[name] for name in inputs]
    corners = np.unique(np.concatenate([np.zeros(0), *(g.times for g in given)]))
    knots = corners[(corners > start) & (corners < times[-1])]
    lefts = np.concatenate([[start], knots])
    polynomials = np.zeros((len(lefts), len(given), 5))
    for k, g in enumerate(given):
        piece = np.searchsorted(g.times, lefts, side="right")
        polynomials[:, k, 0] = g.times[np.maximum(piece - 1, 0)]
        polynomials[:, k, 1:] = g.polynomials()[piece]
    return Leg(float(start), times, knots, polynomials)
