"""The time at which a condition changes: Newton's method within a bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ROOT_STEPS = 100
"""Steps of the search, each of which integrates from the last point before the change."""


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

    `at`: returns the quantity and its rate at a time; `holds_before`: returns whether the
    comparison of such a quantity is still as it was at the start; `start`, `high`: the bracket: at
    `high` the comparison has changed; `small`: accuracy of the time; `noise`: size of steps that
    are no longer believed if they do not shrink. Returns the time. Where the quantity comes to a
    halt at its zero, as the right-hand side jumps there, it is one just before, at which the
    quantity still moves.
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
