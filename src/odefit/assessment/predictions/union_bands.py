"""Bands over several solutions that fit: their union, or a mixture with weights.

The union contains the bands of all solutions and the values between, so that its ends are the
outermost ones. In a mixture each solution counts with its weight; its band is a distribution with
half-normal parts below and above the curve.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.small_samples import quantile_of
from odefit.assessment.predictions.bands import Band, BandSource, NoBand
from odefit.common.arrays import Array
from odefit.problem.condition import Condition
from odefit.simulation import Failure

BISECTIONS = 60
"""Number of bisections that find a quantile of a mixture."""


@dataclass(frozen=True, eq=False)
class Member:
    """The source of the bands of one solution, with its deviance from the best and its weight."""

    source: BandSource
    deviance: float = 0.0
    weight: float = 1.0


class UnionBands:
    """Bands over several solutions, the best first; `mixed` asks for a mixture.

    Solutions whose deviance exceeds the limit of the requested level have no part in the
    union. The curves of the others stand beside that of the best.
    """

    def __init__(
        self, members: Sequence[Member], deviance: Deviance, *, mixed: bool = False
    ) -> None:
        self._members = members
        self._deviance = deviance
        self._mixed = mixed

    def bands(
        self, condition: Condition, times: Array, level: float, names: Collection[str] | None = None
    ) -> list[Band] | Failure:
        """Return the bands of observables and states, see :class:`BandSource`."""
        limit = self._deviance.limit(level)
        members = [m for m in self._members if self._mixed or not m.deviance > limit]
        made = [m.source.bands(condition, times, level, names) for m in members]
        first = made[0]
        if isinstance(first, Failure):
            return first
        weights = np.array([m.weight for m in members])
        joined = []
        for place, best in enumerate(first):
            others = [m if isinstance(m, Failure) else m[place] for m in made[1:]]
            joined.append(self._joined(best, others, weights, level))
        return joined

    def _joined(
        self, best: Band, others: Sequence[Band | Failure], weights: Array, level: float
    ) -> Band:
        """Return the band of one curve."""
        bands = [best, *(b for b in others if isinstance(b, Band))]
        lacking = [reason for band in bands for reason in band.lacking]
        confidence = self._ends([b.confidence for b in bands], bands, weights, level)
        prediction = self._ends([b.prediction for b in bands], bands, weights, level)
        if len(bands) <= len(others):
            lacking.append(NoBand.ELSEWHERE)
            confidence = np.full_like(confidence, np.nan)
            prediction = np.full_like(prediction, np.nan)
        return replace(
            best,
            confidence=confidence,
            prediction=prediction,
            cut=any(b.cut for b in bands),
            lacking=tuple(dict.fromkeys(lacking)),
            undetermined=tuple(dict.fromkeys(key for b in bands for key in b.undetermined)),
            at_bounds=tuple(dict.fromkeys(key for b in bands for key in b.at_bounds)),
            widening=tuple(dict.fromkeys(key for b in bands for key in b.widening)),
            unfinished=sum(b.unfinished for b in bands),
            better=any(b.better for b in bands),
            others=np.array([b.values for b in bands[1:]]).reshape(-1, len(best.times)),
            mixed=self._mixed,
        )

    def _ends(
        self, ends: Sequence[Array], bands: Sequence[Band], weights: Array, level: float
    ) -> Array:
        """Return the joint ends of bands; NaN if one of them has none."""
        if not self._mixed or len(ends) < len(weights):
            return np.stack(
                [
                    np.min([e[0] for e in ends], axis=0),
                    np.max([e[1] for e in ends], axis=0),
                ]
            )
        return mixture_ends([b.values for b in bands], ends, weights / weights.sum(), level)


def mixture_ends(
    centres: Sequence[Array], ends: Sequence[Array], weights: Array, level: float
) -> Array:
    """Return the ends of the central interval of mixtures, shape (2, k).

    Each part has a centre, shape (k,), and the ends of its own interval of this level, shape
    (2, k). Its halves are those of normal distributions. NaN in a part is NaN in the whole.
    """
    from scipy.special import ndtr  # not needed by every band

    quantile = quantile_of(level, np.inf)
    middle, sides = np.array(centres), np.array(ends)
    with np.errstate(all="ignore"):
        below, above = (np.abs(sides[:, k] - middle) / quantile for k in range(2))
        tiny = 1e-12 * np.maximum(np.abs(middle), 1e-300)
        below, above = np.maximum(below, tiny), np.maximum(above, tiny)
        bisected = []
        for share in (0.5 - level / 2, 0.5 + level / 2):
            low, high = sides[:, 0].min(axis=0), sides[:, 1].max(axis=0)
            for _ in range(BISECTIONS):
                at = 0.5 * (low + high)
                distance = (at - middle) / np.where(at < middle, below, above)
                under = (weights[:, None] * ndtr(distance)).sum(axis=0) < share
                low, high = np.where(under, at, low), np.where(under, high, at)
            bisected.append(0.5 * (low + high))
    known = np.isfinite(sides).all(axis=(0, 1))
    return np.where(known, np.array(bisected), np.nan)
