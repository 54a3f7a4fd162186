"""The optimiser's coordinates: natural units, or their logarithm if the user chooses it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.methods.local.interior_steps import Interior
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import expected_sizes

NEARLY_ZERO = 1e-6  # magnitude of an unknown, relative to its typical size, that counts as zero

SMALLEST_LOGARITHM = 0.3
"""Smallest magnitude assumed for a decimal logarithm: a factor of two.

With a decade, first steps from an optimum at a bound were too long. Seven of twelve fits of the
model of Perelson et al. (1996) then ended at another optimum, and fewer fits of that of Brannmark
et al. (2010) at the best one.
"""

FEW = 6
"""Number of logarithms below which searches may cross the whole box in a step.

With two unknowns, this finds the best optimum more often: from 15 of 21 random starts of the model
of Perelson et al. (1996), and from 10 if the search keeps away from the bounds.
"""

MANY = 20
"""Largest number of coordinates on linear scales in which a search keeps away from bounds.

With more, steps in a plane take hundreds of evaluations along flat valleys, as in a cascade of 40
unknowns.
"""

_LN10 = float(np.log(10.0))


@dataclass(frozen=True, eq=False)
class Scaling:
    """The transformation of the unknowns to the optimiser's coordinates."""

    # whether the coordinate of an unknown is its logarithm to base 10, shape (n,)
    logarithmic: BoolArray
    # bounds in coordinates, shape (n,)
    lower: Array
    upper: Array

    @classmethod
    def of(cls, problem: Problem) -> Scaling:
        """Return the transformation that the problem asks for."""
        logarithmic = np.array([u.parameter.scale == "log10" for u in problem.unknowns], dtype=bool)
        lower, upper = problem.lower.copy(), problem.upper.copy()
        with np.errstate(divide="ignore"):
            lower[logarithmic] = np.log10(np.maximum(lower[logarithmic], 0.0))
            upper[logarithmic] = np.log10(upper[logarithmic])
        return cls(logarithmic, lower, upper)

    def coordinates(self, vector: Array) -> Array:
        """Return the coordinates of a vector in natural units."""
        z = np.array(vector, dtype=float)
        z[self.logarithmic] = np.log10(z[self.logarithmic])
        return z

    def natural(self, coordinates: Array) -> Array:
        """Return the vector in natural units that has these coordinates."""
        x = np.array(coordinates, dtype=float)
        with np.errstate(over="ignore"):
            x[self.logarithmic] = 10.0 ** x[self.logarithmic]
        return x

    def least_sizes(self, problem: Problem) -> Array:
        """Return the smallest magnitudes assumed for coordinates, shape (n,).

        The logarithm zero is an ordinary value, which depends on the unit.
        """
        least = NEARLY_ZERO * expected_sizes(problem)
        return np.where(self.logarithmic, SMALLEST_LOGARITHM, least)

    def interior(self, columns: IntArray) -> Interior:
        """Return how long a search over the coordinates `columns` may keep away from the bounds.

        In logarithms all differences can be compared. Otherwise, bounds guide a search only while
        they are in its way.
        """
        bounded = (np.isfinite(self.lower) & np.isfinite(self.upper))[columns]
        if not bounded.all():
            return Interior.NEVER
        if not self.logarithmic[columns].all():
            return Interior.WHILE_BLOCKED if len(columns) <= MANY else Interior.NEVER
        return Interior.UNTIL_NEAR if len(columns) >= FEW else Interior.NEVER

    def derivative(self, vector: Array) -> Array:
        """Return the derivatives of the unknowns with respect to their coordinates, shape (n,)."""
        factor = np.ones(len(vector))
        factor[self.logarithmic] = _LN10 * vector[self.logarithmic]
        return factor


def bounds_touched(problem: Problem, vector: Array) -> BoolArray:
    """Return which unknowns lie at a bound, to a relative 1e-9 of the bound or of the interval."""
    lower, upper = problem.lower, problem.upper
    width = np.where(np.isfinite(upper - lower), upper - lower, np.inf)

    def near(bound: Array) -> BoolArray:
        slack = np.minimum(1e-9 * np.maximum(np.abs(bound), np.abs(vector)), 1e-9 * width)
        # A bound of zero has no size: within a billionth of the interval, if there is one.
        slack = np.where((bound == 0) & np.isfinite(width), 1e-12 * width, slack)
        return np.asarray(np.isfinite(bound) & (np.abs(vector - bound) <= slack))

    return near(lower) | near(upper)
