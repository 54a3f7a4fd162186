"""Successive halving: many short local searches, of which only the best continue.

If few random starts lead to the best optimum, most of the work goes into searches that end
elsewhere. Those that lead there mostly have a low cost early: after some tens of evaluations the
others can be abandoned (K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and
hyperparameter optimization, 2016). A search that has used its evaluations on one rung continues on
the next as soon as it is among the best of its rung so far (L. Li et al., A system for massively
parallel hyperparameter tuning, 2020). On the published model of Fujita et al. six of 100 random
starts lead to the best optima; after 60 evaluations all of them are among the best nine.

The ends of other routes continue, too, if they are among the best of all: each rung has more
patience, and the last integrates more accurately. In flat valleys and at saddles the errors of
coarse integrations exceed the gain of a step. On the published model of Elowitz and Leibler
searches that stall at a tolerance of 1e-6 reach the best optimum at 1e-7 and finer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from odefit.common.arrays import Array
from odefit.methods.automatic.coarse_beginning import coarse, run_from_coarse
from odefit.methods.automatic.iterated_search import can_begin_at
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance, reaches
from odefit.methods.local.interior_steps import Interior
from odefit.methods.local.scaling import Scaling
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.starts import guess, lowest, sample
from odefit.simulation import ForwardMap

RUNGS = (
    SingleShooting(evaluations=80, tolerance=1e-8, step=1e-7, patience=30),
    SingleShooting(evaluations=100, tolerance=1e-8, step=1e-8, patience=50),
    SingleShooting(evaluations=300, tolerance=1e-9, step=1e-9, patience=100),
)
"""The local searches of the rungs.

Their evaluations and :data:`PROMOTED` were chosen to need the fewest evaluations for one of the
best ends. They rest on the costs along 1,750 complete searches on the published models of Brannmark
et al., Crauste et al., Elowitz and Leibler, and Fujita et al.
"""

LAST = len(RUNGS) - 1  # the last rung
TOLERANCE = 1e-7  # tolerance of the implicit engines on the last rung
PROMOTED = 0.33  # share of the ends on a rung, from the best down, that continue

SCREENED = 4
"""Number of points of which a start takes the best.

More points bring no gain: the cost of a point does not predict the end of a search from it.
"""

PARTS = (0.5, 1.0)
"""Central parts of the ranges from which starts take points, in turns.

Bounds of rates often span ten decades or more, and most points near them are extreme: reactions
that never happen, or that are over at once. On the published models of Brannmark et al. and of
Elowitz and Leibler, a start from the middle half takes less time. It ends near the best optimum two
to three times as often. On that of Fujita et al. it does so as often, and on that of Crauste et
al., whose best values lie at bounds, half as often.
"""

MANY_UNKNOWNS = 15
"""Number of logarithms from which short searches come before whole ones, and almost all of them
begin in the middle half and keep away from bounds.
"""

PARTS_OF_MANY = (0.5, 0.5, 0.5, 1.0)
"""Central parts of the ranges from which starts of many unknowns take points, in turns.

The lower the better, -2 log L above the published optimum after 80 evaluations at most: the lowest
tenth of the ends from the middle half, away from bounds, and from the whole range otherwise, is 0.7
and 15 on the model of Brannmark et al., 7 and 32 on that of Weber et al., 6 and 127 on that of Raia
et al., and -21 and 91 on that of Zheng et al. An optimum of that of Schwen et al. is reached from
the whole range alone.
"""

DESIGN = 2 * 10**7
"""Number of the design of points for the first start; see :func:`odefit.methods.starts.sample`."""


@dataclass(frozen=True, eq=False)
class ShortSearch:
    """A start on the first rung."""

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        first = RUNGS[0]
        many = has_many_unknowns(forward)
        parts = PARTS_OF_MANY if many else PARTS
        number, part = DESIGN + index, parts[index % len(parts)]
        points = sample(forward.problem, number, SCREENED, control.seed, part=part)
        projection = VariableProjection(coarse(forward), first.eliminate)
        point, _ = lowest(projection, points, control)
        interior = True if many else None
        return run_from_coarse(first, forward, index, point, control, interior=interior)


@dataclass(frozen=True, eq=False)
class ContinuedSearch:
    """A local search on a rung from where an earlier one stopped, at `base`, shape (n,)."""

    base: Array
    rung: int

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""
        used = _finer(forward) if self.rung == LAST else forward
        return RUNGS[self.rung].run(used, index, self.base, control)


def has_many_unknowns(forward: ForwardMap) -> bool:
    """Return whether a search is for many logarithms, and keeps away from bounds at first."""
    columns = VariableProjection(forward, RUNGS[0].eliminate).remaining
    interior = Scaling.of(forward.problem).interior(columns)
    return interior is Interior.UNTIL_NEAR and len(columns) >= MANY_UNKNOWNS


def short_searches_first(forward: ForwardMap) -> bool:
    """Return whether short searches come before whole ones: with many unknowns, and no guess."""
    return guess(forward.problem) is None and has_many_unknowns(forward)


class Ladder:
    """The choice of the searches that continue, from the known ends.

    Ends of other routes are on the first rung.
    """

    def __init__(self) -> None:
        self._rungs: dict[int, int] = {}
        self._gone_on: dict[int, tuple[Start, int]] = {}

    def put(self, end: Start, rung: int) -> None:
        """Record the end of a search on a rung."""
        self._rungs[end.index] = rung

    def next_of(
        self, bases: Iterable[Start], ends: Iterable[Start], valley: CostTolerance
    ) -> tuple[Start, int] | None:
        """Return an end whose search continues, and its next rung; None if no search does.

        `bases` are the best distinct ends of all routes; `ends` are compared with others of their
        rung. Only one search of each `valley` continues to a rung.
        """
        on_rungs: list[list[Start]] = [[] for _ in RUNGS]
        for end in ends:
            on_rungs[self._rung(end)].append(end)
        best = [
            end
            for on_rung in reversed(on_rungs[:LAST])
            for end in sorted(on_rung, key=lambda s: (s.cost, s.index))[
                : math.ceil(PROMOTED * len(on_rung))
            ]
            if end.status is Status.NOT_CONVERGED
        ]
        tried = list(bases)
        for end in filter(can_begin_at, (*tried, *best)):
            # A search converged at a coarse tolerance is retried with the finer one. On the last
            # rung a search continues as long as it leaves its valley.
            stopped = end.status is Status.NOT_CONVERGED
            rung = min(self._rung(end) + 1, LAST) if stopped else LAST
            done = end.index in self._gone_on or (self._rung(end) == LAST and not stopped)
            if not done and not (end in tried and self._explored(end, rung, valley)):
                self._gone_on[end.index] = end, rung
                return end, rung
        return None

    def _explored(self, end: Start, rung: int, valley: CostTolerance) -> bool:
        """Return whether a search from the valley of an end has continued to a rung."""
        gone = self._gone_on.values()
        return any(to >= rung and reaches(end, other, valley) for other, to in gone)

    def _rung(self, end: Start) -> int:
        return self._rungs.get(end.index, 0)


def _finer(forward: ForwardMap) -> ForwardMap:
    """Return a forward map at least as accurate as the continued searches need."""
    tolerance = forward.engines.tolerance
    if tolerance is None or tolerance <= TOLERANCE:
        return forward
    return forward.with_accuracy(TOLERANCE)
