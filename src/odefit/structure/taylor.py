"""States carried from one time to another by their own Taylor series."""

from __future__ import annotations

import numpy as np

from odefit.problem.arrays import ComplexArray
from odefit.structure.consistency import completed
from odefit.structure.jets import Block, JetSystem

ORDER = 16
ACCURACY = 1e-13
"""Relative size of the first terms that are left out."""

STEPS = 400
"""At most: beyond, the equations are stiff."""

SHORTEST = 1e-4
"""Step, relative to the whole way, from which the solution counts as ending there: towards a
pole steps shrink geometrically."""


def carried(
    system: JetSystem, k: int, values: ComplexArray, start: float, end: float
) -> ComplexArray | None:
    """The unknowns of the system with the states of block `k` moved from `start` to `end`.

    Parameters
    ----------
    values
        Shape (unknowns,), of a system with free states.

    Returns
    -------
    array or None
        The same with other states; None if the solution does not reach there.
    """
    block = system.blocks[k]
    back = end < start
    low, high = min(start, end), max(start, end)
    corners = {float(t) for name in _inputs(block) for t in block.condition.inputs[name].times}
    stops = sorted((t for t in corners if low < t < high), reverse=back)
    now, moved = start, values
    for stop in (*stops, end):
        there = _smoothly(system, k, moved, now, stop)
        if there is None:
            return None
        # An input that jumps takes algebraic variables with it.
        now, moved = stop, there if stop == end else completed(system, k, there, stop, before=back)
    return moved


def _inputs(block: Block) -> set[str]:
    return {name for name, _ in block.lifting.functions.values()} & block.condition.inputs.keys()


def _smoothly(
    system: JetSystem, k: int, values: ComplexArray, start: float, end: float
) -> ComplexArray | None:
    """The same without corners of inputs on the way."""
    block = system.blocks[k]
    place = {name: i for i, name in enumerate(system.names)}
    states = [n for n in block.lifting.states if n in block.states]
    columns = np.array([place[block.states[n]] for n in states], dtype=np.intp)
    rows = np.array([list(block.lifting.states).index(n) for n in states], dtype=np.intp)
    now, moved = start, values.copy()
    for _ in range(STEPS):
        if now == end:
            return moved
        known, functions = block.surroundings(now, ORDER, before=end < start)
        with np.errstate(all="ignore"):
            jets = system.run(k, moved[None], ORDER, known[None], functions[None], False)
            series = jets.states[0][:, rows]
            step = _step(series)
        if not (np.isfinite(series).all() and step > SHORTEST * abs(end - start)):
            return None
        ahead = end - now
        change = ahead if abs(ahead) <= step else float(np.copysign(step, ahead))
        moved[columns] = np.polynomial.polynomial.polyval(change, series)
        now = end if change == ahead else now + change
    return moved if now == end else None


def _step(series: ComplexArray) -> float:
    """A step after which the last two terms are below the accuracy."""
    sizes = np.abs(series)
    scale = np.maximum(sizes[0], 1e-3 * sizes[0].max(initial=0.0)) + 1e-300
    steps = []
    for order in (ORDER - 1, ORDER):
        worst = float((sizes[order] / scale).max(initial=0.0))
        steps.append((ACCURACY / worst) ** (1 / order) if worst > 0 else np.inf)
    return min(steps)
