"""Weighted residuals of one observable, with their derivatives, under its noise model.

They are deviance residuals, see :mod:`odefit.simulation.residuals.densities`; for normal noise
these are (predicted - measured) / sd.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import DUAL, Dual
from odefit.expressions.expressions import Expression
from odefit.problem.binding import scalar_value
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem
from odefit.simulation.residuals.counts import LEAST_MEAN, Counts
from odefit.simulation.residuals.densities import Density


@dataclass(frozen=True, eq=False)
class SeriesResiduals:
    """Weighted residuals of one observable in one condition.

    Attributes
    ----------
    predicted
        Predicted values in natural units, shape (n,).
    residuals
        (predicted - measured) / sd on the scale of the noise model, or what stands for it under
        other densities than the normal one, shape (n,).
    sd
        Standard deviations, shape (n,), with derivatives where they depend on unknowns.
    log_density_offset
        Term that the transform of the noise model adds to the log-likelihood.
    pearson
        Residuals whose squares have the expectation one if noise explains them, shape (n,).
    distances
        (predicted - measured) / sd on the scale of the noise model whatever the density, shape
        (n,).
    """

    predicted: Array
    residuals: Dual
    sd: Dual
    log_density_offset: float
    pearson: Array
    distances: Array


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
        All observables at the condition's times, and what else changes in time in expressions of
        standard deviations.
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
        offset = -float(np.sum(log_slopes(noise, series)))
    sd = _standard_deviations(noise, series, predicted, condition, vector, estimated)
    density = density_of(noise, [series])
    difference = model - measured
    if density is None:
        residuals = difference / sd
        plain = residuals.array(len(series.values))
        return SeriesResiduals(natural, residuals, sd, offset, plain, plain)
    n = len(series.values)
    terms = density.terms(model.array(n), measured.array(n), sd.array(n))
    by_unknown = {k: terms.slopes * v for k, v in model.partials.items()}
    if noise.counts:
        sd = _of_counts(sd, model.array(n))
        distances = terms.pearson
    else:
        distances = difference.array(n) / sd.array(n)
        for k, v in sd.partials.items():
            by_unknown[k] = by_unknown.get(k, 0.0) - terms.slopes * distances * v
    return SeriesResiduals(
        natural, Dual(terms.residuals, by_unknown), sd, offset, terms.pearson, distances
    )


def standard_deviations(
    noise: Noise,
    series: Series,
    predicted: Mapping[str, Dual],
    name: str,
    condition: Condition,
    vector: Array,
    estimated: int | None,
) -> Dual:
    """Return the standard deviations of observable `name`, on the scale of its noise.

    The parameters are those of :func:`series_residuals`. Residuals need not be defined: a curve
    may be zero where measurements would be on a logarithmic scale.
    """
    sd = _standard_deviations(noise, series, predicted, condition, vector, estimated)
    if not noise.counts:
        return sd
    return _of_counts(
        sd, predicted[name].take(series.rows, len(condition.times)).array(len(series.values))
    )


def _of_counts(dispersion: Dual, mean: Array) -> Dual:
    """Return the standard deviations of counts, whose variance follows from the mean."""
    a = dispersion.array(len(mean))
    return Dual(np.sqrt(np.maximum(mean, LEAST_MEAN) * (1 + a * mean)))


def names_in_noise(problem: Problem) -> frozenset[str]:
    """Return all names in the expressions of standard deviations, observables aside."""
    spreads = [noise.spread for noise in problem.noise.values()]
    names = {n for spread in spreads if isinstance(spread, Expression) for n in spread.names}
    return frozenset(names - problem.model.observables.keys())


def log_slopes(noise: Noise, series: Series) -> Array:
    """Return the logarithms of 1 / (derivative of the transform) at each measured value.

    Those of censored values are zero: they have a probability, and no density.
    """
    if noise.transform is None:
        return np.zeros(len(series.values))
    base = math.e if noise.transform == "log" else 10.0
    with np.errstate(all="ignore"):
        found = np.log(series.values * math.log(base))
    return found if series.censored is None else np.where(series.censored == 0, found, 0.0)


def density_of(noise: Noise, series: Sequence[Series]) -> Density | None:
    """Return the density of all measurements of some series; None for the normal one."""
    if noise.gaussian and all(s.censored is None for s in series):
        return None
    censored = np.concatenate(
        [np.zeros(len(s.values), np.intp) if s.censored is None else s.censored for s in series]
    )
    limits = np.concatenate([limits_of(noise, s) for s in series], axis=1)
    if noise.transform is not None:
        with np.errstate(all="ignore"):
            limits = np.log(limits) / (1.0 if noise.transform == "log" else math.log(10.0))
        limits = np.where(np.isnan(limits), -math.inf, limits)
    return (Counts if noise.counts else Density)(noise, censored, limits)


def limits_of(noise: Noise, series: Series) -> Array:
    """Return the limits of quantification of each value, shape (2, n).

    Where the problem does not give them, they are those of the values that are censored.
    """
    n = len(series.values)
    found = np.stack([np.full(n, -math.inf), np.full(n, math.inf)])
    for row, code, given in ((0, 1, noise.lower_limit), (1, -1, noise.upper_limit)):
        if series.censored is not None and (series.censored == code).any():
            own = series.censored == code
            values = series.values[own]
            found[row] = values.min() if code > 0 else values.max()
            found[row, own] = values
        elif given is not None:
            found[row] = given
    return found


def known_sds(noise: Noise, series: Series) -> Array | None:
    """Return the standard deviations, shape (n,), where they do not depend on unknowns.

    Those of counts depend on their mean, for which the counts themselves stand here.
    """
    if noise.counts:
        return _standard_deviations_of_counts(noise, series.values)
    return known_scales(noise, series)


def known_scales(noise: Noise, series: Series) -> Array | None:
    """Return the scales of a density, shape (n,), where they do not depend on unknowns.

    They are standard deviations, or the dispersions of counts (zero for Poisson counts).
    """
    if noise.counts:
        scale = 0.0 if noise.distribution == "poisson" else noise.dispersion
        return np.full(len(series.values), scale) if isinstance(scale, float) else None
    if series.sds is not None:
        return series.sds if series.sds_given else None
    if noise.relative is not None:
        return np.asarray(noise.relative * np.abs(series.values))
    if noise.sd is None or isinstance(noise.sd, float):
        return np.full(len(series.values), 1.0 if noise.sd is None else noise.sd)
    return None


def _standard_deviations_of_counts(noise: Noise, counts: Array) -> Array | None:
    dispersion = 0.0 if noise.distribution == "poisson" else noise.dispersion
    if not isinstance(dispersion, float):
        return None
    mean = np.maximum(counts, 1.0)
    return np.asarray(np.sqrt(mean * (1 + dispersion * mean)))


def _standard_deviations(
    noise: Noise,
    series: Series,
    predicted: Mapping[str, Dual],
    condition: Condition,
    vector: Array,
    estimated: int | None,
) -> Dual:
    """Return the scales of the density of the measurements, with their derivatives, shape (n,)."""
    if series.sds is not None and not series.sds_given:
        rest = replace(series, sds=None)
        sd = _standard_deviations(noise, rest, predicted, condition, vector, estimated)
        own = ~np.isnan(series.sds)
        partials = {k: np.where(own, 0.0, v) for k, v in sd.partials.items()}
        return Dual(np.where(own, series.sds, sd.value), partials)
    ones = np.ones(len(series.values))
    spread = noise.spread
    if isinstance(spread, Expression) and series.sds is None and noise.relative is None:
        values = {}
        for n in spread.names:
            if n in predicted:
                values[n] = predicted[n].take(series.rows, len(condition.times))
            else:
                values[n] = scalar_value(n, condition.scalars, vector)
        sd = spread.evaluate(values, DUAL)
        return Dual(sd.value * ones, {k: v * ones for k, v in sd.partials.items()})
    if estimated is not None:
        return Dual(vector[estimated] * ones, {estimated: ones})
    known = known_scales(noise, series)
    return Dual(ones if known is None else known)
