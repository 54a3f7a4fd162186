"""Residuals of priors: each unknown with a prior adds one row, like a measurement of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class PriorRows:
    """The contribution of priors to residuals and Jacobian.

    Attributes
    ----------
    residuals, jacobian
        Deviance residuals and their derivatives, shapes (k,) and (k, n).
    squares
        Twice the logarithm of the ratio of the largest density to the density, summed.
    information
        Rows, shape (k, n), whose squares are the priors' information on the unknowns, see
        :class:`~odefit.problem.prior_families.Deviance`.
    """

    residuals: Array
    jacobian: Array
    squares: float
    information: Array


class PriorResiduals:
    """The priors of a problem as residuals; flat priors only bound, and have none.

    Parameters
    ----------
    problem
        The problem with the unknowns.
    plain
        Whether to include priors that act as measurements (normal in natural units).

    Attributes
    ----------
    size
        Number of residuals.
    gaussian
        Whether the rows of the information are those of the Jacobian: all priors are normal, on
        some scale.
    """

    def __init__(self, problem: Problem, *, plain: bool = True) -> None:
        self._priors = [
            (problem.keys.index(key), key, prior)
            for key, prior in problem.priors.items()
            if plain or not prior.plain
        ]
        self.size = len(self._priors)
        self.gaussian = all(prior.gaussian for _, _, prior in self._priors)

    def at(self, vector: Array) -> PriorRows | str:
        """Return the rows at unknowns of shape (n,), or a reason if a density is zero."""
        residuals = np.empty(self.size)
        jacobian, information = np.zeros((2, self.size, len(vector)))
        squares = 0.0
        for row, (i, key, prior) in enumerate(self._priors):
            deviance = prior.deviance(float(vector[i]))
            if deviance is None:
                return f"the prior of '{key}' has no density at {float(vector[i]):g}"
            residuals[row], jacobian[row, i] = deviance.residual, deviance.slope
            information[row, i] = np.sqrt(deviance.information)
            squares += 2 * deviance.half
        return PriorRows(residuals, jacobian, squares, information)
