"""The integration of states and sensitivities: the outermost of the compiled kernels."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import copy
from odefit.simulation.engines.bdf.equations import Equations, ScalarTerms
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.bdf.integration import (
    CUT_OFF,
    FINISHED,
    TOO_MANY_STEPS,
    TOO_STEEP,
    UNDEFINED,
    Flag,
)
from odefit.simulation.engines.bdf.sensitivities import SENSITIVITY_SHARE
from odefit.simulation.engines.bdf.step_control import OVERFLOW, first_step, initial_sizes, norm
from odefit.simulation.engines.runge_kutta.coefficients import ALL, LAST
from odefit.simulation.engines.runge_kutta.lanes import run_in_lanes
from odefit.simulation.engines.runge_kutta.stages import (
    OUTPUT,
    POWERS,
    Method,
    error_of,
    registers_in_lanes,
    sensitivity_stages,
    states_stage,
    states_step,
    sum_of,
    write_outputs,
)
from odefit.simulation.engines.runge_kutta.watching import largest_defect

SAFETY = 0.9  # share of the step length allowed by an error
SHRINK, GROW = 0.2, 6.0  # limits of the change of the step length
ERROR_SHARE = 0.25
"""Share of the estimated error of a step that is held to the tolerance: errors are far smaller."""

MISSED = 1e3
"""Defect within a step, in units of the tolerance, above which it has missed a feature."""

STAGES = np.arange(ALL, dtype=np.uint32)  # their numbers

STIFF_STEPS = 15  # steps at the limit of stability after which equations are stiff
STABLE = 6.1  # length of the interval of stability on the negative real axis


@compiled
def sensitivity_error(
    method: Method,
    h: float,
    k: Array,
    new: Array,
    atol: Array,
    rtol: float,
    zero: Array,
    fifth: Array,
    third: Array,
    sums: Array,
) -> float:
    """Return the largest error of a tile's sensitivities by direction, in units of the tolerance.

    `fifth` and `third` are space for as many numbers as the tile has.
    """
    n = np.uint64(atol.shape[0])
    sum_of(method, method.error, zero, k, 1.0, fifth)
    sum_of(method, method.error + 1, zero, k, 1.0, third)
    width = np.uint64(new.shape[0]) // n
    for q in range(width):
        sums[q] = 0.0
        sums[width + q] = 0.0
    for i in range(n):
        smallest = atol[i]
        at = i * width
        for q in range(width):
            weight = 1.0 / (smallest + rtol * abs(new[at + q]))
            a, b = fifth[at + q] * weight, third[at + q] * weight
            sums[q] += a * a
            sums[width + q] += b * b
    largest = 0.0
    for q in range(width):
        error = error_of(h, sums[q], sums[width + q], atol.shape[0])
        if not error <= largest:  # true for NaN
            largest = error
    return ERROR_SHARE * SENSITIVITY_SHARE * largest


@compiled
def integrate(
    eq: Equations,
    method: Method,
    start: float,
    times: Array,
    horizon: float,
    ahead: float,
    states: Array,
    constants: Array,
    sensitivities: Array,
    terms: ScalarTerms,
    sizes: Array,
    places: int,
    absolute: float,
    rtol: float,
    controlled: bool,
    watching: bool,
    proposed: float,
    max_steps: int,
    ended: Flag,
    out: Array,
    out_sensitivities: Array,
) -> tuple[int, float, int, float]:
    """Integrate from `start` through `times`.

    See :func:`odefit.simulation.engines.bdf.integration.integrate` for the arguments. `proposed` is
    the length of the first step, zero to estimate one. Returns the kind of end, its time (counted
    from `start`), the number of steps, and the length proposed for the next step.
    """
    n = states.shape[0]
    tiles, _, width = sensitivities.shape
    size = n * width
    w = registers(eq.rhs)
    x = np.empty(1 + n + constants.shape[0])
    x[0] = start
    copy(states, x[1 : 1 + n])
    copy(constants, x[1 + n :])
    copy(x, w[: x.shape[0]])
    k = np.zeros((ALL, n))
    ks = np.zeros((tiles, ALL, size))
    y, new, last = states.copy(), np.empty(n), np.empty(n)
    s, new_s = np.empty((tiles, size)), np.empty((tiles, size))
    for tile in range(tiles):
        for i in range(n):
            copy(sensitivities[tile, i], s[tile, i * width : (i + 1) * width])
    zero, zero_s = np.zeros(n), np.zeros(size)
    fifth, third = np.empty(n), np.empty(n)
    fifth_s, third_s, sums = np.empty(size), np.empty(size), np.empty(2 * width)
    f, fs = np.zeros((POWERS, n)), np.zeros((POWERS, size))
    p, shares = np.empty(POWERS), np.empty(ALL)
    atol, weights = np.empty(n), np.empty(n)
    program = eq.derivatives if tiles > 0 else eq.jacobian
    outputs = program.outputs
    derivatives = np.empty(program.outputs.shape[0])
    initial_sizes(
        eq.rhs,
        program,
        eq.entries,
        x,
        w,
        registers(program),
        derivatives,
        ahead,
        horizon,
        places,
        sizes,
    )
    for i in range(n):
        weights[i] = 1.0 / (absolute * sizes[i] + rtol * abs(states[i]))
    end = times[-1]
    h = first_step(eq.rhs, start, end, x, w, k[0], weights)
    if h == 0.0:
        return UNDEFINED, 0.0, 0, 0.0
    if proposed > 0.0 and not watching:
        h = proposed
    elif not watching:
        # An error of order 8, if all derivatives change as fast as the states do now.
        size_now, slope = norm(x[1:], weights), norm(k[0], weights)
        if size_now > 1.0:
            h = max(h, size_now / max(slope, size_now / end) * (0.01 / size_now) ** 0.125)
    lanes = registers_in_lanes(program, constants, 1 + n) if tiles > 0 else np.empty(0)
    states_stage(eq.rhs, 0, start, y, w, lanes, k)
    if tiles > 0:
        run_in_lanes(program, lanes)
        for tile in range(tiles):
            sensitivity_stages(
                eq.entries,
                outputs,
                method,
                terms,
                tile,
                0,
                1,
                h,
                width,
                lanes,
                s[tile],
                ks[tile],
                new_s[tile],
            )
    watched = eq.watched.outputs.shape[0] if watching else 0
    w_watched = registers(eq.watched)
    before, after, signs = np.empty(watched), np.empty(watched), np.empty(watched)
    if watched > 0:
        evaluate(eq.watched, x, w_watched, before)
    t = 0.0
    tried = accepted = row = 0
    rejected = False
    stiff = 0
    while True:
        if tried >= max_steps:
            return TOO_MANY_STEPS, t, tried, h
        if ended[0] != 0:
            return CUT_OFF, t, tried, h
        if h < 1e-15 * abs(t) or h < 1e-25 * end:
            return TOO_STEEP, t, tried, h
        following = h
        new_t = t + h
        if t + 1.0001 * h >= end:
            h = end - t
            new_t = end
        tried += 1
        for i in range(n):
            atol[i] = absolute * sizes[i]
        states_step(eq.rhs, method, start + t, start + new_t, h, y, w, lanes, k, last, new)
        sum_of(method, method.error, zero, k, 1.0, fifth)
        sum_of(method, method.error + 1, zero, k, 1.0, third)
        e5, e3 = 0.0, 0.0
        for i in range(n):
            weights[i] = 1.0 / (atol[i] + rtol * max(abs(y[i]), abs(new[i])))
            e5 += (fifth[i] * weights[i]) ** 2
            e3 += (third[i] * weights[i]) ** 2
        error = ERROR_SHARE * error_of(h, e5, e3, n)
        for i in range(n):
            if not abs(k[LAST, i]) < OVERFLOW:
                error = np.inf
        dense = times[row] < new_t
        if error <= 1.0 and (dense or watching):
            for c in range(LAST + 1, ALL):
                sum_of(method, c + 1, y, k, h, fifth)
                states_stage(eq.rhs, c, start + t + method.nodes[c] * h, fifth, w, lanes, k)
        if watching and error <= 1.0:
            for e in range(POWERS - 1):
                sum_of(method, OUTPUT + e, zero, k, h, f[e])
            if watched > 0:
                x[0] = start + new_t
                copy(new, x[1 : 1 + n])
                evaluate(eq.watched, x, w_watched, after)
            missed = largest_defect(
                eq.rhs,
                eq.watched,
                start + t,
                h,
                accepted,
                y,
                f,
                x,
                w,
                w_watched,
                weights,
                before,
                after,
                p,
                third,
                signs,
            )
            if not missed <= MISSED:
                error = missed
        if tiles > 0 and error <= 1.0:
            run_in_lanes(program, lanes)
            for tile in range(tiles):
                if not error <= 1.0:
                    break
                sensitivity_stages(
                    eq.entries,
                    outputs,
                    method,
                    terms,
                    tile,
                    1,
                    method.stages,
                    h,
                    width,
                    lanes,
                    s[tile],
                    ks[tile],
                    new_s[tile],
                )
                if controlled:
                    estimate = sensitivity_error(
                        method,
                        h,
                        ks[tile],
                        new_s[tile],
                        atol,
                        rtol,
                        zero_s,
                        fifth_s,
                        third_s,
                        sums,
                    )
                    if not estimate <= error:
                        error = estimate
        if not error <= 1.0:
            factor = SHRINK
            if error < OVERFLOW:
                factor = max(SHRINK, SAFETY * error**-0.125)
            h *= factor
            rejected = True
            continue
        if dense:
            count = 0
            while row + count < times.shape[0] and times[row + count] < new_t:
                count += 1
            for tile in range(tiles):
                sensitivity_stages(
                    eq.entries,
                    outputs,
                    method,
                    terms,
                    tile,
                    method.stages,
                    method.all_stages,
                    h,
                    width,
                    lanes,
                    s[tile],
                    ks[tile],
                    fifth_s,
                )
            write_outputs(method, t, h, times, row, count, y, k, f, zero, STAGES, p, shares, out)
            for tile in range(tiles):
                write_outputs(
                    method,
                    t,
                    h,
                    times,
                    row,
                    count,
                    s[tile],
                    ks[tile],
                    fs,
                    zero_s,
                    STAGES,
                    p,
                    shares,
                    out_sensitivities[tile],
                )
            row += count
        # Hairer & Wanner, Solving Ordinary Differential Equations II, section IV.2.
        change, distance = 0.0, 0.0
        for i in range(n):
            change += (k[LAST, i] - k[LAST - 1, i]) ** 2
            distance += (new[i] - last[i]) ** 2
        stiff = stiff + 1 if h * h * change > STABLE * STABLE * distance else 0
        t = new_t
        accepted += 1
        copy(after, before)
        copy(new, y)
        copy(k[LAST], k[0])
        for i in range(n):
            sizes[i] = max(sizes[i], abs(y[i]))
        for tile in range(tiles):
            copy(new_s[tile], s[tile])
            copy(ks[tile, LAST], ks[tile, 0])
        if times[row] <= t:
            copy(y, out[row])
            for tile in range(tiles):
                copy(s[tile], out_sensitivities[tile, row])
            row += 1
        factor = GROW
        if error > 1e-10:
            factor = min(GROW, SAFETY * error**-0.125)
        if rejected:
            factor = min(factor, 1.0)
        rejected = False
        h = max(factor * h, following) if t == end else factor * h
        if row == times.shape[0]:
            return FINISHED, t, tried, h
        if stiff >= STIFF_STEPS and tried + (end - t) / h > max_steps:
            return TOO_MANY_STEPS, t, tried, h
