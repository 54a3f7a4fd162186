"""Variable-order integration of states and sensitivities: the outermost of the compiled kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import (
    ALPHA,
    BLOCK,
    ERROR,
    EXTRAPOLATION,
    IMPLICIT,
    MAX_ORDER,
    add_difference,
    change_step,
    combine,
    combine_twice,
    copy,
    interpolation,
)
from odefit.simulation.engines.bdf.elimination import Elimination, factorise, solve_one
from odefit.simulation.engines.bdf.equations import Equations, ScalarTerms
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.bdf.recording import accept_step, record_step
from odefit.simulation.engines.bdf.sensitivities import (
    first_difference,
    largest_norm,
    note_largest,
    rounding,
    sensitivity_step,
    sensitivity_weights,
    subtract,
)
from odefit.simulation.engines.bdf.small_sizes import raise_small_sizes
from odefit.simulation.engines.bdf.step_control import (
    OVERFLOW,
    SAFETY,
    absolute_tolerances,
    first_step,
    initial_sizes,
    next_order,
    norm,
    rounding_errors,
)
from odefit.simulation.engines.bdf.watching import largest_defect
from odefit.simulation.engines.narrow_features import EVERYWHERE
from odefit.simulation.engines.programs import Program

Flag = npt.NDArray[np.uint8]  # a number that is checked while another thread may set it

FINISHED, TOO_MANY_STEPS, NO_CONVERGENCE, TOO_STEEP, UNDEFINED, CUT_OFF = range(6)
"""The ends of an integration."""

MAX_ITERATIONS = 4  # Newton iterations of a step
CONVERGENCE = 0.03  # error of the Newton iteration, in units of the tolerance

MAX_JACOBIAN_AGE = 40
"""Number of steps after which the Jacobian is evaluated again if no sensitivities need it."""

MISSED = 100.0
"""Defect within a step, in units of the tolerance, above which the step has missed a feature.

The interpolating polynomial's own defect is a few units."""


@compiled
def newton(
    rhs: Program,
    e: Elimination,
    c: float,
    lu: Array,
    x: Array,
    w: Array,
    predicted: Array,
    psi: Array,
    weights: Array,
    f: Array,
    delta: Array,
    correction: Array,
    rate: float,
) -> tuple[bool, float]:
    """Solve (correction + psi) - c f(t, predicted + correction) = 0 for the correction.

    `f` and `delta` are space for n numbers each; `rate` is the expected rate of convergence.
    Returns whether the iteration has converged, and its rate of convergence.
    """
    n = predicted.shape[0]
    for i in range(n):
        correction[i] = 0.0
        x[1 + i] = predicted[i]
    old = 0.0
    for iteration in range(1, MAX_ITERATIONS + 1):
        evaluate(rhs, x, w, f)
        for i in range(n):
            delta[i] = c * f[i] - psi[i] - correction[i]
        solve_one(e, lu, delta)
        size = norm(delta, weights)
        if not size < OVERFLOW:
            return False, rate
        if iteration > 1:
            ratio = size / old
            rate = max(0.3 * rate, ratio)
            left = MAX_ITERATIONS - iteration
            if ratio >= 2.0 or ratio**left * size > CONVERGENCE * abs(1.0 - ratio):
                return False, rate
        for i in range(n):
            correction[i] += delta[i]
            x[1 + i] = predicted[i] + correction[i]
        if size * min(1.0, 1.5 * rate) < CONVERGENCE:
            return True, rate
        old = size
    return False, rate


@compiled
def integrate(
    eq: Equations,
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
    watching: int,
    max_steps: int,
    ended: Flag,
    record: Array,
    out: Array,
    out_sensitivities: Array,
) -> tuple[int, float, int, float]:
    """Integrate from `start` through `times`.

    Time is counted from `start`: steps may be far shorter than the spacing of numbers there.

    The `times` are increasing, shape (k,). The constants, shape (c,), are the variables of the
    programs after the time and the states; they hold until `horizon`. `sensitivities` come in tiles
    of w directions, shape (tiles, n, w). `sizes` are the largest magnitudes of the states so far,
    shape (n,), zero if a state has always been zero; on return they include this integration. The
    sizes of states that begin at zero apply after the time `ahead`, from the rates at a number of
    `places` until `horizon`. `absolute` is in units of these sizes. `controlled` extends error
    control to sensitivities. `watching` is one of the values of
    :mod:`odefit.simulation.engines.narrow_features`. Another thread sets the number `ended` to stop
    the integration. States and sensitivities at the times are written to
    `out`, shape (k, n), and `out_sensitivities`, shape (tiles, k, n * w). Returns the kind of end,
    its time (counted from `start`), the number of steps (including failed ones), and the length of
    the last step. The steps are written to `record`, as far as it has room for them, see
    :mod:`odefit.simulation.engines.bdf.recording`.
    """
    e, entries = eq.elimination, eq.entries
    n = states.shape[0]
    tiles, _, width = sensitivities.shape
    program = eq.derivatives if tiles > 0 else eq.jacobian
    w = registers(eq.rhs)
    w_derivatives = registers(program)
    derivatives = np.empty(program.outputs.shape[0])
    jacobian = derivatives[: entries.row.shape[0]]
    by_scalars = derivatives[entries.row.shape[0] :]
    lu = np.empty(e.size)
    d = np.zeros((MAX_ORDER + 3, n))
    ds = np.zeros((tiles, MAX_ORDER + 3, n * width))
    new = np.zeros((tiles, n, width))
    corrections = new.reshape(tiles, n * width)
    predicted_s = np.zeros((n, width))
    weights_s = np.zeros((tiles, n, width))
    sums = np.zeros(width)
    largest_s = np.abs(sensitivities)
    predicted = np.empty(n)
    psi = np.empty(n)
    correction = np.empty(n)
    f = np.empty(n)
    delta = np.empty(n)
    x = np.empty(1 + n + constants.shape[0])
    x[0] = start
    t = 0.0
    end = times[-1]
    matrix = np.empty((MAX_ORDER + 1, MAX_ORDER + 1))
    rows = np.empty((MAX_ORDER + 1, BLOCK))
    shares = np.empty((1, MAX_ORDER + 1))
    extrapolation = EXTRAPOLATION.copy()
    implicit = IMPLICIT.copy()
    weights = np.empty(n)
    atol = np.empty(n)
    for i in range(n):
        x[1 + i] = states[i]
    for i in range(constants.shape[0]):
        x[1 + n + i] = constants[i]
    known = sizes.copy()
    initial_sizes(
        eq.rhs, program, entries, x, w, w_derivatives, derivatives, ahead, horizon, places, sizes
    )
    raise_small_sizes(
        eq.rhs,
        program,
        e,
        x,
        w,
        w_derivatives,
        derivatives,
        jacobian,
        lu,
        ahead,
        known,
        sizes,
    )
    for i in range(n):
        atol[i] = absolute * sizes[i]
        weights[i] = 1.0 / (atol[i] + rtol * abs(states[i]))
    watched = eq.watched.outputs.shape[0] if watching > 0 else 0
    w_watched = registers(eq.watched)
    before = np.empty(watched)
    after = np.empty(watched)
    signs = np.empty(watched)
    within = x.copy()
    slopes = np.empty((1, MAX_ORDER + 1))
    space = np.empty((3, n))
    saved = np.empty((MAX_ORDER + 3 if watching > 0 else 0, n))
    accepted = 0
    if watched > 0:
        evaluate(eq.watched, x, w_watched, before)
    h = first_step(eq.rhs, start, end, x, w, correction, weights)
    if h == 0.0:
        return UNDEFINED, t, 0, 0.0
    for i in range(n):
        d[0, i] = states[i]
        d[1, i] = h * correction[i]
    evaluate(program, x, w_derivatives, derivatives)
    noise = np.empty(n)
    diagonal = np.empty(n)
    rounding_errors(entries, x, derivatives, noise, diagonal)
    for tile in range(tiles):
        copy(sensitivities[tile].reshape(n * width), ds[tile, 0])
        first_ds = ds[tile, 1].reshape(n, width)
        first_difference(entries, terms, tile, h, derivatives, sensitivities[tile], first_ds)
    order = 1
    waiting = order + 1  # steps until order and step length may change
    tried = 0
    rejected = 0  # in succession
    row = 0
    rate = 1.0
    age = 0  # of the Jacobian, in steps
    factorised = 0.0  # the c of the factors; zero without factors
    factor = 1.0  # by which the step length changes
    while True:
        if tried >= max_steps:
            return TOO_MANY_STEPS, t, tried, h
        if ended[0] != 0:
            return CUT_OFF, t, tried, h
        if h < 1e-15 * abs(t) or h < 1e-25 * end:
            return TOO_STEEP if rejected else NO_CONVERGENCE, t, tried, h
        if t + 1.0001 * factor * h >= end and t + factor * h != end:
            factor = (end - t) / h
        change = factor
        if factor != 1.0:
            change_step(d, ds, order, factor, matrix, rows)
            h *= factor
            waiting = order + 1
            factor = 1.0
        tried += 1
        new_t = t + h
        if new_t > end or end - new_t < 1e-12 * h:
            new_t = end
        record_step(record, tried - 1, order, change, h, t, new_t)
        c = h / ALPHA[order]
        absolute_tolerances(absolute, sizes, c, noise, diagonal, atol)
        combine_twice(d, extrapolation, implicit, order, predicted, psi)
        for i in range(n):
            psi[i] = predicted[i] - psi[i]
            weights[i] = 1.0 / (atol[i] + rtol * abs(predicted[i]))
        x[0] = start + new_t
        converged = False
        while not converged:
            if age > MAX_JACOBIAN_AGE:
                for i in range(n):
                    x[1 + i] = predicted[i]
                evaluate(program, x, w_derivatives, derivatives)
                rounding_errors(entries, x, derivatives, noise, diagonal)
                age = 0
                factorised = 0.0
                rate = 1.0
            if factorised != c:
                factorised = c if factorise(e, c, jacobian, lu) else 0.0
            if factorised != 0.0:
                converged, rate = newton(
                    eq.rhs, e, c, lu, x, w, predicted, psi, weights, f, delta, correction, rate
                )
            if age == 0:
                break
            if not converged:
                age = MAX_JACOBIAN_AGE + 1
        if not converged:
            factor = 0.25
            age = 1
            continue
        for i in range(n):
            weights[i] = 1.0 / (atol[i] + rtol * abs(x[1 + i]))
        error = ERROR[order] * norm(correction, weights)
        if tiles > 0 and error <= 1.0:
            evaluate(program, x, w_derivatives, derivatives)
            rounding_errors(entries, x, derivatives, noise, diagonal)
            age = 0
            factorised = c if factorise(e, c, jacobian, lu) else 0.0
            if factorised == 0.0:
                error = np.inf
            rounded = rounding(entries, c, derivatives, rtol) if controlled else 0.0
            for tile in range(tiles):
                if not error <= 1.0:
                    break
                sensitivity_step(
                    e,
                    terms,
                    tile,
                    order,
                    c,
                    lu,
                    by_scalars,
                    extrapolation,
                    implicit,
                    ds[tile],
                    predicted_s,
                    new[tile],
                )
                if not controlled:
                    subtract(predicted_s, new[tile])
                    continue
                sensitivity_weights(
                    new[tile],
                    predicted_s,
                    weights,
                    largest_s[tile],
                    atol,
                    rtol,
                    rounded,
                    sums,
                    weights_s[tile],
                )
                estimate = ERROR[order] * largest_norm(new[tile], weights_s[tile], sums)
                if not estimate <= error:
                    error = estimate
        if watching > 0 and error <= 1.0:
            copy(d.reshape(d.size), saved.reshape(d.size))
            add_difference(d, correction, order)
            if watched > 0:
                evaluate(eq.watched, x, w_watched, after)
            missed = largest_defect(
                watching == EVERYWHERE,
                eq.rhs,
                eq.watched,
                e,
                start,
                order,
                new_t,
                h,
                accepted,
                c,
                d,
                lu,
                within,
                w,
                w_watched,
                weights,
                before,
                after,
                shares,
                slopes,
                space,
                signs,
            )
            if not missed <= MISSED:
                copy(saved.reshape(d.size), d.reshape(d.size))
                error = missed
        if not error <= 1.0:
            rejected += 1
            factor = 0.2
            if error < OVERFLOW:
                factor = max(0.2, error ** (-1.0 / (order + 1)) / SAFETY[1])
            if rejected >= 3:
                order = 1
                factor = min(factor, 0.2)
            continue
        rejected = 0
        accept_step(record, tried - 1, x)
        age += 1
        t = new_t
        for i in range(n):
            sizes[i] = max(sizes[i], abs(x[1 + i]))
        accepted += 1
        if watching > 0:
            copy(after, before)
        else:
            add_difference(d, correction, order)
        for tile in range(tiles):
            add_difference(ds[tile], corrections[tile], order)
            if controlled:
                note_largest(ds[tile, 0], largest_s[tile])
        while times[row] <= t:
            interpolation(order, t, h, times[row], shares)
            combine(d, shares, 0, out[row])
            for tile in range(tiles):
                combine(ds[tile], shares, 0, out_sensitivities[tile, row])
            row += 1
            if row == times.shape[0]:
                return FINISHED, t, tried, h
        waiting -= 1
        if waiting <= 0:
            counting = ds if controlled else ds[:0]
            chosen, longer = next_order(order, error, d, counting, weights, weights_s, sums)
            waiting = 2
            if chosen != order or longer > 1.2 or longer < 0.9:
                order = chosen
                factor = longer
