"""Screening: of several points, the one with the lowest cost is where a local search begins.

Points are integrated one by one. In the lanes of heyoka's batches all points of a group take as
many steps as the slowest, which is two to three times as many as one needs on average. So next to
nothing is gained, and an integrator for batches has to be compiled first:
``evidence/speed/screening_in_lanes.py``.
"""

from __future__ import annotations

import math

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.running.control import Control
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine_choice import UNDECIDED


def lowest(projection: VariableProjection, points: Array, control: Control) -> tuple[Array, float]:
    """Return the point of the lowest cost (the first if all fail), and its cost.

    The points have the shape (count, n), in natural units. A single one is not evaluated.
    """
    if len(points) == 1:
        return points[0], 0.0  # nothing to choose
    best, least = points[0], math.inf
    choice = UNDECIDED
    for x in points:
        if control.should_stop():
            break
        evaluation = projection.evaluate_cost(x, choice)
        choice = evaluation.choice
        if isinstance(evaluation, Evaluation) and evaluation.cost < least:
            best, least = x, evaluation.cost
    return np.asarray(best), least
