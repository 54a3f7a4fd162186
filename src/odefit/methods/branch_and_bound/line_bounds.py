"""Lower bounds of the objective over boxes where some of its terms have kinks, as absolute values.

A square root has no slope at a kink, so that the residual of Laplace noise has no polynomial there.
But for any slope z in [-1, 1] the convex term ``root(v^2 + e^2) - e`` is at least
``z v - e (1 - root(1 - z^2))``, and a square r^2 is at least ``z r - z^2/4`` for any z. The sum of
these is one polynomial, in which linear terms cancel if the slopes are those at the least value: at
a kink they are free. So the bound errs by the square of the size of a box, while the objective
rises in proportion to the distance from a minimum at kinks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.rounding import UNIT_ROUNDOFF
from odefit.enclosure.likelihood.deviance_residuals import LINE_LOSS
from odefit.enclosure.residuals import Residuals

REWEIGHTINGS = 30
"""Number of least squares problems with weights, each for kinks that are half as rounded."""

WeightedSum = Callable[[Array, Array, Array], tuple[Array, Array]]
"""A function that bounds sums of polynomials from weights, coefficients and remainders."""

Step = Callable[[Array, Array, Array], Array]
"""A function that returns points after a Newton step within the box: points, gradient, Hessian."""


def bound_by_lines(
    residuals: Residuals, linear: list[int], weighted_sum: WeightedSum, newton_step: Step
) -> Array:
    """Return a lower bound of the sum of squares of residuals with lines, shape (B,).

    Residuals that are not enclosed count as zero. `linear` has the places of the linear terms.
    """
    assert residuals.lines is not None
    lines = residuals.lines
    straight: BoolArray = (np.isfinite(lines.remainder) & np.isfinite(lines.c).all(axis=1)).T
    c = np.where(straight[:, :, None], np.moveaxis(lines.c, 2, 0), np.moveaxis(residuals.c, 2, 0))
    remainder = np.where(straight, lines.remainder.T, residuals.remainder.T)
    enclosed = np.isfinite(remainder) & np.isfinite(c).all(axis=2)
    c, remainder = np.where(enclosed[:, :, None], c, 0.0), np.where(enclosed, remainder, 0.0)
    slopes = _slopes(c, straight, linear, newton_step)
    low, _ = weighted_sum(slopes, c, remainder)
    curved = slopes * slopes / 4
    kinked = LINE_LOSS * (1 - np.sqrt(np.maximum(1 - slopes * slopes, 0.0)))
    # The roundings of a difference from one, and of a sum.
    lost = np.where(straight, kinked + 4 * UNIT_ROUNDOFF * LINE_LOSS, curved)
    total = lost.sum(axis=1) * (1 + 2 * UNIT_ROUNDOFF * (lost.shape[1] + 4))
    return np.asarray(low - total - 2 * UNIT_ROUNDOFF * (np.abs(low) + total))


def _slopes(c: Array, straight: BoolArray, linear: list[int], newton_step: Step) -> Array:
    """Return the slopes at the approximate least value of the linear parts, shape (B, R)."""
    constant, jacobian = c[:, :, 0], c[:, :, linear]
    boxes, n = len(c), len(linear)
    d = np.zeros((boxes, n))
    size = np.abs(c).sum(axis=2).max(axis=1, initial=0.0)[:, None]
    tiny = 1e-300 * np.eye(n)
    values, weights = constant, np.ones_like(constant)
    for k in range(REWEIGHTINGS):
        rounded = np.maximum(size * 0.5**k, LINE_LOSS)
        values = constant + np.einsum("brn,bn->br", jacobian, d)
        weights = np.where(straight, 1.0 / np.hypot(values, rounded), 2.0)
        gradient = np.einsum("brn,br->bn", jacobian, weights * values)
        curvature = np.einsum("brn,br,brm->bnm", jacobian, weights, jacobian) + tiny
        d = newton_step(d, gradient, curvature)
    slopes = weights * values
    return np.asarray(np.where(straight, np.clip(slopes, -1.0, 1.0), slopes))
