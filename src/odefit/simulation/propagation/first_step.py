"""The first step from a point where derivatives have no bounds: a root of a state that is zero.

A tank that fills from empty, or a response that is the root of a concentration that begins at zero:
the right-hand side is defined there, and its derivatives are not, the first or a later one. Engines
fail at such a point or lose their accuracy, since Taylor coefficients, Newton matrices and
sensitivities are infinite. A step of Euler's method, so short that its error is far below the
accuracy of any engine, leads away from it: behind it the state is positive.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import VectorField
from odefit.simulation.events.event_assignments import Values

SHORT = 1e-10
"""Length of the step, relative to the distance to the first output. Where states move as the power
3/2 of the time, its error relative to their values there is the same power of this."""


def first_step(
    field: VectorField, start: float, output: float, inputs: Array, now: Values
) -> tuple[float, Values] | None:
    """Return the time and values after a first step, or None where none is needed or possible.

    `field`: the right-hand sides; they have no algebraic variables that are solved for; `start`,
    `output`: the time, and that of the first output; `inputs`: values of the inputs, shape
    (inputs,); `now`: the values at the start, with their sensitivities along m directions.
    """
    zero = np.flatnonzero(now.states == 0.0)
    if not len(zero):
        return None
    count = now.sensitivities.shape[1]
    values = {TIME: Dual(start)}
    values |= {name: Dual(v) for name, v in zip(field.inputs, inputs, strict=True)}
    for i, name in enumerate(field.scalars):
        values[name] = _moving(now.scalars[i], now.scalar_sensitivities[i])
    states = {
        name: _moving(now.states[i], now.sensitivities[i]) for i, name in enumerate(field.states)
    }
    with np.errstate(all="ignore"):  # what is not defined is found below
        rates = field.rhs({**values, **states}, DUAL)
        rate = np.array([float(f.value) for f in rates])
        if not rate[zero].any():
            return None  # they stay where they are
        moves = np.array([[_partial(f, k) for k in range(count)] for f in rates])
        moves = moves.reshape(len(rates), count)
        step = SHORT * (output - start)
        after = now._replace(
            states=now.states + step * rate, sensitivities=now.sensitivities + step * moves
        )
    possible = np.isfinite(after.states).all() and np.isfinite(after.sensitivities).all()
    return (start + step, after) if possible and start + step > start else None


def _moving(value: float, sensitivities: Array) -> Dual:
    """Return a value with those of its derivatives that are not zero."""
    return Dual(value, {k: float(s) for k, s in enumerate(sensitivities) if s != 0.0})


def _partial(f: Dual, direction: int) -> float:
    return float(np.asarray(f.partials.get(direction, 0.0)))
