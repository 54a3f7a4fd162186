"""Sizes of states that are extremely small where an integration begins, by a coarse look ahead."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.elimination import Elimination, factorise, solve_one
from odefit.simulation.engines.bdf.evaluation import evaluate
from odefit.simulation.engines.bdf.step_control import OVERFLOW
from odefit.simulation.engines.programs import Program

SMALL = 1e-30
"""Ratio to the largest size below which a size is extremely small."""

STEPS = 8
"""Number of steps of the look ahead; products of many small factors need several."""

GROWTH = 2.0
"""Ratio of the times after successive steps."""

MARGIN = 1e-3
"""Ratio of the size to the value that a state reaches by the look ahead, which is coarse."""


@compiled
def raise_small_sizes(
    rhs: Program,
    program: Program,
    e: Elimination,
    x: Array,
    w: Array,
    w_derivatives: Array,
    derivatives: Array,
    jacobian: Array,
    lu: Array,
    ahead: float,
    known: Array,
    sizes: Array,
) -> None:
    """Raise extremely small sizes to the values that the states reach until the time `ahead`.

    Far down a chain of reactions, rates at the start are almost zero. Relative accuracy of the
    state, which grows by a high power of time, would then take thousands of steps. A few linearly
    implicit Euler steps pass through the whole chain. Sizes that are `known` already, shape (n,),
    differ from zero and from the state's magnitude; they stay.
    """
    n = sizes.shape[0]
    largest = 0.0
    smallest = np.inf
    for i in range(n):
        largest = max(largest, sizes[i])
        smallest = min(smallest, sizes[i])
    if not smallest < SMALL * largest or not largest < OVERFLOW:
        return
    at = x.copy()
    change = np.empty(n)
    reached = sizes.copy()
    now = 0.0
    for step in range(STEPS):
        evaluate(program, at, w_derivatives, derivatives)
        later = ahead * GROWTH ** (step + 1 - STEPS)
        h = later - now
        now = later
        at[0] = x[0] + now
        evaluate(rhs, at, w, change)
        if not factorise(e, h, jacobian, lu):
            break
        for i in range(n):
            change[i] *= h
        solve_one(e, lu, change)
        for i in range(n):
            at[1 + i] += change[i]
            if at[1 + i] < 0.0 and x[1 + i] >= 0.0:
                at[1 + i] = 0.0
            if abs(at[1 + i]) < OVERFLOW:
                reached[i] = max(reached[i], abs(at[1 + i]))
    for i in range(n):
        unknown = known[i] == 0.0 or known[i] == abs(x[1 + i])
        if unknown and sizes[i] < SMALL * largest:
            sizes[i] = max(sizes[i], MARGIN * reached[i])
