"""Cubics from their values and slopes at two ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from odefit.common.arrays import Array


def departure(
    step: float, values: Sequence[float] | Array, slopes: Sequence[float] | Array
) -> float:
    """Return the largest departure of a cubic from a parabola.

    The parabola has the same ends, at distance `step`, and the same change of the slope.
    """
    third = step * (slopes[0] + slopes[1]) - 2 * (values[1] - values[0])
    # The maximum of s (1 - s) |s - 1/2| is the root of 3, by 36.
    return abs(float(third)) * math.sqrt(3) / 36


def crossing(step: float, values: Sequence[float], slopes: Sequence[float]) -> float:
    """Return where a cubic between ends at distance `step` is one, as a share of the distance.

    Its value is below one at the first end and above one at the second.
    """
    from scipy.optimize import brentq

    (a, b), (da, db) = values, (slope * step for slope in slopes)

    def excess(s: float) -> float:
        return float(
            a * (1 + 2 * s) * (1 - s) ** 2
            + da * s * (1 - s) ** 2
            + b * s**2 * (3 - 2 * s)
            + db * s**2 * (s - 1)
            - 1
        )

    return float(brentq(excess, 0.0, 1.0, xtol=1e-9))
