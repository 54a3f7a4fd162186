"""Values of each unknown that are known to fit, as intervals, and the part of a box outside them.

They decide where a search for all values that fit has to look further. A proof does not depend on
them: too many make its intervals wider, too few make the search longer.
"""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.methods.branch_and_bound.local_minima import linearised, objectives_at
from odefit.methods.branch_and_bound.node_evaluator import ResidualEnclosure

TOLERANCE = 0.05
"""Distance from an interval of values that fit, relative to its length, up to which a box may reach
without being divided further."""

SHORT_TOLERANCE = 0.005
"""Least such distance, relative to the total length of all intervals of an unknown: an interval may
be a single value."""

LEAST_TOLERANCE = 1e-9
"""Least such distance, relative to the bounds of the unknown."""

JOINING = 5.0
"""Distance from an interval, in units of that distance, up to which a value that fits extends it
instead of beginning another."""

FRACTIONS = (0.3, 0.6, 0.8, 0.9, 1.0, 1.1)
"""Points on the way to the farthest point of the ellipsoid that linearised residuals give, relative
to its distance, at which the objective is computed."""

LEAST_EFFECT = 1e-10
"""Singular value of the Jacobian, relative to the largest, below which a direction is left out."""


class FittingValues:
    """Intervals of values that fit, for each of n unknowns within bounds of shape (n,)."""

    def __init__(self, lower: Array, upper: Array) -> None:
        self._lower, self._upper = lower, upper
        self._intervals: list[Array] = [np.zeros((0, 2)) for _ in lower]
        self._margins: list[Array] = [np.zeros(0) for _ in lower]

    def intervals(self, k: int) -> Array:
        """Return the intervals of values of unknown `k` that fit, shape (m, 2), in their order."""
        return self._intervals[k]

    def length(self, k: int) -> float:
        """Return the total length of these intervals."""
        return float(np.diff(self._intervals[k]).sum())

    def add(self, k: int, low: float, high: float) -> None:
        """Add an interval of values of unknown `k`."""
        ends = np.clip([low, high], self._lower[k], self._upper[k])
        self._replace(k, np.vstack([self._intervals[k], ends]))

    def add_points(self, points: Array) -> None:
        """Add points that fit, shape (m, n)."""
        for k, values in enumerate(points.T):
            for value in values.tolist():
                self._add_value(k, value)

    def _add_value(self, k: int, value: float) -> None:
        intervals = self._intervals[k]
        new = np.array([[value, value]])
        if len(intervals):
            away = np.maximum(intervals[:, 0] - value, value - intervals[:, 1])
            if away.min() <= 0:
                return
            nearest = int(np.argmin(away))
            if away[nearest] <= JOINING * self._margins[k][nearest]:
                ends = intervals[nearest]
                new = np.array([[min(value, ends[0]), max(value, ends[1])]])
        self._replace(k, np.vstack([intervals, new]))

    def _replace(self, k: int, intervals: Array) -> None:
        span = float(self._upper[k] - self._lower[k])
        joined = union(intervals)
        total = float(np.diff(joined).sum())
        least = max(SHORT_TOLERANCE * total, LEAST_TOLERANCE * span)
        joined = union(joined, JOINING * least)  # values along a curve come one by one
        self._intervals[k] = joined
        self._margins[k] = np.maximum(TOLERANCE * np.diff(joined)[:, 0], least)

    def holds(self, points: Array) -> BoolArray:
        """Return whether all values of points, shape (m, n), lie within the tolerance."""
        return np.asarray((self.outside(points, points) == 0).all(axis=1))

    def outside(self, lower: Array, upper: Array) -> Array:
        """Return the lengths of the parts of boxes that lie outside, shape (B, n).

        Values within the tolerance of those that fit count as inside.
        """
        parts = np.zeros(lower.shape)
        for k in range(lower.shape[1]):
            margins = self._margins[k][:, None] * [-1.0, 1.0]
            parts[:, k] = _outside(union(self._intervals[k] + margins), lower[:, k], upper[:, k])
        return parts


def _outside(intervals: Array, low: Array, high: Array) -> Array:
    inside, covered = np.zeros(len(low), bool), np.zeros(len(low))
    for begin, end in intervals:
        inside |= (low >= begin) & (high <= end)
        covered += np.maximum(np.minimum(high, end) - np.maximum(low, begin), 0.0)
    # Rounding must not hide values outside.
    return np.where(inside, 0.0, np.maximum(high - low - covered, np.finfo(float).tiny))


def union(intervals: Array, gap: float = 0.0) -> Array:
    """Return the union of intervals, shape (m, 2), as disjoint ones in their order.

    Those that are at most `gap` apart become one.

    Examples
    --------
    >>> import numpy as np
    >>> union(np.array([[4.0, 5.0], [1.0, 2.0], [2.0, 3.0]])).tolist()
    [[1.0, 3.0], [4.0, 5.0]]
    """
    if not len(intervals):
        return intervals
    ordered = intervals[np.argsort(intervals[:, 0], kind="stable")]
    most = np.maximum.accumulate(ordered[:, 1])
    begins = np.concatenate([[True], ordered[1:, 0] > most[:-1] + gap])
    ends = np.concatenate([begins[1:], [True]])
    return np.column_stack([ordered[begins, 0], most[ends]])


def add_around(
    fit: FittingValues,
    enclosure: ResidualEnclosure,
    point: Array,
    cut: float,
    lower: Array,
    upper: Array,
) -> None:
    """Add the values between a point and the farthest ones in whose direction the objective fits.

    `cut` is the largest objective that fits. The directions are those of the ellipsoid that the
    linearised residuals give, one on each side for each unknown.
    """
    local = linearised(enclosure, point, lower, upper)
    if local is None or 2 * local.cost > cut:
        return
    span = np.where(upper > lower, upper - lower, 1.0)
    _, s, vt = np.linalg.svd(local.jacobian * span, full_matrices=False)
    used = s > LEAST_EFFECT * s.max(initial=0.0)
    covariance = (vt[used].T / s[used] ** 2) @ vt[used]
    errors = np.sqrt(np.diagonal(covariance))
    room = np.sqrt(cut - 2 * local.cost)
    ways = [
        sign * room * span * covariance[k] / errors[k]
        for k in np.flatnonzero(errors > 0).tolist()
        for sign in (-1.0, 1.0)
    ]
    fit.add_points(point[None])
    if not ways:
        return
    points = point + np.array(ways)[:, None, :] * np.array(FRACTIONS)[None, :, None]
    points = np.clip(points, lower, upper)
    flat = points.reshape(-1, len(point))
    good = (objectives_at(enclosure, flat) <= cut).reshape(points.shape[:2])
    good = np.logical_and.accumulate(good, axis=1)
    for k in range(len(point)):
        values = points[:, :, k][good]
        if len(values):
            fit.add(k, min(point[k], values.min()), max(point[k], values.max()))
