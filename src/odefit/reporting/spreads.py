"""Standard deviations of measurements, as the bars of figures show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import TIME, Expression
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import Transform, displaced
from odefit.problem.problem import Problem
from odefit.simulation.residuals.noise import known_sds, sds_about


def standard_deviations(
    problem: Problem,
    condition: Condition,
    observable: str,
    vector: Array,
    predicted: Mapping[str, Array],
) -> Array | None:
    """Return the standard deviations of measurements on the scale of the transform, shape (n,).

    None means that they are not known. ``predicted`` holds the observables and states at the
    condition's times, for standard deviations that depend on them.
    """
    series: Series = condition.series[observable]
    noise = problem.noise.get(observable, Noise())
    if series.sds is None and not noise.known:
        return None
    known = known_sds(noise, series)
    if known is not None:
        return known
    if series.sds is not None:
        rest = {**condition.series, observable: replace(series, sds=None)}
        of_noise = standard_deviations(
            problem, replace(condition, series=rest), observable, vector, predicted
        )
        if of_noise is None:
            return None
        return np.where(np.isnan(series.sds), of_noise, series.sds)
    if not isinstance(noise.spread, Expression):
        unknown = dict(zip(problem.keys, vector, strict=True)).get(noise.unknown(observable))
        if unknown is None:
            return None
        return sds_about(noise, series, np.full(len(series.values), unknown))
    with np.errstate(all="ignore"):
        values: dict[str, Array | float] = {}
        for name in noise.spread.names:
            if name in condition.scalars:
                bound = condition.scalars[name]
                values[name] = bound_value(bound, condition.scalars, list(vector), NUMPY)
            elif name in predicted:
                values[name] = predicted[name][series.rows]
            elif name == TIME or name in condition.inputs:
                times = condition.times[series.rows]
                values[name] = times if name == TIME else condition.inputs[name](times)
            else:
                return None
        sds = np.broadcast_to(noise.spread.evaluate(values, NUMPY), series.values.shape)
        return sds_about(noise, series, np.array(sds, dtype=float))


def ends(values: Array, sds: Array, transform: Transform | None) -> Array:
    """Return the lower and upper ends of bars of one standard deviation, shape (2, n)."""
    return np.stack([displaced(values, -sds, transform), displaced(values, sds, transform)])
