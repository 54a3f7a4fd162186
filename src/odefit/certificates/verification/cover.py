"""A check that boxes cover another one, by planes that divide it until single boxes do."""

from __future__ import annotations

import numpy as np

from odefit.common.arrays import Array, IntArray

MOST_PARTS = 50
"""Number of parts per box above which a cover counts as unproved."""


def uncovered_part(lower: Array, upper: Array, lows: Array, highs: Array) -> Array | None:
    """Return a part of a box, shape (2, n), that boxes do not cover; None if they cover it all.

    The box has the corners `lower` and `upper`, shape (n,), the others `lows` and `highs`, (N, n).
    """
    flat = upper == lower
    waiting: list[tuple[Array, Array, IntArray]] = [(lower, upper, np.arange(len(lows)))]
    left = MOST_PARTS * (len(lows) + 1)
    while waiting:
        low, high, places = waiting.pop()
        left -= 1
        inside = ((lows[places] < high) & (highs[places] > low)) | (
            flat & (lows[places] <= low) & (highs[places] >= high)
        )
        places = places[inside.all(axis=1)]
        if ((lows[places] <= low) & (highs[places] >= high)).all(axis=1).any():
            continue
        plane = _plane(low, high, lows[places], highs[places])
        if plane is None or left <= 0:
            return np.stack([low, high])
        k, at = plane
        first, second = high.copy(), low.copy()
        first[k] = second[k] = at
        waiting += [(low, first, places), (second, high, places)]
    return None


def _plane(low: Array, high: Array, lows: Array, highs: Array) -> tuple[int, float] | None:
    """Return the face of a box that lies within the part and cuts fewest others, as evenly."""
    best, face = np.inf, None
    for k in range(len(low)):
        faces = np.unique(np.concatenate([lows[:, k], highs[:, k]]))
        faces = faces[(faces > low[k]) & (faces < high[k])]
        if not len(faces):
            continue
        begun = np.searchsorted(np.sort(lows[:, k]), faces, side="left")
        ended = np.searchsorted(np.sort(highs[:, k]), faces, side="right")
        score = (begun - ended) * (len(lows) + 1) + np.abs(begun + ended - len(lows))
        place = int(np.argmin(score))
        if score[place] < best:
            best, face = float(score[place]), (k, float(faces[place]))
    return face
