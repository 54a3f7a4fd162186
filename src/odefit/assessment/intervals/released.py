"""Unknowns released from a bound: how far they can move, and how the others follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.effects import column_norms
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap


@dataclass(frozen=True, eq=False)
class Released:
    """An unknown at a bound, by index, and the changes that accompany its release.

    `direction`, shape (n,), has the changes of all unknowns for one unit of it. `inward`, 1 or -1,
    is the sign of its way from the bound. `distance` is how far it can go before the fit becomes
    too bad.
    """

    index: int
    direction: Array
    distance: float
    inward: int


def released(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, known: IntArray, allowed: float
) -> list[Released]:
    """Return the unknowns that are at a bound, each released and moved inwards.

    The unknowns `known`, by number, follow it. `allowed` is the allowed rise of twice the cost.
    """
    problem, jacobian = forward.problem, evaluation.information
    gradient = evaluation.jacobian.T @ evaluation.residuals
    sizes = sizes_at(problem, vector)
    norms = column_norms(jacobian[:, known])
    released_ones = []
    for j in np.flatnonzero(bounds_touched(problem, vector)):
        column = jacobian[:, j]
        if not float(column @ column) > 0:
            continue
        follow = -np.linalg.lstsq(jacobian[:, known] / norms, column, rcond=1e-8)[0] / norms
        along = column + jacobian[:, known] @ follow
        curvature, slope = float(along @ along), abs(float(gradient[j]))
        # The distance at which 2 slope d + curvature d^2 equals the allowed rise.
        room = problem.upper[j] - problem.lower[j]
        bottom = slope + math.hypot(slope, math.sqrt(curvature * allowed))
        distance = min(allowed / bottom if bottom > 0 else math.inf, room)
        direction = np.zeros(len(vector))
        direction[j] = 1.0
        direction[known] = follow
        near = vector[j] - problem.lower[j] <= problem.upper[j] - vector[j]
        length = float(distance if math.isfinite(distance) else sizes[j])
        released_ones.append(Released(int(j), direction, length, 1 if near else -1))
    return released_ones
