"""The deviance: how much worse than the optimum other values fit, and its limits.

A likelihood-ratio statistic of one degree of freedom, with its limit at a level of confidence. If
the noise is estimated from few measurements, the chi-square limit is too small. The limits here are
exact for linear models, as Student's t is for their intervals (D. M. Bates and D. G. Watts,
Nonlinear Regression Analysis and Its Applications, 1988, chapter 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.common.arrays import Array
from odefit.common.effects import column_space
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap

LARGEST_EXPONENT = 700.0
"""Exponent above which an exponential counts as infinite."""


@dataclass(frozen=True)
class Deviance:
    """Differences of the cost from its minimum, as a likelihood-ratio statistic.

    The unit is `variance`: the residual variance s^2 if no noise is given, else 1; NaN if it cannot
    be estimated, 0 if the fit is exact up to rounding. `degrees` are those of the estimated noise,
    nu, infinite for given noise; `estimated` is the number of measurements whose standard deviation
    or dispersion depends on unknowns. Where noise is neither normal nor that of counts, simulated
    `fits` have the limit.
    """

    minimum: float
    variance: float
    degrees: float
    estimated: int
    fits: SimulatedFits | None = None

    @classmethod
    def of(
        cls, forward: ForwardMap, vector: Array, evaluation: Evaluation, conditions: int = 0
    ) -> Deviance:
        """Return the deviance from an optimum under a number of further `conditions`."""
        problem = forward.problem
        free = ~bounds_touched(problem, vector)
        sizes = sizes_at(problem, vector)
        basis = column_space(evaluation.information[:, free], sizes[free])
        rank = max(basis.shape[1] - conditions, 0)
        if not forward.given_noise:
            degrees = float(problem.size + len(problem.priors) - rank)
            exact = CostTolerance.of(forward).exact(
                evaluation.cost,
                forward.accuracy(evaluation.choice),
                evaluation.jacobian,
                vector,
            )
            variance = evaluation.objective / degrees if degrees > 0 else math.nan
            return cls(evaluation.cost, 0.0 if exact else variance, degrees, 0)
        fits = SimulatedFits.of(forward, vector, evaluation)
        if fits is not None:
            return cls(evaluation.cost, 1.0, math.inf, 0, fits)
        estimated = {u.name for u, is_free in zip(problem.unknowns, free, strict=True) if is_free}
        rows = [
            s.rows
            for s in forward.series_rows
            if (s.estimates_spread and s.gaussian)
            or (s.noise.dispersion == "estimate" and s.noise.unknown(s.name) in estimated)
        ]
        if not rows:
            return cls(evaluation.cost, 1.0, math.inf, 0)
        count = sum(r.stop - r.start for r in rows)
        if max(r.stop for r in rows) <= len(basis) and forward.nodes is None:
            taken = sum(float(np.sum(basis[r] ** 2)) for r in rows)
        else:
            taken = float(rank)  # the residuals of an answer on nodes are in another order
        return cls(evaluation.cost, 1.0, count - taken, count)

    def with_noise_held(self, minimum: float) -> Deviance:
        """Return the deviance with the noise held, from another minimum of the cost.

        If the noise is one standard deviation, its roots are those of this deviance.
        """
        variance = self.variance
        if self.estimated:
            variance *= self.estimated / self.degrees
        return Deviance(minimum, variance, math.inf, 0)

    def at(self, cost: float) -> float:
        """Return the deviance at a cost; 0 at the minimum."""
        difference = 2 * (cost - self.minimum)
        if self.variance == 0:
            return math.inf if difference > 0 else 0.0
        return difference / self.variance

    def cost(self, deviance: float) -> float:
        """Return the cost at which the deviance has this value."""
        return self.minimum + 0.5 * self.variance * deviance

    def limit(self, level: float) -> float:
        """Return the largest deviance of values in the confidence interval of a level.

        It is NaN where there are too few measurements to estimate the noise.
        """
        # scipy.stats has the same functions, and takes a quarter of a second to import.
        from scipy.special import fdtri, gammaincinv

        if self.fits is not None:
            return self.fits.limit(level)
        if math.isinf(self.degrees):
            return float(2 * gammaincinv(0.5, level))
        if not self.degrees > 0:
            return math.nan
        quantile = float(fdtri(1, self.degrees, level))
        if self.estimated:
            return self.estimated * math.log1p(quantile / self.degrees)
        return quantile

    def root(self, deviance: float) -> float:
        """Return the number of standard errors whose square is a linear model's deviance.

        The root of the limit is the quantile of Student's t (or of the normal distribution), so
        that roots of deviances are comparable with distances in standard errors.
        """
        deviance = max(deviance, 0.0)
        if self.estimated:
            exponent = deviance / self.estimated
            if exponent > LARGEST_EXPONENT:
                return math.inf
            return math.sqrt(self.degrees * math.expm1(exponent))
        return math.sqrt(deviance)
