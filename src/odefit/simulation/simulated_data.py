"""Measurements simulated at given unknowns, for the bootstrap and for studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import displaced
from odefit.problem.problem import Problem
from odefit.simulation.engines.failure import Failure
from odefit.simulation.forward import ForwardMap
from odefit.simulation.residuals.random_values import random_series
from odefit.simulation.residuals.residual_groups import SeriesResiduals
from odefit.simulation.trajectories.trajectory import Trajectory

Draw = Callable[[str, int], Array]
"""Returns a number of standardised residuals for the observable of this name."""


def with_simulated_data(
    forward: ForwardMap,
    vector: Array,
    trajectories: Sequence[Trajectory],
    draw: Draw,
    unit_sd: float,
    random: np.random.Generator,
) -> Problem | Failure:
    """Return the problem with measurements simulated by the model at `vector`, with noise.

    Priors are measurements of the unknowns: their means and locations are drawn afresh like all
    others; families without a location do not change.

    Standardised residuals come from `draw`; those of noise that is not normal, or of censored
    values, and the means of priors are drawn with `random`. `unit_sd` is the standard deviation of
    noise that is not given (plain least squares). The problem is for searches only: its
    ``experiments`` still hold the measured data. Returns a failure if the model has no values to
    measure.
    """
    problem = forward.problem
    factor = 1.0 if forward.given_noise else unit_sd
    blocks = forward.series_residuals(vector, trajectories)
    conditions: list[Condition] = []
    for number, condition in enumerate(problem.conditions):
        series = {}
        for name, measured in condition.series.items():
            block = next(blocks)
            if isinstance(block, Failure):
                return block
            noise = problem.noise.get(name, Noise())
            if not noise.gaussian or measured.censored is not None:
                series[name] = random_series(noise, measured, block, random)
                continue
            residuals = factor * draw(name, len(measured.values))
            if (number, name) in forward.correlated:
                residuals = forward.correlated[number, name].correlated(vector, residuals)
            series[name] = _simulated(noise, measured, block, residuals)
        conditions.append(replace(condition, series=series))
    other = copy(problem)
    other.conditions = tuple(conditions)
    other.unknowns = tuple(
        u
        if (prior := u.parameter.prior) is None
        else replace(
            u,
            parameter=replace(
                u.parameter,
                prior=prior.drawn(float(vector[i]), random),
            ),
        )
        for i, u in enumerate(problem.unknowns)
    )
    return other


def _simulated(noise: Noise, series: Series, block: SeriesResiduals, residuals: Array) -> Series:
    values = displaced(block.predicted, residuals * block.sds, noise.transform)
    if noise.relative is not None and series.sds is None:
        # The noise is a fraction of the measured values, so it is unchanged.
        return Series(series.rows, values, noise.relative * np.abs(series.values))
    return Series(series.rows, values, series.sds)
