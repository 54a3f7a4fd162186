"""The mean that residuals have under the fitted model.

Deviance residuals of counts and of values that may be censored have a mean other than zero even
where the model is right. A statistic that asks whether residuals are noise takes it off first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.residuals.counts import LEAST_MEAN
from odefit.simulation.residuals.noise import SeriesResiduals, density_of
from odefit.simulation.trajectories.trajectory import Trajectory


def expected_residuals(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory], count: int
) -> Array:
    """Return the expectations of all residuals, those of rows that are no measurements zero.

    Parameters
    ----------
    forward, vector
        The problem and the values of its unknowns, shape (n,).
    trajectories
        Trajectories of all conditions, at their data times.
    count
        Number of residuals.

    Returns
    -------
    Shape (count,), with the sign of prediction less measurement.
    """
    expected = np.zeros(count)
    if forward.gaussian:
        return expected
    blocks = forward.series_residuals(vector, trajectories)
    rows = iter(forward.series_rows)
    for condition in forward.problem.conditions:
        for name, series in condition.series.items():
            block = next(blocks)
            noise = forward.problem.noise.get(name, Noise())
            own = np.zeros(len(series.values))
            if not isinstance(block, Failure):
                own = _of_series(noise, series, block)
            # Values with standard deviations of their own and those without have their rows apart.
            numbered = replace(series, values=np.arange(float(len(own))))
            for part in numbered.by_source_of_sds():
                expected[next(rows).rows] = own[part.values.astype(int)]
    return expected


def _of_series(noise: Noise, series: Series, block: SeriesResiduals) -> Array:
    density = density_of(noise, [series])
    n = len(series.values)
    if density is None:
        return np.zeros(n)
    predicted, scale = block.predicted * np.ones(n), block.sd.array(n)
    if noise.counts:  # their variance is m + a m^2
        mean = np.maximum(predicted, LEAST_MEAN)
        scale = np.maximum(scale**2 - mean, 0.0) / mean**2
    elif noise.transform is not None:
        predicted = np.log(predicted) / (1.0 if noise.transform == "log" else math.log(10.0))
    return density.expected_residuals(predicted, scale)
