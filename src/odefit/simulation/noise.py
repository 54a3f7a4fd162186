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
class SeriesResiduals:
    """Weighted residuals of one observable in one condition.

    Attributes
    ----------
    predicted
        Predicted values in natural units, shape (n,).
    residuals
        (predicted - measured) / sd on the scale of the noise model, shape (n,).
    sd
        Standard deviations, shape (n,), with derivatives where they depend on unknowns.
    log_density_offset
        Term that the transform of the noise model adds to the log-likelihood.
    """

    predicted: Array
    residuals: Dual
    sd: Dual
    log_density_offset: float


def series_residuals(
    noise: Noise,
    series: Series,
    predicted: Mapping[str, Dual],
    name: str,
    condition: Condition,
    vector: Array,
    estimated: int | None,
) -> SeriesResiduals:
    """Return the weighted residuals of observable `name`.

    Parameters
    ----------
    noise, series
        Noise model and measurements of the observable.
    predicted
        All observables at the condition's times.
    name, condition
        Name of the observable, and the condition it was measured in.
    vector
        Unknowns of the problem, shape (unknowns,).
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
    sd = _standard_deviations(noise, series, predicted, condition, vector, estimated)
    return SeriesResiduals(natural, (model - measured) / sd, sd, offset)


def known_sds(noise: Noise, series: Series) -> Array | None:
    """Return the standard deviations, shape (n,), where they do not depend on unknowns."""
    if series.sds is not None:
        return series.sds
    if noise.relative is not None:
        return np.asarray(noise.relative * np.abs(series.values))
    if noise.sd is None or isinstance(noise.sd, float):
        return np.full(len(series.values), 1.0 if noise.sd is None else noise.sd)
    return None


def _standard_deviations(
    noise: Noise,
    series: Series,
    predicted: Mapping[str, Dual],
    condition: Condition,
    vector: Array,
    estimated: int | None,
) -> Dual:
    """Return the standard deviations of the measurements, with their derivatives, shape (n,)."""
    ones = np.ones(len(series.values))
    if isinstance(noise.sd, Expression) and series.sds is None and noise.relative is None:
        values = {}
        for n in noise.sd.names:
            if n in predicted:
                values[n] = predicted[n].take(series.rows, len(condition.times))
            else:
                values[n] = scalar_value(n, condition.scalars, vector)
        sd: Dual = noise.sd.evaluate(values, DUAL)
        return Dual(sd.value * ones, {k: v * ones for k, v in sd.partials.items()})
    if estimated is not None:
        return Dual(vector[estimated] * ones, {estimated: ones})
    known = known_sds(noise, series)
    return Dual(ones if known is None else known)
