"""Times at which quantities along a trajectory pass through zero, from values and rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from odefit.common.arrays import Array

ROUNDING = 1e-13
"""Difference of times, relative to the time or the time span, that counts as zero."""

NOISE = 1e-9
"""Difference of two roots, relative to the time or the time span, that counts as zero: roots have
integration errors."""

CUBIC_STEPS = 40
"""Number of bisections of the cubic between two points, whose root is the first guess for that of
the true quantity."""


def near_extrema(times: Array, values: Array, rates: Array) -> Array:
    """Return times at which a quantity may touch or cross zero between points of the same sign.

    Between two points, the values and time derivatives of the quantity define a cubic. If that
    turns around near zero, the time of its extremum is returned.
    """
    left, right = values[:-1], values[1:]
    sign = np.sign(left)
    towards = (sign * rates[:-1] < 0) & (sign * rates[1:] > 0) & (np.sign(right) == sign)
    extrema = []
    for i in np.flatnonzero(towards):
        h = times[i + 1] - times[i]
        s = np.linspace(0.0, 1.0, 65)
        cubic = sign[i] * hermite(s, h, values[i : i + 2].tolist(), rates[i : i + 2].tolist())
        place = int(np.argmin(cubic))
        if cubic[place] < 0.25 * min(abs(left[i]), abs(right[i])) and 0 < place < 64:
            extrema.append(times[i] + h * s[place])
    return np.array(extrema)


def hermite(s: Any, h: float, values: Sequence[float], rates: Sequence[float]) -> Any:
    """Return the cubic with given values and derivatives at both ends, at fractions s of h."""
    a, b = values
    da, db = rates[0] * h, rates[1] * h
    back = 1.0 - s
    rise = s * s * ((3.0 - 2.0 * s) * b - back * db)
    return back * back * ((1.0 + 2.0 * s) * a + s * da) + rise


def cubic_root(holds: Callable[[Any], Any], times: Array, values: Array, rates: Array) -> float:
    """Return where `holds` changes between two times, by the cubic; times, shape (2,)."""
    h = float(times[1] - times[0])
    first = not bool(holds(values[1]))
    ends, slopes = values.tolist(), rates.tolist()  # faster than arrays of two
    low, high = 0.0, 1.0
    for _ in range(CUBIC_STEPS):
        middle = 0.5 * (low + high)
        if bool(holds(hermite(middle, h, ends, slopes))) == first:
            low = middle
        else:
            high = middle
    return float(times[0] + h * high)


ROOT_STEPS = 100
"""Largest number of steps of the search, each of which integrates from the last point before the
change."""


def change_time(
    at: Callable[[float], tuple[float, float]],
    holds_before: Callable[[float], bool],
    start: float,
    high: float,
    guess: float,
    small: float,
    noise: float,
) -> float:
    """Return the time at which a compared quantity passes through zero.

    `at` returns the quantity and its rate at a time, `holds_before` whether the comparison of such
    a quantity is still unchanged since the start. The bracket is from `start` to `high`, where it
    has changed. Steps of the size of `noise` that do not shrink end the search. If the quantity
    stops at its zero, because the right-hand side jumps there, the returned time is just before,
    while the quantity still moves.
    """
    low, time, last = start, guess, np.inf
    halted = False
    for step in range(ROOT_STEPS):
        if time - start <= small:
            return time
        value, rate = at(time)
        if holds_before(value):
            low = time
        else:
            high = time
        if value == 0.0 and rate != 0.0:
            return time
        if rate == 0.0:
            halted = True
            if high - low <= small:
                break
            time = 0.5 * (low + high)
            continue
        change = -value / rate
        settled = step >= 3 and abs(change) > 0.5 * last and abs(change) < noise
        if abs(change) <= small or high - low <= small or settled:
            break
        last, time = abs(change), time + change
        if not low < time < high:
            time = 0.5 * (low + high)
    return low if halted and low > start else time
