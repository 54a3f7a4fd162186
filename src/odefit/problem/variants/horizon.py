"""Problems that keep the first part of their measurements alone."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from odefit.problem.condition import Condition
from odefit.problem.problem import Problem


def with_horizon(problem: Problem, fraction: float) -> Problem:
    """Return the problem with those measurements that lie in the first part of each time span.

    `fraction` is the length of that part over the time from the initial time to the last
    measurement. Unknowns, bounds, inputs and events stay, so that vectors of unknowns serve both
    problems. The problem is for searches only: its ``experiments`` still hold all measurements.
    """
    shorter = copy(problem)
    shorter.conditions = tuple(_with_horizon(c, fraction) for c in problem.conditions)
    return shorter


def _with_horizon(condition: Condition, fraction: float) -> Condition:
    if fraction >= 1.0:
        return condition
    end = condition.t0 + fraction * (condition.end - condition.t0)
    # A condition keeps its first time, since one without any has no trajectory.
    count = max(int(np.searchsorted(condition.times, end, side="right")), 1)
    series = {}
    for name, one in condition.series.items():
        inside = one.rows < count
        if inside.any():
            series[name] = one.part(inside)
    return replace(condition, times=condition.times[:count], series=series)
