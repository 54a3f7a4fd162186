"""Steps of rough trajectories of many vectors of unknowns between their events, compiled.

Lanes advance independently, as long as no comparison changes in the next step, no event is due and
no event at a known time comes. These steps are left to :mod:`odefit.simulation.lanes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array, IntArray
from odefit.common.kernels.kernel import compiled
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.experiment import Input
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.casadi_algebra import CasadiAlgebra, Symbol, column_of, symbols_of
from odefit.simulation.engines.programs import Program, program
from odefit.simulation.lane_edges import INSIDE, Edges

SIGNS = ("<", "<=", ">", ">=", "==", "!=")  # comparisons, by their numbers in kernels

Flags = npt.NDArray[np.bool_]


class Inputs(NamedTuple):
    """Measured inputs as polynomials between knots, one input after the other."""

    start: IntArray  # number of the first knot of each input, and of all knots, shape (m + 1,)
    knots: Array
    # Powers of (t - left knot), shape (knots + m, 4): one more row than knots for each input.
    polynomials: Array


class Steps(NamedTuple):
    """The equations, comparisons and inputs of a condition, as steps read them."""

    # Rates of the states, then compared quantities, as functions of time, states, scalars, inputs.
    program: Program
    signs: IntArray  # those of the comparisons, as numbers of :data:`SIGNS`, shape (c,)
    inputs: Inputs


def steps_of(
    field: VectorField,
    scalars: Sequence[str],
    folded: Mapping[str, float],
    inputs: Mapping[str, Input],
    differences: Sequence[Expression],
    signs: Sequence[str],
) -> Steps | None:
    """Return the arrays of steps; None if programs cannot hold an operation.

    Rates and compared quantities depend on the time, the states, `scalars`, `folded` names, and
    inputs.
    """
    n, s = len(field.states), len(scalars)
    vector = ca.SX.sym("x", 1 + n + s + len(inputs))
    names = (TIME, *field.states, *scalars, *inputs)
    values = {name: Symbol(ca.SX(float(value))) for name, value in folded.items()}
    values |= dict(zip(names, symbols_of(vector), strict=True))
    algebra = CasadiAlgebra()
    rates = (field if field.model.algebraic else field.model).rhs(values, algebra)
    compared = [d.evaluate(values, algebra) for d in differences]
    try:
        made = program(vector, column_of([*rates, *compared]))
    except KeyError:
        return None
    counts = [len(signal.times) for signal in inputs.values()]
    knots = [signal.times for signal in inputs.values()]
    polynomials = [signal.polynomials() for signal in inputs.values()]
    return Steps(
        made,
        np.array([SIGNS.index(sign) for sign in signs], dtype=np.intp),
        Inputs(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            np.concatenate([np.zeros(0), *knots]),
            np.concatenate([np.zeros((0, 4)), *polynomials]),
        ),
    )


@compiled
def _read(inputs: Inputs, time: float, x: Array, first: int) -> None:
    """Write the values of all inputs at a time to `x`, from `first` on."""
    for k in range(len(inputs.start) - 1):
        begin, end = inputs.start[k], inputs.start[k + 1]
        low, high = begin, end
        while low < high:
            middle = (low + high) // 2
            if inputs.knots[middle] <= time:
                low = middle + 1
            else:
                high = middle
        tau = time - inputs.knots[max(low - 1, begin)]
        c = inputs.polynomials[low + k]
        x[first + k] = c[0] + tau * (c[1] + tau * (c[2] + tau * c[3]))


@compiled
def _holds(sign: int, value: float) -> bool:
    """Return whether a comparison with zero holds."""
    if sign == 0:
        return value < 0.0
    if sign == 1:
        return value <= 0.0
    if sign == 2:
        return value > 0.0
    if sign == 3:
        return value >= 0.0
    if sign == 4:
        return value == 0.0
    return value != 0.0


@compiled
def _moved(
    steps: Steps,
    start: float,
    length: float,
    states: Array,
    lane: int,
    x: Array,
    w: Array,
    out: Array,
    rates: Array,
    moved: Array,
) -> None:
    """Write the states of a lane after a step to `moved`; `x` has its scalars already."""
    n, first = len(moved), len(x) - (len(steps.inputs.start) - 1)
    for stage in range(4):
        share = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
        for i in range(n):
            x[1 + i] = states[i, lane]
            if stage > 0:
                x[1 + i] += share * length * rates[stage - 1, i]
        x[0] = start + min(max(share, INSIDE), 1.0 - INSIDE) * length
        _read(steps.inputs, x[0], x, first)
        evaluate(steps.program, x, w, out)
        for i in range(n):
            rates[stage, i] = out[i]
    for i in range(n):
        mean = (rates[0, i] + 2.0 * (rates[1, i] + rates[2, i]) + rates[3, i]) / 6.0
        moved[i] = states[i, lane] + length * mean


@compiled
def moved(
    steps: Steps, lanes: IntArray, start: Array, length: Array, scalars: Array, states: Array
) -> Array:
    """Return the states of some lanes, shape (n, lanes), after a step from `start` for each."""
    n, s = states.shape[0], scalars.shape[0]
    w = registers(steps.program)
    x = np.empty(steps.program.variables)
    out = np.empty(len(steps.program.outputs))
    rates, after = np.empty((4, n)), np.empty(n)
    all_after = np.empty((n, len(lanes)))
    for k in range(len(lanes)):
        for j in range(s):
            x[1 + n + j] = scalars[j, lanes[k]]
        _moved(steps, start[k], length[k], states, lanes[k], x, w, out, rates, after)
        for i in range(n):
            all_after[i, k] = after[i]
    return all_after


@compiled
def advance(
    steps: Steps,
    edges: Edges,
    lanes: IntArray,
    due: Array,
    scalars: Array,
    states: Array,
    values: Array,
    flags: Flags,
    reached: Array,
    place: IntArray,
    rows: Array,
    switched: IntArray,
    recorded_scalars: Array,
) -> None:
    """Advance lanes by steps of the classical Runge-Kutta method, until an event may happen.

    Positions, states and flags are changed in place. The last axis is that of the lanes.

    Parameters
    ----------
    lanes
        Numbers of the lanes that advance.
    due
        Times of the next pending events, shape (lanes,).
    scalars, states, values, flags
        Scalars, states, compared quantities, and whether comparisons hold.
    reached, place
        Present times of the lanes, and the numbers of the last edges that they have passed.
    kept, recorded_scalars
        States and switched scalars at the data times, shapes (k, n, lanes) and (k, s, lanes).
    switched
        Numbers of the scalars that are kept, shape (s,).
    """
    n, s, c = states.shape[0], scalars.shape[0], flags.shape[0]
    w = registers(steps.program)
    x = np.empty(steps.program.variables)
    out = np.empty(n + c)
    rates = np.empty((4, n))
    after = np.empty(n)
    for lane in lanes:
        for j in range(s):
            x[1 + n + j] = scalars[j, lane]
        now, k = reached[lane], place[lane]
        while k + 1 < len(edges.times) and not edges.halts[k + 1]:
            end = edges.times[k + 1]
            if due[lane] <= end:
                break
            _moved(steps, now, end - now, states, lane, x, w, out, rates, after)
            for i in range(n):
                x[1 + i] = after[i]
            x[0] = end
            _read(steps.inputs, end, x, 1 + n + s)
            evaluate(steps.program, x, w, out)
            changed = False
            for j in range(c):
                changed |= _holds(steps.signs[j], out[n + j]) != flags[j, lane]
            if changed:
                break
            for i in range(n):
                states[i, lane] = after[i]
            for j in range(c):
                values[j, lane] = out[n + j]
            now, k = end, k + 1
            if edges.rows[k] >= 0:
                for i in range(n):
                    rows[edges.rows[k], i, lane] = states[i, lane]
                for j in range(len(switched)):
                    recorded_scalars[edges.rows[k], j, lane] = scalars[switched[j], lane]
        reached[lane], place[lane] = now, k
