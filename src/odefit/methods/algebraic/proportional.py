"""From generic parameters to those of data in any unit: paths on which sizes change by factors.

In units in which values or rates are far from one, Taylor coefficients of the outputs spread over
many powers of ten. Along straight lines all but the largest would change in the last moment.
"""

from __future__ import annotations

import numpy as np

from odefit.problem.arrays import ComplexArray, IntArray
from odefit.structure.square import Between, SquareSystem


class Proportional(Between):
    """The same arc between the logarithms of parameters, where neither end is zero.

    Parameters
    ----------
    square, start, end, detours
        As :class:`~odefit.structure.square.Between` takes them.
    """

    def __init__(
        self, square: SquareSystem, start: ComplexArray, end: ComplexArray, detours: ComplexArray
    ) -> None:
        super().__init__(square, start, end, detours)
        self._by_factors = (start != 0) & (end != 0)
        both = self._by_factors
        # The difference of logarithms, not the logarithm of a ratio, which may overflow.
        self._ratios = np.log(np.where(both, start, 1.0)) - np.log(np.where(both, end, 1.0))

    def along(
        self, paths: IntArray, weight: ComplexArray, quicker: ComplexArray
    ) -> tuple[ComplexArray, ComplexArray]:
        """See :meth:`odefit.structure.square.Between.along`."""
        both, ratios = self._by_factors[paths], self._ratios[paths]
        start, end = self.start[paths], self.end[paths]
        by_factors = end * np.exp(weight * ratios)
        at = np.where(both, by_factors, end + weight * (start - end))
        return at, quicker * np.where(both, by_factors * ratios, start - end)
