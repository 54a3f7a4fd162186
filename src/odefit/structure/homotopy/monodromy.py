"""All solutions for generic parameters, starting from one: monodromy.

Tracking solutions along closed loops in the space of parameters permutes them. It can take any
solution to any other, because the incidence variety is the graph of a map and so irreducible. The
loops come from a graph (T. Duff et al., Solving polynomial systems via homotopy continuation and
monodromy, 2019): vertices are random parameters, edges are parameter homotopies between them.

The end of the search follows from a probability. Suppose that edges permute solutions like random
elements of the (transitive) monodromy group. If m solutions are known and there is another, a
solution tracked along a random edge arrives at an unknown one with probability at least 1/(m + 1).
So after N arrivals at known solutions the probability of a missed solution is at most (1 - 1/(m +
1))^N; the search ends when that is below :data:`MISS_PROBABILITY`. If the number of solutions is
known (:mod:`odefit.structure.exact`), it ends when all are found, or when the probability is below
:data:`MISS_PROBABILITY_IF_COUNTED`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.structure.homotopy.square import ParameterHomotopy, SquareSystem
from odefit.structure.homotopy.tracker import TrackerOptions, index_of, track

MISS_PROBABILITY = 1e-6
"""Probability of a missed solution, as explained above, at which the search ends."""

MISS_PROBABILITY_IF_COUNTED = 1e-12
"""Probability at which the search is given up although more solutions are known to exist."""

VERTICES = 4
"""Number of vertices of the graph, whose edges have to be like random ones."""

VERTICES_IF_COUNTED = 2
"""Number of vertices if the number of solutions is known. Edges between two vertices are enough to
reach all solutions: loops in a generic line of parameters generate the whole monodromy group."""

MAX_BATCH = 192
"""Largest number of paths that are tracked together."""

MAX_BATCH_IF_COUNTED = 96
"""Largest number if the number of solutions is known: few may remain to be found."""

TRACKER = TrackerOptions(max_steps=300)
"""Options of tracking. Longer paths are given up: others find the same solutions with less work."""


@dataclass(frozen=True, eq=False)
class GenericSolutions:
    """All solutions at one generic vector of parameters.

    `solutions`, shape (d, n), begins with the random point from which `parameters` were made.
    `arrivals` counts the paths that arrived at known solutions since the last new one. `expected`
    is the number of solutions if it was known in advance.
    """

    solutions: ComplexArray
    parameters: ComplexArray
    arrivals: int
    paths: int
    failed: int
    seconds: float
    expected: int | None = None

    @property
    def miss_probability(self) -> float:
        """Probability that a solution is missed; 0 if all `expected` are found, 1 if fewer are.

        A zero rests on the expected number, whose own error probability
        :class:`~odefit.structure.exact.count.ExactCount` explains.
        """
        if self.expected is not None and len(self.solutions) <= self.expected:
            return float(len(self.solutions) < self.expected)
        return miss_probability(len(self.solutions), self.arrivals)

    @property
    def complete(self) -> bool:
        """True if the search ended by itself, without any sign of missing solutions."""
        return self.miss_probability <= MISS_PROBABILITY


def miss_probability(count: int, arrivals: int) -> float:
    """Return ``(1 - 1/(count + 1))^arrivals``, the probability that a solution is missed."""
    return math.exp(arrivals * math.log1p(-1 / (count + 1)))


@dataclass(eq=False)
class _Vertex:
    """A vector of parameters, and its solutions found so far."""

    parameters: ComplexArray
    solutions: list[ComplexArray] = field(default_factory=list)


@dataclass(eq=False)
class _Edge:
    """A parameter homotopy between two vertices.

    `gamma` belongs to the direction from the first to the second; `tracked` holds for each end the
    numbers of its solutions that need no further tracking.
    """

    ends: tuple[int, int]
    gamma: complex
    tracked: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))


def all_solutions(
    square: SquareSystem,
    seed: int = 0,
    *,
    expected: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[int], None] = lambda count: None,
) -> GenericSolutions:
    """Find all solutions of `square` at random parameters.

    The search ends as soon as `expected` solutions are found, or when `stop` returns True; `report`
    receives the number of solutions found so far.
    """
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    if expected is None:
        search = _Search(square, rng, VERTICES, MAX_BATCH)
    else:
        search = _Search(square, rng, VERTICES_IF_COUNTED, MAX_BATCH_IF_COUNTED)
    while not search.done(expected) and not stop():
        search.advance()
        report(search.count)
    vertex = max(search.vertices, key=lambda v: len(v.solutions))
    return GenericSolutions(
        np.array(vertex.solutions),
        vertex.parameters,
        search.arrivals,
        search.paths,
        search.failed,
        time.perf_counter() - began,
        expected,
    )


class _Search:
    """The graph, with the solutions found at its vertices."""

    def __init__(
        self, square: SquareSystem, rng: np.random.Generator, vertices: int, batch: int
    ) -> None:
        self.square = square
        self.rng = rng
        self.batch = batch
        generic = [square.generic_point(rng) for _ in range(vertices)]
        self.vertices = [_Vertex(parameters, [point]) for point, parameters in generic]
        self.edges: list[_Edge] = []
        self.count = 1
        self.arrivals = 0
        self.paths = 0
        self.failed = 0

    def done(self, expected: int | None) -> bool:
        """Return whether the search ends, for an expected number of solutions."""
        if self.count == expected:
            return True
        missing = expected is not None and self.count < expected
        limit = MISS_PROBABILITY_IF_COUNTED if missing else MISS_PROBABILITY
        return miss_probability(self.count, self.arrivals) <= limit

    def advance(self) -> None:
        """Track some paths, along new edges if too few remain on the old ones."""
        tasks = self._tasks()
        while len(tasks) < min(self.batch, 4 * (self.count + 1)):
            first, second = self.rng.choice(len(self.vertices), 2, replace=False)
            angle = self.rng.uniform(-np.pi, np.pi)
            self.edges.append(_Edge((int(first), int(second)), complex(np.exp(1j * angle))))
            tasks = self._tasks()
        self._track(tasks)

    def _tasks(self) -> list[tuple[_Edge, int, int]]:
        """Return the possible tasks: an edge, one of its ends, and a solution's number there."""
        tasks = []
        for edge in self.edges:
            for side in (0, 1):
                known = len(self.vertices[edge.ends[side]].solutions)
                tasks += [(edge, side, k) for k in range(known) if k not in edge.tracked[side]]
                if tasks and tasks[-1][0] is edge:
                    break  # arriving solutions need not be tracked back
        return tasks[: self.batch]

    def _track(self, tasks: list[tuple[_Edge, int, int]]) -> None:
        v = self.vertices
        points = np.array([v[e.ends[side]].solutions[k] for e, side, k in tasks])
        start = np.array([v[e.ends[side]].parameters for e, side, _ in tasks])
        end = np.array([v[e.ends[1 - side]].parameters for e, side, _ in tasks])
        gamma = np.array([e.gamma if side == 0 else 1 / e.gamma for e, side, _ in tasks])
        tracked = track(ParameterHomotopy(self.square, start, end, gamma), points, TRACKER)
        self.paths += len(tasks)
        for (edge, side, k), arrived, last in zip(
            tasks, tracked.reached, tracked.ends, strict=True
        ):
            edge.tracked[side].add(k)
            if not arrived:
                self.failed += 1
                continue
            other = v[edge.ends[1 - side]]
            number = index_of(last, other.solutions)
            if number is None:
                other.solutions.append(last)
                number = len(other.solutions) - 1
                if len(other.solutions) > self.count:
                    self.count, self.arrivals = len(other.solutions), 0
            elif len(other.solutions) == self.count:
                self.arrivals += 1
            edge.tracked[1 - side].add(number)
