"""Information criteria, which choose among least-squares fits by charging for parameters."""

from __future__ import annotations

import math

from odefit.methods.smoothing.smoother import EPS

ROUNDING_VARIANCE = (0.5 * EPS) ** 2
"""Mean square of the rounding errors of normalised data: a smaller one is not a better fit."""


def aicc(rss: float, n: int, parameters: int) -> float:
    """Return Akaike's criterion with its small-sample correction.

    `rss` is the sum of squared residuals of `n` normalised data. Without degrees of freedom left,
    the criterion is infinite.
    """
    if n - parameters - 1 < 1:
        return math.inf
    deviance = n * math.log(rss / n + ROUNDING_VARIANCE)
    return deviance + 2 * parameters * n / (n - parameters - 1)


def bic(rss: float, n: int, parameters: int) -> float:
    """Return Schwarz's Bayesian criterion, which charges log(n) for a parameter.

    Its arguments are those of `aicc`; it chooses smoother fits.
    """
    if n - parameters - 1 < 1:
        return math.inf
    return n * math.log(rss / n + ROUNDING_VARIANCE) + parameters * math.log(n)
