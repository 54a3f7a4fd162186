"""The number by which users see how well values fit: -2 log L, or a sum of squares.

With an estimated standard deviation, the weighted sum of squares is the same at every optimum. If
the noise is given or estimated, -2 log L is shown instead: twice the optimiser's cost plus a
constant of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Start
from odefit.problem.problem import Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.residuals.noise import density_of, known_spreads
from odefit.simulation.residuals.prior_residuals import PriorResiduals
from odefit.simulation.residuals.residual_arrays import ResidualArrays

OBJECTIVE = "objective"  # the name of a sum of squares
LIKELIHOOD = "-2 log L"  # the name of minus twice the logarithm of the likelihood


@dataclass(frozen=True)
class FitMeasure:
    """The measure of a fit that users see: its name, and the constant added to twice the cost.

    The offset is None if sums of squares are shown.
    """

    name: str
    offset: float | None

    @classmethod
    def of(cls, problem: Problem) -> FitMeasure:
        """Return the measure that suits the noise model of a problem.

        If the constant depends on more than the data, the measure is the objective.
        """
        offset = _offset(problem) if noise_is_given(problem) else None
        if offset is None:
            return cls(OBJECTIVE, None)
        return cls(likelihood_name(problem), offset)

    def of_start(self, start: Start) -> float:
        """Return the measure at the end of a start; infinite if it failed."""
        return self.value(start.cost, start.objective)

    def value(self, cost: float, objective: float) -> float:
        """Return the measure of an end with this cost and this objective."""
        if self.offset is None or not math.isfinite(cost):
            return objective if self.offset is None else math.inf
        return 2.0 * cost + self.offset


def noise_is_given(problem: Problem) -> bool:
    """Return whether the noise is given or estimated; otherwise the fit is plain least squares."""
    return any(n.known for n in problem.noise.values()) or any(
        s.sds is not None for c in problem.conditions for s in c.series.values()
    )


def likelihood_name(problem: Problem) -> str:
    """Return the name of -2 log L, which mentions added priors."""
    return f"{LIKELIHOOD} + priors" if problem.priors else LIKELIHOOD


def prior_squares(problem: Problem, vector: Array) -> float:
    """Return -2 times the logarithms of the priors' densities relative to their maxima.

    For normal priors that is a sum of squares. It is infinite if a density is zero. The unknowns
    have the shape (n,).
    """
    rows = PriorResiduals(problem).at(vector)
    return math.inf if isinstance(rows, str) else rows.squares


def _offset(problem: Problem) -> float | None:
    """Return the part of -2 log L that depends only on the data; None if it is not so simple."""
    residuals = ResidualArrays(problem, VectorField.of(problem.model, problem.conditions))
    total = problem.size * math.log(2.0 * math.pi) - 2.0 * residuals.rows.log_density_offset
    for block in residuals.series_rows:
        known = known_spreads(block.noise, block.series)
        if known is None and block.sd_rows is None:
            return None  # an expression of constants
        density = density_of(block.noise, [block.series])
        if density is not None:
            # A part independent of predictions is the same at any, such as the data themselves.
            values = block.series.values
            scale = np.ones(len(values)) if known is None else known
            terms = density.terms(values, values, scale)
            total += 2.0 * float(terms.constants.sum())
            total += 0.0 if known is None else 2.0 * float(terms.scale_terms.sum())
        elif known is not None:
            total += 2.0 * float(np.sum(np.log(known)))
    for correlated in residuals.rows.correlated.values():
        if not correlated.depends:
            total += 2.0 * correlated.log_determinant(np.zeros(len(problem.unknowns)))
    return total if math.isfinite(total) else None
