"""Weighted residuals of one observable, with their derivatives, under its noise model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from odefit.problem.algebras import DUAL, Dual
from odefit.problem.arrays import Array
from odefit.problem.binding import scalar_value
from odefit.problem.condition import Condition, Series
from odefit.problem.expressions import Expression
from odefit.problem.noise import Noise


@dataclass(frozen=True, eq=False)
class Block:
    """Residuals of one observable in one condition.

    Attributes
    ----------
    predicted
        In natural units, shape (n,).
    residuals
        (predicted - measured) / sd on the scale of the noise model, shape (n,).
    sd
        Standard deviations, shape (n,), with derivatives where they depend on unknowns.
    log_density_offset
        What the log-likelihood has beside the squares and the sds: the scale of a transform.
    """

    predicted: Array
    residuals: Dual
    sd: Dual
    log_density_offset: float


def weigh(
    noise: Noise,
    series: Series,
    predicted: Mapping[str, Dual],
    name: str,
    condition: Condition,
    vector: Array,
    estimated: int | None,
) -> Block:
    """Residuals of observable `name`.

    Parameters
    ----------
    noise, series
        Its noise model and measurements.
    predicted
        All observables at the condition's times.
    estimated
        Index of the unknown standard deviation, where it is estimated.
    """
    model = predicted[name].take(series.rows, len(condition.times))
    natural = np.asarray(model.value)
    measured = Dual(series.values)
    offset = 0.0
    if noise.transform is not None:
        model = DUAL.call(noise.transform, [model])
        measured = DUAL.call(noise.transform, [measured])
        base = math.e if noise.transform == "log" else 10.0
        offset = -float(np.sum(np.log(series.values * math.log(base))))
    sd = _sd(noise, series, predicted, condition, vector, estimated)
    return Block(natural, (model - measured) / sd, sd, offset)


def _sd(
    noise: Noise,
    series: Series,
    predicted: Mapping[str, Dual],
    condition: Condition,
    vector: Array,
    estimated: int | None,
) -> Dual:
    ones = np.ones(len(series.values))
    if series.sds is not None:
        return Dual(series.sds)
    if noise.relative is not None:
        return Dual(noise.relative * np.abs(series.values))
    if estimated is not None:
        return Dual(vector[estimated] * ones, {estimated: ones})
    if isinstance(noise.sd, Expression):
        values = {}
        for n in noise.sd.names:
            if n in predicted:
                values[n] = predicted[n].take(series.rows, len(condition.times))
            else:
                values[n] = scalar_value(n, condition.scalars, vector)
        sd: Dual = noise.sd.evaluate(values, DUAL)
        return Dual(sd.value * ones, {k: v * ones for k, v in sd.partials.items()})
    return Dual(ones * (noise.sd if isinstance(noise.sd, float) else 1.0))
