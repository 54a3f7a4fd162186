"""Ends of bands, on the scale on which the curve and its measurements are symmetric.

Errors of a measured quantity with noise in logarithms are symmetric there, and so are those of an
expected count, as in a Poisson regression with its logarithmic link (P. McCullagh and J. A. Nelder,
Generalized Linear Models, 1989, section 6.2).
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array

OUTWARDS = np.array([[-1.0], [1.0]])
"""Directions of the lower and the upper end."""


def ends_about(values: Array, half: Array, *, logs: bool) -> Array:
    """Return values minus and plus half-widths, shape (2, k); with `logs`, those of logarithms.

    Logarithms of values that are not positive are NaN.
    """
    if not logs:
        return np.asarray(values + OUTWARDS * half)
    with np.errstate(all="ignore"):
        ends = values * np.exp(OUTWARDS * half)
    return np.where(values > 0, ends, np.nan)


def ends_of_curve(values: Array, half: Array, *, logs: bool, counted: bool) -> Array:
    """Return the ends of a curve, shape (2, k), for half-widths in units of the values.

    If it is `counted`, these are half-widths of logarithms wherever the expected count is above
    zero, since no expectation is below zero.
    """
    if not (logs or counted):
        return ends_about(values, half, logs=False)
    with np.errstate(all="ignore"):
        ends = ends_about(values, half / np.abs(values), logs=True)
    return np.where(values > 0, ends, ends_about(values, half, logs=False)) if counted else ends


def joined_ends(values: Array, curve: Array, noise: Array, *, logs: bool) -> Array:
    """Return the ends of a prediction band, shape (2, k).

    The distances of the ends of the curve and of its measurements are joined as squares, with
    `logs` those of logarithms.
    """
    if not logs:
        return ends_about(values, np.hypot(curve - values, noise - values), logs=False)
    with np.errstate(all="ignore"):
        of_curve, of_noise = (np.log(np.maximum(ends / values, 0.0)) for ends in (curve, noise))
        return ends_about(values, np.hypot(of_curve, of_noise), logs=True)
