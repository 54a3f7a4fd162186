"""Taylor models of one box in compiled code: orders in time one by one, then remainders.

The formulas are those of :mod:`odefit.enclosure.arithmetic.taylor_evaluation` and
:mod:`odefit.enclosure.arithmetic.taylor_models`. Arrays have a row for each place of a program.
They are the coefficients c, shape (places, M, K), their `norms` by degree and order, shape (places,
D + 1, K), the `remainder` and its part due to `truncation` in time.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.kernels.compiling import rigorous
from odefit.enclosure.kernels.programs import Program


@rigorous
def compute_order(program: Program, c: Array, reciprocals: Array, rest: Array, k: int) -> None:
    """Compute the coefficients of order k of all operations, from those of the variables.

    `reciprocals`, shape (operations, M), keeps those of divisors; `rest`, shape (M,), is scratch.
    """
    m = c.shape[1]
    lengths = program.lengths
    for row in range(len(program.operations)):
        code, a, b, out = program.operations[row]
        if k >= lengths[out]:
            continue
        if code <= 1:
            sign = 1.0 if code == 0 else -1.0
            for i in range(m):
                value = c[a, i, k] if k < lengths[a] else 0.0
                if k < lengths[b]:
                    value += sign * c[b, i, k]
                c[out, i, k] = value
        elif code == 2:
            low, high = max(0, k - lengths[b] + 1), min(k, lengths[a] - 1)
            c[out, :, k] = 0.0
            for q in range(program.first[row], program.first[row + 1]):
                i, j, t = program.pairs[q]
                total = 0.0
                for order in range(low, high + 1):
                    total += c[a, i, order] * c[b, j, k - order]
                c[out, t, k] += total
        else:
            _divide(program, row, c, reciprocals, rest, k)


@rigorous
def _divide(program: Program, row: int, c: Array, reciprocals: Array, rest: Array, k: int) -> None:
    """Compute the coefficients of order k of a quotient."""
    _, a, b, out = program.operations[row]
    begin, end = program.first[row], program.first[row + 1]
    m = c.shape[1]
    if k == 0:
        _reciprocal(program, row, c, reciprocals[row], rest)
    for i in range(m):
        rest[i] = c[a, i, k] if k < program.lengths[a] else 0.0
    for order in range(1, min(k, program.lengths[b] - 1) + 1):
        for q in range(begin, end):
            g, h, t = program.pairs[q]
            rest[t] -= c[b, g, order] * c[out, h, k - order]
    c[out, :, k] = 0.0
    for q in range(len(program.every)):
        g, h, t = program.every[q]
        c[out, t, k] += reciprocals[row, g] * rest[h]


@rigorous
def _reciprocal(program: Program, row: int, c: Array, inverse: Array, again: Array) -> None:
    """Set one over the divisor of an operation, a polynomial in d, by its geometric series."""
    b = program.operations[row, 2]
    first = 1.0 / c[b, 0, 0]
    inverse[:] = 0.0
    inverse[0] = 1.0
    for _ in range(program.degrees[-1]):
        again[:] = 0.0
        for q in range(program.first[row], program.first[row + 1]):
            i, j, t = program.pairs[q]
            if i > 0:
                again[t] -= c[b, i, 0] * first * inverse[j]
        again[0] += 1.0
        inverse[:] = again
    for i in range(len(inverse)):
        inverse[i] *= first


@rigorous
def put_norms(program: Program, c: Array, norms: Array, place: int) -> float:
    """Set the norms of one place by degree and order; return their sum."""
    norms[place] = 0.0
    total = 0.0
    for i in range(c.shape[1]):
        degree = program.degrees[i]
        for k in range(program.lengths[place]):
            size = abs(c[place, i, k])
            norms[place, degree, k] += size
            total += size
    return total


@rigorous
def _sum(norms: Array) -> float:
    total = 0.0
    for g in range(norms.shape[0]):
        for k in range(norms.shape[1]):
            total += norms[g, k]
    return total


@rigorous
def _dropped(left: Array, right: Array, ka: int, kb: int, length: int) -> tuple[float, float]:
    """Return bounds of the terms that a product drops: beyond the degree, beyond the order."""
    degree = len(left) - 1
    beyond, truncation = 0.0, 0.0
    for g in range(1, degree + 1):
        total, other = 0.0, 0.0
        for k in range(ka):
            total += left[g, k]
        for h in range(degree - g + 1, degree + 1):
            for k in range(kb):
                other += right[h, k]
        beyond += total * other
    if ka + kb - 1 > length:
        # Sums of the right factor from one order on, over degrees that add up to at most D.
        tails = np.zeros(kb)
        for h in range(degree + 1):
            tail = 0.0
            for j in range(kb - 1, -1, -1):
                tail += right[h, j]
                tails[j] += tail
            for k in range(max(length - kb + 1, 0), ka):
                truncation += left[degree - h, k] * tails[max(length - k, 0)]
    return beyond, truncation


@rigorous
def _times_bound(norm: float, remainder: float) -> float:
    """Return a product of bounds in which zero times infinity is zero."""
    if norm == 0.0 or remainder == 0.0:
        return 0.0
    return norm * remainder + UNDERFLOW


@rigorous
def _product_rounding(left: float, right: float, terms: int) -> float:
    if left == 0.0 or right == 0.0:
        return 0.0
    return 2 * UNIT_ROUNDOFF * (terms + 4) * left * right + UNDERFLOW


@rigorous
def bound(
    program: Program,
    c: Array,
    norms: Array,
    remainder: Array,
    truncation: Array,
    length: int,
) -> None:
    """Set norms, remainders and truncations of all operations, from those of the variables."""
    m = c.shape[1]
    for row in range(len(program.operations)):
        code, a, b, out = program.operations[row]
        ka, kb = program.lengths[a], program.lengths[b]
        total = put_norms(program, c, norms, out)
        if code <= 1:
            rounding = 2 * UNIT_ROUNDOFF * total
            error = (remainder[a] + remainder[b] + rounding) * ROUNDING_MARGIN
            cut = truncation[a] + truncation[b]
        elif code == 2:
            beyond, cut = _dropped(norms[a], norms[b], ka, kb, length)
            sa, sb = _sum(norms[a]), _sum(norms[b])
            error = beyond + cut + _times_bound(remainder[a], remainder[b])
            error += _times_bound(sa, remainder[b]) + _times_bound(sb, remainder[a])
            error = (error + _product_rounding(sa, sb, m * length)) * ROUNDING_MARGIN
            cut += _times_bound(sa, truncation[b]) + _times_bound(sb, truncation[a])
        else:
            error, cut = _quotient_bounds(
                program, row, c, norms, total, remainder, truncation, length
            )
        # If the polynomial or its bound is not finite, nothing is known.
        if not np.isfinite(total) or np.isnan(error):
            c[out] = 0.0
            norms[out] = 0.0
            error, cut = np.inf, np.inf
        remainder[out], truncation[out] = error, cut


@rigorous
def _quotient_bounds(
    program: Program,
    row: int,
    c: Array,
    norms: Array,
    total: float,
    remainder: Array,
    truncation: Array,
    length: int,
) -> tuple[float, float]:
    """Return remainder and truncation of a quotient: left - right * out, over the divisor."""
    _, a, b, out = program.operations[row]
    ka, kb, kq = program.lengths[a], program.lengths[b], program.lengths[out]
    m = c.shape[1]
    beyond, cut = _dropped(norms[b], norms[out], kb, kq, length)
    lacking = 0.0
    product = np.zeros(m)
    for k in range(kq):
        for i in range(m):
            product[i] = -c[a, i, k] if k < ka else 0.0
        for q in range(program.first[row], program.first[row + 1]):
            i, j, t = program.pairs[q]
            for order in range(max(0, k - kq + 1), min(k, kb - 1) + 1):
                product[t] += c[b, i, order] * c[out, j, k - order]
        for i in range(m):
            lacking += abs(product[i])
    sb = _sum(norms[b])
    least = 2 * abs(c[b, 0, 0]) - (sb + remainder[b]) * ROUNDING_MARGIN
    error = lacking + beyond + cut + remainder[a] + _times_bound(total, remainder[b])
    error += _product_rounding(sb, total, m * length) + 4 * UNIT_ROUNDOFF * _sum(norms[a])
    if not least > 0:
        return np.inf, np.inf
    cut += truncation[a] + _times_bound(total, truncation[b])
    rest = 0.0 if error == 0.0 else UNDERFLOW
    return error * ROUNDING_MARGIN / least + rest, cut / least
