"""Windows of a trajectory, which another engine integrates from the first engine's values.

An input with ten thousand knots makes as many parts. An engine of another family restarts at each
of them, which takes a tenth of a millisecond or more. A second opinion then examines windows spread
over the whole trajectory. Each window begins with the first engine's values. So an error of that
engine's method shows in all windows, and an error at one place shows in its window alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.engines.engine import EngineFailure
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.segments import Segment, part_of, segment_between
from odefit.simulation.forward import ForwardMap
from odefit.simulation.trajectories.trajectory import ConditionMap, Trajectory

MANY_PARTS = 2_000  # least number of parts of a segment for which only windows are integrated
WINDOWS, PARTS = 8, 64  # number of windows, and of parts in each


def through_windows(
    other: ForwardMap, vector: Array, number: int, used: Trajectory
) -> Trajectory | None:
    """Return a trajectory whose windows the engine of `other` has integrated.

    Returns None if the condition, given by its number, has events or fewer than :data:`MANY_PARTS`
    parts, or if a window cannot be integrated.
    """
    condition, field = other.problem.conditions[number], other.field
    times = used.times[used.times > condition.t0]
    steady = condition.steady_start or not np.isfinite(times).all()
    if steady or condition.events or condition.located or field.algebraic or not len(times):
        return None
    whole = segment_between(condition, field.inputs, condition.t0, times)
    if len(whole.polynomials) < MANY_PARTS:
        return None
    propagation = ConditionMap(field, condition, other.engines, sensitivities=False).propagation
    begun = propagation.begin(vector, propagation.sizes(vector))
    if isinstance(begun, EngineFailure):
        return None
    states, before = used.states.copy(), len(used.times) - len(times)
    for first in np.linspace(0, len(times) - 1, WINDOWS, endpoint=False).astype(int).tolist():
        window, now = _window(whole, first), begun.values
        if first:
            now = now._replace(states=used.states[before + first - 1])
        solved, _ = propagation.integrate(window, now, UNDECIDED)
        if isinstance(solved, EngineFailure):
            return None
        rows = slice(before + first, before + first + len(window.times))
        states[rows] = solved.states
    return replace(used, states=states)


def _window(whole: Segment, first: int) -> Segment:
    """Return a part of a segment that begins at one of its times and has a number of parts."""
    start = whole.start if first == 0 else float(whole.times[first - 1])
    knots = whole.breakpoints[whole.breakpoints > start]
    end = knots[PARTS - 1] if len(knots) >= PARTS else whole.times[-1]
    last = int(np.searchsorted(whole.times, end, side="right"))
    return part_of(whole, start, whole.times[first : max(last, first + 1)])
