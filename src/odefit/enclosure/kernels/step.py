"""One step of a solution over one box in compiled code: its polynomial in time, and its error.

The formulas are those of :mod:`odefit.enclosure.taylor_step`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.error_propagation import MAX_GROWTH_NORM
from odefit.enclosure.kernels.compiling import rigorous
from odefit.enclosure.kernels.programs import Program
from odefit.enclosure.kernels.propagation import (
    in_frame_coordinates,
    propagate_componentwise,
    propagate_in_frame,
    put_dependent,
    times_magnitudes,
    without,
)
from odefit.enclosure.kernels.taylor import bound, compute_order, put_norms
from odefit.enclosure.taylor_step import (
    HOPED_GROWTH,
    MAX_GUESSES,
    MAX_USEFUL_ERROR,
)


class Equations(NamedTuple):
    """The equations of one mode between two knots of the inputs.

    `rates` and `jacobian` are their programs, with `order` and `jacobian_orders` orders in time,
    the second of degree one in the box. `dependence`, shape (n, n), is one where a state depends on
    another; `tolerance`, shape (n,), is the avoidable error of a whole solution, and steps are too
    long above the `step_norm`; each counts as `step_cost`. The polynomials of the `inputs`, shape
    (inputs, 4), have their `origins`, shape (inputs,).
    """

    rates: Program
    jacobian: Program
    order: int
    jacobian_orders: int
    dependence: Array
    tolerance: Array
    step_norm: float
    step_cost: float
    inputs: Array
    origins: Array


class Workspace(NamedTuple):
    """Arrays of one program that every step overwrites (:mod:`odefit.enclosure.kernels.taylor`)."""

    c: Array
    norms: Array
    remainder: Array
    truncation: Array
    reciprocals: Array
    rest: Array


@rigorous
def workspace(program: Program, length: int) -> Workspace:
    """Return the arrays that a program with `length` orders in time needs."""
    places, m = len(program.lengths), len(program.degrees)
    return Workspace(
        np.zeros((places, m, length)),
        np.zeros((places, program.degrees[-1] + 1, length)),
        np.zeros(places),
        np.zeros(places),
        np.zeros((len(program.operations), m)),
        np.zeros(m),
    )


@rigorous
def put_constants(program: Program, space: Workspace, c: Array, remainder: Array) -> None:
    """Set the constants of a box, with coefficients of shape (constants, M)."""
    for place in range(len(c)):
        space.c[place, :, 0] = c[place]
        space.remainder[place] = remainder[place]
        space.truncation[place] = 0.0
        put_norms(program, space.c, space.norms, place)


@rigorous
def put_time(
    equations: Equations, program: Program, space: Workspace, length: int, time: float, h: float
) -> None:
    """Set time and inputs as polynomials in s with `length` coefficients."""
    place = program.clock
    if place >= 0:
        space.c[place, 0, 0] = time
        rest = 4 * UNIT_ROUNDOFF * (abs(time) + h)
        if length > 1:
            space.c[place, 0, 1] = h
        else:
            rest = (rest + h) * ROUNDING_MARGIN
        space.remainder[place] = rest
        put_norms(program, space.c, space.norms, place)
    for k in range(len(program.inputs)):
        place = program.inputs[k]
        if place < 0:
            continue
        p = equations.inputs[k]
        offset = time - equations.origins[k]
        shifted = np.zeros(4)
        shifted[0] = p[0] + offset * (p[1] + offset * (p[2] + offset * p[3]))
        shifted[1] = (p[1] + offset * (2 * p[2] + 3 * offset * p[3])) * h
        shifted[2] = (p[2] + 3 * offset * p[3]) * h**2
        shifted[3] = p[3] * h**3
        size, rest = 0.0, 0.0
        for j in range(4):
            size += abs(p[j]) * (abs(offset) + h) ** j
            if j < length:
                space.c[place, 0, j] = shifted[j]
            else:
                rest += abs(shifted[j])
        rest += 32 * UNIT_ROUNDOFF * size + UNDERFLOW
        space.remainder[place] = rest * ROUNDING_MARGIN
        put_norms(program, space.c, space.norms, place)


@rigorous
def polynomials(
    equations: Equations,
    space: Workspace,
    states: Array,
    unknown: BoolArray,
    time: float,
    h: float,
    t: Array,
    defect: Array,
    truncation: Array,
) -> None:
    """Set the Taylor polynomials t of the states, shape (n, M, K), and their defects, shape (n,).

    The defects are multiplied by the step; `truncation` is the part that shorter steps would
    reduce.
    """
    program, order = equations.rates, equations.order
    n, m = states.shape
    put_time(equations, program, space, order, time, h)
    for i in range(n):
        place = program.states[i]
        for j in range(m):
            for k in range(order):
                t[i, j, k] = states[i, j] if k == 0 else 0.0
                if place >= 0:
                    space.c[place, j, k] = t[i, j, k]
    for k in range(order):
        compute_order(program, space.c, space.reciprocals, space.rest, k)
        if k + 1 < order:
            for i in range(n):
                target, place = program.targets[i], program.states[i]
                if unknown[i] or k >= program.lengths[target]:
                    continue
                for j in range(m):
                    value = space.c[target, j, k] * (h / (k + 1))
                    t[i, j, k + 1] = value
                    if place >= 0:
                        space.c[place, j, k + 1] = value
    for i in range(n):
        place = program.states[i]
        if place >= 0:
            put_norms(program, space.c, space.norms, place)
    bound(program, space.c, space.norms, space.remainder, space.truncation, order)
    for i in range(n):
        target = program.targets[i]
        top = 0.0
        if program.lengths[target] == order:
            for j in range(m):
                top += abs(space.c[target, j, order - 1])
        whole = 0.0
        for g in range(space.norms.shape[1]):
            for k in range(order):
                whole += space.norms[target, g, k]
        truncation[i] = h * (top + space.truncation[target])
        size = 0.0
        for j in range(m):
            for k in range(order):
                size += abs(t[i, j, k])
        total = h * (top + space.remainder[target] + 4 * UNIT_ROUNDOFF * whole)
        total += 8 * UNIT_ROUNDOFF * order * size
        defect[i] = total * ROUNDING_MARGIN + UNDERFLOW
        if unknown[i]:
            defect[i] = truncation[i] = 0.0
            for j in range(m):
                for k in range(order):
                    t[i, j, k] = 0.0
        elif not np.isfinite(size) or np.isnan(defect[i]):
            defect[i] = truncation[i] = np.inf
            for j in range(m):
                for k in range(order):
                    if not np.isfinite(t[i, j, k]):
                        t[i, j, k] = 0.0


@rigorous
def jacobian_bounds(
    equations: Equations,
    space: Workspace,
    t: Array,
    guess: Array,
    time: float,
    h: float,
    middle: Array,
    upper: Array,
    variation: Array,
) -> None:
    """Set bounds of the Jacobian times the step, for errors up to a guess, shape (n,).

    `middle`, shape (k, n, n), is that of the middle of the box by order of s. `upper` has the
    diagonal from above and the other entries in magnitude. `variation` is the distance from the
    middle over the box, shape (n, n).
    """
    program, length = equations.jacobian, equations.jacobian_orders
    n, m = len(t), len(program.degrees)
    put_time(equations, program, space, length, time, h)
    for i in range(n):
        place = program.states[i]
        if place < 0:
            continue
        rest = guess[i]
        for j in range(t.shape[1]):
            for k in range(t.shape[2]):
                if j < m and k < length:
                    space.c[place, j, k] = t[i, j, k]
                else:
                    rest += abs(t[i, j, k])
        space.remainder[place] = rest * ROUNDING_MARGIN
        space.truncation[place] = 0.0
        put_norms(program, space.c, space.norms, place)
    for k in range(length):
        compute_order(program, space.c, space.reciprocals, space.rest, k)
    bound(program, space.c, space.norms, space.remainder, space.truncation, length)
    for number in range(n * n):
        i, j = number // n, number % n
        place = program.targets[number]
        orders = program.lengths[place]
        constant, varying, positive = 0.0, 0.0, 0.0
        for k in range(length):
            value = space.c[place, 0, k] if k < orders else 0.0
            middle[k, i, j] = value * h
            constant += abs(value)
            if k > 0:
                positive += max(value, 0.0)
            if k < orders:
                for row in range(1, m):
                    varying += abs(space.c[place, row, k])
        varying = (
            varying + space.remainder[place] + 8 * UNIT_ROUNDOFF * constant
        ) * ROUNDING_MARGIN
        variation[i, j] = varying * h * ROUNDING_MARGIN + UNDERFLOW
        # During the step, the orders of s beyond the first add their positive parts.
        top = space.c[place, 0, 0] + positive + varying if i == j else constant + varying
        top += 16 * UNIT_ROUNDOFF * constant
        upper[i, j] = top * h + abs(top * h) * (ROUNDING_MARGIN - 1) + UNDERFLOW
        if not np.isfinite(variation[i, j]):
            variation[i, j] = np.inf
        if not np.isfinite(upper[i, j]):
            upper[i, j] = np.inf


@rigorous
def put_zeros(matrix: Array, states: BoolArray) -> None:
    """Set the rows and columns of some states to zero."""
    for i in range(len(states)):
        for j in range(len(states)):
            if states[i] or states[j]:
                matrix[i, j] = 0.0


class StepEnd(NamedTuple):
    """The error at the end of a step, the states for which it is too long, and those that limit it.

    `sizes`, `frame` and `lengths` are those of an error bound; `unknown`, `too_long` and `limiting`
    have shape (n,).
    """

    sizes: Array
    frame: Array
    lengths: Array
    unknown: BoolArray
    too_long: BoolArray
    limiting: BoolArray
    easy: bool
    unconfirmed: bool


@rigorous
def confirmed_errors(
    equations: Equations,
    space: Workspace,
    t: Array,
    defect: Array,
    before: BoolArray,
    sizes: Array,
    time: float,
    h: float,
    middle: Array,
    variation: Array,
    norms: Array,
    unknown: BoolArray,
) -> Array:
    """Return bounds of the errors at the end of a step, component by component, shape (n,).

    The Jacobian is bounded for errors up to a guess, which must be confirmed. Sets the Jacobian's
    `middle` and `variation`, the `norms` of its rows, and which states are `unknown` at the end.
    """
    n = len(sizes)
    upper = np.zeros((n, n))
    guess, known_sizes, known_defect = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        guess[i] = 1.5 * sizes[i] + 2.0 * defect[i] + 4 * UNDERFLOW
    for attempt in range(MAX_GUESSES):
        jacobian_bounds(equations, space, t, guess, time, h, middle, upper, variation)
        for i in range(n):
            norms[i] = 0.0
            for j in range(n):
                norms[i] += abs(upper[i, j])
            # Nothing can be known of these states; the others do not depend on them.
            stiff = not norms[i] <= MAX_GROWTH_NORM / 2
            unknown[i] = before[i] or stiff or not np.isfinite(defect[i])
        put_dependent(unknown, equations.dependence)
        put_zeros(upper, unknown)
        for i in range(n):
            known_sizes[i] = 0.0 if unknown[i] else sizes[i]
            known_defect[i] = 0.0 if unknown[i] else defect[i]
        after, during = propagate_componentwise(upper, known_sizes, known_defect)
        settled = True
        for i in range(n):
            if np.isfinite(during[i]) and not (during[i] <= guess[i] or unknown[i]):
                settled = False
        if settled or attempt == MAX_GUESSES - 1:
            break
        for i in range(n):
            if not (during[i] <= guess[i] or unknown[i]):
                guess[i] = 1.3 * during[i] + 0.1 * guess[i]
    for i in range(n):
        held = during[i] <= guess[i] and np.isfinite(during[i])
        if not held or not after[i] <= MAX_USEFUL_ERROR * equations.tolerance[i]:
            unknown[i] = True
    put_dependent(unknown, equations.dependence)
    return after


@rigorous
def error_at_end(
    equations: Equations,
    space: Workspace,
    t: Array,
    defect: Array,
    before: BoolArray,
    sizes: Array,
    frame: Array,
    lengths: Array,
    time: float,
    h: float,
) -> StepEnd:
    """Return a bound of the distance of true solutions from the polynomials at a step's end."""
    n, orders = len(sizes), equations.jacobian_orders
    middle, variation = np.zeros((orders, n, n)), np.zeros((n, n))
    norms, unknown = np.zeros(n), np.zeros(n, dtype=np.bool_)
    after = confirmed_errors(
        equations, space, t, defect, before, sizes, time, h, middle, variation, norms, unknown
    )
    centre, largest, lost = 0.0, 0.0, False
    too_long, limiting = unknown.copy(), unknown.copy()
    known_defect, rounding = np.zeros(n), np.zeros(n)
    for i in range(n):
        total, size = 0.0, 0.0
        for k in range(orders):
            for j in range(n):
                total += abs(middle[k, i, j])
        for j in range(t.shape[1]):
            for k in range(t.shape[2]):
                size += abs(t[i, j, k])
        if not before[i]:
            centre, largest = max(centre, total), max(largest, norms[i])
            lost |= unknown[i]
        too_long[i] = unknown[i] or norms[i] > equations.step_norm
        limiting[i] = norms[i] > equations.step_norm / HOPED_GROWTH
        known_defect[i] = 0.0 if unknown[i] else defect[i]
        rounding[i] = 4 * UNIT_ROUNDOFF * t.shape[2] * size + UNDERFLOW
    sizes, frame, lengths = without(sizes, frame, lengths, unknown)
    for k in range(orders):
        put_zeros(middle[k], unknown)
    put_zeros(variation, unknown)
    framed, turned, moved = propagate_in_frame(
        middle, variation, sizes, frame, lengths, known_defect
    )
    ends = np.zeros(n)
    for i in range(n):
        if not unknown[i]:
            ends[i] = (min(after[i], framed[i]) + rounding[i]) * ROUNDING_MARGIN
    seen = in_frame_coordinates(turned, times_magnitudes(turned, ends, True))
    added = in_frame_coordinates(turned, times_magnitudes(turned, rounding, True))
    for i in range(n):
        moved[i] = min((moved[i] + added[i]) * ROUNDING_MARGIN, seen[i])
    easy = largest <= 0.5 * equations.step_norm
    unconfirmed = centre <= equations.step_norm and lost
    return StepEnd(ends, turned, moved, unknown, too_long, limiting, easy, unconfirmed)
