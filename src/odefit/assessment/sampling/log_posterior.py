"""The density of the posterior distribution in coordinates in which it is nearly normal."""

from __future__ import annotations

import math

import numpy as np

from odefit.assessment.intervals.interval_coordinates import IntervalCoordinates
from odefit.common.arrays import Array
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.residuals.prior_residuals import PriorResiduals


class LogPosterior:
    """The logarithm of the posterior density, with its gradient, in whitened coordinates.

    The prior of an unknown is that of the problem, within its bounds. Without one, it is a uniform
    density there: of the logarithm if the scale is ``"log10"`` or if the unknown is a standard
    deviation. An unknown variance is integrated out under Jeffreys' prior.

    The gradient of a stiff problem with many unknowns comes from the adjoint. An inaccurate
    gradient costs a Hamiltonian sampler effective samples, but never changes its distribution.
    """

    def __init__(self, forward: ForwardMap, vector: Array, evaluation: Evaluation) -> None:
        self.forward = forward
        self.coordinates = IntervalCoordinates.of(forward.problem)
        self._choice: EngineChoice = evaluation.choice
        self._count = len(evaluation.residuals)
        self._priors = PriorResiduals(forward.problem, plain=False)
        self.centre = self.coordinates.inside(vector)
        at = self.coordinates.natural(self.centre)
        at_estimate = forward.evaluate(at, evaluation.choice)
        if isinstance(at_estimate, Failure):
            at_estimate = evaluation
        jacobian = at_estimate.jacobian * self.coordinates.derivative(self.centre)
        scale = 1.0
        if not forward.given_noise:
            scale = at_estimate.objective / max(self._count - len(vector), 1)
        information = jacobian.T @ jacobian / scale + np.diag(
            self.coordinates.prior_precision(self.centre)
        )
        factor = np.linalg.cholesky(information)
        self.whitening = np.asarray(np.linalg.inv(factor).T)

    def natural(self, coordinates: Array) -> Array:
        """Return the unknowns, shape (n,), at whitened coordinates."""
        return self.coordinates.natural(self.centre + self.whitening @ coordinates)

    def __call__(self, coordinates: Array) -> tuple[float, Array]:
        """Return the density's logarithm and its gradient, shape (n,), at whitened coordinates."""
        at = self.centre + self.whitening @ np.asarray(coordinates)
        with np.errstate(all="ignore"):
            vector = self.coordinates.natural(at)
            derivative = self.coordinates.derivative(at)
            prior, gradient = self.coordinates.log_prior(at)
        if not np.isfinite(vector).all() or not np.isfinite(prior):
            return -math.inf, np.zeros(len(at))
        outcome = self.forward.gradient(vector, self._choice)
        self._choice = outcome.choice
        if isinstance(outcome, Failure):
            return -math.inf, np.zeros(len(at))
        steepness = outcome.gradient * derivative
        if self.forward.given_noise:
            value = -outcome.cost
        else:
            # Priors other than measurements lack the variance that is integrated out.
            apart = self._priors.at(vector)
            assert not isinstance(apart, str)
            prior_gradient = apart.jacobian.T @ apart.residuals * derivative
            count, objective = self._count - self._priors.size, outcome.objective - apart.squares
            value = -0.5 * count * math.log(objective) - 0.5 * apart.squares
            steepness = (steepness - prior_gradient) * count / objective + prior_gradient
        total = value + prior
        slope = self.whitening.T @ (gradient - steepness)
        if not (math.isfinite(total) and np.isfinite(slope).all()):
            return -math.inf, np.zeros(len(at))
        return total, slope
