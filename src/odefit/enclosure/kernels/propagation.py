"""Propagation of the error of a Taylor model during a step, in compiled code, for one box.

The formulas are those of :mod:`odefit.enclosure.error_propagation`.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.error_propagation import FRAME_ORDER, MAX_GROWTH_NORM
from odefit.enclosure.kernels.compiling import rigorous


@rigorous
def times(matrix: Array, vector: Array) -> Array:
    """Return a matrix times a vector."""
    n = len(vector)
    out = np.zeros(n)
    for i in range(n):
        for j in range(n):
            out[i] += matrix[i, j] * vector[j]
    return out


@rigorous
def times_magnitudes(matrix: Array, vector: Array, by_columns: bool) -> Array:
    """Return the magnitudes of a matrix, or of its transpose, times a vector, rounded upwards."""
    n = len(vector)
    out = np.zeros(n)
    for i in range(n):
        for j in range(n):
            out[i] += abs(matrix[j, i] if by_columns else matrix[i, j]) * vector[j]
        out[i] *= ROUNDING_MARGIN
    return out


@rigorous
def add_product(out: Array, left: Array, right: Array) -> None:
    """Add the product of two square matrices."""
    n = len(left)
    for i in range(n):
        for k in range(n):
            value = left[i, k]
            if value != 0.0:
                for j in range(n):
                    out[i, j] += value * right[k, j]


@rigorous
def add_magnitudes(out: Array, left: Array, right: Array) -> None:
    """Add the product of the magnitudes of two square matrices."""
    n = len(left)
    for i in range(n):
        for k in range(n):
            value = abs(left[i, k])
            if value != 0.0:
                for j in range(n):
                    out[i, j] += value * abs(right[k, j])


@rigorous
def identity(n: int) -> Array:
    """Return the unit matrix."""
    out = np.zeros((n, n))
    for i in range(n):
        out[i, i] = 1.0
    return out


@rigorous
def constant(n: int, value: float) -> Array:
    """Return a vector of n equal numbers."""
    out = np.zeros(n)
    for i in range(n):
        out[i] = value
    return out


@rigorous
def is_finite(values: Array) -> bool:
    """Return whether all entries of a vector are finite."""
    finite = True
    for i in range(len(values)):
        finite &= np.isfinite(values[i])
    return finite


@rigorous
def row_norm(matrix: Array) -> float:
    """Return the largest sum of magnitudes of a row; infinite if an entry is not a number."""
    norm = 0.0
    for i in range(len(matrix)):
        total = 0.0
        for j in range(len(matrix)):
            total += abs(matrix[i, j])
        if not total <= norm:
            norm = total if total > norm else np.inf
    return norm


@rigorous
def exponential_sums(matrix: Array, first: Array, steady: Array) -> tuple[Array, Array]:
    """Return the sums of ``N^k / k! first`` and ``N^k / (k + 1)! steady``, rounded upwards."""
    n = len(first)
    norm = row_norm(matrix)
    if not norm <= MAX_GROWTH_NORM:
        return constant(n, np.inf), constant(n, np.inf)
    last = int(12 + 4 * norm)
    v, w = first.copy(), steady.copy()
    start, drive = v.copy(), w.copy()
    for k in range(1, last):
        v, w = times(matrix, v), times(matrix, w)
        for i in range(n):
            v[i] /= k
            w[i] /= k + 1
            start[i] += v[i]
            drive[i] += w[i]
    # The omitted terms are at most a geometric series with the ratio norm / last.
    rest = norm / last / (1.0 - norm / last)
    top_v, top_w = 0.0, 0.0
    for i in range(n):
        top_v, top_w = max(top_v, v[i]), max(top_w, w[i])
    for i in range(n):
        start[i] = (start[i] + top_v * rest) * ROUNDING_MARGIN
        drive[i] = (drive[i] + top_w * rest) * ROUNDING_MARGIN
    return start, drive


@rigorous
def propagate_componentwise(upper: Array, sizes: Array, defect: Array) -> tuple[Array, Array]:
    """Return bounds of |e| at the end of a step and during all of it, shape (n,)."""
    n = len(sizes)
    shift = 0.0
    for i in range(n):
        shift = max(shift, -upper[i, i])
    shifted = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            value = upper[i, j] + shift if i == j else upper[i, j]
            shifted[i, j] = max(value, 0.0) * ROUNDING_MARGIN
    start, drive = exponential_sums(shifted, sizes, defect)
    after, during = np.zeros(n), np.zeros(n)
    for i in range(n):
        after[i] = (np.exp(-shift) * start[i] + drive[i]) * ROUNDING_MARGIN + UNDERFLOW
        during[i] = (start[i] + drive[i]) * ROUNDING_MARGIN + UNDERFLOW
    return after, during


@rigorous
def _series_defect(middle: Array, series: Array, sup: Array, from_left: bool) -> Array:
    """Return a bound of a series' defect: orders beyond its last one, and all rounding."""
    count, n, _ = middle.shape
    defect = np.zeros((n, n))
    rounding = 8 * n * (FRAME_ORDER + 1) * UNIT_ROUNDOFF
    for a in range(n):
        for b in range(n):
            bound = UNDERFLOW
            for i in range(n):
                left, right = (a, i) if from_left else (i, b)
                row, column = (i, b) if from_left else (a, i)
                for j in range(count):
                    size = abs(middle[j, left, right])
                    bound += rounding * size * sup[row, column]
                    for k in range(max(FRAME_ORDER - j, 0), FRAME_ORDER + 1):
                        bound += size * abs(series[k, row, column])
            defect[a, b] = bound * ROUNDING_MARGIN
    return defect


@rigorous
def inverse_excess(residue: Array) -> float:
    """Return a bound of all entries of ``(1 + R)^-1 - 1`` for |R| at most `residue`."""
    norm = row_norm(residue) * ROUNDING_MARGIN
    most = 0.0
    for i in range(len(residue)):
        for j in range(len(residue)):
            most = max(most, residue[i, j])
    return most * ROUNDING_MARGIN / (1 - norm) if norm < 0.5 else np.inf


@rigorous
def moving_frame(middle: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return the flow at the middle of a box with bounds, from its Jacobian, shape (k, n, n).

    They are Phi at the end, its rounding, bounds of |Phi| and |Phi^-1| during the step, and the
    defect of Phi, each of shape (n, n).
    """
    count, n, _ = middle.shape
    phi = np.zeros((FRAME_ORDER + 1, n, n))
    psi = np.zeros((FRAME_ORDER + 1, n, n))
    end, sup, inverse = identity(n), identity(n), identity(n)
    for i in range(n):
        phi[0, i, i] = psi[0, i, i] = 1.0
    for k in range(1, FRAME_ORDER + 1):
        for a in range(n):
            for b in range(n):
                forward, backward = 0.0, 0.0
                for j in range(min(k, count)):
                    for i in range(n):
                        forward += middle[j, a, i] * phi[k - 1 - j, i, b]
                        backward -= psi[k - 1 - j, a, i] * middle[j, i, b]
                phi[k, a, b], psi[k, a, b] = forward / k, backward / k
                end[a, b] += phi[k, a, b]
                sup[a, b] += abs(phi[k, a, b])
                inverse[a, b] += abs(psi[k, a, b])
    rounding = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            sup[i, j] *= ROUNDING_MARGIN
            inverse[i, j] *= ROUNDING_MARGIN
            rounding[i, j] = 2 * (FRAME_ORDER + 1) * UNIT_ROUNDOFF * sup[i, j] + UNDERFLOW
    defect = _series_defect(middle, phi, sup, True)
    # psi phi = 1 + residue, and the residue's derivative follows from the defects of both.
    of_psi = _series_defect(middle, psi, inverse, False)
    residue = np.zeros((n, n))
    add_magnitudes(residue, of_psi, sup)
    add_magnitudes(residue, inverse, defect)
    excess = inverse_excess(residue) * ROUNDING_MARGIN
    for j in range(n):
        column = 0.0
        for i in range(n):
            column += inverse[i, j]
        for i in range(n):
            inverse[i, j] = (inverse[i, j] + excess * column) * ROUNDING_MARGIN
    return end, rounding, sup, inverse, defect


@rigorous
def orthogonal_factor(matrix: Array) -> Array:
    """Return an orthogonal factor of a matrix by reflections, with the longest columns first.

    Its distance from an orthogonal matrix is bounded wherever it is used.
    """
    n = len(matrix)
    lengths = np.zeros(n)
    for j in range(n):
        for i in range(n):
            lengths[j] += matrix[i, j] ** 2
    r = np.zeros((n, n))
    for j in range(n):
        longest = 0
        for i in range(n):
            if lengths[i] > lengths[longest]:
                longest = i
        size = np.sqrt(lengths[longest])
        for i in range(n):
            r[i, j] = matrix[i, longest] / size if size > 0 else 0.0
        lengths[longest] = -1.0
    q = identity(n)
    v = np.zeros(n)
    for k in range(n - 1):
        size = 0.0
        for i in range(k, n):
            size += r[i, k] ** 2
        size = np.sqrt(size)
        if size == 0.0:
            continue
        for i in range(n):
            v[i] = r[i, k] if i >= k else 0.0
        v[k] += size if v[k] >= 0 else -size
        square = 0.0
        for i in range(k, n):
            square += v[i] ** 2
        for j in range(n):
            along, across = 0.0, 0.0
            for i in range(k, n):
                along += v[i] * r[i, j]
                across += q[j, i] * v[i]
            for i in range(k, n):
                r[i, j] -= 2 * along / square * v[i]
                q[j, i] -= 2 * across / square * v[i]
    return q


@rigorous
def in_frame_coordinates(frame: Array, lengths: Array) -> Array:
    """Return a bound of ``frame^-1 e`` from one of ``frame' e``, for a nearly orthogonal frame."""
    n = len(lengths)
    residue = np.zeros((n, n))
    total_length = 0.0
    for i in range(n):
        total_length += lengths[i]
        for j in range(n):
            total, size = 0.0, 0.0
            for k in range(n):
                total += frame[k, i] * frame[k, j]
                size += abs(frame[k, i] * frame[k, j])
            if i == j:
                total -= 1.0
            residue[i, j] = abs(total) + 4 * n * UNIT_ROUNDOFF * size
    mixed = inverse_excess(residue) * total_length
    out = np.zeros(n)
    for i in range(n):
        out[i] = (lengths[i] + mixed) * ROUNDING_MARGIN
    return out


@rigorous
def _through(frame: Array, matrix: Array, error: Array) -> Array:
    """Return a bound of |frame' matrix|, for a matrix with a bound of its error."""
    n = len(matrix)
    rounding = 4 * n * UNIT_ROUNDOFF
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            total, spread = 0.0, 0.0
            for k in range(n):
                total += frame[k, i] * matrix[k, j]
                spread += abs(frame[k, i]) * (error[k, j] + rounding * abs(matrix[k, j]))
            out[i, j] = (abs(total) + spread) * ROUNDING_MARGIN
    return out


@rigorous
def propagate_in_frame(
    middle: Array,
    variation: Array,
    sizes: Array,
    frame: Array,
    lengths: Array,
    defect: Array,
) -> tuple[Array, Array, Array]:
    """Return the error at the end of a step by the moving frame alone: sizes, frame, lengths.

    `middle`, shape (k, n, n), is the Jacobian's at the middle of the box, and `variation` the
    distance from it, both times the step; `defect` is the polynomial's.
    """
    n = len(sizes)
    end, rounding, sup, inverse, frame_defect = moving_frame(middle)
    varied, growth = frame_defect.copy(), np.zeros((n, n))
    add_magnitudes(varied, variation, sup)
    add_magnitudes(growth, inverse, varied)
    drive = times_magnitudes(inverse, defect, False)
    in_frame = times_magnitudes(frame, lengths, False)
    begin = np.zeros(n)
    for i in range(n):
        begin[i] = min(sizes[i], in_frame[i])
        for j in range(n):
            growth[i, j] *= ROUNDING_MARGIN
    start, driven = exponential_sums(growth, begin, drive)
    added, outer_error = np.zeros(n), np.zeros((n, n))
    for i in range(n):
        added[i] = max(start[i] - begin[i], 0.0) + driven[i]
        added[i] += 4 * UNIT_ROUNDOFF * start[i] + UNDERFLOW
        for j in range(n):
            outer_error[i, j] = rounding[i, j] + 4 * n * UNIT_ROUNDOFF * abs(end[i, j])
    nothing = constant(n, np.inf), identity(n), constant(n, np.inf)
    if not (np.isfinite(row_norm(end)) and is_finite(added) and is_finite(lengths)):
        return nothing
    carried, carried_error = np.zeros((n, n)), np.zeros((n, n))
    add_product(carried, end, frame)
    add_magnitudes(carried_error, outer_error, frame)
    scaled = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            scaled[i, j] = carried[i, j] * lengths[j]
    norm = row_norm(scaled)
    # Without a direction to follow, the frame is that of the states.
    turned = orthogonal_factor(scaled) if 0 < norm < np.inf else identity(n)
    by_lengths = times(_through(turned, carried, carried_error), lengths)
    by_added = times(_through(turned, end, rounding), added)
    for i in range(n):
        by_lengths[i] = (by_lengths[i] + by_added[i] + UNDERFLOW) * ROUNDING_MARGIN
    moved = in_frame_coordinates(turned, by_lengths)
    after = times_magnitudes(turned, moved, False)
    return (after, turned, moved) if is_finite(after) else nothing


@rigorous
def put_dependent(unknown: BoolArray, dependence: Array) -> None:
    """Mark all states that depend on unknown ones as unknown as well, shape (n,)."""
    n = len(unknown)
    before = unknown.copy()
    for i in range(n):
        for j in range(n):
            if before[j] and dependence[i, j] > 0:
                unknown[i] = True


@rigorous
def without(
    sizes: Array, frame: Array, lengths: Array, states: BoolArray
) -> tuple[Array, Array, Array]:
    """Return an error bound as if the error of some states were zero."""
    n = len(sizes)
    rest, known, anew = sizes.copy(), is_finite(lengths), False
    for i in range(n):
        if states[i]:
            # The share of these states in the lengths is unknown: only the other sizes remain.
            anew |= sizes[i] != 0 and (np.isfinite(sizes[i]) or not known)
            rest[i] = 0.0
    if anew:
        return rest, identity(n), rest.copy()
    return rest, frame.copy(), lengths.copy()
