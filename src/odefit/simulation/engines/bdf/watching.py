"""Signs that a step has missed a feature: its defect, and sign changes of watched terms.

The error test of a step uses the equations at its end alone. If functions may be flat elsewhere
(:mod:`odefit.simulation.engines.narrow_features`), the defect of the interpolating polynomial P is
checked within the step, too. As in a step of Newton's method, it is divided by I - c J, so that
components damped by stiffness do not count.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import MAX_ORDER, combine
from odefit.simulation.engines.bdf.elimination import Elimination, solve_one
from odefit.simulation.engines.bdf.evaluation import evaluate
from odefit.simulation.engines.programs import Program

GOLDEN = 0.6180339887498949
"""Shift, from step to step, of the place at which the defect is checked."""

ITERATIONS = 5  # iterations of the search for a change of sign within a step


@compiled
def interpolation_with_slopes(
    order: int, time: float, h: float, at: float, shares: Array, slopes: Array
) -> None:
    """Write shares of the differences in the value and in the derivative at time `at`, (1, 6)."""
    share, slope = 1.0, 0.0
    for j in range(MAX_ORDER + 1):
        if j > 0:
            part = (at - (time - h * (j - 1))) / (h * j)
            slope = slope * part + share / (h * j)
            share *= part
        shares[0, j] = share if j <= order else 0.0
        slopes[0, j] = slope if j <= order else 0.0


@compiled
def defect(
    rhs: Program,
    e: Elimination,
    start: float,
    order: int,
    time: float,
    h: float,
    at: float,
    c: float,
    d: Array,
    lu: Array,
    x: Array,
    w: Array,
    weights: Array,
    shares: Array,
    slopes: Array,
    space: Array,
) -> float:
    """Return the norm of (I - c J)^-1 c (f(P) - P') at time `at`, in units of the tolerance.

    The point is left in `x`; `space`, shape (3, n), is overwritten.
    """
    n = weights.shape[0]
    interpolation_with_slopes(order, time, h, at, shares, slopes)
    combine(d, shares, 0, space[0])
    combine(d, slopes, 0, space[1])
    x[0] = start + at
    for i in range(n):
        x[1 + i] = space[0, i]
    evaluate(rhs, x, w, space[2])
    for i in range(n):
        space[2, i] = c * (space[2, i] - space[1, i])
    solve_one(e, lu, space[2])
    total = 0.0
    for i in range(n):
        total += (space[2, i] * weights[i]) ** 2
    result: float = np.sqrt(total / n)
    return result


@compiled
def any_change(before: Array, after: Array) -> bool:
    """Return whether any watched term changes its sign."""
    changes = 0
    for v in range(before.shape[0]):
        if before[v] * after[v] < 0.0:
            changes += 1
    return changes > 0


@compiled
def largest_defect(
    everywhere: bool,
    rhs: Program,
    watched: Program,
    e: Elimination,
    start: float,
    order: int,
    time: float,
    h: float,
    number: int,
    c: float,
    d: Array,
    lu: Array,
    x: Array,
    w: Array,
    w_watched: Array,
    weights: Array,
    before: Array,
    after: Array,
    shares: Array,
    slopes: Array,
    space: Array,
    signs: Array,
) -> float:
    """Return the largest defect at some places of a step that ends at `time`.

    One of the places depends on the number of the step. Unless functions may be flat `everywhere`,
    it is zero where no watched term changes its sign. `before` and `after` are the watched terms
    at both ends of the step, shape (v,); `signs` is space for them.
    """
    if not everywhere and not any_change(before, after):
        return 0.0
    place = 0.1 + 0.8 * ((number * GOLDEN) % 1.0)
    largest = defect(
        rhs,
        e,
        start,
        order,
        time,
        h,
        time - place * h,
        c,
        d,
        lu,
        x,
        w,
        weights,
        shares,
        slopes,
        space,
    )
    n = weights.shape[0]
    for v in range(before.shape[0]):
        low, high = before[v], after[v]
        if not low * high < 0.0:
            continue
        left, right = time - h, time
        for _ in range(ITERATIONS):
            middle = left - low * (right - left) / (high - low)
            interpolation_with_slopes(order, time, h, middle, shares, slopes)
            combine(d, shares, 0, space[0])
            x[0] = start + middle
            for i in range(n):
                x[1 + i] = space[0, i]
            evaluate(watched, x, w_watched, signs)
            if low * signs[v] > 0.0:
                left, low, high = middle, signs[v], 0.5 * high
            else:
                right, high, low = middle, signs[v], 0.5 * low
            if signs[v] == 0.0:
                break
        for at in (left, right):
            if time - h < at < time:
                size = defect(
                    rhs,
                    e,
                    start,
                    order,
                    time,
                    h,
                    at,
                    c,
                    d,
                    lu,
                    x,
                    w,
                    weights,
                    shares,
                    slopes,
                    space,
                )
                if not size <= largest:
                    largest = size
    return largest
