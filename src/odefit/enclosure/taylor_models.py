"""Taylor models: polynomials in time and in a box, with a bound of what they leave out.

A quantity over a box of unknowns, during a step, is ``sum c[m, k] d^m s^k + r`` with every
d in [-1, 1], s from 0 to 1, and |r| at most the remainder (K. Makino and M. Berz, Taylor models and
other validated functional inclusion methods, 2003). Many boxes are computed at once: they are the
last axis of all arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.enclosure.monomials import Monomials, Support
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.problem.arrays import Array, IntArray

MIN_KEPT_SHARE = 0.7
"""Share of the boxes: once fewer are still of interest, arrays are made smaller.

Above, it costs less to take the others along.
"""


@dataclass(eq=False)
class TaylorModel:
    """A quantity in all boxes.

    Attributes
    ----------
    c
        Coefficients, shape (M, k, B): monomials of d, powers of s below k, boxes. With k = 1
        it does not depend on time.
    support
        Monomials whose coefficients may not be zero.
    remainder
        At least the largest deviation, shape (B,); infinite where nothing is known.
    late
        The part of it that shorter steps would lower: what exceeds the order in s.
    """

    c: Array
    support: Support
    remainder: Array
    late: Array

    @staticmethod
    def constant(monomials: Monomials, values: Array) -> TaylorModel:
        """Exact numbers, shape (B,)."""
        c = np.zeros((len(monomials), 1, len(values)))
        c[0, 0] = values
        nothing = np.zeros(len(values))
        return TaylorModel(c, frozenset([0]), nothing, nothing)

    @staticmethod
    def number(monomials: Monomials, exact: Fraction, boxes: int) -> TaylorModel:
        """The same number in all boxes, rounded."""
        try:
            value = float(exact)
        except OverflowError:
            value = 0.0
            rounding = np.inf
        else:
            rounding = 0.0 if exact == value else 2 * UNIT_ROUNDOFF * abs(value) + UNDERFLOW
        found = TaylorModel.constant(monomials, np.full(boxes, value))
        found.remainder = np.full(boxes, rounding)
        return found

    @staticmethod
    def variable(monomials: Monomials, k: int, middle: Array, radius: Array) -> TaylorModel:
        """``middle + radius d[k]``, all shape (B,)."""
        found = TaylorModel.constant(monomials, middle)
        if monomials.degree == 0:
            return TaylorModel(found.c, found.support, radius, found.late)
        place = monomials.linear[k]
        found.c[place, 0] = radius
        return TaylorModel(found.c, frozenset([0, place]), found.remainder, found.late)

    def magnitude(self) -> Array:
        """Bound of the absolute value, shape (B,)."""
        return np.asarray((np.abs(self.c).sum((0, 1)) + self.remainder) * ROUNDING_MARGIN)

    def deviation(self) -> Array:
        """Bound of the distance from the constant coefficient, shape (B,)."""
        total = np.abs(self.c[1:]).sum((0, 1)) + np.abs(self.c[0, 1:]).sum(0)
        return np.asarray((total + self.remainder) * ROUNDING_MARGIN)

    def take(self, boxes: IntArray) -> TaylorModel:
        """Those of some boxes."""
        return TaylorModel(
            self.c[:, :, boxes], self.support, self.remainder[boxes], self.late[boxes]
        )
