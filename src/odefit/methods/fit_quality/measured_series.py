"""The residuals of each measured series, in units of its noise and of its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class MeasuredSeries:
    """A series beside the predictions of an answer; arrays have the shape (n,)."""

    condition: int
    observable: str
    series: Series
    noise: Noise
    times: Array
    residuals: Array
    """Pearson residuals, whose squares have the expectation one if noise explains them."""
    sds: Array
    """Standard deviations of the answer, on the scale of the noise model."""

    @property
    def values(self) -> Array:
        """Measured values on the scale of the noise model."""
        with np.errstate(all="ignore"):
            return transformed(self.series.values, self.noise.transform)

    @property
    def deviations(self) -> Array:
        """Predictions minus measurements on that scale, truncated if the loss limits them."""
        return self.residuals * self.sds


def measured_series(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]
) -> list[MeasuredSeries] | None:
    """Return all series at an answer of shape (n,); None if residuals cannot be computed."""
    problem = forward.problem
    blocks = forward.series_residuals(vector, trajectories)
    all_series = []
    for number, condition in enumerate(problem.conditions):
        for name, series in condition.series.items():
            block = next(blocks)
            if isinstance(block, Failure):
                return None
            noise, times = problem.noise.get(name, Noise()), condition.times[series.rows]
            all_series.append(
                MeasuredSeries(
                    condition=number,
                    observable=name,
                    series=series,
                    noise=noise,
                    times=times,
                    residuals=block.pearson,
                    sds=block.sds,
                )
            )
    return all_series


def share_left(one: MeasuredSeries) -> float:
    """Return the sum of squared residuals of a series over that of its values about their mean."""
    total = float(np.sum((one.values - one.values.mean()) ** 2))
    return float(np.sum(one.deviations**2)) / total if total > 0 else 0.0
