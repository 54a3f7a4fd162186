"""Consistent initial values of the algebraic variables, and their sensitivities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from odefit.problem.algebras import DUAL, Array, Dual
from odefit.simulation.engine import Stop
from odefit.simulation.field import VectorField

ITERATIONS = 100


def consistent(
    field: VectorField, values: Mapping[str, Dual], guess: Array, time: float, directions: int
) -> tuple[Array, Array] | Stop:
    """Solve 0 = g for the algebraic variables by damped Newton steps from `guess`.

    Parameters
    ----------
    field
        With algebraic variables.
    values
        Everything else, with derivatives in `directions` directions.
    guess
        Shape (a,).

    Returns
    -------
    values, sensitivities
        Shapes (a,) and (a, directions): g_z dz = -dg at fixed z.
    """
    names, count = field.algebraic, len(guess)

    def evaluate(z: Array) -> tuple[Array, Array]:
        unknown = {n: Dual(z[i], {directions + i: 1.0}) for i, n in enumerate(names)}
        rows = field.constraints({**values, **unknown}, DUAL)
        gradients = np.array([row.gradient(directions + count) for row in rows])
        return np.array([float(row.value) for row in rows]), gradients

    z = guess.copy()
    residual, slope = evaluate(z)
    for _ in range(ITERATIONS):
        if not (np.isfinite(residual).all() and np.isfinite(slope).all()):
            break
        step = np.linalg.lstsq(slope[:, directions:], -residual, rcond=None)[0]
        damping = 1.0
        while True:
            trial, trial_slope = evaluate(z + damping * step)
            better = np.linalg.norm(trial) <= np.linalg.norm(residual)
            if better or damping < 1e-10:
                break
            damping /= 2
        z, residual, slope = z + damping * step, trial, trial_slope
        if np.linalg.norm(damping * step) <= 1e-13 * (1 + np.linalg.norm(z)):
            by_z, by_rest = slope[:, directions:], slope[:, :directions]
            slopes: Array = np.linalg.lstsq(by_z, -by_rest, rcond=None)[0].astype(float)
            return z, slopes
    return Stop(
        time,
        "no consistent initial values of the algebraic variables; "
        "give them a value to start from in [initial]",
    )
