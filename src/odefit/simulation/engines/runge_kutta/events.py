"""Passages through many events by the explicit engine, compiled as one loop.

Between two events the engine itself integrates; see
:mod:`odefit.simulation.engines.runge_kutta.integration`. At an event the states x become A x + c,
with A constant. If its time tau depends on the unknowns, sensitivities jump as well, see
:mod:`odefit.simulation.trajectories.located_map`:

    S+ = A (S + f- tau') + c' - f+ tau'.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import copy
from odefit.simulation.engines.bdf.equations import Equations, ScalarTerms
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.bdf.integration import FINISHED, Flag
from odefit.simulation.engines.bdf.kernel_engine import TOO_LARGE
from odefit.simulation.engines.bdf.small_sizes import MARGIN, SMALL
from odefit.simulation.engines.bdf.step_control import OVERFLOW
from odefit.simulation.engines.programs import Program
from odefit.simulation.engines.runge_kutta.integration import integrate
from odefit.simulation.engines.runge_kutta.stages import Method

NOT_FINITE = 100  # the kind of end if values are not finite


class Jumps(NamedTuple):
    """The events of a passage for the kernels, and what happens between them.

    A stretch is the time between two events. Its events come first, then its outputs.
    """

    starts: Array  # Start of each stretch, shape (k,)
    first: IntArray  # Number of the first event of each stretch, and of all events, shape (k + 1,)
    number: IntArray  # Number of the kind of each event, shape (e,)
    moving: IntArray  # 1 for each event whose time depends on the unknowns, else 0
    moves: Array  # Changes of these times along the directions, shape (e, tiles, w)
    after: IntArray  # Row for the values after the events of each stretch, or -1, shape (k,)
    begin: IntArray  # Number of the first output of each stretch, and of all outputs
    times: Array  # Output times, the last one of each stretch being its end
    rows: IntArray  # Row of each output, or -1
    matrix: Array  # A by kind of event, shape (kinds, n, n)
    constant: Array  # c by kind of event, shape (kinds, n)
    along: Array  # Changes of c along the directions, shape (kinds, tiles, n, w)


@compiled
def move(
    rhs: Program,
    jumps: Jumps,
    event: int,
    x: Array,
    w: Array,
    f: Array,
    y: Array,
    s: Array,
    sign: float,
) -> None:
    """Add the changes of an event's time, times the rates at states `y` and a sign, to `s`."""
    n = y.shape[0]
    tiles, _, width = s.shape
    copy(y, x[1 : 1 + n])
    evaluate(rhs, x, w, f)
    for tile in range(tiles):
        for i in range(n):
            for q in range(width):
                s[tile, i, q] += sign * f[i] * jumps.moves[event, tile, q]


@compiled
def jump(
    rhs: Program,
    jumps: Jumps,
    event: int,
    x: Array,
    w: Array,
    f: Array,
    y: Array,
    s: Array,
    old: Array,
) -> None:
    """Apply an event to states `y` and sensitivities `s`, shape (tiles, n, w), in place.

    `x` has the variables of the right-hand side, with the time; `f` and `old` are space.
    """
    n = y.shape[0]
    tiles, _, width = s.shape
    kind = jumps.number[event]
    moving = jumps.moving[event] != 0
    if moving:
        move(rhs, jumps, event, x, w, f, y, s, 1.0)
    copy(y, old)
    for i in range(n):
        y[i] = jumps.constant[kind, i]
        for j in range(n):
            y[i] += jumps.matrix[kind, i, j] * old[j]
    for tile in range(tiles):
        for q in range(width):
            for i in range(n):
                old[i] = s[tile, i, q]
            for i in range(n):
                total = jumps.along[kind, tile, i, q]
                for j in range(n):
                    total += jumps.matrix[kind, i, j] * old[j]
                s[tile, i, q] = total
    if moving:
        move(rhs, jumps, event, x, w, f, y, s, -1.0)


@compiled
def correct_sizes(begun: Array, values: Array, sizes: Array) -> bool:
    """Return whether sizes assumed for small states were far too large, and correct them.

    `begun` has the magnitudes at the start, and `values` the states at the outputs. The stretch is
    then integrated again, see :class:`odefit.simulation.engines.bdf.kernel_engine.KernelEngine`.
    """
    n = begun.shape[0]
    wrong = False
    largest = 0.0
    for i in range(n):
        largest = max(largest, sizes[i])
    for i in range(n):
        reached = 0.0
        for r in range(values.shape[0]):
            reached = max(reached, abs(values[r, i]))
        allowed = TOO_LARGE if begun[i] == 0.0 else TOO_LARGE / MARGIN
        small = begun[i] == 0.0 or begun[i] < SMALL * largest
        far = small and reached > 0.0 and sizes[i] > allowed * max(reached, begun[i])
        sizes[i] = reached if far else begun[i]
        wrong = wrong or far
    return wrong


@compiled
def integrate_through(
    eq: Equations,
    method: Method,
    jumps: Jumps,
    begin: int,
    end: int,
    y: Array,
    constants: Array,
    s: Array,
    terms: ScalarTerms,
    places: int,
    absolute: float,
    rtol: float,
    controlled: bool,
    early: bool,
    most_steps: IntArray,
    ended: Flag,
    out: Array,
    out_sensitivities: Array,
) -> tuple[int, int]:
    """Pass through the stretches from number `begin` to before `end`.

    States `y`, shape (n,), and sensitivities `s`, shape (tiles, n, w), are those at the beginning,
    and are replaced by those at the end. Each stretch gets at most its `most_steps`. Rows are
    written to `out`, shape (rows, n), and `out_sensitivities`, shape (tiles, rows, n, w). Returns
    the kind of end, and the number of steps.
    """
    n = y.shape[0]
    tiles, _, width = s.shape
    w = registers(eq.rhs)
    x = np.empty(1 + n + constants.shape[0])
    copy(constants, x[1 + n :])
    f, old, sizes, begun = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    steps = 0
    for k in range(begin, end):
        x[0] = jumps.starts[k]
        for event in range(jumps.first[k], jumps.first[k + 1]):
            jump(eq.rhs, jumps, event, x, w, f, y, s, old)
        row = jumps.after[k]
        if row >= 0:
            copy(y, out[row])
            for tile in range(tiles):
                for i in range(n):
                    copy(s[tile, i], out_sensitivities[tile, row, i])
        first = jumps.begin[k]
        count = jumps.begin[k + 1] - first
        if count == 0:
            continue
        times = np.empty(count)
        for r in range(count):
            times[r] = jumps.times[first + r] - jumps.starts[k]
        for i in range(n):
            begun[i] = abs(y[i])
            sizes[i] = begun[i]
        values = np.empty((count, n))
        derivatives = np.empty((tiles, count, n * width))
        span = times[count - 1]
        ahead = times[0] if early else span
        wrong = True  # whether sizes assumed for the states were far too large
        attempt = 0
        while wrong and attempt < 2:
            status, _time, tried, _step = integrate(
                eq,
                method,
                jumps.starts[k],
                times,
                span,
                ahead,
                y,
                constants,
                s,
                terms,
                sizes,
                places,
                absolute,
                rtol,
                controlled,
                False,
                0.0,
                most_steps[k],
                ended,
                values,
                derivatives,
            )
            steps += tried
            if status != FINISHED:
                return status, steps
            wrong = attempt == 0 and correct_sizes(begun, values, sizes)
            attempt += 1
        for i in range(n):
            if not abs(values[count - 1, i]) < OVERFLOW:
                return NOT_FINITE, steps
        for r in range(count):
            row = jumps.rows[first + r]
            if row >= 0:
                copy(values[r], out[row])
                for tile in range(tiles):
                    for i in range(n):
                        for q in range(width):
                            out_sensitivities[tile, row, i, q] = derivatives[tile, r, i * width + q]
        copy(values[count - 1], y)
        for tile in range(tiles):
            for i in range(n):
                for q in range(width):
                    s[tile, i, q] = derivatives[tile, count - 1, i * width + q]
    return FINISHED, steps
