"""Information criteria: goodness of fit with a penalty for parameters.

H. Akaike, IEEE Transactions on Automatic Control 19, 1974 (AIC); N. Sugiura, Communications in
Statistics 7, 1978 (AICc); G. Schwarz, Annals of Statistics 6, 1978 (BIC); K. P. Burnham and D. R.
Anderson, Model Selection and Multimodel Inference, 2002.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Criteria:
    """Information criteria of one answer, from its deviance -2 log L.

    The number k of `parameters` counts the directions that the data determine, including those of
    the noise and the variance of plain least squares.
    """

    deviance: float
    parameters: int
    measurements: int

    @classmethod
    def of_squares(cls, squares: float, parameters: int, measurements: int) -> Criteria:
        """Return the criteria of plain least squares, at the maximum of the likelihood S/n.

        `parameters` does not count the variance.
        """
        n = measurements
        deviance = n * (math.log(2 * math.pi * squares / n) + 1) if squares > 0 else -math.inf
        return cls(deviance, parameters + 1, n)

    @property
    def aic(self) -> float:
        """Akaike's criterion, -2 log L + 2 k."""
        return self.deviance + 2.0 * self.parameters

    @property
    def aicc(self) -> float:
        """Akaike's criterion for small samples; infinite where n - k - 1 is not positive."""
        k, left = self.parameters, self.measurements - self.parameters - 1
        return self.aic + 2.0 * k * (k + 1) / left if left > 0 else math.inf

    @property
    def bic(self) -> float:
        """Schwarz's (Bayesian) criterion, -2 log L + k log n."""
        return self.deviance + self.parameters * math.log(self.measurements)
