"""The problem with normal noise in place of any other, for searches that only use squares."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.simulation.residuals.noise import known_sds


def normal_approximation(problem: Problem) -> Problem:
    """Return the problem with normal noise of about the same size, and with normal priors.

    Losses and correlations are dropped, and censored values are treated as measured at the limit.
    Counts have the variance for the count as mean (without the dispersion, if that is estimated). A
    prior of another family becomes a normal one of about the same location and width. Unknowns do
    not change, so that both problems accept the same vectors.

    Returns
    -------
    The problem itself if all its noise is normal, and its priors.
    """
    if all(p.gaussian for p in problem.priors.values()):
        return _with_normal_noise(problem)
    approximate = copy(_with_normal_noise(problem))
    approximate.unknowns = tuple(
        u
        if u.parameter.prior is None
        else replace(u, parameter=replace(u.parameter, prior=u.parameter.prior.normal()))
        for u in problem.unknowns
    )
    return approximate


def _with_normal_noise(problem: Problem) -> Problem:
    plain = all(n.gaussian and n.correlation is None for n in problem.noise.values())
    if plain and not any(
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
        if not noise.law.located:
            sds = known_sds(noise, one)
            sds = np.sqrt(np.maximum(one.values, 1.0)) if sds is None else sds
        series[name] = replace(one, sds=sds, censored=None)
    return replace(condition, series=series)
