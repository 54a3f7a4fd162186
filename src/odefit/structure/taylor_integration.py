"""Integration of the states from one time to another by their own Taylor series."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from odefit.structure.series.expansion import Expansion
from odefit.structure.solutions.auxiliary_states import fill_dependent_states

ORDER = 16
"""Order of the Taylor series."""

ACCURACY = 1e-13
"""Largest relative size of the last terms of the Taylor series of a step."""

MAX_STEPS = 400
"""Largest number of steps; equations that need more are stiff."""

MIN_STEP = 1e-4
"""Step, relative to the whole interval, below which the solution is assumed to end: towards a pole
steps shrink geometrically."""


def taylor_integrate(
    system: DifferentiatedSystem, k: int, values: ComplexArray, start: float, end: float
) -> ComplexArray | None:
    """Return the unknowns, with the states of expansion `k` moved from `start` to `end`, or None.

    The system has free states; None means that the solution does not reach the end.
    """
    back = end < start
    low, high = min(start, end), max(start, end)
    corners = _corners(system.expansions[k])
    stops = sorted((t for t in corners if low < t < high), reverse=back)
    now, moved = start, values
    for stop in (*stops, end):
        arrived = _integrate_smoothly(system, k, moved, now, stop)
        if arrived is None:
            return None
        now, moved = stop, arrived
        if stop != end:  # a jump of an input changes algebraic variables
            moved = fill_dependent_states(system, k, arrived, stop, before=back)
    return moved


def _corners(expansion: Expansion) -> set[float]:
    """Return the times at which inputs of the experiment may not be smooth."""
    inputs = expansion.condition.inputs
    used = {name for name, _ in expansion.lifting.functions.values()} & inputs.keys()
    return {float(t) for name in used for t in inputs[name].times}


def _integrate_smoothly(
    system: DifferentiatedSystem, k: int, values: ComplexArray, start: float, end: float
) -> ComplexArray | None:
    """Integrate like :func:`taylor_integrate` over an interval with smooth inputs."""
    expansion = system.expansions[k]
    place = {name: i for i, name in enumerate(system.names)}
    states = [n for n in expansion.lifting.states if n in expansion.states]
    columns = np.array([place[expansion.states[n]] for n in states], dtype=np.intp)
    rows = np.array([list(expansion.lifting.states).index(n) for n in states], dtype=np.intp)
    now, moved = start, values.copy()
    for _ in range(MAX_STEPS):
        if now == end:
            return moved
        known, functions = expansion.expansion_point(now, ORDER, before=end < start)
        with np.errstate(all="ignore"):
            taylor = system.run(k, moved[None], ORDER, known[None], functions[None], False)
            series = taylor.states[0][:, rows]
            step = _step(series)
        if not (np.isfinite(series).all() and step > MIN_STEP * abs(end - start)):
            return None
        ahead = end - now
        change = ahead if abs(ahead) <= step else float(np.copysign(step, ahead))
        moved[columns] = np.polynomial.polynomial.polyval(change, series)
        now = end if change == ahead else now + change
    return moved if now == end else None


def _step(series: ComplexArray) -> float:
    """Return a step at which the last two terms are below the accuracy."""
    sizes = np.abs(series)
    steps = [np.inf]
    for order in (ORDER - 1, ORDER):
        # The size of a state is the largest of its first terms, each in its own unit.
        powers = order - np.arange(order // 2)
        with np.errstate(all="ignore"):
            ratios = ACCURACY * sizes[: len(powers)] / sizes[order]
            longest = (ratios ** (1.0 / powers[:, None])).max(axis=0)
        steps.append(float(longest[sizes[order] > 0].min(initial=np.inf)))
    return min(steps)
