"""Checks of linear bands by the farthest values that fit.

An unknown that leaves its bound can lead far: others follow it, and a state that is not measured
changes many times as much as linearisation tells. So it may where an unknown is hardly determined,
as a model is seldom linear over changes of its size. The values of such a state that fit the data
are sought at two times, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from odefit.assessment.farthest_values import CurvesOfCondition, FarthestValues
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.predictions.bands import Band, NoBand
from odefit.common.arrays import Array, IntArray
from odefit.problem.condition import Condition
from odefit.simulation import ForwardMap

EXCEEDED = 1.3
"""Distance of a value that fits from the curve, relative to that of the linear band, above which
there is no linear band."""

ROUNDING = 1e-6
"""Distance, relative to the largest value, that errors of integration explain."""

MOST_EQUATIONS = 600
"""Number of equations of states and sensitivities up to which bands are checked."""

MOST_EVALUATIONS = 1000
"""Number of evaluations after which no further value is sought."""


def can_be_checked(forward: ForwardMap, deviance: Deviance, limit: float) -> bool:
    """Return whether a model is small enough for checks, and its deviance has a limit."""
    model = forward.problem.model
    equations = (len(model.states) + len(model.algebraic)) * (1 + len(forward.problem.keys))
    return equations <= MOST_EQUATIONS and limit > 0 and deviance.variance > 0


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
    if not can_be_checked(forward, deviance, limit):
        return list(bands)
    unseen = [band for band in bands if not band.observable]
    bent = _reaching_further(forward, vector, condition, unseen, deviance, limit)
    return [_bent(band, held) if band.name in bent else band for band in bands]


def _reaching_further(
    forward: ForwardMap,
    vector: Array,
    condition: Condition,
    bands: Sequence[Band],
    deviance: Deviance,
    limit: float,
) -> set[str]:
    """Return the curves of which values far outside the linear band fit the data."""
    half = {band.name: np.abs(band.confidence - band.values) for band in bands}
    places: dict[str, list[int]] = {}
    for name, (below, above) in half.items():
        shown = np.flatnonzero(np.isfinite(below + above))
        widths = (below + above)[shown]
        if len(shown) and widths.max() > 0:
            places[name] = sorted({int(shown[np.argmax(widths)]), int(shown[-1])})
    bands = [band for band in bands if band.name in places]
    if not bands:
        return set()
    times: IntArray = np.unique(np.concatenate(list(places.values())))
    curves = CurvesOfCondition(forward, condition, (bands[0].times, times), list(places))
    values = FarthestValues(forward, curves, times, (vector,), deviance, limit)
    bent: set[str] = set()
    for name, chosen in places.items():
        for k, sign in product(np.searchsorted(times, chosen), (1, -1)):
            # Each point that fits tells of all curves.
            if name in bent or values.evaluations > MOST_EVALUATIONS:
                break
            values.end(name, int(k), sign)
            if values.better is not None:
                return set()  # the estimate is no optimum, which others tell
            for band in bands:
                outer = band.values - values.low[band.name], values.high[band.name] - band.values
                rounding = ROUNDING * np.nanmax(np.abs(band.values))
                with np.errstate(invalid="ignore"):
                    far = np.array(outer) > EXCEEDED * half[band.name] + rounding
                if far.any():
                    bent.add(band.name)
    return bent


def _bent(band: Band, held: Sequence[str]) -> Band:
    """Return a curve without its band, for unknowns `held` at a bound if there are any."""
    none = np.full_like(band.confidence, np.nan)
    return replace(
        band,
        errors=np.full_like(band.errors, np.nan),
        confidence=none,
        prediction=none,
        lacking=(
            *(r for r in band.lacking if r is not NoBand.AT_A_BOUND),
            NoBand.BENT if held else NoBand.NOT_LINEAR,
        ),
        at_bounds=tuple(dict.fromkeys((*band.at_bounds, *band.widening))) or tuple(held),
        widening=(),
        cut=False,
    )
