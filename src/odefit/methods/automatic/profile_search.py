"""Searches that follow the profiles of unknowns away from an end.

A best end may have unknowns at bounds, or some that the data do not determine. A lower optimum may
then lie further along the same valley, behind a ridge within the noise. Random starts rarely enter
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.automatic.valleys import highest_within_noise
from odefit.methods.bounded_problem import with_held
from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.scaling import bounds_touched
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import ForwardMap

FACTOR = 2.0  # ratio of successive values of a positive unknown

MOST_VALUES = 8  # largest number of values on one side of an end

COARSE = 1e-3  # relative decrease of the cost below which the others are fitted well enough


@dataclass(frozen=True, eq=False)
class ProfileSearch:
    """One start that follows the profiles of all unknowns within their bounds, to both sides.

    A side ends where the cost rises above the noise. A search begins at each minimum of a profile.
    """

    method: SingleShooting
    end: Start

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the first end that is lower than that of the base, or the latter."""
        base = self.method.run(forward, index, self.end.vector, control)
        tolerance, work = CostTolerance.of(forward), [base]
        for side in self._sides(forward, base, control):
            work += side
            for point in _minima([base, *side]):
                end = self.method.run(forward, index, point.vector, control)
                work.append(end)
                if end.cost < base.cost and not tolerance.same(end, base):
                    return _with_work(end, work)
        return _with_work(base, work)

    def _sides(self, forward: ForwardMap, base: Start, control: Control) -> Iterator[list[Start]]:
        """Yield the fits along each side of each profile, nearest first, up to the first rise."""
        highest = highest_within_noise(forward, base)
        coarse = replace(self.method, tolerance=COARSE)
        for k in np.flatnonzero(~bounds_touched(forward.problem, base.vector)):
            for upwards in (True, False):
                side: list[Start] = []
                last = base
                while len(side) < MOST_VALUES and last.cost <= highest:
                    point = _next(forward.problem, last.vector, int(k), upwards)
                    if point is None or control.should_stop():
                        break
                    held = forward.of(with_held(forward.problem, int(k), point[k]))
                    last = coarse.run(held, base.index, point, control)
                    side.append(last)
                yield side


def _next(problem: Problem, vector: Array, k: int, upwards: bool) -> Array | None:
    """Return a point with the next value of an unknown; None at the bound."""
    point, value = vector.copy(), vector[k]
    if problem.lower[k] >= 0 and value > 0:
        value = value * FACTOR if upwards else value / FACTOR
    else:
        value += sizes_at(problem, vector)[k] * (1.0 if upwards else -1.0)
    point[k] = np.clip(value, problem.lower[k], problem.upper[k])
    return None if point[k] == vector[k] else point


def _minima(path: Sequence[Start]) -> list[Start]:
    """Return the fits of a path below those before and after them; the last one may be at a bound.

    The first one, at which the path begins, does not count.
    """
    costs = [*(start.cost for start in path), math.inf]
    return [path[i] for i in range(1, len(path)) if costs[i - 1] >= costs[i] <= costs[i + 1]]


def _with_work(end: Start, work: Sequence[Start]) -> Start:
    """Return an end with the evaluations and seconds of all searches behind it."""
    return replace(
        end,
        evaluations=sum(start.evaluations for start in work),
        seconds=sum(start.seconds for start in work),
    )
