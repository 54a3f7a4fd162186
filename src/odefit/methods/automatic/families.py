"""Which ends of starts are evidence of their own, where starts begin at the ends of others."""

from __future__ import annotations

from collections.abc import Sequence

from odefit.methods.estimate import Start


class Families:
    """Which ends go back to the same start.

    A start that does not begin at an earlier end is independent. It and all that begin at its
    end, or at the ends of these, are a family, with random choices that no other family has.
    What a family has reached, it counts for once, however often it returns.
    """

    def __init__(self) -> None:
        self._roots: dict[int, int] = {}
        self._earlier: dict[int, int] = {}

    def add(self, end: Start, base: Start, goes_on: bool = False) -> None:
        """Take up an end whose start began at the earlier end `base`.

        Parameters
        ----------
        end, base
            The ends.
        goes_on
            Whether it is no start of its own, but goes on with the search that led to `base`.
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
