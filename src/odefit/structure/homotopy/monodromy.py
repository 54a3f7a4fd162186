"""All solutions for generic parameters, from one of them: monodromy.

Carrying solutions around closed loops in the space of parameters permutes them, and takes any of
them to any other, because the incidence variety is the graph of a map and so irreducible. The
loops are those of a graph (T. Duff et al., Solving polynomial systems via homotopy continuation
and monodromy, 2019): vertices are random parameters, edges random arcs between them.

When does one stop? If m solutions are known and there is another, a solution that is carried
along a random arc arrives at an unknown one with probability 1/(m + 1) or more, as long as arcs
permute solutions like random elements of the (transitive) monodromy group. So N arrivals at
known solutions leave a doubt of (1 - 1/(m + 1))^N that any is missing; the search ends when it
is below :data:`DOUBT`. Where the number of solutions is known (:mod:`odefit.structure.exact`), it
ends when all are there; if they do not turn up, when the doubt is below :data:`RESIGNATION`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from odefit.problem.arrays import ComplexArray
from odefit.structure.homotopy.tracker import Tracking, track
from odefit.structure.square import Between, SquareSystem

SAME = 1e-6
"""Relative difference up to which two solutions are one."""

DOUBT = 1e-6
"""Probability, as explained above, that solutions are missing when the search ends."""

RESIGNATION = 1e-12
"""The same where more solutions are expected than are found."""

VERTICES = 4
"""Of the graph where arcs have to be like random ones."""

FEWEST = 2
"""The same where the number of solutions is known. Arcs between two vertices are enough to reach
all solutions: loops in a generic line of parameters make all of the monodromy group."""

BATCH = 192
"""Paths followed together, at most."""

SMALL = 96
"""The same where the number is known: there may be few left to find."""

TRACKING = Tracking(steps=300)
"""Paths that take longer are left: others find the same solutions for less."""


@dataclass(frozen=True, eq=False)
class GenericSolutions:
    """All solutions at one generic vector of parameters.

    Attributes
    ----------
    solutions
        Shape (d, n); the first is the random point from which `parameters` were made.
    parameters
        Where, shape (parameters,).
    arrivals
        Paths that arrived at known solutions since the last new one.
    paths, failed
        Paths followed, and those that did not arrive.
    seconds
        Spent on it.
    expected
        Their number, if it was known before.
    """

    solutions: ComplexArray
    parameters: ComplexArray
    arrivals: int
    paths: int
    failed: int
    seconds: float
    expected: int | None = None

    @property
    def doubt(self) -> float:
        """Probability that solutions are missing, as the module's text explains.

        It is 0 if as many are found as were expected: then it rests on that number, whose own
        (small) doubt :class:`~odefit.structure.exact.count.ExactCount` explains. It is 1 if
        fewer are found.
        """
        if self.expected is not None and len(self.solutions) <= self.expected:
            return float(len(self.solutions) < self.expected)
        return doubt(len(self.solutions), self.arrivals)

    @property
    def closed(self) -> bool:
        """The search ended by itself, and nothing says that solutions are missing."""
        return self.doubt <= DOUBT


def doubt(count: int, arrivals: int) -> float:
    """``(1 - 1/(count + 1))^arrivals``."""
    return math.exp(arrivals * math.log1p(-1 / (count + 1)))


@dataclass(eq=False)
class _Vertex:
    parameters: ComplexArray
    solutions: list[ComplexArray] = field(default_factory=list)

    def find(self, point: ComplexArray) -> int | None:
        """Number of a solution, if it is known."""
        if not self.solutions:
            return None
        known = np.array(self.solutions)
        scale = np.maximum(np.abs(known), np.abs(point)) + 1e-10
        near = (np.abs(known - point) / scale).max(axis=1)
        best = int(near.argmin())
        return best if near[best] < SAME else None


@dataclass(eq=False)
class _Edge:
    ends: tuple[int, int]
    detour: complex
    tried: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))


def all_solutions(
    square: SquareSystem,
    seed: int = 0,
    *,
    expected: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[int], None] = lambda count: None,
) -> GenericSolutions:
    """All solutions of `square` at random parameters.

    Parameters
    ----------
    seed
        Of everything random.
    expected
        How many there are, if that is known: the search ends as soon as they are found.
    stop
        Asked now and then whether to end early.
    report
        Told the number of solutions now and then.
    """
    began = time.perf_counter()
    if expected is None:
        search = _Search(square, np.random.default_rng(seed), VERTICES, BATCH)
    else:
        search = _Search(square, np.random.default_rng(seed), FEWEST, SMALL)
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
    """The graph being filled."""

    def __init__(
        self, square: SquareSystem, rng: np.random.Generator, vertices: int, batch: int
    ) -> None:
        self.square = square
        self.rng = rng
        self.batch = batch
        generic = [square.generic(rng) for _ in range(vertices)]
        self.vertices = [_Vertex(parameters, [point]) for point, parameters in generic]
        self.edges: list[_Edge] = []
        self.count = 1
        self.arrivals = 0
        self.paths = 0
        self.failed = 0

    def done(self, expected: int | None) -> bool:
        """Whether the search ends, with that number of solutions expected."""
        if self.count == expected:
            return True
        missing = expected is not None and self.count < expected
        return doubt(self.count, self.arrivals) <= (RESIGNATION if missing else DOUBT)

    def advance(self) -> None:
        """Follow some paths."""
        tasks = self._tasks()
        while len(tasks) < min(self.batch, 4 * (self.count + 1)):
            first, second = self.rng.choice(len(self.vertices), 2, replace=False)
            angle = self.rng.uniform(-np.pi, np.pi)
            self.edges.append(_Edge((int(first), int(second)), complex(np.exp(1j * angle))))
            tasks = self._tasks()
        self._follow(tasks)

    def _tasks(self) -> list[tuple[_Edge, int, int]]:
        """What is to be carried over: edge, side, number of the solution at that side."""
        tasks = []
        for edge in self.edges:
            for side in (0, 1):
                known = len(self.vertices[edge.ends[side]].solutions)
                tasks += [(edge, side, k) for k in range(known) if k not in edge.tried[side]]
                if tasks and tasks[-1][0] is edge:
                    break  # what arrives need not be carried back
        return tasks[: self.batch]

    def _follow(self, tasks: list[tuple[_Edge, int, int]]) -> None:
        v = self.vertices
        points = np.array([v[e.ends[side]].solutions[k] for e, side, k in tasks])
        start = np.array([v[e.ends[side]].parameters for e, side, _ in tasks])
        end = np.array([v[e.ends[1 - side]].parameters for e, side, _ in tasks])
        detours = np.array([e.detour if side == 0 else 1 / e.detour for e, side, _ in tasks])
        tracked = track(Between(self.square, start, end, detours), points, TRACKING)
        self.paths += len(tasks)
        for (edge, side, k), arrived, last in zip(
            tasks, tracked.reached, tracked.ends, strict=True
        ):
            edge.tried[side].add(k)
            if not arrived:
                self.failed += 1
                continue
            other = v[edge.ends[1 - side]]
            found = other.find(last)
            if found is None:
                other.solutions.append(last)
                found = len(other.solutions) - 1
                if len(other.solutions) > self.count:
                    self.count, self.arrivals = len(other.solutions), 0
            elif len(other.solutions) == self.count:
                self.arrivals += 1
            edge.tried[1 - side].add(found)
