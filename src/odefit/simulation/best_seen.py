"""The best point of all that were evaluated during some work, wherever it was evaluated.

A method that is stopped within its first start has evaluated many points, but has no end of a start
to return. Every evaluation of a forward map in this thread is recorded here, whatever the method,
so that no method needs its own record.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import Array
from odefit.common.context_values import holding
from odefit.problem.problem import Problem


class BestSeen:
    """The unknowns of lowest cost among those at which a problem was evaluated.

    Evaluations of other problems count if these differ only in guesses and bounds, and only within
    its bounds; so do those of problems that are declared :meth:`equivalent`. Before the first
    evaluation there is no `vector`, and the cost is infinite.
    """

    def __init__(self, problem: Problem) -> None:
        self.vector: Array | None = None
        self.cost = self.objective = math.inf
        self.count = 0
        self._problem = problem
        self._equivalent = [problem]
        self._verdicts: dict[int, tuple[Problem, bool]] = {id(problem): (problem, True)}

    def note(self, problem: Problem, vector: Array, cost: float, objective: float) -> None:
        """Record an evaluation."""
        verdict = self._verdicts.get(id(problem))
        if verdict is None:
            # The problem is kept as well, since its number could otherwise be reused.
            verdict = self._verdicts[id(problem)] = (problem, self._is_same(problem))
        if not verdict[1] or len(vector) != len(self._problem.unknowns):
            return
        self.count += 1
        if not cost < self.cost or not math.isfinite(cost):
            return
        if (vector < self._problem.lower).any() or (vector > self._problem.upper).any():
            return
        self.cost, self.objective = float(cost), float(objective)
        self.vector = np.array(vector, dtype=float)

    def equivalent(self, problem: Problem) -> None:
        """Let evaluations of another problem count, whose cost is the same at all vectors."""
        self._equivalent.append(problem)

    def _is_same(self, problem: Problem) -> bool:
        return any(same_task(problem, one) for one in self._equivalent)


def same_task(one: Problem, other: Problem) -> bool:
    """Return whether problems of one model have the same cost at the same unknowns."""
    if one.keys != other.keys or one.size != other.size or one.noise != other.noise:
        return False
    if one.priors != other.priors or len(one.conditions) != len(other.conditions):
        return False
    for condition, other_condition in zip(one.conditions, other.conditions, strict=True):
        if condition is other_condition:
            continue
        if (
            condition.name != other_condition.name
            or condition.t0 != other_condition.t0
            or condition.series.keys() != other_condition.series.keys()
        ):
            return False
        if not np.array_equal(condition.times, other_condition.times):
            return False
        for name, series in condition.series.items():
            again = other_condition.series[name]
            pairs = (
                (series.rows, again.rows),
                (series.values, again.values),
                (series.sds, again.sds),
                (series.censored, again.censored),
            )
            if not all(_equal(a, b) for a, b in pairs):
                return False
    return True


def _equal(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


_current: ContextVar[BestSeen | None] = ContextVar("best_seen", default=None)


def best_seen() -> BestSeen | None:
    """Return the recorder of this thread's evaluations, if there is one."""
    return _current.get()


def noting(seen: BestSeen) -> AbstractContextManager[None]:
    """Record all evaluations of this thread within the block."""
    return holding(_current, seen)
