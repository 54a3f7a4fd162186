"""The values of the forward map at one vector of unknowns."""

from __future__ import annotations

from dataclasses import dataclass, field

from odefit.common.arrays import Array
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Residuals of a problem at one vector of unknowns.

    Attributes
    ----------
    cost
        The function that the optimiser minimises: half the objective, plus the logarithms of those
        standard deviations that depend on unknowns.
    residuals, jacobian
        Residuals and their derivatives, shapes (r,) and (r, unknowns), with jacobian' residuals the
        gradient of `cost` and jacobian' jacobian its Gauss-Newton matrix. A standard deviation that
        depends on unknowns adds its own rows to those of its measurements.
    objective
        Weighted sum of squared residuals, measurements and priors; for noise that is not normal,
        their deviance.
    log_likelihood
        Log-likelihood of the measurements if their noise is given or estimated, else None.
    choice
        The choice of an engine for the next evaluation.
    information
        Rows, shape (r, unknowns), such that information' information is the Fisher (expected)
        information, the source of standard errors. It is the Jacobian if all noise is normal;
        otherwise the Gauss-Newton matrix depends on the measurements, and the information does not.
    """

    cost: float
    residuals: Array
    jacobian: Array
    objective: float
    log_likelihood: float | None
    choice: EngineChoice = field(default=UNDECIDED, repr=False)
    expected: Array | None = field(default=None, repr=False)

    @property
    def information(self) -> Array:
        """Rows whose squares are the Fisher information, see above."""
        return self.jacobian if self.expected is None else self.expected


@dataclass(frozen=True, eq=False)
class CostGradient:
    """The cost of a problem at one vector of unknowns, and its gradient."""

    cost: float
    gradient: Array  # Derivatives of the cost with respect to the unknowns, shape (n,)
    objective: float
    log_likelihood: float | None
    choice: EngineChoice = field(default=UNDECIDED, repr=False)
    adjoint: bool = False  # Whether it comes from the adjoint; otherwise from sensitivities

    @classmethod
    def of(cls, evaluation: Evaluation) -> CostGradient:
        """Return cost and gradient of an evaluation."""
        return cls(
            cost=evaluation.cost,
            gradient=evaluation.residuals @ evaluation.jacobian,
            objective=evaluation.objective,
            log_likelihood=evaluation.log_likelihood,
            choice=evaluation.choice,
        )
