"""Shooting intervals over an executor, for models whose intervals are not integrated as a batch."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.running.executors.batch import remembered
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.nodes import node_names
from odefit.simulation.trajectories.intervals import IntervalMap
from odefit.simulation.trajectories.trajectory import Trajectory

CHUNKS = 16  # number of tasks that the intervals of a condition are divided into


class RemoteIntervals:
    """Integrates intervals of one condition over an executor of processes or machines.

    Integrators serve one thread at a time. The accuracy of `forward` holds in the processes, too.
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
        return [found for future in futures for found in future.result()]


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
