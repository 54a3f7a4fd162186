"""Routes of the automatic method: their conditions for starting, and their starts so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.common.errors import InputError
from odefit.methods.automatic.elsewhere import HeldSearch, WideSearch, can_widen
from odefit.methods.automatic.evidence import Evidence
from odefit.methods.automatic.iterated_search import (
    IteratedSearch,
    base_of,
    bases_of,
    can_begin_at,
)
from odefit.methods.automatic.neighbours import NeighbourSearch
from odefit.methods.automatic.profile_search import ProfileSearch
from odefit.methods.automatic.successive_halving import (
    ContinuedSearch,
    Ladder,
    ShortSearch,
    short_searches_first,
)
from odefit.methods.estimate import Start, Status
from odefit.methods.incremental_shooting import FINAL
from odefit.methods.local.cost_tolerance import CostTolerance, coarser
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control
from odefit.methods.start_pool import SearchByStarts
from odefit.simulation import ForwardMap

VAIN_STARTS = 40
"""Number of starts of iterated local search without a better end after which its share is
halved."""

GOING_ON = 3
"""Number of the best distinct ends of all routes whose searches continue before all others."""

WORK_PER_POINT = 0.3
"""Work of screening one point, relative to an evaluation of residuals and Jacobian."""

USUAL_EVALUATIONS = 60.0
"""Evaluations that a start is expected to need before the first has ended."""

HEAD_START = 150.0
"""Work, over their shares, of other routes before whole searches of many unknowns begin."""

COMPARED = 4
"""Number of short searches of many unknowns that are compared before the best one continues."""

MAX_REFUSALS = 2
"""Number of failed starts without a single evaluation after which a route is closed."""

TIME_SHARE = 0.5  # share of the remaining time that one start may take

SLOW_SHARE = 0.1
"""Share of that time for one start of a route whose starts take long if trajectories are hard to
follow. Direct transcription is one, and multiple shooting while nothing shows that the best answer
misses the data. On the published model of Crauste et al. one start of each took a quarter of a fit
of a minute. On that of Fujita et al. one of direct transcription took a sixth.
"""

OFTEN = 0.3
"""Share of the independent starts at the best optimum above which no search begins near other ends:
random starts find it."""

SELDOM = 0.1
"""Share of them above which successive halving is left out: whole searches do as well."""

MOST_HELD = 4  # largest number of ends to which starts elsewhere return
LEAST_HELD = 4  # least number of starts that return to each of them before the search may end
HELD = 2  # the same for each unknown that is lost there

AFTER_IF_SLOW = (60, 120)
"""`after` of multiple shooting where it is slow, as for few data or stiff equations."""


@dataclass(frozen=True)
class Guarded:
    """A search whose refusal of a problem counts as a failed start."""

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
    """A start that `search` is to make, and its number on its route.

    It begins at the earlier end `base`, if that is given. On a rung above 0 it continues the search
    that led there.
    """

    route: SearchRoute
    index: int
    search: SearchByStarts
    base: Start | None = None
    rung: int = 0


@dataclass(frozen=True)
class Seen:
    """The ends so far near which the next start may begin, by number; some are independent."""

    ends: Sequence[Start]
    independent: Sequence[Start]
    tolerance: CostTolerance


@dataclass(frozen=True)
class RouteRow:
    """A route that searches from many starts, as registered in the table of routes."""

    name: str
    make: Callable[[ForwardMap], MultiStart | str]
    """A function that makes the search, or returns a text with the reason against it."""
    share: float
    """Its share of the work, relative to the other routes."""
    after: tuple[int, int] = (0, 0)
    """Number of independent starts after which it may begin: if the best answer is known not to
    explain the data, and otherwise."""
    work_per_evaluation: float = 1.0
    """Work of one of its evaluations, relative to one of residuals and Jacobian."""
    optional: bool = False
    """True if the search may end without any start of this route."""
    guarded: bool = False
    """True if it may refuse problems that single shooting accepts."""
    route: Callable[[RouteRow, ForwardMap], SearchRoute] | None = None
    """The class of the route if it plans its starts in its own way."""
    starts: SearchByStarts | None = None
    """The search that runs its starts, if it is not the one that `make` returns."""


class SearchRoute:
    """A search from many starts, with the ends of its starts in their order.

    `planned` of them have ended or are under way. `reason` says why the route is not used.
    """

    def __init__(self, row: RouteRow, forward: ForwardMap) -> None:
        self.row, self.name = row, row.name
        self.starts: list[Start] = []
        self.planned = 0
        self.reason = ""
        self._forward = forward
        self.most = math.inf
        self._screened = 0

    @cached_property
    def search(self) -> MultiStart | Guarded | None:
        """The search; None if it does not apply. It is imported and made on first use.

        All routes refuse what single shooting refuses, such as a missing engine.
        """
        try:
            search = self.row.make(self._forward)
        except InputError as error:
            search = str(error)
        if isinstance(search, str):
            self.reason = f"not taken: {search}"
            return None
        if search.starts is not None:
            self.most = search.starts
        self._screened = search.most_screened
        return Guarded(search) if self.row.guarded else search

    def is_open(self, evidence: Evidence, independent: Sequence[Start]) -> bool:
        """Return whether the route may have starts, from the epoch's independent starts so far."""
        return evidence.count >= self._after(evidence)

    def _after(self, evidence: Evidence) -> int:
        return self.row.after[0 if evidence.unexplained else 1]

    def share_of_time(self, unexplained: bool) -> float:
        """Return the share of the remaining time that a start may take.

        `unexplained` says whether the best answer is known not to explain the data.
        """
        return TIME_SHARE

    def plan(self, seen: Seen) -> Planned:
        """Return its next start."""
        search = self.search
        assert search is not None, "routes that are closed are not planned"
        return Planned(self, self._next_index(), self.row.starts or search)

    def add(self, end: Start, planned: Planned) -> None:
        """Record the end of a planned start."""
        self.starts.append(end)

    def _next_index(self) -> int:
        self.planned += 1
        return self.planned - 1

    @property
    def sparse(self) -> bool:
        """True if there are fewer measurements than values of nodes, so that it screens points."""
        return self.search is not None and self._screened > 1

    @property
    def closed(self) -> bool:
        """True if it can have no more starts."""
        refused = sum(s.status is Status.FAILED and s.evaluations == 0 for s in self.starts)
        return (
            self.search is None
            or self.planned >= self.most
            or 0 < len(self.starts) == refused >= MAX_REFUSALS
        )

    @property
    def together(self) -> int:
        """Number of its first starts that are planned together."""
        return 1

    @property
    def unknown(self) -> bool:
        """True if its first starts are under way, so that the length of its starts is unknown."""
        return self.planned >= self.together and not self.starts

    @property
    def work(self) -> float:
        """The work of its starts, those under way included, over its share."""
        evaluations = sum(s.evaluations for s in self.starts) * self.row.work_per_evaluation
        done = evaluations + WORK_PER_POINT * self._screened * len(self.starts)
        usual = USUAL_EVALUATIONS * self.row.work_per_evaluation
        mean = done / len(self.starts) if self.starts else usual
        return (done + mean * (self.planned - len(self.starts))) / self.row.share


class ShootingRoute(SearchRoute):
    """Whole searches over growing horizons."""

    @cached_property
    def _others(self) -> float:
        return HEAD_START if short_searches_first(self._forward) else 0.0

    @property
    def work(self) -> float:
        """The work of its starts over its share, with what others do first."""
        return super().work + self._others


class HalvingRoute(SearchRoute):
    """Successive halving, which also continues searches of other routes."""

    def __init__(self, row: RouteRow, forward: ForwardMap) -> None:
        super().__init__(row, forward)
        self._ladder = Ladder()
        self._begun, self._gone_on = 0, 0

    @cached_property
    def together(self) -> int:
        """Number of its first starts that are compared; several if they come before whole ones."""
        return COMPARED if short_searches_first(self._forward) else 1

    def is_open(self, evidence: Evidence, independent: Sequence[Start]) -> bool:
        """Return whether it may have starts: while few of the others reach the best end."""
        if self.together > 1 and evidence.best is None:
            return True
        rare = not evidence.certain and (evidence.hits == 1 or _rare(evidence, SELDOM))
        return rare and (self.together > 1 or super().is_open(evidence, independent))

    def plan(self, seen: Seen) -> Planned:
        """Return a search that continues, or a new one if none does.

        Continued searches, as along narrow valleys, get no more evaluations than new ones.
        """
        if 1 < self.together > self.planned or self._gone_on > self._begun:
            return Planned(self, self._next_index(), ShortSearch())
        compared = {s.index: s for s in (*seen.independent, *self.starts)}
        bases = bases_of(seen.ends, seen.tolerance)[:GOING_ON]
        following = self._ladder.next_of(bases, compared.values(), coarser(seen.tolerance))
        if following is None:
            return Planned(self, self._next_index(), ShortSearch())
        base, rung = following
        return Planned(self, self._next_index(), ContinuedSearch(base.vector, rung), base, rung)

    def add(self, end: Start, planned: Planned) -> None:
        """Record the end of a planned start."""
        super().add(end, planned)
        self._ladder.put(end, planned.rung)
        if planned.rung:
            self._gone_on += end.evaluations
        else:
            self._begun += end.evaluations


class IteratedRoute(SearchRoute):
    """Iterated local search, whose share of the work falls while it finds no better end."""

    def __init__(self, row: RouteRow, forward: ForwardMap) -> None:
        super().__init__(row, forward)
        self._best: Start | None = None
        self._begun: list[Start] = []
        self._vain = 0

    def is_open(self, evidence: Evidence, independent: Sequence[Start]) -> bool:
        """Return whether it may have starts: if enough ends exist, and few reach the best."""
        if evidence.certain or not _rare(evidence, OFTEN):
            return False
        return sum(can_begin_at(s) for s in independent) >= self._after(evidence)

    @property
    def work(self) -> float:
        """The work of its starts over the part of its share that is left."""
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


class ElsewhereRoute(SearchRoute):
    """Starts elsewhere, after the first doubt of a best end, or while few starts reach it."""

    def __init__(self, row: RouteRow, forward: ForwardMap) -> None:
        super().__init__(row, forward)
        self._held: dict[HeldSearch, int] = {}  # numbers of the starts
        self._bases: dict[HeldSearch, Start] = {}  # the ends to which starts return
        self._around: list[NeighbourSearch | ProfileSearch] = []  # that will begin
        self._looking = 0  # such starts under way
        self.led: dict[int, Start] = {}  # ends around which starts searched, by numbers reached

    @cached_property
    def wide(self) -> bool:
        """True if there are wider ranges or other scales."""
        return can_widen(self._forward.problem)

    def is_open(self, evidence: Evidence, independent: Sequence[Start]) -> bool:
        """Return whether it may have starts: once the best end was in doubt, or few reach it."""
        if not self.done:
            return True
        if evidence.doubt is not None or self.planned > 0:
            return self.wide or bool(self._held)
        rare = self.wide and not evidence.certain and _rare(evidence, OFTEN)
        return rare and super().is_open(evidence, independent)

    def plan(self, seen: Seen) -> Planned:
        """Return a start from wider ranges, or every second time one that holds a lost unknown."""
        index = self._next_index()
        if self._around:
            around = self._around.pop()
            self._looking += 1
            return Planned(self, index, around, around.end)
        if self._held and (index % 2 == 0 or not self.wide):
            held = min(self._held, key=lambda h: self._held[h])
            self._held[held] += 1
            return Planned(self, self._held[held] - 1, held, self._bases[held])
        return Planned(self, index, WideSearch(FINAL))

    def hold(self, end: Start, lost: Sequence[str]) -> None:
        """Let starts return to an end where unknowns are lost, unless one does for these."""
        keys = self._forward.problem.keys
        search = HeldSearch(FINAL, end.vector, tuple(keys.index(name) for name in lost))
        known = {h.lost for h in self._held}
        if lost and search.lost not in known and len(known) < MOST_HELD:
            self._held[search], self._bases[search] = 0, end

    def look_around(self, search: NeighbourSearch | ProfileSearch) -> None:
        """Let a start search around an end."""
        self._around.append(search)

    def add(self, end: Start, planned: Planned) -> None:
        """Record the end of a planned start."""
        super().add(end, planned)
        if isinstance(planned.search, NeighbourSearch | ProfileSearch):
            self.led[end.index] = planned.search.end
            self._looking -= 1

    @property
    def done(self) -> bool:
        """True if starts have returned often enough to each of these ends."""
        short = (h for h, n in self._held.items() if n < max(LEAST_HELD, HELD * len(h.lost)))
        return not (self._around or self._looking or any(short))


class MultipleRoute(SearchRoute):
    """Multiple shooting, which is slow for few data and for stiff equations."""

    def _after(self, evidence: Evidence) -> int:
        slow = evidence.fit.stiff or self.sparse
        return (AFTER_IF_SLOW if slow else self.row.after)[0 if evidence.unexplained else 1]

    def share_of_time(self, unexplained: bool) -> float:
        """Return the share of the remaining time that one start may take."""
        return TIME_SHARE if unexplained else SLOW_SHARE


class TranscriptionRoute(SearchRoute):
    """Direct transcription, whose starts take long."""

    def share_of_time(self, unexplained: bool) -> float:
        """Return the share of the remaining time that one start may take."""
        return SLOW_SHARE


def _rare(evidence: Evidence, share: float) -> bool:
    """Return whether fewer than a share of the independent starts reach the best optimum."""
    return evidence.hits < share * evidence.count
