"""Families of starts: starts that begin at the ends of others, and epochs of such starts."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace

from odefit.methods.estimate import Route, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance

MAX_TRIALS = 60
"""Number of starts near earlier ends, without a better end, after which the epoch is over."""

PROGRESS = 100.0
"""Smallest gain that counts, relative to the tolerance of equal costs: 1 per cent of a sum of
squares, a tenth of a unit of the log-likelihood."""


class Families:
    """The independent start from which each end descends.

    A start that does not begin at an earlier end is independent. All starts that begin at its end,
    or at the ends of these, belong to its family, which shares no random choices with others. A
    family counts once for an optimum, however often it returns there.
    """

    def __init__(self) -> None:
        self._roots: dict[int, int] = {}
        self._earlier: dict[int, int] = {}

    def add(self, end: Start, base: Start, goes_on: bool = False) -> None:
        """Record an end whose start began at the earlier end `base`.

        `goes_on` is set if the start continues the search that led to `base`.
        """
        self._roots[end.index] = self.root(base)
        if goes_on:
            self._earlier[end.index] = base.index

    def root(self, end: Start) -> int:
        """Return the number of the independent start from which an end descends, if another."""
        return self._roots.get(end.index, end.index)

    def begun_by(self, end: Start) -> int:
        """Return the number of the start whose search led, perhaps in several parts, to an end."""
        index = end.index
        while index in self._earlier:
            index = self._earlier[index]
        return index

    def begun(self, ends: Sequence[Start]) -> list[Start]:
        """Return the ends whose searches did not continue others."""
        return [s for s in ends if s.index not in self._earlier]

    def independent(self, ends: Sequence[Start]) -> list[Start]:
        """Return the ends whose starts are independent."""
        return [s for s in ends if s.index not in self._roots]

    def first_of_each(self, ends: Sequence[Start]) -> list[Start]:
        """Return the first end of each family, that of its independent start if there is one."""
        first: dict[int, Start] = {}
        for end in sorted(ends, key=lambda s: (s.index in self._roots, s.index)):
            first.setdefault(self.root(end), end)
        return list(first.values())

    def route(
        self, name: str, starts: Sequence[Start], hits: Container[int], otherwise: str
    ) -> Route:
        """Return the findings of a route with these starts and continued searches.

        `hits` holds the numbers of the starts of all routes that are evidence of the best end.
        `otherwise` is the reason why the route has no start.
        """
        lowest = min(starts, key=lambda s: s.cost, default=None)
        begun = self.begun(starts)
        return Route(
            name=name,
            starts=len(begun),
            failed=sum(s.status is Status.FAILED for s in begun),
            hits=sum(s.index in hits for s in begun),
            objective=math.inf if lowest is None else lowest.objective,
            seconds=sum(s.seconds for s in starts),
            message=otherwise if lowest is None else lowest.message,
            cost=None if lowest is None else lowest.cost,
        )


class Restarts:
    """Restarts of iterated local search: after a long time without a gain it starts afresh.

    If many optima have nearly the same cost, iterated local search settles at one of them and
    returns to it. It finds a better one sooner from other independent starts than with more trials
    from the same start (H. R. Lourenço, O. C. Martin and T. Stützle, Iterated local search, 2003,
    on restarts). An epoch consists of some independent starts and all starts near their ends.
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
        """Return the ends of the epoch among all `ends` so far; start a new one if it is over."""
        epoch = self._since(ends)
        if self._trials(epoch) < MAX_TRIALS:
            return epoch
        self._first = len(ends)
        return self._since(ends)

    def _since(self, ends: Sequence[Start]) -> list[Start]:
        return [s for s in ends if self._families.root(s) >= self._first]

    def _trials(self, ends: Sequence[Start]) -> int:
        """Return the number of starts near earlier ends since the last gain."""
        best: Start | None = None
        trials = 0
        for end in ends:
            trials += self._families.root(end) != end.index
            if not math.isfinite(end.cost):
                continue
            if best is None or (end.cost < best.cost and not self._margin.same(end, best)):
                best, trials = end, 0
        return trials
