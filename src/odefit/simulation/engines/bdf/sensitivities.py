"""One step of the sensitivities, with the factorisation at the new point.

Sensitivities are staggered: once the states' part of a step has passed its error test, the linear
equations of all directions are solved with one factorisation (Caracotsios & Stewart, Comput. Chem.
Eng. 9, 1985). Directions are the columns of arrays, in tiles that are not too wide for the
processor's cache.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import combine_twice
from odefit.simulation.engines.bdf.elimination import Elimination, solve
from odefit.simulation.engines.bdf.equations import Entries, ScalarTerms

SENSITIVITY_SHARE = 0.5
"""Share of the local error of the sensitivities that is held to the tolerance.

On thirteen stiff models, errors of states and sensitivities were then at most as large as those of
CVODES, which controls both together, at the same tolerance. A smaller share brings no gain: 0.1
takes 10 to 20 per cent fewer steps, and errors are two to four times as large, as with a larger
tolerance.
"""

ROUNDING = 10 * float(np.finfo(float).eps)
"""Rounding error of elimination where reactions are fast, relative to |c J_ii|.

The slow part of fast reversible reactions is then the small difference of large numbers. If the
sensitivity of one state almost vanishes compared with those of others, its digits are their
rounding errors, and steps that should resolve them shrink without end. On a published model (Fujita
et al., Sci. Signal. 3, 2010) 250 steps became 100,000, for sensitivities without any effect.
"""

MAX_ROUNDING = 100.0
"""Largest ratio of the rounding error to the relative tolerance. It limits the error relative to
the largest sensitivity of the same direction, and to the largest value of the sensitivity itself so
far. If elimination is more accurate than predicted, the sensitivity keeps its digits.
"""


@compiled
def largest_norm(values: Array, weights: Array, sums: Array) -> float:
    """Return the largest root mean square of values times weights, shape (n, w), by column."""
    n, width = weights.shape
    for q in range(width):
        sums[q] = 0.0
    for i in range(n):
        for q in range(width):
            sums[q] += (values[i, q] * weights[i, q]) ** 2
    largest = 0.0
    for q in range(width):
        if not sums[q] <= largest:  # true for NaN
            largest = sums[q]
    result: float = SENSITIVITY_SHARE * np.sqrt(largest / n)
    return result


@compiled
def add_scalar_terms(
    terms: ScalarTerms, tile: int, c: float, by_scalars: Array, out: Array
) -> None:
    """Add c df/dp dp of a tile to `out`, shape (n, w)."""
    for k in range(terms.start[tile], terms.start[tile + 1]):
        value = c * by_scalars[terms.derivative[k]] * terms.multiplier[k]
        out[terms.row[k], terms.column[k]] += value


@compiled
def first_difference(
    entries: Entries,
    terms: ScalarTerms,
    tile: int,
    h: float,
    derivatives: Array,
    values: Array,
    change: Array,
) -> None:
    """Add h times the derivative of a tile's sensitivities `values`, shape (n, w), to `change`."""
    nonzeros = entries.row.shape[0]
    for k in range(nonzeros):
        i, j = entries.row[k], entries.column[k]
        for q in range(values.shape[1]):
            change[i, q] += h * derivatives[k] * values[j, q]
    add_scalar_terms(terms, tile, h, derivatives[nonzeros:], change)


@compiled
def sensitivity_step(
    e: Elimination,
    terms: ScalarTerms,
    tile: int,
    order: int,
    c: float,
    lu: Array,
    by_scalars: Array,
    extrapolation: Array,
    implicit: Array,
    d: Array,
    predicted: Array,
    new: Array,
) -> None:
    """Solve the sensitivity equations of a tile; leave the new sensitivities in `new`.

    (I - c J) S = D_0 + sum_j (1 - gamma_j / alpha) D_j + c df/dp dp, where D_j are the backward
    differences of S, shape (orders, n * w). The extrapolated values are left in `predicted`. The
    matrices `extrapolation` and `implicit` are those of the module of differences.
    """
    out, other = predicted.reshape(predicted.size), new.reshape(new.size)
    combine_twice(d, extrapolation, implicit, order, out, other)
    add_scalar_terms(terms, tile, c, by_scalars, new)
    solve(e, lu, new)


@compiled
def rounding(entries: Entries, c: float, derivatives: Array, rtol: float) -> float:
    """Return the rounding error of elimination, relative to the largest sensitivity.

    That is :data:`ROUNDING` times the largest |c J_ii|, but :data:`MAX_ROUNDING` tolerances at
    most. The Jacobian's nonzeros are the first of `derivatives`.
    """
    stiffest = 0.0
    for k in range(entries.row.shape[0]):
        if entries.row[k] == entries.column[k]:
            stiffest = max(stiffest, c * abs(derivatives[k]))
    return min(ROUNDING * stiffest, MAX_ROUNDING * rtol)


@compiled
def sensitivity_weights(
    new: Array,
    predicted: Array,
    by_state: Array,
    largest: Array,
    atol: Array,
    rtol: float,
    rounded: float,
    shares: Array,
    weights: Array,
) -> None:
    """Write the weights of a tile's errors, shape (n, w), to `weights`.

    They are 1 / (atol + rtol |S| + rounding error). The new sensitivities `new` become their
    difference from the predicted ones.

    Sensitivities of a direction are compared in units of the states' errors, whose weights are
    `by_state`. `rounded` is the result of :func:`rounding`; `shares` is space for w numbers.
    """
    n, width = new.shape
    for q in range(width):
        shares[q] = 0.0
    for i in range(n):
        factor = rounded * by_state[i]
        for q in range(width):
            shares[q] = max(shares[q], factor * abs(new[i, q]))
    for i in range(n):
        smallest = atol[i]
        unit = 1.0 / by_state[i]
        for q in range(width):
            error = min(unit * shares[q], MAX_ROUNDING * rtol * largest[i, q])
            weights[i, q] = 1.0 / (smallest + rtol * abs(new[i, q]) + error)
    subtract(predicted, new)


@compiled
def subtract(predicted: Array, new: Array) -> None:
    """Replace new sensitivities, shape (n, w), by their difference from the predicted ones."""
    for i in range(new.shape[0]):
        for q in range(new.shape[1]):
            new[i, q] -= predicted[i, q]


@compiled
def note_largest(values: Array, largest: Array) -> None:
    """Raise `largest`, shape (n, w), to the magnitudes of values, shape (n w,)."""
    seen = largest.reshape(largest.size)
    for x in range(values.shape[0]):
        seen[x] = max(seen[x], abs(values[x]))
