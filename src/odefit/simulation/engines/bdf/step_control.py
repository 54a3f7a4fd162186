"""The control of errors: norms, sizes of states, first steps, orders and lengths of steps."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import ERROR, MAX_ORDER
from odefit.simulation.engines.bdf.equations import Entries
from odefit.simulation.engines.bdf.evaluation import evaluate
from odefit.simulation.engines.bdf.sensitivities import largest_norm
from odefit.simulation.engines.programs import Program

SAFETY = np.array([1.36, 1.25, 1.45])
"""Divisors of the step length allowed by an error, for a lower, the same, and a higher order."""

LAST_DIGITS = 20 * float(np.finfo(float).eps)
"""Relative rounding errors of the terms of a right-hand side that do not count as step errors."""

OVERFLOW = 1e300  # norms above this count as infinite


@compiled
def norm(values: Array, weights: Array) -> float:
    """Return the root mean square of the first of `values` times `weights`."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += (values[i] * weights[i]) ** 2
    result: float = np.sqrt(total / weights.shape[0])
    return result


@compiled
def first_step(
    rhs: Program, t: float, span: float, x: Array, w: Array, f: Array, weights: Array
) -> float:
    """Return the length of the first step; zero if the right-hand side is undefined.

    The second derivative comes from a small Euler step (Hairer, Nørsett & Wanner, Solving Ordinary
    Differential Equations I, section II.4). A step of order 1 has an error of h^2 / 2 times it.
    Derivatives at the start are left in `f`.
    """
    n = f.shape[0]
    evaluate(rhs, x, w, f)
    size = norm(x[1:], weights)
    slope = norm(f, weights)
    if not slope < OVERFLOW:
        return 0.0
    shortest = h = 1e-6 * span
    if size > 1e-5 and slope * span > 1e-5:
        h = min(0.01 * size / slope, span)
    # Far ahead, a process that begins slowly may be over.
    curvature = 0.0
    euler = x.copy()
    change = np.empty(n)
    for probe in (shortest, h):
        euler[0] = t + probe
        for i in range(n):
            euler[1 + i] = x[1 + i] + probe * f[i]
        evaluate(rhs, euler, w, change)
        for i in range(n):
            change[i] = (change[i] - f[i]) / probe
        change_size = norm(change, weights)
        if not change_size <= curvature:  # true for NaN
            curvature = change_size
    if curvature < OVERFLOW:
        h = min(100.0 * h, np.sqrt(0.5 / max(curvature, 1e-12 * slope, 1.0 / OVERFLOW)), span)
    return h


@compiled
def initial_sizes(
    rhs: Program,
    program: Program,
    entries: Entries,
    x: Array,
    w: Array,
    w_derivatives: Array,
    derivatives: Array,
    ahead: float,
    end: float,
    places: int,
    sizes: Array,
) -> None:
    """Write the size of each state that begins at zero to `sizes`, shape (n,).

    That is its value after the time `ahead`, by implicit Euler steps of its own component; states
    fed by others come after those. So a change of units scales sizes and states alike. A state
    without a rate gets the smallest other size. The rates are the largest at some times until
    `end`, at least one: a flat term may act later.
    """
    n = sizes.shape[0]
    at = x.copy()
    f = np.empty(n)
    later = np.empty(n)
    diagonal = np.empty(n)
    unknown = 0
    for i in range(n):
        unknown += sizes[i] == 0.0
    fresh = np.zeros(n, dtype=np.bool_)
    while unknown > 0:
        now = at[0]
        evaluate(rhs, at, w, f)
        for place in range(1, places):
            at[0] = x[0] + end * place / (places - 1)
            evaluate(rhs, at, w, later)
            for i in range(n):
                if abs(later[i]) > abs(f[i]):
                    f[i] = later[i]
        at[0] = now
        nonzero = 0
        for i in range(n):
            fresh[i] = sizes[i] == 0.0 and f[i] != 0.0 and abs(f[i]) < OVERFLOW
            if fresh[i]:
                at[1 + i] = ahead * f[i]
                nonzero += 1
        if nonzero == 0:
            break
        evaluate(program, at, w_derivatives, derivatives)
        for i in range(n):
            diagonal[i] = 0.0
        for k in range(entries.row.shape[0]):
            if entries.row[k] == entries.column[k]:
                diagonal[entries.row[k]] = abs(derivatives[k])
        for i in range(n):
            if fresh[i]:
                if diagonal[i] < OVERFLOW:
                    at[1 + i] /= 1.0 + ahead * diagonal[i]
                sizes[i] = abs(at[1 + i])
                unknown -= sizes[i] > 0.0
                if sizes[i] == 0.0:
                    nonzero -= 1  # it has underflowed
        if nonzero == 0:
            break
        at[0] = x[0] + ahead
    smallest = np.inf
    for i in range(n):
        if sizes[i] > 0.0:
            smallest = min(smallest, sizes[i])
    for i in range(n):
        if sizes[i] == 0.0:
            sizes[i] = smallest if smallest < np.inf else 1.0


@compiled
def rounding_errors(
    entries: Entries, x: Array, derivatives: Array, noise: Array, diagonal: Array
) -> None:
    """Write the rounding errors of the right-hand sides to `noise`, and |J_ii| to `diagonal`.

    The terms of a right-hand side are assumed to be about as large as the products of derivatives
    and states. Shapes (n,).
    """
    for i in range(noise.shape[0]):
        noise[i] = 0.0
        diagonal[i] = 0.0
    for k in range(entries.row.shape[0]):
        i, j = entries.row[k], entries.column[k]
        noise[i] += LAST_DIGITS * abs(derivatives[k] * x[1 + j])
        if i == j:
            diagonal[i] = abs(derivatives[k])


@compiled
def absolute_tolerances(
    absolute: float, sizes: Array, c: float, noise: Array, diagonal: Array, atol: Array
) -> None:
    """Write the absolute tolerances of a step to `atol`, shape (n,).

    They are shares of the sizes, but at least the rounding errors of a step: a state that is the
    small difference of large terms has no more digits.
    """
    for i in range(atol.shape[0]):
        rounded = c * noise[i] / (1.0 + c * diagonal[i])
        atol[i] = absolute * sizes[i]
        if rounded > atol[i] and rounded < OVERFLOW:
            atol[i] = rounded


@compiled
def next_order(
    order: int, error: float, d: Array, ds: Array, weights: Array, weights_s: Array, sums: Array
) -> tuple[int, float]:
    """Return the order for the next steps, and the factor by which they can be longer.

    Differences `ds` are those of the sensitivities under error control, if any.
    """
    best = (SAFETY[1] ** (order + 1) * max(error, 1e-12)) ** (-1.0 / (order + 1))
    chosen = order
    for shift in (-1, 1):
        other = order + shift
        if other < 1 or other > MAX_ORDER:
            continue
        estimate = norm(d[other + 1], weights)
        for tile in range(ds.shape[0]):
            values = ds[tile, other + 1].reshape(d.shape[1], -1)
            estimate = max(estimate, largest_norm(values, weights_s[tile], sums))
        estimate = max(ERROR[other] * estimate, 1e-12)
        factor = estimate ** (-1.0 / (other + 1)) / SAFETY[1 + shift]
        if factor > best:
            best = factor
            chosen = other
    return chosen, min(10.0, best)
