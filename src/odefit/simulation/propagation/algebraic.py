"""Consistent initial values of the algebraic variables, and their sensitivities."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.engine import EngineFailure

MAX_ITERATIONS = 100  # largest number of Newton steps from one start


def consistent(
    field: VectorField, values: Mapping[str, Dual], guess: Array, time: float, directions: int
) -> tuple[Array, Array] | EngineFailure:
    """Solve 0 = g for the algebraic variables by damped Newton steps from `guess`.

    `values` are those of all other names, with derivatives in some directions. Returns the
    algebraic variables and their derivatives, shapes (a,) and (a, directions), from g_z dz = -dg at
    fixed z.
    """
    names, count = field.algebraic, len(guess)

    def evaluate(z: Array) -> tuple[Array, Array]:
        unknown = {n: Dual(z[i], {directions + i: 1.0}) for i, n in enumerate(names)}
        rows = field.constraints({**values, **unknown}, DUAL)
        gradients = np.array([row.gradient(directions + count) for row in rows])
        return np.array([float(row.value) for row in rows]), gradients

    # The default guess of zero is singular for z^2 - x: also start close to it.
    for start in (guess, guess + 0.5 * (1 + np.abs(guess))):
        solution = _newton(evaluate, start, directions)
        if solution is not None:
            return solution
    return EngineFailure(
        time,
        "no consistent initial values of the algebraic variables; "
        "give them a value to start from in [initial]",
    )


def _newton(
    evaluate: Callable[[Array], tuple[Array, Array]], start: Array, directions: int
) -> tuple[Array, Array] | None:
    """Return the solution and its sensitivities; None without convergence or regular Jacobian."""
    z = start.copy()
    residual, jacobian = evaluate(z)
    for _ in range(MAX_ITERATIONS):
        finite = np.isfinite(residual).all() and np.isfinite(jacobian).all()
        if not finite or _singular(jacobian[:, directions:]):
            return None
        step = np.linalg.solve(jacobian[:, directions:], -residual)
        damping = 1.0
        while True:
            trial, trial_jacobian = evaluate(z + damping * step)
            better = np.linalg.norm(trial) <= np.linalg.norm(residual)
            if better or damping < 1e-10:
                break
            damping /= 2
        # Test the full step: a damped one may be short far from any solution.
        arrived = np.linalg.norm(step) <= 1e-10 * (1 + np.linalg.norm(z))
        z, residual, jacobian = z + damping * step, trial, trial_jacobian
        if arrived and np.isfinite(jacobian).all():
            by_z, by_rest = jacobian[:, directions:], jacobian[:, :directions]
            if _singular(by_z):
                return None
            sensitivities: Array = np.linalg.solve(by_z, -by_rest).astype(float)
            return z, sensitivities
    return None


def _singular(matrix: Array) -> bool:
    """Return whether a square matrix has no inverse, whatever the scales of its rows."""
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    if not (largest > 0).all():
        return True
    return bool(np.linalg.matrix_rank(matrix / largest) < len(matrix))
