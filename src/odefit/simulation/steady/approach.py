"""Newton's method for a steady state, compiled, and whether a trajectory approaches its end.

The end of the iteration is accepted only if it is close, and the equations are nearly linear in
between. Programs need CasADi, so this module is imported where they are made.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.programs import Program
from odefit.simulation.steady.newton import Matrices, assemble, solve, write_sizes

NEWTON_STEPS = 15  # largest number of steps of Newton's method from one point

CONVERGED = 1e-11
"""Step of Newton's method, relative to the states' sizes, at which it has converged."""

STAGNATED = 1e-8
"""Relative step at which it has converged if steps do not decrease: roundoff is reached."""

CLOSE = 0.1
"""Distance of a steady state, relative to the states' sizes, up to which it may be the one that the
trajectory approaches."""

NEARLY_LINEAR = 0.1
"""Nonlinearity of the equations over that distance, in the same units as the distance and relative
to it, up to which the trajectory certainly ends there."""


@compiled
def values_at(program: Program, x: Array, out: Array) -> None:
    """Write the values of a program at a point."""
    evaluate(program, x, registers(program), out)


@compiled
def linearise(
    program: Program, entries: IntArray, x: Array, w: Array, out: Array, jacobian: Array
) -> bool:
    """Write values and derivatives at a point, and the Jacobian; return whether all are finite."""
    evaluate(program, x, w, out)
    size = jacobian.shape[0]
    finite = True
    for k in range(out.shape[0]):
        if not abs(out[k]) < np.inf:
            finite = False
    for i in range(size):
        for j in range(size):
            jacobian[i, j] = 0.0
    for k in range(entries.shape[0]):
        jacobian[entries[k] // size, entries[k] % size] = out[size + k]
    return finite


@compiled
def approach(
    program: Program,
    entries: IntArray,
    x: Array,
    initial: Array,
    weights: Array,
    largest: Array,
    out: Array,
    m: Matrices,
) -> bool:
    """Follow Newton's method from a point; return whether the trajectory surely approaches its end.

    `x` holds the variables of the program, with the point after the time: the end replaces it.
    `out` and `m` get the values of the program and the equations there. Stability is not checked.
    """
    size, n = m.rows.shape[0], initial.shape[0]
    w = registers(program)
    y = x[1 : 1 + size]
    start, first, sizes = np.empty(size), np.empty(size), np.empty(size)
    step, moved = np.empty(size), np.empty(n)
    jacobian = np.empty((size, size))
    linearise(program, entries, x, w, out, jacobian)
    for i in range(size):
        start[i] = y[i]
        first[i] = out[i]
    last = np.inf
    converged = False
    for _ in range(NEWTON_STEPS):
        write_sizes(start, y, largest, sizes)
        for i in range(n):
            moved[i] = y[i] - initial[i]
        if not assemble(out[:size], jacobian, weights, moved, sizes, m):
            return False
        solve(m, m.value, step)
        change = 0.0
        for i in range(size):
            ratio = abs(step[i]) / sizes[i]
            if not ratio < max(1.0, 10 * CLOSE):
                return False
            change = max(change, ratio)
            y[i] -= step[i]
        if not linearise(program, entries, x, w, out, jacobian):
            return False
        if change <= CONVERGED or (change <= STAGNATED and change >= 0.1 * last):
            converged = True
            break
        last = change
    if not converged:
        return False
    write_sizes(start, y, largest, sizes)
    for i in range(n):
        moved[i] = y[i] - initial[i]
    if not assemble(out[:size], jacobian, weights, moved, sizes, m):
        return False
    far = 0.0
    for i in range(size):
        if i < n and y[i] < -STAGNATED * sizes[i] and start[i] >= 0.0:
            return False
        far = max(far, abs(start[i] - y[i]) / sizes[i])
        first[i] -= out[i]
    if far > CLOSE:
        return False
    for k in range(m.places.shape[0]):
        first[m.places[k]] = 0.0
    solve(m, first, step)
    bent = 0.0
    for i in range(size):
        bent = max(bent, abs(step[i] - (start[i] - y[i])) / sizes[i])
    return bent <= NEARLY_LINEAR * far + STAGNATED
