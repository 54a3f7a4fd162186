"""The density of the posterior distribution in coordinates in which it is nearly normal."""

from __future__ import annotations

import math

import numpy as np

from odefit.assessment.intervals.interval_coordinates import IntervalCoordinates
from odefit.common.arrays import Array
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.evaluation import CostGradient
from odefit.simulation.residuals.prior_residuals import PriorResiduals

MODE_STEPS = 200  # steps tried at most towards the largest density
MODE_GAIN = 0.01  # expected gain of a step in the logarithm of the density below which they end
FIRST_DAMPING = 1e-2  # of the first step towards the largest density


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
        self._first_choice = self._choice = evaluation.choice
        self._count = len(evaluation.residuals)
        self._priors = PriorResiduals(forward.problem, plain=False)
        self.centre, information = self._mode(vector, evaluation)
        self.whitening = np.asarray(np.linalg.inv(np.linalg.cholesky(information)).T)

    def _mode(self, vector: Array, evaluation: Evaluation) -> tuple[Array, Array]:
        """Return the coordinates of the largest density near an estimate, and its precision there.

        An estimate at a bound is far from there in these coordinates, and its precision vanishes.
        The steps are those of Levenberg and Marquardt.
        """
        at = self.coordinates.inside(vector)
        trial_evaluation = self.forward.evaluate(self.coordinates.natural(at), self._choice)
        best = evaluation if isinstance(trial_evaluation, Failure) else trial_evaluation
        value, slope = self._density(at, CostGradient.of(best))
        precision = self._precision(at, best)
        damping = FIRST_DAMPING
        for _ in range(MODE_STEPS):
            if not (slope @ np.linalg.solve(precision, slope) > MODE_GAIN and math.isfinite(value)):
                break
            damped = precision + damping * np.diag(np.diag(precision))
            trial = at + np.linalg.solve(damped, slope)
            trial_evaluation = self.forward.evaluate(self.coordinates.natural(trial), best.choice)
            tried = (-math.inf, slope)
            if not isinstance(trial_evaluation, Failure):
                tried = self._density(trial, CostGradient.of(trial_evaluation))
            if isinstance(trial_evaluation, Failure) or not tried[0] > value:
                damping *= 4.0
                continue
            at, best, (value, slope) = trial, trial_evaluation, tried
            precision = self._precision(at, best)
            damping /= 10.0
        return at, precision

    def _precision(self, at: Array, evaluation: Evaluation) -> Array:
        """Return the precision of the coordinates, shape (n, n): Fisher information and prior."""
        jacobian = evaluation.jacobian * self.coordinates.derivative(at)
        scale = 1.0
        if not self.forward.given_noise:
            scale = evaluation.objective / max(self._count - len(at), 1)
        prior = np.diag(self.coordinates.prior_precision(at))
        return np.asarray(jacobian.T @ jacobian / scale + prior)

    def forget_engines(self) -> None:
        """Forget which engines served, except at the estimate."""
        self._choice = self._first_choice

    def natural(self, coordinates: Array) -> Array:
        """Return the unknowns, shape (n,), at whitened coordinates."""
        return self.coordinates.natural(self.centre + self.whitening @ coordinates)

    def __call__(self, coordinates: Array) -> tuple[float, Array]:
        """Return the density's logarithm and its gradient, shape (n,), at whitened coordinates."""
        at = self.centre + self.whitening @ np.asarray(coordinates)
        with np.errstate(all="ignore"):
            vector = self.coordinates.natural(at)
        if not np.isfinite(vector).all():
            return -math.inf, np.zeros(len(at))
        outcome = self.forward.gradient(vector, self._choice)
        self._choice = outcome.choice
        if isinstance(outcome, Failure):
            return -math.inf, np.zeros(len(at))
        value, slope = self._density(at, outcome)
        slope = self.whitening.T @ slope
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return -math.inf, np.zeros(len(at))
        return value, slope

    def _density(self, at: Array, outcome: CostGradient) -> tuple[float, Array]:
        """Return the density's logarithm and gradient by plain coordinates, from those of the cost.

        They may not be finite.
        """
        with np.errstate(all="ignore"):
            derivative = self.coordinates.derivative(at)
            prior, gradient = self.coordinates.log_prior(at)
            steepness = outcome.gradient * derivative
            if self.forward.given_noise:
                return prior - outcome.cost, gradient - steepness
            # Priors other than measurements lack the variance that is integrated out.
            apart = self._priors.at(self.coordinates.natural(at))
            if isinstance(apart, str):
                return -math.inf, gradient
            prior_gradient = apart.jacobian.T @ apart.residuals * derivative
            count, objective = self._count - self._priors.size, outcome.objective - apart.squares
            value = -0.5 * count * np.log(objective) - 0.5 * apart.squares
            steepness = (steepness - prior_gradient) * count / objective + prior_gradient
        return float(prior + value), gradient - steepness
