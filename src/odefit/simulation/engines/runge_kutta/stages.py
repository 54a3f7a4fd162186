"""The stages of a step: sums of rates, errors, and the dense output."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import copy
from odefit.simulation.engines.bdf.equations import Entries, ScalarTerms
from odefit.simulation.engines.bdf.evaluation import run
from odefit.simulation.engines.programs import Indices, Program
from odefit.simulation.engines.runge_kutta.coefficients import (
    ALL,
    COUPLING,
    DENSE,
    ERRORS,
    LAST,
    NODES,
)
from odefit.simulation.engines.runge_kutta.lanes import LANES

AT_ONCE = 4  # number of rows added to a sum together
FEW_OUTPUTS = 4  # outputs within a step up to which each is a sum over the stages
POWERS = 8  # coefficients of the dense output, with one that is zero

ERROR, OUTPUT = LAST, LAST + 5
"""Rows of a method after the sums for stages 1 to 12: the first of the two error estimates, and
the first of the coefficients of the dense output. Between them are the sums for its stages."""


class Method(NamedTuple):
    """Sums of rates at the stages, each padded to a multiple of the terms added together."""

    stage: Indices  # Stages of the terms of each sum, shape (rows, 16)
    share: Array  # Shares of these stages; zero for padding, shape (rows, 16)
    length: Indices  # Number of terms of each sum, including padding
    nodes: Array  # Times of the stages within a step
    # Numbers of the sums that estimate the error, one after the other, and of the stages until the
    # end of the step, and of all. As constants they would be literals to the compiler.
    error: int
    stages: int
    all_stages: int


def _dense_output() -> Array:
    """Return the shares of the stages in the coefficients of the dense output, shape (7, 16).

    The value at the place x of a step is y + sum p_e(x) h F_e, with the polynomials of
    :func:`polynomials` (Hairer, Nørsett & Wanner, equation II.6.20).
    """
    first, last, step = np.eye(ALL)[0], np.eye(ALL)[LAST], COUPLING[LAST - 1]
    return np.array([step, first - step, 2 * step - first - last, *DENSE])


def _method() -> Method:
    rows = np.concatenate([COUPLING[:LAST], ERRORS, COUPLING[LAST:], _dense_output()])
    stage, share = np.zeros((len(rows), ALL), dtype=np.uint32), np.zeros((len(rows), ALL))
    count = np.zeros(len(rows), dtype=np.uint32)
    for k, row in enumerate(rows):
        places = np.flatnonzero(row)
        stage[k, : len(places)], share[k, : len(places)] = places, row[places]
        count[k] = -(-len(places) // AT_ONCE) * AT_ONCE
    return Method(stage, share, count, NODES, ERROR, LAST + 1, ALL)


METHOD = _method()


@compiled
def add(
    base: Array, k: Array, stage: Indices, share: Array, count: int, h: float, out: Array
) -> None:
    """Write base + h (sum of shares times rows of `k`) to `out`, four rows at once."""
    size = np.uint64(base.shape[0])
    for x in range(size):
        out[x] = base[x]
    for j in range(0, np.uint64(count), 4):
        c0, c1, c2, c3 = h * share[j], h * share[j + 1], h * share[j + 2], h * share[j + 3]
        k0, k1, k2, k3 = stage[j], stage[j + 1], stage[j + 2], stage[j + 3]
        for x in range(size):
            out[x] += (c0 * k[k0, x] + c1 * k[k1, x]) + (c2 * k[k2, x] + c3 * k[k3, x])


@compiled
def sum_of(method: Method, row: int, base: Array, k: Array, h: float, out: Array) -> None:
    """Write base + h times a sum of the method to `out`; `k` are rates at the stages."""
    add(base, k, method.stage[row], method.share[row], method.length[row], h, out)


@compiled
def states_stage(
    rhs: Program, stage: int, time: float, states: Array, w: Array, lanes: Array, k: Array
) -> None:
    """Write the rates of the states at a stage to `k`, and store the stage in its lane.

    `w` are registers of the right-hand sides, which contain the constants; `lanes` are those of the
    derivatives, empty if they are not needed.
    """
    n = states.shape[0]
    w[0] = time
    for i in range(n):
        w[1 + i] = states[i]
    run(rhs, w)
    for i in range(n):
        k[stage, i] = w[rhs.outputs[i]]
    if lanes.shape[0] > 0:
        lane = np.uint64(stage)
        lanes[lane] = time
        for i in range(n):
            lanes[np.uint64(1 + i) * LANES + lane] = states[i]


@compiled
def states_step(
    rhs: Program,
    method: Method,
    time: float,
    end: float,
    h: float,
    y: Array,
    w: Array,
    lanes: Array,
    k: Array,
    last: Array,
    new: Array,
) -> None:
    """Write the states at the end of a step to `new`, and those at its last stage to `last`.

    The rates at the stages, including those at the end, are written to `k`.
    """
    for c in range(1, LAST + 1):
        copy(new, last)
        sum_of(method, c - 1, y, k, h, new)
        now = end if c == LAST else time + method.nodes[c] * h
        states_stage(rhs, c, now, new, w, lanes, k)


@compiled
def registers_in_lanes(program: Program, constants: Array, first: int) -> Array:
    """Return registers that hold a program's constants in all lanes.

    Its variables from `first` on are constant, too.
    """
    w = np.zeros(program.registers * 16)
    for k in range(constants.shape[0] + program.constants.shape[0]):
        fixed = k < constants.shape[0]
        value = constants[k] if fixed else program.constants[k - constants.shape[0]]
        at = first + k if fixed else program.variables + k - constants.shape[0]
        for q in range(16):
            w[at * 16 + q] = value
    return w


@compiled
def sensitivity_stages(
    entries: Entries,
    outputs: Indices,
    method: Method,
    terms: ScalarTerms,
    tile: int,
    first: int,
    stop: int,
    h: float,
    width: int,
    w: Array,
    s: Array,
    k: Array,
    values: Array,
) -> None:
    """Write the rates of a tile's sensitivities at stages from `first` until `stop` to `k`.

    They are J S + df/dp dp, with the derivatives in the lanes of the registers `w`. `s` are the
    sensitivities at the beginning of the step, shape (n * width,); those at the last of the stages
    are left in `values`.
    """
    nonzeros = np.uint64(entries.row.shape[0])
    size, across = np.uint64(s.shape[0]), np.uint64(width)
    stage, share = method.stage, method.share
    for c in range(np.uint64(first), np.uint64(stop)):
        for x in range(size):
            values[x] = s[x]
        if c > 0:
            row = c - 1 if c <= LAST else c + 1
            for j in range(0, method.length[row], 4):
                c0, c1 = h * share[row, j], h * share[row, j + 1]
                c2, c3 = h * share[row, j + 2], h * share[row, j + 3]
                k0, k1 = stage[row, j], stage[row, j + 1]
                k2, k3 = stage[row, j + 2], stage[row, j + 3]
                for x in range(size):
                    values[x] += (c0 * k[k0, x] + c1 * k[k1, x]) + (c2 * k[k2, x] + c3 * k[k3, x])
        for x in range(size):
            k[c, x] = 0.0
        for e in range(nonzeros):
            value = w[outputs[e] * LANES + c]
            to, at = entries.row[e] * across, entries.column[e] * across
            for q in range(across):
                k[c, to + q] += value * values[at + q]
        for e in range(terms.start[tile], terms.start[tile + 1]):
            value = w[outputs[nonzeros + terms.derivative[e]] * LANES + c]
            k[c, terms.row[e] * across + terms.column[e]] += value * terms.multiplier[e]


@compiled
def error_of(h: float, fifth: float, third: float, n: int) -> float:
    """Return the error of a step from the sums of squares of its estimates of orders 5 and 3."""
    both = (fifth + 0.01 * third) * n
    if both == 0.0:
        return 0.0
    result: float = abs(h) * fifth / np.sqrt(both)
    return result


@compiled
def polynomials(at: float, p: Array) -> None:
    """Write the polynomials of the dense output at a place from 0 to 1 to `p`, shape (8,)."""
    share = at
    for e in range(POWERS - 1):
        p[e] = share
        share *= at if e % 2 else 1.0 - at
    p[POWERS - 1] = 0.0


@compiled
def slopes(at: float, p: Array) -> None:
    """Write the derivatives of these polynomials by the place to `p`, shape (8,)."""
    share, slope = at, 1.0
    for e in range(POWERS - 1):
        p[e] = slope
        if e % 2:
            slope = slope * at + share
            share *= at
        else:
            slope = slope * (1.0 - at) - share
            share *= 1.0 - at
    p[POWERS - 1] = 0.0


@compiled
def dense_shares(method: Method, p: Array, shares: Array) -> None:
    """Write the shares of all stages in the dense output to `shares`, from its polynomials."""
    for c in range(shares.shape[0]):
        shares[c] = 0.0
    for e in range(POWERS - 1):
        for c in range(method.length[OUTPUT + e]):
            shares[method.stage[OUTPUT + e, c]] += p[e] * method.share[OUTPUT + e, c]


@compiled
def write_outputs(
    method: Method,
    time: float,
    h: float,
    times: Array,
    first: int,
    count: int,
    y: Array,
    k: Array,
    coefficients: Array,
    zero: Array,
    stage: Indices,
    p: Array,
    shares: Array,
    out: Array,
) -> None:
    """Write values at some of the times, within a step that begins at `time`, to rows of `out`.

    A few values are sums over the stages, whose rates are `k`; otherwise the coefficients of the
    dense output, shape (8, size), are computed first.
    """
    many = count > FEW_OUTPUTS
    if many:
        for e in range(POWERS - 1):
            sum_of(method, OUTPUT + e, zero, k, h, coefficients[e])
    for row in range(first, first + count):
        polynomials((times[row] - time) / h, p)
        if many:
            add(y, coefficients, stage, p, p.shape[0], 1.0, out[row])
        else:
            dense_shares(method, p, shares)
            add(y, k, stage, shares, shares.shape[0], h, out[row])
