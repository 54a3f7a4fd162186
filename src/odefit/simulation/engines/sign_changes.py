"""Times at which expressions change their signs, for many of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from odefit.common.arrays import Array


def sign_changes(
    times: Array, signs: Array, at: Callable[[Array], Array], most: int, *, iterations: int
) -> Array:
    """Return times close to both sides of where expressions change their signs, shape (k,).

    The times are increasing, shape (n,), with the expressions there, shape (w, n); `at` returns
    them at other times. At most so many changes are looked at, with iterations of the secant rule
    of Illinois.
    """
    row, column = np.nonzero(signs[:, 1:] * signs[:, :-1] < 0)
    row, column = row[:most], column[:most]
    if not len(row):
        return np.zeros(0)
    left, right = times[column], times[column + 1]
    below, above = signs[row, column], signs[row, column + 1]
    pick = row, np.arange(len(row))
    for _ in range(iterations):
        middle = left - below * (right - left) / (above - below)
        value = at(middle)[pick]
        same = np.sign(value) == np.sign(below)
        # An end that stays counts half.
        above = np.where(same, 0.5 * above, value)
        right = np.where(same, right, middle)
        below = np.where(same, value, 0.5 * below)
        left = np.where(same, middle, left)
    return np.unique(np.concatenate([left, right]))
