"""Backward differences: coefficients of the formulas, changes of the step length, interpolation.

The formulas are the numerical differentiation formulas (NDF) of orders 1 to 5 in quasi-constant
steps (Shampine & Reichelt, The MATLAB ODE Suite, SIAM J. Sci. Comput. 18, 1997).
"""

from __future__ import annotations

from math import comb

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled

MAX_ORDER = 5  # highest order of the formulas

BLOCK = 512
"""Number of columns of the differences processed together, so that they stay in the cache."""

KAPPA = np.array([0.0, -0.1850, -1.0 / 9.0, -0.0823, -0.0415, 0.0])
"""Coefficients by order that make NDF of the backward differentiation formulas."""

GAMMA = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, MAX_ORDER + 1))])
"""Coefficients of the backward differences in the derivative."""

ALPHA = (1.0 - KAPPA) * GAMMA  # coefficients by order of the correction in the derivative

EXTRAPOLATION = np.tri(MAX_ORDER + 1)
"""Shares, by order, of the differences in the values that they extrapolate a step ahead."""

IMPLICIT = EXTRAPOLATION.copy()
"""Shares, by order, of the differences in the right-hand side of the implicit equations: the
extrapolated values minus the known part of the derivative."""

IMPLICIT[1:, :] -= np.tri(MAX_ORDER + 1)[1:, :] * GAMMA / ALPHA[1:, None]

SAME_STEP = np.array(
    [[(-1) ** i * comb(j, i) for j in range(MAX_ORDER + 1)] for i in range(MAX_ORDER + 1)], float
)
"""The matrix U of a change of the step length: binomial coefficients with alternating signs."""

ERROR = KAPPA * GAMMA + 1.0 / np.arange(1, MAX_ORDER + 2)
"""Coefficients by order of the local error, in terms of the correction."""


@compiled
def copy(values: Array, out: Array) -> None:
    """Copy numbers; assignments to slices would take seconds to compile."""
    for x in range(out.shape[0]):
        out[x] = values[x]


@compiled
def combine(d: Array, shares: Array, row: int, out: Array) -> None:
    """Write the sum of differences times a row of `shares`, shape (k, 6), to `out`.

    All orders are read together: a sum for each order takes three times as long.
    """
    s0, s1, s2 = shares[row, 0], shares[row, 1], shares[row, 2]
    s3, s4, s5 = shares[row, 3], shares[row, 4], shares[row, 5]
    d0, d1, d2, d3, d4, d5 = d[0], d[1], d[2], d[3], d[4], d[5]
    for x in range(d.shape[1]):
        low = s0 * d0[x] + s1 * d1[x] + s2 * d2[x]
        out[x] = low + (s3 * d3[x] + s4 * d4[x] + s5 * d5[x])


@compiled
def combine_part(d: Array, shares: Array, row: int, start: int, stop: int, out: Array) -> None:
    """Write the same sum for the columns from `start` to `stop` to the first of `out`."""
    s0, s1, s2 = shares[row, 0], shares[row, 1], shares[row, 2]
    s3, s4, s5 = shares[row, 3], shares[row, 4], shares[row, 5]
    d0, d1, d2 = d[0, start:stop], d[1, start:stop], d[2, start:stop]
    d3, d4, d5 = d[3, start:stop], d[4, start:stop], d[5, start:stop]
    for x in range(stop - start):
        low = s0 * d0[x] + s1 * d1[x] + s2 * d2[x]
        out[x] = low + (s3 * d3[x] + s4 * d4[x] + s5 * d5[x])


@compiled
def combine_twice(
    d: Array, first: Array, second: Array, row: int, out: Array, other: Array
) -> None:
    """Write two such sums, by a row of `first` and `second`, to `out` and `other`.

    Differences are read once for both: those of sensitivities do not fit into the nearest cache.
    """
    a0, a1, a2 = first[row, 0], first[row, 1], first[row, 2]
    a3, a4, a5 = first[row, 3], first[row, 4], first[row, 5]
    b0, b1, b2 = second[row, 0], second[row, 1], second[row, 2]
    b3, b4, b5 = second[row, 3], second[row, 4], second[row, 5]
    d0, d1, d2, d3, d4, d5 = d[0], d[1], d[2], d[3], d[4], d[5]
    for x in range(d.shape[1]):
        v0, v1, v2, v3, v4, v5 = d0[x], d1[x], d2[x], d3[x], d4[x], d5[x]
        out[x] = (a0 * v0 + a1 * v1 + a2 * v2) + (a3 * v3 + a4 * v4 + a5 * v5)
        other[x] = (b0 * v0 + b1 * v1 + b2 * v2) + (b3 * v3 + b4 * v4 + b5 * v5)


@compiled
def change_matrix(order: int, factor: float, out: Array) -> None:
    """Write the transposed matrix R U of a change of the step length to `out`, shape (6, 6).

    Row by row, R_ij = R_(i-1)j (i - 1 - factor j) / i; U is R for a factor of one.
    """
    for i in range(MAX_ORDER + 1):
        for j in range(MAX_ORDER + 1):
            out[i, j] = 0.0
    for k in range(1, order + 1):
        r = 1.0
        for i in range(1, order + 1):
            r *= (i - 1 - factor * k) / i
            for j in range(k, order + 1):
                out[j, i] += r * SAME_STEP[k, j]


@compiled
def change_differences(d: Array, order: int, m: Array, rows: Array) -> None:
    """Apply the transposed matrix `m` of a change of step to differences `d`, using `rows`.

    The first row and column of the matrix are those of the unit matrix, so that the difference of
    order 0 remains. Differences have at least the shape (orders, size); `rows` needs no more
    columns than a block. Compilers turn long rows into vector instructions.
    """
    size = d.shape[1]
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        for j in range(1, order + 1):
            combine_part(d, m, j, start, stop, rows[j])
        for j in range(1, order + 1):
            changed, row = d[j, start:stop], rows[j]
            for x in range(stop - start):
                changed[x] = row[x]


@compiled
def change_step(d: Array, ds: Array, order: int, factor: float, m: Array, rows: Array) -> None:
    """Convert the differences of states and sensitivities to a step length times `factor`.

    Those of states have the shape (orders, n), those of sensitivities (tiles, orders, size). The
    matrix of the change is written to `m`, shape (6, 6); `rows` has space for six rows.
    """
    change_matrix(order, factor, m)
    change_differences(d, order, m, rows)
    for tile in range(ds.shape[0]):
        change_differences(ds[tile], order, m, rows)


@compiled
def add_difference(d: Array, new: Array, order: int) -> None:
    """Append the correction `new`, the difference of order `order` + 1, and update the others."""
    size = new.shape[0]
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        added, top, last = new[start:stop], d[order + 2, start:stop], d[order + 1, start:stop]
        for x in range(stop - start):
            top[x] = added[x] - last[x]
        for x in range(stop - start):
            last[x] = added[x]
        for j in range(order, -1, -1):
            lower, upper = d[j, start:stop], d[j + 1, start:stop]
            for x in range(stop - start):
                lower[x] += upper[x]


@compiled
def interpolation(order: int, time: float, h: float, at: float, shares: Array) -> None:
    """Write the shares of the differences in the values at time `at` to `shares`, shape (1, 6)."""
    share = 1.0
    for j in range(MAX_ORDER + 1):
        if j > 0:
            share *= (at - (time - h * (j - 1))) / (h * j)
        shares[0, j] = share if j <= order else 0.0
