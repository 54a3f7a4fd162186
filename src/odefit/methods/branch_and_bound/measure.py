"""The meaning of sums of squares over boxes: an objective, or -2 log L of estimated noise.

The squares of the enclosed residuals leave out a constant. Where spreads depend on unknowns, they
contain the logarithms of these as well, so that the gap of the bounds is relative to the squares of
the measurements alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.branch_and_bound.node_evaluator import ResidualEnclosure
from odefit.methods.fit_measure import OBJECTIVE, FitMeasure
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.problem.problem import Problem
from odefit.simulation.residuals.noise import known_spreads


@dataclass(frozen=True, eq=False)
class Measure:
    """The quantity that a search bounds: its `name`, and the `offset` added to the squares.

    `likelihood` is true if spreads depend on unknowns.
    """

    name: str
    offset: float
    likelihood: bool

    @classmethod
    def of(cls, problem: Problem, enclosure: ResidualEnclosure) -> Measure:
        """Return the measure of a problem; InputError if -2 log L is not known to a constant."""
        if not enclosure.of_spreads.any():
            return cls(OBJECTIVE, enclosure.offset, False)
        measure = FitMeasure.of(problem)
        if measure.offset is None:
            raise InputError(
                "noise: -2 log L is bounded where standard deviations are estimated, and one of "
                "them is an expression of constants alone; write its value instead"
            )
        return cls(measure.name, enclosure.offset + measure.offset, True)

    def unit(self, enclosure: ResidualEnclosure, vector: Array, squares: float) -> float:
        """Return the number to which a gap is relative, at a point with this sum of squares."""
        if not self.likelihood:
            return squares + self.offset
        c = enclosure(vector[None], vector[None]).c[~enclosure.of_spreads, 0, 0]
        return float(np.sum(c**2))


def variation(problem: Problem) -> float:
    """Return the deviance of the data from their means, 1 if that is zero.

    With normal noise that is the weighted sum of squares. Values whose spread depends on unknowns
    count as one.
    """
    total = 0.0
    for condition in problem.conditions:
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            spreads = known_spreads(noise, series)
            values = transformed(series.values, noise.transform)
            if spreads is None:
                total += len(values)
            elif noise.gaussian:
                total += float(np.sum(((values - values.mean()) / spreads) ** 2))
            else:
                mean = np.full(len(values), values.mean())
                with np.errstate(all="ignore"):
                    total += float(np.sum(noise.law.terms(mean, values, spreads).residuals ** 2))
    return total if math.isfinite(total) and total > 0 else 1.0
