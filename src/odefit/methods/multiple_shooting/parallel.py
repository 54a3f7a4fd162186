"""Intervals over an executor: for models whose intervals no compiled integrator takes together."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

import numpy as np

from odefit.methods.workers import remembered
from odefit.problem.arrays import Array
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines import EngineName
from odefit.simulation.intervals import IntervalMap
from odefit.simulation.nodes import node_names
from odefit.simulation.trajectory import Trajectory

CHUNKS = 16
"""Pieces of work for each sweep over the intervals of a condition."""


class Spread:
    """Integrates intervals of one condition over an executor.

    Parameters
    ----------
    executor
        Of processes, or machines: integrators serve one thread at a time.
    problem, engine, tolerance
        As of :class:`ForwardMap`.
    condition
        Its number.
    cuts, sizes
        As of :class:`IntervalMap`.
    """

    def __init__(
        self,
        executor: Executor,
        problem: Problem,
        engine: EngineName,
        tolerance: float | None,
        condition: int,
        cuts: Array,
        sizes: Array,
    ) -> None:
        self._executor = executor
        self._task = pickle.dumps((problem, engine, tolerance, condition, cuts, sizes))

    def __call__(
        self, intervals: Sequence[int], vector: Array, nodes: Array
    ) -> Iterable[Trajectory | Failure]:
        """Their trajectories, in order."""
        chunks = [c for c in np.array_split(np.array(intervals), CHUNKS) if len(c)]
        futures = [
            self._executor.submit(_integrated, self._task, c.tolist(), vector, nodes[c])
            for c in chunks
        ]
        return [found for future in futures for found in future.result()]


def _integrated(
    task: bytes, which: Sequence[int], vector: Array, nodes: Array
) -> list[Trajectory | Failure]:
    intervals = remembered(task, lambda: _compiled(task))
    with np.errstate(all="ignore"):
        return [intervals.alone(i, vector, n) for i, n in zip(which, nodes, strict=True)]


def _compiled(task: bytes) -> IntervalMap:
    problem, engine, tolerance, number, cuts, sizes = pickle.loads(task)
    forward = ForwardMap(problem, engine, tolerance)
    names = node_names(forward.field, problem.conditions)
    condition = problem.conditions[number]
    return IntervalMap(
        forward.field, condition, forward.engines, cuts, sizes, len(problem.unknowns), names
    )
