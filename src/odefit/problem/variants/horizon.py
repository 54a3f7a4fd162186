"""Problems that keep the first part of their measurements alone."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from odefit.problem.condition import Condition
from odefit.problem.problem import Problem


def with_horizon(problem: Problem, fraction: float) -> Problem:
    """Return the problem with those measurements that lie in the first part of each time span.

    Unknowns, bounds, inputs and events stay as they are, so that a vector of unknowns of one
    problem is one of the other.

    Parameters
    ----------
    problem
        The problem with all its measurements.
    fraction
        Length of that part over the time from the initial time to the last measurement, above 0.

    Returns
    -------
    Problem
        The problem with fewer measurements, for searches only: its ``experiments`` still hold all.
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
