"""Valleys: whether a stopped search was on its way to a better end.

If the data determine a combination of unknowns poorly, searches stop along a flat valley at costs
whose differences are below the noise. Such an end is evidence of the best one if the way there
leads downhill throughout. So is an end whose cost differs only by integration errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance, coarser
from odefit.methods.local.scaling import Scaling
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

MAX_RISE = 5.0
"""Largest difference of two negative log-likelihoods in one valley."""

DEVIANCE = 3.84
"""Deviance from the best end up to which an end fits within the noise."""

PARTS = (0.25, 0.5, 0.75)
"""Number of parts of the way at whose ends the cost is evaluated."""


class Valleys:
    """The valleys of ends; an accurate forward map examines each pair of ends once."""

    def __init__(
        self, forward: ForwardMap, tolerance: CostTolerance, led: Mapping[int, Start] | None = None
    ) -> None:
        """`led` holds ends around which searches began, by the numbers of the ends reached."""
        self._forward, self._tolerance, self._led = forward, tolerance, {} if led is None else led
        self._known: dict[tuple[int, int], bool] = {}
        self._costs: dict[tuple[int, float], float] = {}

    def level(self, end: Start, best: Start) -> bool:
        """Return whether an end is as low as a better one near it, up to errors of the search.

        So is an end if a search around it has led to the better one.
        """
        base = self._led.get(best.index)
        while base is not None:
            if self._tolerance.same(end, base):
                return True
            base = self._led.get(base.index)
        if end.nodes is not None or best.nodes is not None:
            return False
        if not coarser(self._tolerance).same(end, best):
            return False
        accurate = [replace(s, cost=self._cost(s)) for s in (end, best)]
        return self._tolerance.same(*accurate)

    def _cost(self, end: Start) -> float:
        key = end.index, end.cost
        if key not in self._costs:
            self._costs[key] = self._forward.cost(end.vector, UNDECIDED)
        return self._costs[key]

    def same(self, end: Start, best: Start) -> bool:
        """Return whether the straight way from an end to a better one leads downhill."""
        near = best.cost <= end.cost <= best.cost + MAX_RISE
        if not near or end.nodes is not None or best.nodes is not None:
            return False
        key = end.index, best.index
        if key not in self._known:
            self._known[key] = self._downhill(end, best)
        return self._known[key]

    def _downhill(self, end: Start, best: Start) -> bool:
        scaling = Scaling.of(self._forward.problem)
        with np.errstate(all="ignore"):
            ends = scaling.coordinates(end.vector), scaling.coordinates(best.vector)
            if not np.isfinite(ends).all():
                return False
            points = [scaling.natural((1 - part) * ends[0] + part * ends[1]) for part in PARTS]
        return all(self._forward.cost(point, UNDECIDED) <= end.cost for point in points)


def highest_within_noise(forward: ForwardMap, best: Start) -> float:
    """Return the highest cost of ends that fit within the noise of the best one."""
    if forward.likelihood or forward.given_noise:
        return best.cost + 0.5 * DEVIANCE
    return best.cost * math.exp(DEVIANCE / max(forward.problem.size, 1))
