"""A problem on shooting nodes: residuals F1, continuity conditions F2, and their derivatives."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.local.scaling import Scaling
from odefit.methods.running.worker import remembered
from odefit.methods.shooting.condensing import Chains
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.nodes import Nodes, node_names
from odefit.simulation.trajectories.intervals import IntervalMap, IntervalSolution
from odefit.simulation.trajectories.trajectory import Trajectory

CHUNKS = 16  # number of tasks that the intervals of a condition are divided into


class RemoteIntervals:
    """Integrates intervals of one condition that form no batch over processes or machines.

    Integrators serve one thread at a time. The processes use the accuracy of `forward`, too.
    """

    def __init__(
        self,
        executor: Executor,
        forward: ForwardMap,
        condition: int,
        node_times: Array,
        sizes: Array,
    ) -> None:
        self._executor = executor
        self._task = pickle.dumps((forward.arguments, condition, node_times, sizes))

    def __call__(
        self, intervals: Sequence[int], vector: Array, nodes: Array, choice: EngineChoice
    ) -> Iterable[Trajectory | Failure]:
        """Return the trajectories of intervals, in their order; see :class:`IntervalMap`."""
        chunks = [c for c in np.array_split(np.array(intervals), CHUNKS) if len(c)]
        futures = [
            self._executor.submit(_integrate, self._task, c.tolist(), vector, nodes[c], choice)
            for c in chunks
        ]
        return [trajectory for future in futures for trajectory in future.result()]


def _integrate(
    task: bytes, numbers: Sequence[int], vector: Array, nodes: Array, choice: EngineChoice
) -> list[Trajectory | Failure]:
    intervals = remembered(task, lambda: _compiled(task))
    with np.errstate(all="ignore"):
        return list(intervals.integrate(numbers, vector, nodes, choice))


def _compiled(task: bytes) -> IntervalMap:
    arguments, number, node_times, sizes = pickle.loads(task)
    forward = ForwardMap(*arguments)
    problem = forward.problem
    names = node_names(forward.field, problem.conditions)
    condition = problem.conditions[number]
    return IntervalMap(
        forward.field, condition, forward.engines, node_times, sizes, len(problem.unknowns), names
    )


@dataclass(frozen=True, eq=False)
class Point:
    """Values of all free quantities: coordinates of the unknowns, and nodes."""

    coordinates: Array  # coordinates of the unknowns, shape (n,), see :class:`Scaling`
    # values of the nodes of all conditions, shape (nodes, N); the first node of a condition follows
    # from the unknowns, its entries here are not used
    nodes: Array

    def moved(self, step: Point, fraction: float) -> Point:
        """Return the point a `fraction` of the way along `step`."""
        return Point(
            self.coordinates + fraction * step.coordinates, self.nodes + fraction * step.nodes
        )


@dataclass(frozen=True, eq=False)
class Linearisation:
    """F and its derivatives at a point, with respect to coordinates."""

    point: Point  # point, with the first nodes filled in
    evaluation: Evaluation  # cost and objective of the discontinuous trajectory
    residuals: Array  # residuals F1, shape (r,)
    gaps: Array  # discontinuities F2: ends of intervals minus the nodes there, shape (I, N)
    # derivatives of gaps and residuals, see :class:`CondensedProblem`
    by_node: Array
    by_unknown: Array
    rows_by_node: Array
    rows_by_unknown: Array
    # derivatives of the first nodes by the unknowns, shape (conditions, N, n)
    first_by_unknown: Array

    @property
    def choice(self) -> EngineChoice:
        """The choice of an engine for the next integration."""
        return self.evaluation.choice


class ShootingProblem:
    """The forward map of a problem on shooting nodes.

    `node_times` are those of each condition, the first at its t0; `sizes` are typical sizes of the
    values of a node, shape (N,). Nodes at `positions`, as (condition, number), are not eliminated.
    The executor integrates intervals that are not part of a batch.
    """

    def __init__(
        self,
        forward: ForwardMap,
        node_times: Sequence[Array],
        sizes: Array,
        positions: Sequence[tuple[int, int]] = (),
        executor: Executor | None = None,
    ) -> None:
        self.forward = forward
        self.problem = forward.problem
        self.scaling = Scaling.of(self.problem)
        self.node_times = [np.asarray(times, dtype=float) for times in node_times]
        self.sizes = sizes
        n = len(self.problem.unknowns)
        self.names = names = node_names(forward.field, self.problem.conditions)
        self.maps = [
            IntervalMap(forward.field, c, forward.engines, times, sizes, n, names)
            for c, times in zip(self.problem.conditions, self.node_times, strict=True)
        ]
        if executor is not None:
            for number, interval_map in enumerate(self.maps):
                interval_map.remote = RemoteIntervals(
                    executor, forward, number, self.node_times[number], sizes
                )
        self.lengths = [len(times) for times in self.node_times]
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.intp)
        self._positions = [int(self.starts[c] + k) for c, k in positions]
        self._chains: Chains | None = None
        self.evaluations = 0

    @property
    def nodes(self) -> int:
        """Number of nodes of all conditions."""
        return int(self.starts[-1])

    def node_at(self, condition: int, time: float) -> int:
        """Return the number of a condition's node at a time where it has one."""
        place = int(np.argmin(np.abs(self.node_times[condition] - time)))
        return int(self.starts[condition] + place)

    def integrate(
        self, point: Point, choice: EngineChoice = UNDECIDED
    ) -> list[IntervalSolution] | Failure:
        """Integrate all conditions on their intervals."""
        vector = self.scaling.natural(point.coordinates)
        solutions = []
        with np.errstate(all="ignore"):
            for number, interval_map in enumerate(self.maps):
                inner = point.nodes[self.starts[number] + 1 : self.starts[number + 1]]
                solution = interval_map(vector, inner, choice)
                if isinstance(solution, Failure):
                    return solution
                choice = solution.trajectory.choice
                solutions.append(solution)
        return solutions

    def linearise(self, point: Point, choice: EngineChoice = UNDECIDED) -> Linearisation | Failure:
        """Return F and its derivatives at `point`, or why they are missing."""
        self.evaluations += 1
        # Steps that end at a bound may miss it by rounding.
        inside = np.clip(point.coordinates, self.scaling.lower, self.scaling.upper)
        point = Point(inside, point.nodes)
        solutions = self.integrate(point, choice)
        if isinstance(solutions, Failure):
            return solutions
        vector = self.scaling.natural(point.coordinates)
        by_coordinate = self.scaling.derivative(vector)
        n, size = len(vector), len(self.names)
        wide = np.concatenate([vector, np.zeros(size)])
        with np.errstate(all="ignore"):
            assembled = self.forward.assemble(wide, [s.trajectory for s in solutions])
        if isinstance(assembled, Failure):
            return assembled
        evaluation, sources = assembled
        if self._chains is None:
            row_nodes = [
                np.zeros(len(s.times), dtype=np.intp)
                if s.condition < 0
                else self.starts[s.condition] + self.maps[s.condition].interval[s.times]
                for s in sources
            ]
            self._chains = Chains(self.lengths, size, n, np.concatenate(row_nodes), self._positions)
        nodes = np.array(point.nodes)
        nodes[self.chains.firsts] = [s.first_node for s in solutions]
        ends = np.concatenate([s.ends for s in solutions])
        return Linearisation(
            point=Point(point.coordinates, nodes),
            evaluation=evaluation,
            residuals=evaluation.residuals,
            gaps=ends - nodes[self.chains.left + 1],
            by_node=np.concatenate([s.by_node for s in solutions]),
            by_unknown=np.concatenate([s.by_unknown for s in solutions]) * by_coordinate,
            rows_by_node=evaluation.jacobian[:, n:],
            rows_by_unknown=evaluation.jacobian[:, :n] * by_coordinate,
            first_by_unknown=np.array([s.first_node_by_unknown for s in solutions]) * by_coordinate,
        )

    def gap(self, at: Linearisation) -> float:
        """Return the largest discontinuity, relative to the sizes of the states."""
        return float(np.abs(at.gaps / self.sizes).max(initial=0.0))

    def total_sum_of_squares(self, at: Linearisation) -> float:
        """Return the weighted sum of squares of all data about their means.

        It is the sum of squared residuals of the best constant predictions; 1 if it is zero or
        cannot be computed.
        """
        point = at.point
        solutions = self.integrate(point, at.choice)
        if isinstance(solutions, Failure):
            return 1.0
        vector = self.scaling.natural(point.coordinates)
        wide = np.concatenate([vector, np.zeros(len(self.names))])
        series = [
            (self.problem.noise.get(name, Noise()), s.values)
            for c in self.problem.conditions
            for name, s in c.series.items()
        ]
        total = 0.0
        with np.errstate(all="ignore"):
            blocks = self.forward.series_residuals(wide, [s.trajectory for s in solutions])
            for (noise, values), block in zip(series, blocks, strict=True):
                if isinstance(block, Failure):
                    return 1.0
                measured = transformed(values, noise.transform)
                total += float(np.sum(((measured - measured.mean()) / block.sds) ** 2))
        return total if np.isfinite(total) and total > 0 else 1.0

    def nodes_of(self, point: Point) -> Nodes:
        """Return the nodes of a point, by condition."""
        values = [point.nodes[a:b] for a, b in zip(self.starts, self.starts[1:], strict=False)]
        return Nodes(tuple(self.node_times), tuple(values))

    @property
    def chains(self) -> Chains:
        """The chains of the nodes; they are known after the first evaluation."""
        assert self._chains is not None
        return self._chains
