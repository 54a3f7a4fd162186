"""Checks of linear bands where an unknown is at a bound, by the farthest values that fit.

An unknown that leaves its bound can lead far: others follow it, and a state that is not measured
changes many times as much as linearisation tells. The values of such a state that fit the data are
sought at two times, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.farthest_values import FarthestValues
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.predictions.bands import Band, NoBand
from odefit.common.arrays import Array, IntArray
from odefit.problem.condition import Condition
from odefit.simulation import ForwardMap

EXCEEDED = 1.3
"""Distance of a value that fits from the curve, relative to that of the linear band, above which
there is no linear band."""

MOST_EQUATIONS = 600
"""Number of equations of states and sensitivities up to which bands are checked."""


def without_bent(
    forward: ForwardMap,
    vector: Array,
    condition: Condition,
    bands: Sequence[Band],
    held: Sequence[str],
    deviance: Deviance,
    limit: float,
) -> list[Band]:
    """Return linear bands without those of states that reach much further.

    Measured quantities are not checked, as their data hold them. The unknowns `held` are at a
    bound, and act on the data. The `limit` is that of the `deviance` of the estimate.
    """
    model = forward.problem.model
    equations = (len(model.states) + len(model.algebraic)) * (1 + len(vector))
    if not held or equations > MOST_EQUATIONS or not (limit > 0 and deviance.variance > 0):
        return list(bands)
    return [
        _bent(band, held)
        if not band.observable
        and _reaches_further(forward, vector, condition, band, deviance, limit)
        else band
        for band in bands
    ]


def _reaches_further(
    forward: ForwardMap,
    vector: Array,
    condition: Condition,
    band: Band,
    deviance: Deviance,
    limit: float,
) -> bool:
    """Return whether values far outside a linear band fit the data."""
    below, above = half = np.abs(band.confidence - band.values)
    shown = np.flatnonzero(np.isfinite(below + above))
    if not len(shown) or not half[:, shown].max() > 0:
        return False
    chosen: IntArray = np.unique([shown[np.argmax((below + above)[shown])], shown[-1]])
    grid = band.times, chosen
    values = FarthestValues(forward, condition, grid, [band.name], (vector,), deviance, limit)
    for k in range(len(chosen)):
        for sign in (1, -1):
            values.end(band.name, k, sign)
            if values.better is not None:
                return False  # the estimate is no optimum, which others tell
            outer = np.stack(
                [band.values - values.low[band.name], values.high[band.name] - band.values]
            )
            if (outer[:, shown] > EXCEEDED * half[:, shown]).any():
                return True
    return False


def _bent(band: Band, held: Sequence[str]) -> Band:
    """Return a curve without its band."""
    none = np.full_like(band.confidence, np.nan)
    return replace(
        band,
        errors=np.full_like(band.errors, np.nan),
        confidence=none,
        prediction=none,
        lacking=(*(r for r in band.lacking if r is not NoBand.AT_A_BOUND), NoBand.BENT),
        at_bounds=tuple(dict.fromkeys((*band.at_bounds, *band.widening))) or tuple(held),
        widening=(),
        cut=False,
    )
