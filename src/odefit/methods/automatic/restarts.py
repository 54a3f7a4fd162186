"""Restarts of iterated local search: what has led nowhere for long is left for new beginnings.

Where there are many optima of nearly the same cost, iterated local search settles at one of them
and returns to it. It finds a better one sooner from other independent starts than with more trials
from the same (H. R. Lourenço, O. C. Martin and T. Stützle, Iterated local search, 2003, on
restarts). An epoch is a number of independent starts with all that begin near their ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from odefit.methods.automatic.families import Families
from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance

MAX_TRIALS = 60
"""Number of starts near earlier ends, without a better end of the epoch, after which it is over."""

PROGRESS = 100.0
"""Smallest gain that counts, over the tolerance of equal costs: 1 per cent of a sum of squares, a
tenth of a unit of the log-likelihood."""


class Restarts:
    """The epochs of an iterated local search.

    Parameters
    ----------
    families
        Which ends go back to which start.
    tolerance
        Which costs are equal.
    """

    def __init__(self, families: Families, tolerance: CostTolerance) -> None:
        self._families = families
        self._margin = replace(
            tolerance,
            relative=PROGRESS * tolerance.relative,
            absolute=PROGRESS * tolerance.absolute,
        )
        self._first = 0

    def current(self, ends: Sequence[Start]) -> list[Start]:
        """Return the ends of the epoch, of all `ends` so far; a new one begins if it is over."""
        found = self._since(ends)
        if self._trials(found) < MAX_TRIALS:
            return found
        self._first = len(ends)
        return self._since(ends)

    def _since(self, ends: Sequence[Start]) -> list[Start]:
        return [s for s in ends if self._families.root(s) >= self._first]

    def _trials(self, ends: Sequence[Start]) -> int:
        """Return the number of starts near earlier ends since the last that was a gain."""
        best: Start | None = None
        trials = 0
        for end in ends:
            trials += self._families.root(end) != end.index
            if not math.isfinite(end.cost):
                continue
            if best is None or (end.cost < best.cost and not self._margin.same(end, best)):
                best, trials = end, 0
        return trials
