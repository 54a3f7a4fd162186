"""Integrals from the start of a segment to every point of its grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array

MIN_PANEL_POINTS = 5
"""The smallest number of points of a panel: the rule is a cubic through four of them."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The times at which a segment of a trajectory is matched.

    They are equidistant in each panel, from one corner of the inputs to the next; a corner is
    there twice, as the end of a panel and as the start of the next.
    """

    times: Array  # all times, shape (m,)
    # same times, moved by a rounding error into their panel, where inputs have the panel's values
    interior: Array
    panels: tuple[int, ...]  # first index of each panel, and one more for the end

    @classmethod
    def over(cls, start: float, stop: float, corners: Array, points: int) -> Grid:
        """Return a grid of at least `points` times from `start` to `stop`."""
        cuts = np.concatenate([[start], corners[(corners > start) & (corners < stop)], [stop]])
        counts = np.ceil(points * np.diff(cuts) / (stop - start)).astype(int)
        counts = np.maximum(counts, MIN_PANEL_POINTS)
        parts = [np.linspace(a, b, n) for a, b, n in zip(cuts, cuts[1:], counts, strict=False)]
        margins = [1e-9 * (p[1] - p[0]) for p in parts]
        interior = [np.clip(p, p[0] + e, p[-1] - e) for p, e in zip(parts, margins, strict=True)]
        ends = np.concatenate([[0], np.cumsum(counts)])
        return cls(np.concatenate(parts), np.concatenate(interior), tuple(int(e) for e in ends))

    @property
    def weights(self) -> Array:
        """The quadrature weights of the whole grid, by the trapezoidal rule, shape (m,)."""
        weights = np.zeros(len(self.times))
        for a, b in zip(self.panels, self.panels[1:], strict=False):
            steps = np.diff(self.times[a:b])
            weights[a : b - 1] += steps / 2
            weights[a + 1 : b] += steps / 2
        return weights

    def cumulative(self, values: Array) -> Array:
        """Return integrals of curves, shape (..., m), from the start to each time, of order 4."""
        integrals = np.empty(values.shape)
        carried = np.zeros(values.shape[:-1])
        for a, b in zip(self.panels, self.panels[1:], strict=False):
            f = values[..., a:b]
            step = (self.times[b - 1] - self.times[a]) / (b - a - 1)
            steps = np.empty((*f.shape[:-1], b - a - 1))
            # Cubics are integrated through the two points of an interval and their neighbours.
            steps[..., 1:-1] = (13 * (f[..., 1:-2] + f[..., 2:-1]) - f[..., :-3] - f[..., 3:]) / 24
            ends = np.array([9.0, 19.0, -5.0, 1.0]) / 24
            steps[..., 0] = f[..., :4] @ ends
            steps[..., -1] = f[..., -4:] @ ends[::-1]
            integrals[..., a] = carried
            integrals[..., a + 1 : b] = carried[..., None] + step * np.cumsum(steps, axis=-1)
            carried = integrals[..., b - 1]
        return integrals
