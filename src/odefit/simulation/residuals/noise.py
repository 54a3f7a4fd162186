"""The noise of measured series: their densities, spreads and standard deviations.

A series has the distribution of its noise model on the scale of the transform, and values beyond
its limits of quantification are censored. The *spread* is the parameter of the scatter: a standard
deviation, or the dispersion of counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.expressions.algebras import NUMPY, Dual
from odefit.expressions.expressions import Expression
from odefit.problem.binding import scalar_value
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.distribution import NoiseDistribution, Terms
from odefit.problem.noise_distributions.normal import (
    censored_expectations,
    censored_information,
    censored_terms,
)
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Density:
    """The density of some measurements, on the scale of the transform.

    `censored` is that of :class:`~odefit.problem.condition.Series`, shape (n,); `limits` are those
    of quantification, shape (2, n), infinite without one.
    """

    law: NoiseDistribution
    spread_is_fixed: bool
    censored: IntArray
    limits: Array

    def terms(self, predicted: Array, measured: Array, spread: Array) -> Terms:
        """Return the contributions of the measurements to the likelihood."""
        terms = self.law.terms(predicted, measured, spread)
        if not self.censored.any():
            return terms
        beyond = censored_terms((predicted - measured) / spread, spread, self.censored)
        is_measured = self.censored == 0
        return Terms(
            *(
                np.where(is_measured, getattr(terms, field.name), getattr(beyond, field.name))
                for field in fields(Terms)
            )
        )

    def information(self, predicted: Array, spread: Array) -> Array:
        """Return the Fisher information, see :meth:`NoiseDistribution.information`."""
        if np.isfinite(self.limits).any():
            return censored_information(predicted, spread, self.limits)
        return self.law.information(predicted, spread, self.spread_is_fixed)

    def expected_residuals(self, predicted: Array, spread: Array) -> Array:
        """Return the expectations of the deviance residuals, shape (n,)."""
        if np.isfinite(self.limits).any():
            return censored_expectations(predicted, spread, self.limits)
        return self.law.expected_residuals(predicted, spread)


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
            limits = np.log(limits) / log_of_base(noise.transform)
        limits = np.where(np.isnan(limits), -math.inf, limits)
    return Density(noise.law, isinstance(noise.spread, float), censored, limits)


def limits_of(noise: Noise, series: Series) -> Array:
    """Return the limits of quantification of each value, shape (2, n).

    If the problem does not give them, they are those of the censored values.
    """
    n = len(series.values)
    limits = np.stack([np.full(n, -math.inf), np.full(n, math.inf)])
    for row, code, limit in ((0, 1, noise.lower_limit), (1, -1, noise.upper_limit)):
        if series.censored is not None and (series.censored == code).any():
            beyond = series.censored == code
            values = series.values[beyond]
            limits[row] = values.min() if code > 0 else values.max()
            limits[row, beyond] = values
        elif limit is not None:
            limits[row] = limit
    return limits


def log_slopes(noise: Noise, series: Series) -> Array:
    """Return the logarithms of 1 / (derivative of the transform) at each measured value.

    They are zero for censored values, which have a probability instead of a density.
    """
    if noise.transform is None:
        return np.zeros(len(series.values))
    with np.errstate(all="ignore"):
        slopes = np.log(series.values * log_of_base(noise.transform))
    return slopes if series.censored is None else np.where(series.censored == 0, slopes, 0.0)


def names_in_noise(problem: Problem) -> frozenset[str]:
    """Return all names except observables in the expressions of standard deviations."""
    spreads = [noise.spread for noise in problem.noise.values()]
    names = {n for spread in spreads if isinstance(spread, Expression) for n in spread.names}
    return frozenset(names - problem.model.observables.keys())


# Spreads and standard deviations ------------------------------------------------------------------


def known_spreads(noise: Noise, series: Series) -> Array | None:
    """Return the spreads of a series, shape (n,), if they do not depend on unknowns.

    They are zero for a distribution without a spread.
    """
    if not noise.law.located:
        spread = noise.spread if noise.law.has_spread else 0.0
        return np.full(len(series.values), spread) if isinstance(spread, float) else None
    if series.sds is not None:
        return series.sds if series.sds_given else None
    if noise.relative is not None:
        return np.asarray(noise.relative * np.abs(series.values))
    if noise.sd is None or isinstance(noise.sd, float):
        return np.full(len(series.values), 1.0 if noise.sd is None else noise.sd)
    return None


def known_sds(noise: Noise, series: Series) -> Array | None:
    """Return the standard deviations, shape (n,), if they do not depend on unknowns."""
    spreads = known_spreads(noise, series)
    return None if spreads is None else sds_about(noise, series, spreads)


def sds_about(noise: Noise, series: Series, spreads: Array) -> Array:
    """Return the standard deviations for given spreads, with measured values as means.

    Those of counts depend on their mean, which the counts themselves replace here.
    """
    mean = np.maximum(series.values, 1.0) if noise.law.counts else series.values
    return noise.law.sds(mean, spreads)


def standard_deviations(
    noise: Noise,
    series: Series,
    predicted: Mapping[str, Dual],
    name: str,
    condition: Condition,
    vector: Array,
    estimated: int | None,
) -> Array:
    """Return the standard deviations of observable `name`, on the scale of its noise, shape (n,).

    Residuals need not be defined: a curve may be zero where measurements would be on a logarithmic
    scale. `predicted` holds all observables at the condition's times, and other time-dependent
    quantities in expressions of spreads; `estimated` is the index of an unknown spread.
    """
    n, times = len(series.values), len(condition.times)
    stated = None if series.sds is None or series.sds_given else series.sds
    spreads = known_spreads(noise, series if stated is None else replace(series, sds=None))
    if spreads is None and isinstance(noise.spread, Expression):
        values = {
            other: predicted[other].array(times)[series.rows]
            if other in predicted
            else scalar_value(other, condition.scalars, vector).value
            for other in noise.spread.names
        }
        spreads = np.broadcast_to(noise.spread.evaluate(values, NUMPY), n)
    elif spreads is None:
        spreads = np.full(n, 1.0 if estimated is None else vector[estimated])
    if stated is not None:
        spreads = np.where(np.isnan(stated), spreads, stated)
    return noise.law.sds(predicted[name].array(times)[series.rows], spreads)
