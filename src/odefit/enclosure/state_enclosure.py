"""States at one time in many boxes: polynomials in the box with bounds of their error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.enclosure.arithmetic.intervals import Interval
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN
from odefit.enclosure.arithmetic.taylor_models import Monomials, TaylorModel
from odefit.enclosure.error_propagation import ErrorBound


@dataclass(frozen=True, eq=False)
class StateEnclosure:
    """The states in B boxes at one time: polynomials, shape (n, M, B), with an error bound."""

    monomials: Monomials
    c: Array
    error: ErrorBound

    @staticmethod
    def of(models: Sequence[TaylorModel]) -> StateEnclosure:
        """Return the states given as Taylor models that are constant in time."""
        error = ErrorBound.of(np.stack([m.remainder for m in models], axis=1))
        return StateEnclosure(models[0].monomials, np.stack([m.c[:, 0] for m in models]), error)

    @property
    def boxes(self) -> int:
        """The number of boxes."""
        return len(self.error.sizes)

    def take(self, boxes: IntArray) -> StateEnclosure:
        """Return the states in the selected boxes."""
        return StateEnclosure(self.monomials, self.c[:, :, boxes], self.error.take(boxes))

    def put(self, boxes: IntArray, other: StateEnclosure) -> None:
        """Replace the states in the selected boxes."""
        self.c[:, :, boxes] = other.c
        self.error.put(boxes, other.error)

    def models(self, ranges: Sequence[Interval] | None = None) -> list[TaylorModel]:
        """Return the states as Taylor models, from their `ranges` if nothing else is known."""
        models_of = []
        for i, c in enumerate(self.c):
            size = self.error.sizes[:, i]
            if ranges is not None:
                middle, radius = ranges[i].middle()
                use = ~np.isfinite(size) & np.isfinite(radius)
                if use.any():
                    c = np.where(use, 0.0, c)
                    c[0] = np.where(use, middle, c[0])
                    size = np.where(use, radius, size)
            models_of.append(TaylorModel(self.monomials, c[:, None, :], None, size))
        return models_of

    def ranges(self) -> list[Interval]:
        """Return the states as intervals."""
        radius = (np.abs(self.c[:, 1:]).sum(axis=1) + self.error.sizes.T) * ROUNDING_MARGIN
        return [Interval.around(c[0], r) for c, r in zip(self.c, radius, strict=True)]
