"""The tree of a confidence region: boxes that together contain every point that fits.

A point fits if its objective is at most that of the incumbent plus a limit. Boxes over which no
point fits are fathomed. The others are divided only while they reach beyond values that are known
to fit, so that far fewer are needed than for bounds of the optimum that meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.methods.branch_and_bound.chunks import CHUNK_SIZE
from odefit.methods.branch_and_bound.division import Division
from odefit.methods.branch_and_bound.fitting_values import FittingValues, add_around, union
from odefit.methods.branch_and_bound.leaf_log import LeafLog
from odefit.methods.branch_and_bound.local_minima import local_minimum, objective_at
from odefit.methods.branch_and_bound.node_evaluator import (
    NodeEvaluation,
    NodeEvaluator,
    ResidualEnclosure,
)
from odefit.methods.branch_and_bound.tree import (
    COMPILED_FROM,
    ROOT_ROUNDING,
    Node,
    restored_nodes,
)

BATCH_SIZE = 2 * CHUNK_SIZE
"""Number of boxes taken at once, those that reach farthest: two chunks, for two workers."""

BATCH_SHARE = 0.5
"""Share of the boxes up to which a batch is larger than :data:`BATCH_SIZE`."""

MAX_BATCH_SIZE = 32 * CHUNK_SIZE
"""Largest number of boxes taken at once if many are open, for many workers."""

CUT_ROUNDING = 1e-12
"""Relative margin of the largest objective that fits, for the rounding of its formula."""

NEGLIGIBLE_FALL = 0.02
"""Fall of the incumbent's objective, relative to the limit, up to which values that fitted still
count as fitting."""


@dataclass(frozen=True, eq=False)
class RegionGoal:
    """The points that fit: those with an objective of at most ``(1 + ratio) S + constant``.

    S is the least objective. `intervals` holds, for each unknown, the ends of intervals of values
    known to fit; `points` may fit as well, shape (m, n).
    """

    constant: float
    ratio: float
    intervals: tuple[tuple[tuple[float, float], ...], ...]
    points: Array

    def cut(self, upper_bound: float, offset: float = 0.0) -> float:
        """Return the largest sum of squares that fits, if the least one is at most `upper_bound`.

        The objective is the sum of squares plus an `offset`.
        """
        cut = (1 + self.ratio) * upper_bound + self.constant + self.ratio * offset
        return cut * (1 + CUT_ROUNDING)


class RegionTree:
    """Boxes of unknowns within finite bounds, shape (n,), outside which nothing fits.

    The incumbent has the objective `upper_bound`; a `candidate` is the middle of a box at which the
    approximate objective is lower. The boxes that reach farthest beyond values that fit are divided
    first.
    """

    def __init__(
        self,
        enclosure: ResidualEnclosure,
        lower: Array,
        upper: Array,
        incumbent: Array,
        upper_bound: float,
        goal: RegionGoal,
        evaluator: NodeEvaluator | None = None,
        leaves: LeafLog | None = None,
    ) -> None:
        self._enclosure, self._leaves, self._goal = enclosure, leaves, goal
        self._evaluator = evaluator or NodeEvaluator(enclosure)
        self._bounds = lower, upper
        self._division = Division(enclosure, lower, upper)
        self._open = [Node(0.0, 0, lower.copy(), upper.copy())]
        self._small: list[Node] = []  # too small to be divided
        self._created = 1
        self.upper_bound, self.cut = upper_bound, goal.cut(upper_bound, enclosure.offset)
        self.offset = enclosure.offset  # to be added to squares in reports
        self.evaluated = 0
        self.work = 0.0  # operations
        self.candidate: Array | None = None
        self._newcomer: Array | None = None
        self.fit = FittingValues(lower, upper)
        for k, intervals in enumerate(goal.intervals):
            for low, high in intervals:
                self.fit.add(k, low, high)
        self._add_around(incumbent)
        for point in goal.points:
            self._add_around(point)

    # The state --------------------------------------------------------------------------------

    @property
    def nodes(self) -> Sequence[Node]:
        """The boxes, in arbitrary order."""
        return [*self._open, *self._small]

    @property
    def dimension(self) -> int:
        """Number of unknowns n."""
        return self._division.dimension

    @property
    def corners(self) -> tuple[Array, Array]:
        """The lower and the upper corners of all boxes, shape (B, n)."""
        return _corners(self.nodes, self.dimension)

    @property
    def open_nodes(self) -> int:
        """Number of boxes that reach beyond values that fit."""
        return int(self._reaching(self.nodes).sum())

    @property
    def lower_bound(self) -> float:
        """Lower bound of the objective over all boxes, at most the upper bound."""
        least = min((node.norm for node in self.nodes), default=math.inf)
        bound = min(self.upper_bound, least**2 * (1 - ROOT_ROUNDING))
        return max(bound, self._enclosure.lower_bound)

    def intervals(self, k: int) -> Array:
        """Return disjoint intervals that hold all values of unknown `k` that fit, shape (m, 2)."""
        lower, upper = self.corners
        return union(np.column_stack([lower[:, k], upper[:, k]]))

    def state(self) -> dict[str, Any]:
        """Return all plain numbers that :meth:`resume` needs besides the :attr:`nodes`."""
        known = [self.fit.intervals(k).tolist() for k in range(self.dimension)]
        return {
            "cut": self.cut,
            "boxes": self.evaluated,
            "created": self._created,
            "work": self.work,
            "fit": known,
        }

    def resume(self, state: Mapping[str, Any], nodes: Mapping[int, Array]) -> None:
        """Continue a search whose :meth:`state` was saved, with its boxes by number.

        Raises ValueError for boxes of another search.
        """
        n = self.dimension
        restored = restored_nodes(nodes, n)
        known = [np.array(rows, dtype=float).reshape(-1, 2) for rows in state["fit"]]
        if len(known) != n or not all(np.isfinite(rows).all() for rows in known):
            raise ValueError("the values that fit are damaged")
        # A lower one belongs to a better incumbent, which the state of the search holds.
        self.cut = min(self.cut, float(state["cut"]))
        self._open, self._small = restored, []
        self._created, self.evaluated = int(state["created"]), int(state["boxes"])
        self.work = float(state["work"])
        for k, rows in enumerate(known):
            for low, high in rows:
                self.fit.add(k, float(low), float(high))

    def update_incumbent(self, upper_bound: float, incumbent: Array) -> None:
        """Search for the points that fit by a better incumbent from now on."""
        cut = self._goal.cut(upper_bound, self._enclosure.offset)
        limit = self.cut - self.upper_bound
        fell, self.upper_bound = self.upper_bound - upper_bound, upper_bound
        self.cut = min(cut, self.cut)
        if fell > NEGLIGIBLE_FALL * limit:
            self.fit = FittingValues(*self._bounds)
            for point in (incumbent, *self._goal.points):
                self._add_around(point)

    # The search -------------------------------------------------------------------------------

    def run(self, stop: Callable[[], bool]) -> Iterator[None]:
        """Divide batches of boxes until none reaches beyond values that fit, or until a `stop`."""
        while not stop():
            lower, upper = _corners(self._open, self.dimension)
            # Rounding must not hide a part far shorter than the range of the unknown.
            outside = self.fit.outside(lower, upper) / self._division.span
            far = outside.max(axis=1, initial=0.0) if len(lower) else np.zeros(0)
            waiting = np.flatnonzero(far > 0)
            if not len(waiting):
                return
            first = waiting[np.argsort(-far[waiting], kind="stable")][: batch_size(len(waiting))]
            self._newcomer = None
            self._process(sorted(first.tolist()), stop)
            if self._newcomer is not None:
                self._welcome(self._newcomer, stop)
            yield

    def _process(self, chosen: list[int], stop: Callable[[], bool]) -> None:
        """Replace chosen boxes by their remainders; those not evaluated stay."""
        batch = [self._open[b] for b in chosen]
        taken = set(chosen)
        self._open = [node for b, node in enumerate(self._open) if b not in taken]
        lower, upper = _corners(batch, self.dimension)
        radius = math.sqrt(self.cut) * (1 + ROOT_ROUNDING)
        try:
            compiled = self.work >= COMPILED_FROM
            for evaluation in self._evaluator(lower, upper, radius, stop, compiled):
                count = len(evaluation.midpoint_objective)
                self.work += evaluation.work
                self.evaluated += count
                self._fathom_or_divide(evaluation, batch[:count], radius)
                del batch[:count]
        finally:
            self._open += batch

    def _fathom_or_divide(
        self, evaluation: NodeEvaluation, batch: Sequence[Node], radius: float
    ) -> None:
        lower, upper = _corners(batch, self.dimension)
        middle, objective = (lower + upper) / 2, evaluation.midpoint_objective
        b = int(np.argmin(objective))
        if objective[b] < self.upper_bound:
            self.candidate = middle[b]
        new = np.flatnonzero((objective <= self.cut) & ~self.fit.holds(middle))
        if len(new):
            self._newcomer = middle[new[np.argmin(objective[new])]]
            self.fit.add_points(middle[new])
        norms = np.maximum(evaluation.bounds.norm, [node.norm for node in batch])
        nodes = evaluation.bounds, norms, lower, upper, radius, self._leaves
        for part in self._division.parts(*nodes):
            boxes = self._small if part.too_small else self._open
            boxes.append(Node(part.norm, self._created, part.lower, part.upper))
            self._created += 1

    # Values that fit --------------------------------------------------------------------------

    def _welcome(self, point: Array, stop: Callable[[], bool]) -> None:
        """Add the values around the local minimum next to a point that fits."""
        minimum, objective = local_minimum(self._enclosure, point, *self._bounds, stop)
        if objective < self.upper_bound:
            self.candidate = minimum
        self._add_around(minimum)

    def _add_around(self, point: Array) -> None:
        if objective_at(self._enclosure, point) <= self.cut:
            add_around(self.fit, self._enclosure, point, self.cut, *self._bounds)

    def _reaching(self, nodes: Sequence[Node]) -> BoolArray:
        """Return which boxes reach beyond values that fit, shape (B,)."""
        corners = _corners(nodes, self.dimension)
        return np.asarray((self.fit.outside(*corners) > 0).any(axis=1))

    def keep_open(self) -> None:
        """Add the boxes to the leaves, at the end of the search."""
        for node in self.nodes if self._leaves is not None else ():
            assert self._leaves is not None
            self._leaves.add(node.lower, node.upper, node.norm**2, "open")


def _corners(nodes: Sequence[Node], n: int) -> tuple[Array, Array]:
    lower = np.array([node.lower for node in nodes]).reshape(-1, n)
    upper = np.array([node.upper for node in nodes]).reshape(-1, n)
    return lower, upper


def batch_size(count: int) -> int:
    """Return the number of boxes to take at once, independent of the workers.

    Examples
    --------
    >>> batch_size(300), batch_size(1000), batch_size(4000), batch_size(10**6)
    (300, 512, 2000, 8192)
    """
    many = min(int(BATCH_SHARE * count), MAX_BATCH_SIZE)
    return min(count, max(BATCH_SIZE, many))
