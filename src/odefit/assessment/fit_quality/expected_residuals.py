"""The mean that residuals have under the fitted model.

Deviance residuals of counts and of values that may be censored have a mean other than zero even
where the model is right. A statistic that asks whether residuals are noise takes it off first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.residuals.noise import density_of
from odefit.simulation.trajectories.trajectory import Trajectory


def expected_residuals(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory], count: int
) -> Array:
    """Return the expectations of all `count` residuals, with the sign of prediction less value.

    Those of rows that are no measurements are zero.
    """
    expected = np.zeros(count)
    if forward.gaussian:
        return expected
    blocks = forward.series_residuals(vector, trajectories)
    for condition in forward.problem.conditions:
        for name, series in condition.series.items():
            block = next(blocks)
            noise = forward.problem.noise.get(name, Noise())
            density = density_of(noise, [series])
            if density is not None and not isinstance(block, Failure):
                spreads = noise.law.spreads(block.predicted, block.sds)
                predicted = transformed(block.predicted, noise.transform)
                expected[block.rows] = density.expected_residuals(predicted, spreads)
    return expected
