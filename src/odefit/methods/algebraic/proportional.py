"""From generic parameters to those of data in any unit: paths on which sizes change by factors.

In units in which values or rates are far from one, Taylor coefficients of the outputs spread over
many powers of ten. Along straight lines all but the largest would change in the last moment.
"""

from __future__ import annotations

import numpy as np

from odefit.problem.arrays import ComplexArray, IntArray
from odefit.structure.homotopy.parameter_homotopy import ParameterHomotopy
from odefit.structure.square import SquareSystem


class Proportional(ParameterHomotopy):
    """The same arc between the logarithms of parameters, where neither end is zero.

    Parameters
    ----------
    square, start, end, gamma
        As :class:`ParameterHomotopy` takes them.
    """

    def __init__(
        self, square: SquareSystem, start: ComplexArray, end: ComplexArray, gamma: ComplexArray
    ) -> None:
        super().__init__(square, start, end, gamma)
        self._by_factors = (start != 0) & (end != 0)
        both = self._by_factors
        # The difference of logarithms, not the logarithm of a ratio, which may overflow.
        self._ratios = np.log(np.where(both, start, 1.0)) - np.log(np.where(both, end, 1.0))

    def parameters_at(
        self, paths: IntArray, weight: ComplexArray, weight_by_t: ComplexArray
    ) -> tuple[ComplexArray, ComplexArray]:
        """See :meth:`ParameterHomotopy.parameters_at`."""
        both, ratios = self._by_factors[paths], self._ratios[paths]
        start, end = self.start[paths], self.end[paths]
        by_factors = end * np.exp(weight * ratios)
        at = np.where(both, by_factors, end + weight * (start - end))
        return at, weight_by_t * np.where(both, by_factors * ratios, start - end)
