"""Which of several least-squares fits: criteria that charge for parameters."""

from __future__ import annotations

import math

from odefit.methods.smoothing.smoother import EPS

FLOOR = (0.5 * EPS) ** 2
"""Mean square of what rounding leaves of normalised data: a smaller one is not a better fit."""


def aicc(rss: float, n: int, parameters: int) -> float:
    """Akaike's criterion with its small-sample correction; inf without degrees of freedom left.

    `rss` is the sum of squared residuals of n normalised data.
    """
    if n - parameters - 1 < 1:
        return math.inf
    deviance = n * math.log(rss / n + FLOOR)
    return deviance + 2 * parameters * n / (n - parameters - 1)


def bic(rss: float, n: int, parameters: int) -> float:
    """Schwarz's criterion: charges log(n) for a parameter, chooses the smoother fit."""
    if n - parameters - 1 < 1:
        return math.inf
    return n * math.log(rss / n + FLOOR) + parameters * math.log(n)
