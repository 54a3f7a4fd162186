"""Places where another optimum may lie, with the costs expected there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.fitting.free_scales import FreeScales
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation

STIFFNESS = 4.0
"""Cost of a change of an unknown by a factor of e, in the refit that judges a candidate."""

LONGEST = 0.7
"""Largest change of the logarithm of an unknown in that refit."""

ROUNDING = 1e-13
"""Largest predicted cost, relative to the sum of squares there, that may be rounding alone."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A place, shape (n,), where another optimum may lie, with its expected cost.

    The unknown number `held`, if any, stays fixed until the others are fitted. `speed` is that of
    the motion there relative to the answer.
    """

    vector: Array
    cost: float
    held: int | None = None
    speed: float = 1.0


def refitted(
    problem: Problem, place: Array, at: Evaluation, scales: FreeScales | None = None
) -> tuple[float, Array]:
    """Return the predicted cost after one step from a place, and the step's end.

    It is a Gauss-Newton step in logarithms, damped by springs. The end is centred along the free
    scales, if given.
    """
    size = np.where(place != 0, place, 1.0)
    jacobian = at.jacobian * size
    n = len(place)
    matrix = np.concatenate([jacobian, math.sqrt(STIFFNESS) * np.eye(n)])
    right = -np.concatenate([at.residuals, np.zeros(n)])
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return math.inf, np.clip(place, problem.lower, problem.upper)
    move = np.clip(np.linalg.lstsq(matrix, right, rcond=None)[0], -LONGEST, LONGEST)
    along = jacobian @ move
    cost = at.cost + float(at.residuals @ along + 0.5 * along @ along)
    if abs(cost) <= ROUNDING * float(at.residuals @ at.residuals):
        cost = math.inf  # no more than the rounding of its terms
    end = np.where(place != 0, place * np.exp(move), move)
    end = end if scales is None else scales.centred(end)
    return cost, np.clip(end, problem.lower, problem.upper)
