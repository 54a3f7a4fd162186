"""Times at which expressions change sign, for many of them at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from odefit.common.arrays import Array


def sign_changes(
    times: Array, signs: Array, at: Callable[[Array], Array], most: int, *, iterations: int
) -> Array:
    """Return times close to both sides of sign changes of expressions, shape (k,).

    The times are increasing, shape (n,), with the expressions there, shape (w, n); `at` returns
    them at other times. At most `most` changes are located, with iterations of the Illinois variant
    of the secant method.
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
        # A retained end has half the weight.
        above = np.where(same, 0.5 * above, value)
        right = np.where(same, right, middle)
        below = np.where(same, value, 0.5 * below)
        left = np.where(same, middle, left)
    return np.unique(np.concatenate([left, right]))
