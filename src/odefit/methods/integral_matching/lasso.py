"""Least squares within bounds with a penalty on magnitudes, which keeps only a few terms."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array

CHANGES_PER_COMPONENT = 30  # largest number of changes of the active set per component
OPTIMALITY_TOLERANCE = 1e-10  # relative to the largest product of a column and the data


def lasso(columns: Array, right: Array, low: Array, high: Array, thresholds: Array) -> Array:
    """Minimise |columns y - right|^2 / 2 + thresholds |y| within bounds.

    This is an active set method. Components at zero or at a bound are held while the others move to
    their minimum, or until one of them reaches zero or a bound. Then the component with the largest
    gain is released. The answer is exact, even if columns are nearly dependent, as integrated terms
    are. Thresholds are at least 0.
    """
    q, r = np.linalg.qr(columns)
    data = q.T @ right
    target = r.T @ data
    tolerance = OPTIMALITY_TOLERANCE * float(np.abs(target).max(initial=0.0))
    y = np.clip(np.zeros(len(target)), low, high)
    free = (thresholds == 0) & (y > low) & (y < high)
    # The side of zero of each free component that has a threshold.
    side = np.zeros(len(y))
    for _ in range(CHANGES_PER_COMPONENT * len(y)):
        step = np.zeros(len(y))
        step[free] = _free_step(r[:, free], data - r @ y, (thresholds * side)[free])
        least = np.where(side > 0, np.maximum(low, 0.0), low)
        most = np.where(side < 0, np.minimum(high, 0.0), high)
        limit = np.where(step < 0, least, most)
        room = np.ones(len(y))
        moving = step != 0
        room[moving] = (limit - y)[moving] / step[moving]
        length = min(1.0, float(room.min(initial=1.0)))
        y = np.clip(y + length * step, least, most)
        if length < 1.0:
            met = moving & (room <= length)
            y[met] = limit[met]
            free &= ~met
            side[met] = 0.0
            continue
        descent = target - r.T @ (r @ y)
        up = np.where(~free & (y < high), descent - np.where(y >= 0, thresholds, -thresholds), 0.0)
        down = np.where(
            ~free & (y > low), -descent - np.where(y <= 0, thresholds, -thresholds), 0.0
        )
        gain = np.maximum(up, down)
        k = int(np.argmax(gain))
        if gain[k] <= tolerance:
            break
        free[k] = True
        rising = up[k] > down[k]
        side[k] = (1.0 if y[k] > 0 or (y[k] == 0 and rising) else -1.0) * (thresholds[k] > 0)
    return y


def _free_step(columns: Array, residuals: Array, gradient: Array) -> Array:
    """Return the minimum d of |columns d - residuals|^2 / 2 + gradient d."""
    if not columns.shape[1]:
        return np.zeros(0)
    u, s, vt = np.linalg.svd(columns, full_matrices=False)
    determined = s > 1e-13 * s[0]
    u, s, vt = u[:, determined], s[determined], vt[determined]
    return np.asarray(vt.T @ ((u.T @ residuals - (vt @ gradient) / s) / s))
