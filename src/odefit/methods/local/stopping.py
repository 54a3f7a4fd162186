"""Costs with their models, stopping rules and ends of local searches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array

STALL_GAIN = 0.1  # gain of the log-likelihood below which the iteration counts as stalled


class Quadratic(Protocol):
    """A cost at a point with its Gauss-Newton model: gradient J'r, Hessian J'J."""

    @property
    def cost(self) -> float: ...
    @property
    def residuals(self) -> Array: ...
    @property
    def jacobian(self) -> Array: ...


@dataclass(frozen=True)
class Tolerances:
    """The stopping rules of :func:`odefit.methods.local.trust_region.minimise`."""

    # stop when the full Gauss-Newton step predicts a smaller relative decrease
    cost: float = 1e-12
    step: float = 1e-11  # stop when a step is smaller than this, relative to the unknowns
    # cost that counts as zero, below which no cost lies; minus infinity if costs have no bound
    floor: float = -math.inf
    evaluations: int = 200  # largest number of evaluations
    patience: int = 200  # number of evaluations in which the cost must fall by one per cent
    # Absolute decrease of the cost that is too small for another step. Costs that can pass through
    # zero, such as log-likelihoods, need one; :data:`STALL_GAIN` then replaces the one per cent.
    least: float = 0.0
    # another decrease than that within `patience`, and the decrease that the model may still
    # promise if the search ends for want of it
    stall: float | None = None
    promised: float = math.inf
    # whether residuals cannot become small, such as those in units of an estimated noise
    noisy: bool = False


@dataclass(frozen=True, eq=False)
class Minimum:
    """The end of the iteration."""

    vector: Array  # last point, shape (n,)
    evaluation: Quadratic | None  # cost there with its model; None if the start itself failed
    converged: bool  # whether a tolerance was met
    message: str  # the tolerance that was met, or another reason for the end
    evaluations: int  # number of evaluations of the cost


class Milestone:
    """The last evaluation at which the cost had fallen far enough for a search to continue."""

    def __init__(self, tolerances: Tolerances, count: int, cost: float) -> None:
        self._tolerances, self._count, self._cost = tolerances, count, cost

    def stalled(self, count: int, cost: float) -> bool:
        """Return whether the cost has hardly fallen in the allowed number of evaluations.

        `count` and `cost` are the present ones of the search; the milestone moves if the cost has
        fallen.
        """
        if count - self._count < self._tolerances.patience:
            return False
        least_gain = STALL_GAIN if self._tolerances.least else 0.01 * self._cost
        if self._tolerances.stall is not None:
            least_gain = self._tolerances.stall
        if self._cost - cost < least_gain:
            return True
        self._count, self._cost = count, cost
        return False


def usable(model: Quadratic | None) -> Quadratic | None:
    """Return a cost with its model; None if the squares of its Jacobian overflow."""
    if model is None or not math.isfinite(np.vdot(model.jacobian, model.jacobian)):
        return None
    return model
