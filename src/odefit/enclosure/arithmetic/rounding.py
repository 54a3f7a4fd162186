"""Outward rounding in floating-point arithmetic: unit roundoff, margins, neighbouring floats."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array

UNIT_ROUNDOFF = 2.0**-53
"""Largest relative error of one rounded operation on double-precision numbers."""

ROUNDING_MARGIN = 1.0 + 1e-10
"""Factor that covers the rounding of sums and products of bounds, which are never negative.

Sums have at most as many terms as there are monomials
(:data:`odefit.enclosure.arithmetic.taylor_models.MAX_MONOMIALS`) times orders in time.
"""

UNDERFLOW = 1e-300
"""More than the absolute error of an operation whose result underflows."""

OVERFLOW = 1e300
"""Lower bound of a number that overflows."""


def round_down(x: Array) -> Array:
    """Return the next floats below, at most the exact result that was rounded to `x`."""
    return np.nextafter(x, -np.inf)


def round_up(x: Array) -> Array:
    """Return the next floats above, at least the exact result that was rounded to `x`."""
    return np.nextafter(x, np.inf)


def summation_error(terms: int | Array) -> Array:
    """Return the largest error of a sum of rounded products, relative to the sum of magnitudes.

    It is ``k u / (1 - k u)`` with the unit roundoff u and k a little above the number of `terms`
    (N. J. Higham, Accuracy and stability of numerical algorithms, 2002).
    """
    k = np.asarray(terms, dtype=float) + 2.0
    return np.asarray(k * UNIT_ROUNDOFF / (1.0 - k * UNIT_ROUNDOFF))
