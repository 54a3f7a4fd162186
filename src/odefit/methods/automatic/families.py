"""Families of starts, where starts begin at the ends of others, and epochs of such starts."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace

from odefit.methods.estimate import Route, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance

MAX_TRIALS = 60
"""Number of starts near earlier ends, without a better end of the epoch, after which it is over."""

PROGRESS = 100.0
"""Smallest gain that counts, over the tolerance of equal costs: 1 per cent of a sum of squares, a
tenth of a unit of the log-likelihood."""


class Families:
    """The start that each end goes back to.

    A start that does not begin at an earlier end is independent. It and all that begin at its
    end, or at the ends of these, are a family, with random choices that no other family has.
    A family counts once for what it has reached, however often it returns.
    """

    def __init__(self) -> None:
        self._roots: dict[int, int] = {}
        self._earlier: dict[int, int] = {}

    def add(self, end: Start, base: Start, goes_on: bool = False) -> None:
        """Take up an end whose start began at the earlier end `base`.

        `goes_on` if it is no start of its own, but goes on with the search that led to `base`.
        """
        self._roots[end.index] = self.root(base)
        if goes_on:
            self._earlier[end.index] = base.index

    def root(self, end: Start) -> int:
        """Return the number of the independent start that an end goes back to, if not its own."""
        return self._roots.get(end.index, end.index)

    def begun_by(self, end: Start) -> int:
        """Return the number of the start whose search led, perhaps in several parts, to an end."""
        index = end.index
        while index in self._earlier:
            index = self._earlier[index]
        return index

    def begun(self, ends: Sequence[Start]) -> list[Start]:
        """Return those of the ends whose searches did not go on from others."""
        return [s for s in ends if s.index not in self._earlier]

    def independent(self, ends: Sequence[Start]) -> list[Start]:
        """Return those of the ends whose starts are independent."""
        return [s for s in ends if s.index not in self._roots]

    def first_of_each(self, ends: Sequence[Start]) -> list[Start]:
        """Return of each family the first of these ends, that of its independent start first."""
        first: dict[int, Start] = {}
        for end in sorted(ends, key=lambda s: (s.index in self._roots, s.index)):
            first.setdefault(self.root(end), end)
        return list(first.values())

    def route(
        self, name: str, starts: Sequence[Start], hits: Container[int], otherwise: str
    ) -> Route:
        """Return what a route with these starts, and searches that went on, has found.

        `hits` are the numbers of the starts of all routes that are evidence of the best end, and
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
    """Restarts of iterated local search: after a long time without a gain it begins anew.

    Where there are many optima of nearly the same cost, iterated local search settles at one of
    them and returns to it. It finds a better one sooner from other independent starts than with
    more trials from the same (H. R. Lourenço, O. C. Martin and T. Stützle, Iterated local search,
    2003, on restarts). An epoch is a number of independent starts with all that begin near their
    ends.
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
        epoch = self._since(ends)
        if self._trials(epoch) < MAX_TRIALS:
            return epoch
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
