"""Scalar comparison equations in compiled code.

The formulas are those of :func:`odefit.enclosure.differential_inequalities.highest`.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.rounding import OVERFLOW, ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.kernels.compiling import called_from_python, rigorous


@rigorous
def _solution(start: float, a: float, b: float, h: float) -> float:
    """Return ``start e^(a h) + b (e^(a h) - 1) / a``, rounded upwards."""
    x = a * h
    growth = float(np.exp(x))
    mean = float(np.expm1(x)) / x if abs(x) > UNDERFLOW else 1.0
    # An overflowing number is at least this large.
    first = start * (min(growth, OVERFLOW) if start < 0 else growth)
    second = b * h * (min(mean, OVERFLOW) if b < 0 else mean)
    first = first * ROUNDING_MARGIN + UNDERFLOW if start > 0 else first / ROUNDING_MARGIN
    second = second * ROUNDING_MARGIN + UNDERFLOW if b > 0 else second / ROUNDING_MARGIN
    return first + second + 4 * UNIT_ROUNDOFF * (abs(first) + abs(second))


@called_from_python
def highest(start: Array, low: Array, high: Array, rest: Array, h: float) -> Array:
    """Return upper bounds at h of all solutions of ``u' = a u + b``, shape (B,).

    Factors a are between `low` and `high`, and b is at most `rest`.
    """
    out = np.empty(len(start))
    for k in range(len(start)):
        # Above zero, the largest a is used; below, the smallest.
        if start[k] > 0 or (start[k] == 0 and rest[k] > 0):
            upper = _solution(start[k], high[k], rest[k], h)
            # From above zero to below it: the bound stops at zero.
            if rest[k] < 0 and not upper > 0:
                upper = 0.0 if upper <= 0 else upper
        else:
            upper = _solution(start[k], low[k], rest[k], h)
            if rest[k] > 0 and not upper <= 0:
                upper = _solution(0.0, high[k], rest[k], h)
        out[k] = np.inf if np.isnan(upper) else max(upper, -OVERFLOW)
    return out
