"""The tree of branch and bound: boxes of unknowns, fathomed or divided, the best one first.

Several chunks of nodes are under way at once, for workers (:mod:`.chunks`).
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.branch_and_bound.chunks import Chunk, next_size
from odefit.methods.branch_and_bound.division import Division
from odefit.methods.branch_and_bound.leaf_log import LeafLog
from odefit.methods.branch_and_bound.node_evaluator import (
    NodeEvaluation,
    NodeEvaluator,
    ResidualEnclosure,
)
from odefit.methods.branch_and_bound.sharpening import SAMPLE_SIZE, Sharpening

ROOT_ROUNDING = 1e-15
"""Relative margin for the rounding of a square root and of its square."""


COMPILED_FROM = 1e8
"""Work of a search, in operations, from which on compiled code evaluates its boxes: two seconds. It
takes half a second to load; on a new computer it is compiled for half a minute, once."""

COMPARED_FROM = 8 * SAMPLE_SIZE
"""Number of open nodes from which on levels are compared, which takes as long as two hundred."""

COMPARED_SHARE = 0.5
"""Share of the nodes, the most promising ones, by which levels are compared."""


@dataclass(order=True)
class Node:
    """An open node: a box, shape (n,), that may contain something better than the incumbent.

    `norm` bounds the residual norm over the box from below; `number` counts by creation.
    """

    norm: float
    number: int
    lower: Array = field(compare=False)
    upper: Array = field(compare=False)


class Flight(NamedTuple):
    """Nodes under way: they are evaluated as one chunk, and may contain the optimum until then."""

    nodes: list[Node]
    chunk: Chunk


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
        self._flying: deque[Flight] = deque()  # in the order in which they are merged
        self._created = 1
        self._node_work = 0.0  # operations of a node in the last chunk
        self._least_undivided = math.inf  # least norm of boxes that are too small to be divided
        self.target = target
        self.upper_bound = upper_bound
        self.evaluated = 0
        self.work = 0.0  # operations
        self.candidate: Array | None = None

    @property
    def open_nodes(self) -> int:
        """Number of nodes that have not been evaluated."""
        return len(self._open) + self._under_way

    @property
    def _under_way(self) -> int:
        """Number of nodes under way."""
        return sum(len(flight.nodes) for flight in self._flying)

    @property
    def lower_bound(self) -> float:
        """Lower bound of the objective over all boxes, at most the target."""
        # A chunk begins with its most promising node.
        first = [*self._open[:1], *(flight.nodes[0] for flight in self._flying)]
        least = min((node.norm for node in first), default=math.inf)
        least = min(least, self._least_undivided)
        return max(min(self.target, least**2 * (1 - ROOT_ROUNDING)), self._enclosure.lower_bound)

    @property
    def dimension(self) -> int:
        """Number of unknowns n."""
        return self._division.dimension

    @property
    def nodes(self) -> Sequence[Node]:
        """All nodes that have not been evaluated, in arbitrary order."""
        return [*self._open, *(node for flight in self._flying for node in flight.nodes)]

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
            "node work": self._node_work,
            "flying": [
                {"nodes": [node.number for node in nodes], "how": list(chunk[2:])}
                for nodes, chunk in self._flying
            ],
        }

    def resume(self, state: Mapping[str, Any], nodes: Mapping[int, Array]) -> None:
        """Continue a search whose :meth:`state` was saved, with its open nodes by number.

        The values of a node are the norm, then the lower and the upper corner. Raises ValueError
        for nodes of another search.
        """
        restored = {node.number: node for node in restored_nodes(nodes, self.dimension)}
        flights = [
            _flight([restored.pop(int(number)) for number in flight["nodes"]], *flight["how"])
            for flight in state.get("flying", ())
        ]
        self.target = min(self.target, float(state["target"]))
        self.evaluated, self._least_undivided = int(state["boxes"]), float(state["closed"])
        self._open, self._created = list(restored.values()), int(state["created"])
        self._flying = deque(flights)
        self.work = float(state.get("work", 0.0))
        self._node_work = float(state.get("node work", 0.0))
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
        """Evaluate chunks of nodes until no node is left or `stop` returns True."""
        for flight in self._flying:
            self._evaluator.put(flight.chunk)
        try:
            while (self._open or self._flying) and not stop():
                while self._send(stop):
                    pass
                if self._flying:
                    evaluation = self._evaluator.next(stop)
                    if evaluation is None:
                        return
                    self._merge(evaluation)
                yield
        finally:
            self._evaluator.clear()

    def _send(self, stop: Callable[[], bool]) -> bool:
        """Let the most promising nodes be evaluated; return whether there may be more."""
        compiled = self.work >= COMPILED_FROM
        # Without compiled code, operations on arrays of few nodes take as long as on many.
        work = self._node_work if compiled else 0.0
        count = next_size(len(self._open), len(self._flying), self._under_way, work)
        nodes = [heapq.heappop(self._open) for _ in range(count)]
        # Rounded upwards: a node is fathomed unless its norm is below this.
        radius = math.sqrt(self.target) * (1 + ROOT_ROUNDING) if self.target > 0 else 0.0
        waiting = [node for node in nodes if node.norm < radius]
        self._keep([node for node in nodes if node.norm >= radius], "bounded")
        if waiting:
            self._flying.append(_flight(waiting, radius, compiled, self._sharpening.level))
            if compiled:
                self._compare(stop)
            self._evaluator.put(self._flying[-1].chunk)
        return count > 0

    def _compare(self, stop: Callable[[], bool]) -> None:
        """Choose the level of the last chunk and the following ones, if it is time for that."""
        sharpening, last = self._sharpening, self._flying[-1]
        if self.open_nodes < COMPARED_FROM or not sharpening.due(self.work, self.evaluated):
            return
        # The most promising nodes alone are unlike those that take most of the work.
        nodes = sorted([*last.nodes, *self._open])
        nodes = nodes[: max(COMPARED_FROM, int(COMPARED_SHARE * len(nodes)))]
        before = sharpening.work
        sharpening.compare(*_corners(nodes), last.chunk.radius, stop)
        self.work += sharpening.work - before
        self._flying[-1] = last._replace(chunk=last.chunk._replace(level=sharpening.level))

    def _merge(self, evaluation: NodeEvaluation) -> None:
        """Fathom or divide the nodes that were sent first."""
        nodes, chunk = self._flying[0]
        norm = np.array([node.norm for node in nodes])
        self.work += evaluation.work
        self._node_work = evaluation.work / len(nodes)
        self._fathom_or_branch(evaluation, norm, chunk.lower, chunk.upper, chunk.radius)
        self._flying.popleft()

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
        """Add what was not evaluated to the leaves, at the end of the search."""
        self._keep(self.nodes, "open")

    def _keep(self, nodes: Sequence[Node], reason: str) -> None:
        """Add nodes to the leaves, if these are kept."""
        for node in nodes if self._leaves is not None else ():
            assert self._leaves is not None
            self._leaves.add(node.lower, node.upper, node.norm**2, reason)

    def _push(self, norm: float, lower: Array, upper: Array) -> None:
        """Open a node."""
        heapq.heappush(self._open, Node(norm, self._created, lower, upper))
        self._created += 1


def _flight(nodes: list[Node], radius: float, compiled: bool, level: int) -> Flight:
    """Return nodes as one chunk."""
    chunk = Chunk(*_corners(nodes), float(radius), bool(compiled), int(level))
    return Flight(nodes, chunk)


def _corners(nodes: Sequence[Node]) -> tuple[Array, Array]:
    """Return the lower and the upper corners of nodes, shape (B, n)."""
    return np.array([node.lower for node in nodes]), np.array([node.upper for node in nodes])
