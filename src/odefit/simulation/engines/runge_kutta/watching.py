"""Signs that a step has missed a feature: its defect, and sign changes of watched terms.

The method is that of the stiff engine (:mod:`odefit.simulation.engines.bdf.watching`), with the
dense output.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.evaluation import evaluate
from odefit.simulation.engines.bdf.watching import GOLDEN, ITERATIONS
from odefit.simulation.engines.programs import Program
from odefit.simulation.engines.runge_kutta.stages import POWERS, polynomials, slopes


@compiled
def point(y: Array, f: Array, p: Array, x: Array) -> None:
    """Write the states of the dense output with the polynomials `p` to `x`, after the time."""
    for i in range(y.shape[0]):
        total = y[i]
        for e in range(POWERS):
            total += p[e] * f[e, i]
        x[1 + i] = total


@compiled
def defect(
    rhs: Program,
    start: float,
    h: float,
    at: float,
    y: Array,
    f: Array,
    x: Array,
    w: Array,
    weights: Array,
    p: Array,
    rates: Array,
) -> float:
    """Return the norm of h (f(P) - P') at the place `at` of a step, in units of the tolerance."""
    n = y.shape[0]
    polynomials(at, p)
    x[0] = start + at * h
    point(y, f, p, x)
    evaluate(rhs, x, w, rates)
    slopes(at, p)
    total = 0.0
    for i in range(n):
        slope = 0.0
        for e in range(POWERS):
            slope += p[e] * f[e, i]
        total += ((h * rates[i] - slope) * weights[i]) ** 2
    result: float = np.sqrt(total / n)
    return result


@compiled
def largest_defect(
    rhs: Program,
    watched: Program,
    start: float,
    h: float,
    number: int,
    y: Array,
    f: Array,
    x: Array,
    w: Array,
    w_watched: Array,
    weights: Array,
    before: Array,
    after: Array,
    p: Array,
    rates: Array,
    signs: Array,
) -> float:
    """Return the largest defect at some places of a step of the length `h`.

    One of the places depends on the number of the step. `f` are the coefficients of the dense
    output, shape (8, n); `before` and `after` are the watched terms at both ends of the step, shape
    (v,). The remaining arguments are work space.
    """
    place = 0.1 + 0.8 * ((number * GOLDEN) % 1.0)
    largest = defect(rhs, start, h, place, y, f, x, w, weights, p, rates)
    for v in range(before.shape[0]):
        low, high = before[v], after[v]
        if not low * high < 0.0:
            continue
        left, right = 0.0, 1.0
        for _ in range(ITERATIONS):
            middle = left - low * (right - left) / (high - low)
            polynomials(middle, p)
            x[0] = start + middle * h
            point(y, f, p, x)
            evaluate(watched, x, w_watched, signs)
            if low * signs[v] > 0.0:
                left, low, high = middle, signs[v], 0.5 * high
            else:
                right, high, low = middle, signs[v], 0.5 * low
            if signs[v] == 0.0:
                break
        for at in (left, right):
            if 0.0 < at < 1.0:
                size = defect(rhs, start, h, at, y, f, x, w, weights, p, rates)
                if not size <= largest:
                    largest = size
    return largest
