"""Coordinates in which refits are short: in each, the residuals are as linear as possible.

An unknown on a logarithmic scale with little effect at its value, such as a rate near zero at its
lower bound, acts in proportion to its value. Its logarithm would have to change much before it has
any effect. The unknown itself is the better coordinate there, and its reciprocal if it has little
effect because it is large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.problem.problem import Problem

SLIGHT_EFFECT = 1.0
"""Effect of a change by a factor e, in standard deviations, below which an unknown has little
effect."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """One coordinate for each unknown: itself, its natural logarithm or its reciprocal.

    The bounds are those in coordinates, shape (n,).
    """

    logarithm: BoolArray
    reciprocal: BoolArray
    lower: Array
    upper: Array

    @classmethod
    def of(cls, problem: Problem, vector: Array, effects: Array) -> Coordinates:
        """Return the coordinates suited to the neighbourhood of a vector.

        `effects` are those of a change of each unknown by a factor e, in standard deviations.
        """
        positive = np.array([u.parameter.scale == "log10" for u in problem.unknowns], dtype=bool)
        positive &= vector > 0
        slight = positive & (effects < SLIGHT_EFFECT)
        lower, upper = np.maximum(problem.lower, 0.0), problem.upper
        with np.errstate(all="ignore"):
            # The bound that is nearer on a logarithmic scale; without bounds it counts as small.
            large = (vector / lower) > (upper / vector)
        reciprocal = slight & large & (lower > 0)
        logarithm = positive & ~slight
        coordinates = cls(logarithm, reciprocal, problem.lower, problem.upper)
        a, b = coordinates.of_vector(problem.lower), coordinates.of_vector(problem.upper)
        return cls(logarithm, reciprocal, np.minimum(a, b), np.maximum(a, b))

    def of_vector(self, vector: Array) -> Array:
        """Return the coordinates of a vector in natural units."""
        u = np.array(vector, dtype=float)
        with np.errstate(all="ignore"):
            u[self.logarithm] = np.log(np.maximum(u[self.logarithm], 0.0))
            u[self.reciprocal] = 1.0 / u[self.reciprocal]
        return u

    def natural(self, coordinates: Array) -> Array:
        """Return the vector in natural units that has these coordinates."""
        x = np.array(coordinates, dtype=float)
        with np.errstate(all="ignore"):
            x[self.logarithm] = np.exp(x[self.logarithm])
            x[self.reciprocal] = 1.0 / x[self.reciprocal]
        return x

    def derivative(self, vector: Array) -> Array:
        """Return the derivatives of the unknowns by their coordinates, shape (n,)."""
        factor = np.ones(len(vector))
        factor[self.logarithm] = vector[self.logarithm]
        factor[self.reciprocal] = -(vector[self.reciprocal] ** 2)
        return factor
