"""Is the answer a local optimum of the true (integrated) trajectories?"""

from __future__ import annotations

import math

import numpy as np

from odefit.assessment.parts import Local
from odefit.methods.levels import Levels
from odefit.methods.scaling import Scaling
from odefit.methods.trust_region import promised_decrease
from odefit.problem.algebras import Array
from odefit.simulation import Evaluation, ForwardMap

TOLERANCE = 1e-3
"""Distance to the minimum of the local model, in standard errors, that counts as none."""


def assess_local(forward: ForwardMap, vector: Array, evaluation: Evaluation) -> Local:
    """First-order conditions and curvature at `vector`, with the bounds.

    The distance to the minimum of the local quadratic model is measured by the decrease that it
    promises: root(2 decrease), over the residual standard deviation. In that unit it is the
    length of the remaining step in standard errors (the norm of the projected gradient in the
    metric of the covariance).
    """
    problem = forward.problem
    scaling = Scaling.of(problem)
    jacobian = evaluation.jacobian * scaling.slope(vector)
    promised = promised_decrease(
        evaluation.residuals,
        jacobian,
        scaling.coordinates(vector),
        scaling.lower,
        scaling.upper,
    )
    spare = max(problem.size - len(vector), 1)
    variance = 1.0 if forward.given_noise else evaluation.objective / spare
    exact = evaluation.cost <= Levels.of(forward).zero(forward.accuracy)
    distance = math.sqrt(2 * max(promised, 0.0) / variance) if variance > 0 else 0.0
    norms = np.linalg.norm(jacobian, axis=0)
    scaled = jacobian / np.where(norms > 0, norms, 1.0)
    values = np.linalg.svd(scaled, compute_uv=False) if len(vector) else np.ones(1)
    curvature = float(values[-1] / values[0]) if values[0] > 0 else 0.0
    optimal = exact or distance <= TOLERANCE
    return Local(optimal, distance, TOLERANCE, curvature, _sentence(exact, optimal, distance))


def _sentence(exact: bool, optimal: bool, distance: float) -> str:
    where = "on the integrated trajectories"
    if exact:
        return (
            f"The model reproduces the data to rounding {where}: no values can fit better, "
            "but others may fit as well."
        )
    if optimal:
        return (
            f"A local optimum {where}: the remaining step is below {TOLERANCE:g} standard errors. "
            "Whether a better one exists elsewhere is not proved."
        )
    return (
        f"Not a local optimum {where}: the local model still promises a step of "
        f"{distance:.2g} standard errors."
    )
