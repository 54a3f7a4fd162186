"""The routes that the automatic method takes: what they are for, and what each has found so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from odefit.common.errors import InputError
from odefit.methods.automatic.families import Families
from odefit.methods.automatic.iterated_search import (
    MIN_UNKNOWNS,
    SCREENED,
    IteratedSearch,
    base_of,
    bases_of,
    coarser,
)
from odefit.methods.automatic.successive_halving import RUNGS, ContinuedSearch, Ladder, ShortSearch
from odefit.methods.automatic.successive_halving import SCREENED as SCREENED_SHORT
from odefit.methods.estimate import Route, Start, Status
from odefit.methods.incremental_shooting import FINAL, IncrementalShooting
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control
from odefit.methods.start_pool import Search
from odefit.simulation import ForwardMap

SHOOTING, MATCHING, HALVING, ITERATED, MULTIPLE, TRANSCRIPTION = (
    "single shooting",
    "integral matching",
    "successive halving",
    "iterated local search",
    "multiple shooting",
    "direct transcription",
)
"""The names of the routes that are searches from many starts."""

SHARES = {
    MATCHING: 0.2,
    SHOOTING: 1.0,
    HALVING: 4.0,
    ITERATED: 4.0,
    MULTIPLE: 0.3,
    TRANSCRIPTION: 0.1,
}
"""The work that each route may do, relative to the others."""

VAIN_STARTS = 40
"""Number of starts of iterated local search without a better end after which its share is half."""

GOING_ON = 3
"""Number of the best distinct ends of all routes whose searches go on before all others do."""

SCREENED_POINTS = (64, 8)
"""Numbers of points of which starts of single shooting take the best, in turns. The best of many is
a good beginning, unless it is a point where nothing happens; the best of few is another more often.
"""

WORK_PER_EVALUATION = {
    MATCHING: 1.0,
    SHOOTING: 1.0,
    HALVING: 1.0,
    ITERATED: 1.0,
    MULTIPLE: 8.0,
    TRANSCRIPTION: 30.0,
}
"""Work of what a route counts as an evaluation, relative to one of residuals and Jacobian."""

WORK_PER_POINT = 0.3
"""Work of screening one point, relative to an evaluation of residuals and Jacobian."""

USUAL_EVALUATIONS = 60.0
"""Evaluations that a start is expected to need before the first has shown it."""

MAX_MESH_VALUES = 2000
"""Largest number of values of states at the data times with which the problem is discretised."""

MAX_REFUSALS = 2
"""Number of failed starts without a single evaluation after which a route is closed."""


@dataclass(frozen=True)
class Guarded:
    """A search that tells as a failed start that it is of no use for a problem.

    Attributes
    ----------
    search
        The search from many starts.
    """

    search: MultiStart

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        try:
            return self.search.run(forward, index, control)
        except InputError as error:
            nothing = np.full(len(forward.problem.unknowns), math.nan)
            lost = (math.inf, Status.FAILED, str(error), 0, 0.0, math.inf)
            return Start(index, nothing, nothing, *lost)


@dataclass(frozen=True, eq=False)
class Planned:
    """A start that is to be made.

    Attributes
    ----------
    route, index
        Its route, and its number there.
    search
        What makes it.
    base
        The earlier end from which it begins; None where it begins anywhere.
    rung
        The rung on which it goes on with the search that led there; 0 if it does not.
    """

    route: SearchRoute
    index: int
    search: Search
    base: Start | None = None
    rung: int = 0


class Seen(NamedTuple):
    """What the next start of a route may depend on.

    Attributes
    ----------
    ends
        The ends so far near which it may begin, in the order of their numbers.
    independent
        Those of independent starts.
    tolerance
        Which costs are equal.
    """

    ends: Sequence[Start]
    independent: Sequence[Start]
    tolerance: CostTolerance


class SearchRoute:
    """A search from many starts, and what it has found.

    Parameters
    ----------
    name
        One of the names above.
    forward
        The forward map of all searches.

    Attributes
    ----------
    starts
        The ends of its starts, in their order.
    planned
        The number of its starts that were made or are under way.
    reason
        Why it is not taken; empty if it is.
    """

    def __init__(self, name: str, forward: ForwardMap) -> None:
        self.name = name
        self.starts: list[Start] = []
        self.planned = 0
        self.reason = ""
        self._forward = forward
        self._most = math.inf
        self._screened = 0

    @cached_property
    def search(self) -> MultiStart | Guarded | None:
        """The search; None where it does not apply. It is made, and imported, when it is needed.

        What single shooting refuses, such as a missing engine, is refused by all.
        """
        try:
            found = _MAKERS[self.name](self._forward)
        except InputError as error:
            found = str(error)
        if isinstance(found, str):
            self.reason = f"not taken: {found}"
            return None
        if found.starts is not None:
            self._most = found.starts
        self._screened = found.most_screened
        return found if self.name in (SHOOTING, HALVING, ITERATED) else Guarded(found)

    def plan(self, seen: Seen) -> Planned:
        """Return its next start."""
        search = self.search
        assert search is not None, "routes that are closed are not planned"
        return Planned(self, self._next_index(), search)

    def add(self, end: Start, planned: Planned) -> None:
        """Take up the end of a start that was planned."""
        self.starts.append(end)

    def _next_index(self) -> int:
        self.planned += 1
        return self.planned - 1

    @property
    def sparse(self) -> bool:
        """Whether there are fewer measurements than values of nodes, so that it screens points."""
        return self.search is not None and self._screened > 1

    @property
    def closed(self) -> bool:
        """Whether there is nothing more to be had from it."""
        refused = sum(s.status is Status.FAILED and s.evaluations == 0 for s in self.starts)
        return (
            self.search is None
            or self.planned >= self._most
            or 0 < len(self.starts) == refused >= MAX_REFUSALS
        )

    @property
    def unknown(self) -> bool:
        """Whether its first start is under way, so that nobody knows how long its starts take."""
        return self.planned > 0 and not self.starts

    @property
    def work(self) -> float:
        """The work of its starts, those under way included, over its share."""
        own = sum(s.evaluations for s in self.starts) * WORK_PER_EVALUATION[self.name]
        done = own + WORK_PER_POINT * self._screened * len(self.starts)
        usual = USUAL_EVALUATIONS * WORK_PER_EVALUATION[self.name]
        mean = done / len(self.starts) if self.starts else usual
        return (done + mean * (self.planned - len(self.starts))) / SHARES[self.name]


class HalvingRoute(SearchRoute):
    """Successive halving, with the searches of other routes that go on."""

    def __init__(self, name: str, forward: ForwardMap) -> None:
        super().__init__(name, forward)
        self._ladder = Ladder()
        self._begun, self._gone_on = 0, 0

    def plan(self, seen: Seen) -> Planned:
        """Return a search that goes on, or a new one if none does.

        Those that go on, as along narrow valleys, get no more evaluations than new ones.
        """
        if self._gone_on > self._begun:
            return Planned(self, self._next_index(), ShortSearch())
        compared = {s.index: s for s in (*seen.independent, *self.starts)}
        bases = bases_of(seen.ends, seen.tolerance)[:GOING_ON]
        found = self._ladder.next_of(bases, compared.values(), coarser(seen.tolerance))
        if found is None:
            return Planned(self, self._next_index(), ShortSearch())
        base, rung = found
        return Planned(self, self._next_index(), ContinuedSearch(base.vector, rung), base, rung)

    def add(self, end: Start, planned: Planned) -> None:
        """Take up the end of a start that was planned."""
        super().add(end, planned)
        self._ladder.put(end, planned.rung)
        if planned.rung:
            self._gone_on += end.evaluations
        else:
            self._begun += end.evaluations


class IteratedRoute(SearchRoute):
    """Iterated local search, which has the less of the work the longer it has found nothing."""

    def __init__(self, name: str, forward: ForwardMap) -> None:
        super().__init__(name, forward)
        self._best: Start | None = None
        self._begun: list[Start] = []
        self._vain = 0

    @property
    def work(self) -> float:
        """The work of its starts over the share that is left of its own."""
        return super().work * (1 + self._vain / VAIN_STARTS)

    def plan(self, seen: Seen) -> Planned:
        """Return a start near an earlier end."""
        index = self._next_index()
        bases = bases_of(seen.ends, seen.tolerance)
        if self._best is None or not coarser(seen.tolerance).same(bases[0], self._best):
            self._vain = 0
        self._best = bases[0]
        self._vain += 1
        base = base_of(bases, self._begun, seen.tolerance)
        self._begun.append(base)
        return Planned(self, index, IteratedSearch(FINAL, base.vector), base)


def _matching(forward: ForwardMap) -> MultiStart | str:
    from odefit.methods.automatic.matched_shooting import MatchedShooting

    local = MatchedShooting()
    matching = local.matching.prepared(forward)
    if matching.route == "assimilation":
        return "some states are not measured"
    return MultiStart(local, starts=None if matching.nonlinear else 1, screening=1)


def _shooting(forward: ForwardMap) -> MultiStart | str:
    return MultiStart(IncrementalShooting(), screening=SCREENED_POINTS)


def _halving(forward: ForwardMap) -> MultiStart | str:
    if _few_unknowns(forward):
        return "whole searches are as good with so few unknowns"
    return MultiStart(RUNGS[0], screening=SCREENED_SHORT)


def _iterated(forward: ForwardMap) -> MultiStart | str:
    if _few_unknowns(forward):
        return "random starts are as good with so few unknowns"
    return MultiStart(FINAL, screening=SCREENED)


def _few_unknowns(forward: ForwardMap) -> bool:
    return len(VariableProjection(forward, FINAL.eliminate).kept) < MIN_UNKNOWNS


def _multiple(forward: ForwardMap) -> MultiStart | str:
    from odefit.methods.multiple_shooting import MultipleShooting

    return MultipleShooting().search(forward.problem)


def _transcription(forward: ForwardMap) -> MultiStart | str:
    points = sum(len(c.times) for c in forward.problem.conditions)
    if points * len(forward.problem.model.states) > MAX_MESH_VALUES:
        return "the discretised problem would be large"
    from odefit.methods.transcription import Transcription

    return Transcription(shooting=False).search(forward.problem)


_MAKERS: Mapping[str, Callable[[ForwardMap], MultiStart | str]] = {
    MATCHING: _matching,
    SHOOTING: _shooting,
    HALVING: _halving,
    ITERATED: _iterated,
    MULTIPLE: _multiple,
    TRANSCRIPTION: _transcription,
}
"""Makers of the searches, in the order in which routes begin; a text says why one is not taken."""


def search_routes(forward: ForwardMap) -> list[SearchRoute]:
    """Return the routes that are searches, those that begin first in front."""
    special = {HALVING: HalvingRoute, ITERATED: IteratedRoute}
    return [special.get(name, SearchRoute)(name, forward) for name in _MAKERS]


def found_by(
    name: str, starts: Sequence[Start], families: Families, hits: Container[int], otherwise: str
) -> Route:
    """Return what a route has found.

    Parameters
    ----------
    name, starts
        Its name, and the ends of its starts with those of searches that went on.
    families
        Tells these from each other.
    hits
        The numbers of the starts of all routes that are evidence of the best end.
    otherwise
        Why it has no start.
    """
    lowest = min(starts, key=lambda s: s.cost, default=None)
    begun = families.begun(starts)
    return Route(
        name,
        len(begun),
        sum(s.status is Status.FAILED for s in begun),
        sum(s.index in hits for s in begun),
        math.inf if lowest is None else lowest.objective,
        sum(s.seconds for s in starts),
        otherwise if lowest is None else lowest.message,
        None if lowest is None else lowest.cost,
    )
