"""Unmeasured states that no invariant gives, assimilated from data and equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.methods.integral_matching.segments import SmoothedSegment
from odefit.methods.shooting.node_evaluation import typical_sizes
from odefit.methods.shooting.relaxation import relax
from odefit.methods.shooting.search import ShootingSearch
from odefit.methods.shooting.shooting_problem import Point
from odefit.simulation import Failure, ForwardMap


def assimilated(
    forward: ForwardMap,
    segments: Sequence[SmoothedSegment],
    hidden: Sequence[str],
    vector: Array,
    held: BoolArray,
    stop: Callable[[], bool],
) -> tuple[list[SmoothedSegment], Array] | Failure:
    """Return the segments with the `hidden` states that data and equations together suggest.

    Shooting nodes at the times of measurement follow the data and, softly, the equations, with the
    `held` unknowns (the parameters of the equations) fixed at `vector`; see
    :mod:`odefit.methods.shooting.relaxation`. Hidden states are splines through the nodes. The
    second value is `vector` with the other unknowns changed.
    """
    shooting, nodes = ShootingSearch().with_data(forward, vector)
    start = Point(shooting.scaling.coordinates(vector), nodes)
    sizes = typical_sizes(shooting, start.coordinates, start.coordinates, 0.1)
    # This imports scipy.optimize, which most fits do not need: a tenth of a second.
    from scipy.interpolate import make_interp_spline

    relaxed = relax(shooting, start, sizes, held, stop, free=())
    if isinstance(relaxed, Failure):
        return relaxed
    completed = []
    nodes_of = shooting.nodes_of(relaxed)
    for segment in segments:
        times, values = nodes_of.times[segment.condition], nodes_of.values[segment.condition]
        events = [t for t, _ in forward.problem.conditions[segment.condition].events]
        # A node at an event may be before or after it.
        inside = (times >= segment.start) & (times <= segment.end) & ~np.isin(times, events)
        if not inside.any():
            continue
        times, values = times[inside], values[inside]
        states = dict(segment.states)
        for state in hidden:
            if state not in states:
                through = values[:, shooting.names.index(state)]
                curve = make_interp_spline(times, through, k=min(3, len(times) - 1))
                # Beyond the last node the states keep their values there.
                at = np.clip(segment.grid.times, times[0], times[-1])
                states[state] = np.asarray(curve(at))
        completed.append(replace(segment, states=states))
    changed = np.where(held, vector, shooting.scaling.natural(relaxed.coordinates))
    return completed, changed
