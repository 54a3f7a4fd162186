"""The problem with normal noise in place of any other, for searches that know squares alone."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.simulation.noise import known_sds


def normal_approximation(problem: Problem) -> Problem:
    """Return the problem with normal noise of about the same size.

    Losses are left out, counts have the variance that belongs to the count as their mean (without
    the dispersion, where that is estimated), and censored values count as measured at the limit.
    Unknowns stay as they are, so that a vector of unknowns of one problem is one of the other.

    Returns
    -------
    The problem itself if all its noise is normal.
    """
    if all(n.gaussian for n in problem.noise.values()) and not any(
        s.censored is not None for c in problem.conditions for s in c.series.values()
    ):
        return problem
    approximate = copy(problem)
    approximate.noise = {
        name: Noise(noise.sd, noise.relative, noise.transform)
        for name, noise in problem.noise.items()
    }
    approximate.conditions = tuple(_approximate(c, problem) for c in problem.conditions)
    return approximate


def _approximate(condition: Condition, problem: Problem) -> Condition:
    series = {}
    for name, one in condition.series.items():
        noise = problem.noise.get(name, Noise())
        sds = one.sds
        if noise.counts:
            sds = known_sds(noise, one)
            sds = np.sqrt(np.maximum(one.values, 1.0)) if sds is None else sds
        series[name] = replace(one, sds=sds, censored=None)
    return replace(condition, series=series)
