"""Random measurements from any distribution of the noise model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import displaced
from odefit.simulation.residuals.noise import limits_of
from odefit.simulation.residuals.residual_groups import SeriesResiduals


def random_series(
    noise: Noise, series: Series, block: SeriesResiduals, random: np.random.Generator
) -> Series:
    """Return measurements drawn around the predictions of a series, which they replace.

    Values beyond the limits of quantification are censored there.
    """
    values = random_values(noise, block.predicted, block.sds, random)
    if not noise.law.located:
        return replace(series, values=values)
    sds = series.sds
    if noise.relative is not None and sds is None:
        # The noise is a fraction of the measured values, so it is unchanged.
        sds = noise.relative * np.abs(series.values)
    low, high = limits_of(noise, series)
    censored = np.where(values <= low, 1, np.where(values >= high, -1, 0))
    values = np.clip(values, low, high)
    return Series(series.rows, values, sds, censored if censored.any() else None)


def random_values(noise: Noise, predicted: Array, sds: Array, random: np.random.Generator) -> Array:
    """Return values drawn from the distribution of the noise model, none of them censored.

    `sds` are the standard deviations on the scale of the noise model, shape (n,).
    """
    if not noise.law.located:
        return noise.law.random_values(predicted, sds, random)
    differences = noise.law.standard_values(len(predicted), random) * sds
    return displaced(predicted, differences, noise.transform)
