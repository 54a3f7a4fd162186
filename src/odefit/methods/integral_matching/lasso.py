"""Least squares with a penalty on magnitudes, within bounds: few terms out of many."""

from __future__ import annotations

import numpy as np

from odefit.problem.arrays import Array

CHANGES = 30
"""Of what is held at zero or at a bound, at most so many for each component."""

ROUNDING = 1e-10
"""Of the optimality conditions, relative to the largest correlation of a column and the data."""


def lasso(columns: Array, right: Array, low: Array, high: Array, thresholds: Array) -> Array:
    """Minimise |columns y - right|^2 / 2 + thresholds |y| within bounds.

    By active sets: components at zero or at a bound are held while the others go to their
    minimum, or until one of them meets zero or a bound; then the one that would gain most is let
    go. The answer is exact, also where columns are nearly dependent, as integrated terms are.

    Parameters
    ----------
    thresholds
        Of every component, at least 0; shape (k,).
    """
    q, r = np.linalg.qr(columns)
    data = q.T @ right
    target = r.T @ data
    slack = ROUNDING * float(np.abs(target).max(initial=0.0))
    y = np.clip(np.zeros(len(target)), low, high)
    free = (thresholds == 0) & (y > low) & (y < high)
    # The side of zero on which a component with a threshold is, while it is free.
    side = np.zeros(len(y))
    for _ in range(CHANGES * len(y)):
        step = np.zeros(len(y))
        step[free] = _step(r[:, free], data - r @ y, (thresholds * side)[free])
        least = np.where(side > 0, np.maximum(low, 0.0), low)
        most = np.where(side < 0, np.minimum(high, 0.0), high)
        limit = np.where(step < 0, least, most)
        room = np.ones(len(y))
        moving = step != 0
        room[moving] = (limit - y)[moving] / step[moving]
        share = min(1.0, float(room.min(initial=1.0)))
        y = np.clip(y + share * step, least, most)
        if share < 1.0:
            met = moving & (room <= share)
            y[met] = limit[met]
            free &= ~met
            side[met] = 0.0
            continue
        pull = target - r.T @ (r @ y)
        up = np.where(~free & (y < high), pull - np.where(y >= 0, thresholds, -thresholds), 0.0)
        down = np.where(~free & (y > low), -pull - np.where(y <= 0, thresholds, -thresholds), 0.0)
        gain = np.maximum(up, down)
        k = int(np.argmax(gain)) if len(gain) else 0
        if not len(gain) or gain[k] <= slack:
            break
        free[k] = True
        rising = up[k] > down[k]
        side[k] = (1.0 if y[k] > 0 or (y[k] == 0 and rising) else -1.0) * (thresholds[k] > 0)
    return y


def _step(columns: Array, rest: Array, slopes: Array) -> Array:
    """The minimum of |columns d - rest|^2 / 2 + slopes d."""
    if not columns.shape[1]:
        return np.zeros(0)
    u, s, vt = np.linalg.svd(columns, full_matrices=False)
    kept = s > 1e-13 * s[0]
    u, s, vt = u[:, kept], s[kept], vt[kept]
    return np.asarray(vt.T @ ((u.T @ rest - (vt @ slopes) / s) / s))
