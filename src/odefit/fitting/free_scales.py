"""Directions along which the logarithms of unknowns may change without any change of the fit.

Where one of two states is not measured, its unit is free, and the equations hold for any: an
unknown is in proportion to it, another one to its inverse. A search ends anywhere along such a
direction, and places derived from its end may lie outside the bounds although the same motion with
another unit lies within.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.common.effects import acting, null_space
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

EQUAL = 1e-4
"""Largest change of the cost along a direction, relative to the cost, by rounding and integration
errors."""

FAR = 1.0
"""Change of a logarithm over which the cost has to stay the same."""


@dataclass(frozen=True, eq=False)
class FreeScales:
    """Directions of free scales in the logarithms of the unknowns, shape (k, n)."""

    problem: Problem
    directions: Array

    @classmethod
    def of(cls, forward: ForwardMap, vector: Array, evaluation: Evaluation) -> FreeScales:
        """Return the directions at an answer along which the fit stays the same far away."""
        problem = forward.problem
        positive = (problem.lower > 0) & np.isfinite(problem.upper) & (vector > 0)
        none = cls(problem, np.zeros((0, len(vector))))
        norms, acts = acting(evaluation.information, sizes_at(problem, vector))
        places = np.flatnonzero(positive & acts)
        if len(places) < 2:
            return none
        null = null_space(evaluation.information[:, places] / norms[places])
        if not len(null):
            return none
        directions = np.zeros((len(null), len(vector)))
        directions[:, places] = null / (norms[places] * vector[places])
        directions /= np.abs(directions).max(axis=1)[:, None]
        for direction in directions:
            for sign in (-FAR, FAR):
                cost = forward.cost(vector * np.exp(sign * direction), UNDECIDED)
                if not abs(cost - evaluation.cost) <= EQUAL * abs(evaluation.cost):
                    return none
        return cls(problem, directions)

    def centred(self, place: Array) -> Array:
        """Return a place with the same fit, shape (n,), as near the middle of the bounds as can be.

        Distances are those of logarithms, relative to the widths of the bounds.
        """
        if not len(self.directions):
            return place
        moved = np.flatnonzero(np.any(self.directions != 0.0, axis=0))
        low, high = np.log(self.problem.lower[moved]), np.log(self.problem.upper[moved])
        width = np.maximum(high - low, 1e-12)
        away = (0.5 * (low + high) - np.log(place[moved])) / width
        steps = np.linalg.lstsq((self.directions[:, moved] / width).T, away, rcond=None)[0]
        return np.asarray(place * np.exp(steps @ self.directions))
