"""Interval arithmetic on arrays of lower and upper ends, rounded outward.

A sum, product or quotient of floats is off by at most half a unit in the last place: the next
float outward is a bound. Functions of the C library are taken to be within :data:`LIBRARY` units.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from odefit.problem.arrays import Array

Ends = tuple[Array, Array]
"""Lower and upper ends, of the same shape."""


LIBRARY = 4
"""Units in the last place that exp, log, sin and their like may be off."""

UNIT = 2.0**-53
"""Half the distance of neighbouring floats near 1, relative."""


def down(x: Array) -> Array:
    """The next floats below."""
    return np.nextafter(x, -np.inf)


def up(x: Array) -> Array:
    """The next floats above."""
    return np.nextafter(x, np.inf)


def multiply(a: Ends, b: Ends) -> Ends:
    """All products; 0 times infinity is 0, as infinite ends are no values."""
    with np.errstate(all="ignore"):
        products = np.array([np.multiply(x, y) for x in a for y in b])
    products[np.isnan(products)] = 0.0
    low, high = products.min(axis=0), products.max(axis=0)
    # A product with zero is exact, and zero is where positivity ends.
    return np.where(low == 0, low, down(low)), np.where(high == 0, high, up(high))


def divide(a: Ends, b: Ends) -> Ends:
    """All quotients; unbounded where the divisor may be zero, but on the side that zero ends."""
    low, high = b
    with np.errstate(all="ignore"):
        inverse_low = np.where(high == 0, -np.inf, down(1.0 / high))
        inverse_high = np.where(low == 0, np.inf, up(1.0 / low))
    inside = (low < 0) & (high > 0) | ((low == 0) & (high == 0))
    inverse_low = np.where(inside | ((high == 0) & (low < 0)), -np.inf, inverse_low)
    inverse_high = np.where(inside | ((low == 0) & (high > 0)), np.inf, inverse_high)
    return multiply(a, (inverse_low, inverse_high))


def library(function: Callable[[float], float], x: float) -> tuple[float, float]:
    """Bounds of a library function's value; everything where it is not defined."""
    try:
        value = function(x)
    except (ValueError, OverflowError, ZeroDivisionError):
        return -math.inf, math.inf
    if not math.isfinite(value):
        return (value, value) if not math.isnan(value) else (-math.inf, math.inf)
    low = high = value
    for _ in range(LIBRARY):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return low, high


def accumulated(terms: int | Array) -> float | Array:
    """Relative to the sum of magnitudes, what a sum of `terms` rounded products may be off."""
    k = np.asarray(terms, dtype=float) + 2.0
    found = k * UNIT / (1.0 - k * UNIT)
    return found if found.ndim else float(found)


def row_slack(matrix: csr_array, low: Array, high: Array, target: Array) -> Array:
    """What rounded coefficients can make of each row, shape (rows,).

    Coefficients are sums and products of given numbers, each off by a few units in the last place.
    """
    size = np.maximum(np.abs(low), np.abs(high))
    total = abs(matrix) @ size + np.abs(target)
    found: Array = 16.0 * UNIT * total
    return found
