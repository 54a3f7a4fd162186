"""The tree of branch and bound: boxes of unknowns, fathomed or divided, the best one first."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.branch_and_bound.division import Division
from odefit.methods.branch_and_bound.leaf_log import LeafLog
from odefit.methods.branch_and_bound.node_evaluator import (
    CHUNK_SIZE,
    NodeEvaluation,
    NodeEvaluator,
    ResidualEnclosure,
)
from odefit.methods.branch_and_bound.sharpening import Sharpening

BATCH_SIZE = 2 * CHUNK_SIZE
"""Number of nodes taken at once, the most promising ones: two chunks, for two workers."""

MAX_BATCH_SIZE = 32 * CHUNK_SIZE
"""Largest number of nodes taken at once if many are open, for many workers."""

BATCH_SHARE = 0.5
"""Share of the open nodes up to which a batch is larger than :data:`BATCH_SIZE`. If no better point
is found, all of them have to be evaluated anyway; otherwise these were too many."""

ROOT_ROUNDING = 1e-15
"""Relative margin for the rounding of a square root and of its square."""


COMPILED_FROM = 1e8
"""Work of a search, in operations, from which on compiled code evaluates its boxes: as much as its
compilation takes."""


@dataclass(order=True)
class Node:
    """An open node: a box, shape (n,), that may contain something better than the incumbent.

    `norm` bounds the residual norm over the box from below; `number` counts by creation.
    """

    norm: float
    number: int
    lower: Array = field(compare=False)
    upper: Array = field(compare=False)


def restored_nodes(records: Mapping[int, Array], n: int) -> list[Node]:
    """Return nodes with n unknowns by number, from the norm and the corners of each.

    Raises ValueError for nodes of another search.
    """
    for number, values in records.items():
        if values.shape != (1 + 2 * n,) or not np.isfinite(values).all():
            raise ValueError(f"node {number} has other numbers")
    return [Node(float(v[0]), k, v[1 : n + 1], v[n + 1 :]) for k, v in records.items()]


class Tree:
    """Best-first branch and bound over boxes of unknowns within finite bounds, shape (n,).

    The incumbent has the objective `upper_bound`; the tree is searched below `target`, which is at
    most that. A `candidate` is the middle of a box at which the approximate objective is below
    `upper_bound`. Boxes that are fathomed or cut off are added to `leaves`, if these are kept.
    """

    def __init__(
        self,
        enclosure: ResidualEnclosure,
        lower: Array,
        upper: Array,
        upper_bound: float,
        target: float,
        evaluator: NodeEvaluator | None = None,
        leaves: LeafLog | None = None,
    ) -> None:
        self._enclosure, self._leaves = enclosure, leaves
        self._evaluator = evaluator or NodeEvaluator(enclosure)
        self._division = Division(enclosure, lower, upper)
        self._sharpening = Sharpening(enclosure)
        self._open = [Node(0.0, 0, lower.copy(), upper.copy())]
        self._created = 1
        self._least_undivided = math.inf  # least norm of boxes that are too small to be divided
        self.target = target
        self.upper_bound = upper_bound
        self.evaluated = 0
        self.work = 0.0  # operations
        self.candidate: Array | None = None

    @property
    def open_nodes(self) -> int:
        """Number of nodes waiting for evaluation."""
        return len(self._open)

    @property
    def lower_bound(self) -> float:
        """Lower bound of the objective over all boxes, at most the target."""
        least = self._open[0].norm if self._open else math.inf
        least = min(least, self._least_undivided)
        return max(min(self.target, least**2 * (1 - ROOT_ROUNDING)), self._enclosure.lower_bound)

    @property
    def dimension(self) -> int:
        """Number of unknowns n."""
        return self._division.dimension

    @property
    def nodes(self) -> Sequence[Node]:
        """The open nodes, in arbitrary order."""
        return self._open

    def state(self) -> dict[str, Any]:
        """Return all plain numbers that :meth:`resume` needs besides the :attr:`nodes`."""
        return {
            "target": self.target,
            "boxes": self.evaluated,
            "closed": self._least_undivided,
            "created": self._created,
            "work": self.work,
            "level": self._sharpening.level,
            "compared": self._sharpening.work,
        }

    def resume(self, state: Mapping[str, Any], nodes: Mapping[int, Array]) -> None:
        """Continue a search whose :meth:`state` was saved, with its open nodes by number.

        The values of a node are the norm, then the lower and the upper corner. Raises ValueError
        for nodes of another search.
        """
        restored = restored_nodes(nodes, self.dimension)
        self.target = min(self.target, float(state["target"]))
        self.evaluated, self._least_undivided = int(state["boxes"]), float(state["closed"])
        self._open, self._created = restored, int(state["created"])
        self.work = float(state.get("work", 0.0))
        self._sharpening.resume(int(state.get("level", 0)), float(state.get("compared", 0.0)))
        heapq.heapify(self._open)

    def continue_from(self, nodes: Sequence[Node], evaluated: int, work: float) -> None:
        """Search these boxes alone: everything else within the bounds has been fathomed."""
        self._open = list(nodes)
        heapq.heapify(self._open)
        self._created = 1 + max((node.number for node in nodes), default=0)
        self.evaluated, self.work = evaluated, work

    def update_incumbent(self, upper_bound: float, target: float) -> None:
        """Search below a better incumbent from now on."""
        self.upper_bound, self.target = upper_bound, min(target, self.target)

    def run(self, stop: Callable[[], bool]) -> Iterator[None]:
        """Evaluate batches of nodes until no node is open or `stop` returns True."""
        while self._open and not stop():
            batch = [heapq.heappop(self._open) for _ in range(batch_size(len(self._open)))]
            # Rounded upwards: a node is fathomed unless its norm is below this.
            radius = math.sqrt(self.target) * (1 + ROOT_ROUNDING) if self.target > 0 else 0.0
            waiting = [node for node in batch if node.norm < radius]
            self._keep([node for node in batch if node.norm >= radius], "bounded")
            try:
                self._process(waiting, radius, stop)
            finally:
                # Nodes that were not evaluated are not fathomed.
                for node in waiting:
                    heapq.heappush(self._open, node)
            yield

    def _process(self, waiting: list[Node], radius: float, stop: Callable[[], bool]) -> None:
        """Evaluate nodes, and remove finished ones from the list."""
        if not waiting:
            return
        lower = np.array([node.lower for node in waiting])
        upper = np.array([node.upper for node in waiting])
        compiled = self.work >= COMPILED_FROM
        sharpening = self._sharpening
        if compiled and sharpening.due(self.work, self.evaluated):
            before = sharpening.work
            sharpening.compare(lower, upper, radius, stop)
            self.work += sharpening.work - before
        for evaluation in self._evaluator(lower, upper, radius, stop, compiled, sharpening.level):
            count = len(evaluation.midpoint_objective)
            norm = np.array([node.norm for node in waiting[:count]])
            self.work += evaluation.work
            self._fathom_or_branch(evaluation, norm, lower[:count], upper[:count], radius)
            del waiting[:count]
            lower, upper = lower[count:], upper[count:]

    def _fathom_or_branch(
        self, evaluation: NodeEvaluation, norm: Array, lower: Array, upper: Array, radius: float
    ) -> None:
        """Fathom, contract or divide evaluated nodes, with corners of shape (B, n).

        `norm`, shape (B,), bounds the residual norm as known before the evaluation.
        """
        b = int(np.argmin(evaluation.midpoint_objective))
        if evaluation.midpoint_objective[b] < self.upper_bound:
            self.candidate = (lower[b] + upper[b]) / 2
        norms = np.maximum(evaluation.bounds.norm, norm)
        self.evaluated += len(norms)
        boxes = evaluation.bounds, norms, lower, upper, radius, self._leaves
        for part in self._division.parts(*boxes):
            if not part.too_small:
                self._push(part.norm, part.lower, part.upper)
                continue
            self._least_undivided = min(self._least_undivided, part.norm)
            if self._leaves is not None:
                self._leaves.add(part.lower, part.upper, part.norm**2, "open")

    def keep_open(self) -> None:
        """Add the open nodes to the leaves, at the end of the search."""
        self._keep(self._open, "open")

    def _keep(self, nodes: Sequence[Node], reason: str) -> None:
        """Add nodes to the leaves, if these are kept."""
        for node in nodes if self._leaves is not None else ():
            assert self._leaves is not None
            self._leaves.add(node.lower, node.upper, node.norm**2, reason)

    def _push(self, norm: float, lower: Array, upper: Array) -> None:
        """Open a node."""
        heapq.heappush(self._open, Node(norm, self._created, lower, upper))
        self._created += 1


def batch_size(count: int) -> int:
    """Return the number of open nodes to take at once, independent of the workers.

    Examples
    --------
    >>> batch_size(300), batch_size(1000), batch_size(4000), batch_size(10**6)
    (300, 512, 2000, 8192)
    """
    many = min(int(BATCH_SHARE * count), MAX_BATCH_SIZE)
    return min(count, max(BATCH_SIZE, many))
