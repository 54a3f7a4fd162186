"""Integrals from the start of a piece to every point of its grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import Array

LEAST = 5
"""Points of a stretch: the rule is a cubic through four of them."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Times at which a piece of a trajectory is matched.

    Equidistant between corners of the inputs; a corner is there twice, as the end of a stretch
    and as the start of the next.

    Attributes
    ----------
    times
        Shape (m,).
    inside
        The same, moved by rounding into its stretch: where inputs have the stretch's values.
    stretches
        First row of each stretch, and one more for the end.
    """

    times: Array
    inside: Array
    stretches: tuple[int, ...]

    @classmethod
    def over(cls, start: float, stop: float, corners: Array, points: int) -> Grid:
        """At least `points` from `start` to `stop`."""
        cuts = np.concatenate([[start], corners[(corners > start) & (corners < stop)], [stop]])
        shares = np.maximum(np.ceil(points * np.diff(cuts) / (stop - start)).astype(int), LEAST)
        parts = [np.linspace(a, b, n) for a, b, n in zip(cuts, cuts[1:], shares, strict=False)]
        slack = [1e-9 * (p[1] - p[0]) for p in parts]
        inner = [np.clip(p, p[0] + e, p[-1] - e) for p, e in zip(parts, slack, strict=True)]
        ends = np.concatenate([[0], np.cumsum(shares)])
        return cls(np.concatenate(parts), np.concatenate(inner), tuple(int(e) for e in ends))

    @property
    def weights(self) -> Array:
        """Of the integral over the whole piece (trapezoid: what is integrated is a square)."""
        found = np.zeros(len(self.times))
        for a, b in zip(self.stretches, self.stretches[1:], strict=False):
            steps = np.diff(self.times[a:b])
            found[a : b - 1] += steps / 2
            found[a + 1 : b] += steps / 2
        return found

    def cumulative(self, values: Array) -> Array:
        """Integrals from the start, shape (..., m), of values of that shape; of order 4."""
        found = np.empty(values.shape)
        carried = np.zeros(values.shape[:-1])
        for a, b in zip(self.stretches, self.stretches[1:], strict=False):
            f = values[..., a:b]
            step = (self.times[b - 1] - self.times[a]) / (b - a - 1)
            pieces = np.empty((*f.shape[:-1], b - a - 1))
            # Cubics through the two points of an interval and their neighbours.
            pieces[..., 1:-1] = (13 * (f[..., 1:-2] + f[..., 2:-1]) - f[..., :-3] - f[..., 3:]) / 24
            ends = np.array([9.0, 19.0, -5.0, 1.0]) / 24
            pieces[..., 0] = f[..., :4] @ ends
            pieces[..., -1] = f[..., -4:] @ ends[::-1]
            found[..., a] = carried
            found[..., a + 1 : b] = carried[..., None] + step * np.cumsum(pieces, axis=-1)
            carried = found[..., b - 1]
        return found
