"""The residuals of an answer for figures, with the measurements and predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.calendars import Calendar, calendar_of
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import Transform
from odefit.result_data import ResultData
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.other_integrations import able_to_integrate
from odefit.simulation.residuals.quantile_residuals import quantile_residuals
from odefit.simulation.simulations import residuals_by

LAGS = 20
"""Largest lag of the autocorrelation, in measurements."""

FEW = 20
"""The number of residuals below which observables share the panel of their distribution."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of one observable in one experiment, shape (n,).

    `values` are measured minus modelled, in standard deviations where these are known. They are
    deviance residuals for counts and losses, differences of logarithms for log-normal noise, and
    innovations for noise that is correlated in time. `normal` are quantile residuals, standard
    normal if model and noise are right; without known noise they are scaled by the residuals'
    standard deviation. `censored` is 1 where the true value is below, and -1 where it is above, the
    limit in `measured`. `plain` is true if both kinds of residuals differ only in scale.
    """

    experiment: str
    observable: str
    times: Array
    measured: Array
    predicted: Array
    values: Array
    normal: Array
    censored: IntArray
    plain: bool = True
    transform: Transform | None = None
    calendar: Calendar | None = None


def residuals_of(result: ResultData, forward: ForwardMap | None = None) -> list[Residuals]:
    """Return the residuals of the best solution, or an empty tuple if it cannot be simulated.

    ``forward`` is the map that integrates it, if there is one. The result's seed decides the random
    quantiles of counts and censored values.
    """
    if not result.solutions:
        return []
    best, problem = result.best, result.problem
    if forward is None:
        forward = able_to_integrate(problem, best.vector, best.nodes)
    table = residuals_by(forward, best.vector)
    if isinstance(table, Failure):
        return []
    unit = 1.0
    if not forward.given_noise:
        unit = math.sqrt(result.uncertainty.variance) if result.uncertainty is not None else 1.0
        every = np.concatenate([entry.standardized for entry in table])
        unit = unit if unit > 0 and math.isfinite(unit) else float(np.std(every)) or 1.0
    random = np.random.default_rng(result.seed)
    residuals = []
    for entry in table:
        condition = problem.condition(entry.experiment)
        series = condition.series[entry.observable]
        noise = problem.noise.get(entry.observable, Noise())
        none = np.zeros(len(entry.times), dtype=np.intp)
        residuals.append(
            Residuals(
                entry.experiment,
                entry.observable,
                entry.times,
                entry.measured,
                entry.predicted,
                # The optimiser uses the opposite sign.
                -entry.standardized,
                quantile_residuals(
                    noise, series, entry.predicted, entry.standardized, entry.sds, random
                )
                / unit,
                none if series.censored is None else series.censored,
                noise.gaussian and series.censored is None,
                noise.transform,
                calendar_of(problem, condition),
            )
        )
    return residuals


def by_observable(residuals: Sequence[Residuals]) -> dict[str, list[Residuals]]:
    """Group residuals by observable."""
    groups: dict[str, list[Residuals]] = {}
    for entry in residuals:
        groups.setdefault(entry.observable, []).append(entry)
    return groups


def few_together(groups: Mapping[str, Sequence[Residuals]]) -> dict[str, list[Residuals]]:
    """Return residuals by the panels that show their distribution.

    The distribution of a few residuals shows nothing, so observables with fewer than
    :data:`FEW` values share a panel.
    """
    few = [name for name in groups if sum(len(e.values) for e in groups[name]) < FEW]
    if len(few) < 2:
        return {name: list(entries) for name, entries in groups.items()}
    shared = [entry for name in few for entry in groups[name]]
    others = {name: list(entries) for name, entries in groups.items() if name not in few}
    return {**others, "others, together" if others else "all observables": shared}


def autocorrelation(entries: Sequence[Residuals], lags: int = LAGS) -> tuple[Array, int]:
    """Return the autocorrelation of residuals at the distances 1, 2, ..., and their number.

    Distances count measured times of the same experiment; experiments are pooled, replicates at one
    time averaged, and infinite times left out. If all residuals are zero, it is empty.
    """
    series = []
    for entry in entries:
        finite = np.isfinite(entry.normal) & np.isfinite(entry.times)
        times, place, counts = np.unique(
            entry.times[finite], return_inverse=True, return_counts=True
        )
        sums = np.bincount(place, entry.normal[finite], len(times))
        series.append(sums / np.sqrt(counts))  # independent residuals have a variance of one
    count = sum(len(one) for one in series)
    longest = max((len(one) for one in series), default=0)
    if count < 3 or longest < 2:
        return np.zeros(0), count
    mean = float(np.concatenate(series).mean())
    centred = [one - mean for one in series]
    square = sum(float(one @ one) for one in centred)
    if not square > 0:
        return np.zeros(0), count
    most = min(lags, longest - 1, max(count // 2, 1))
    correlations = [
        sum(float(one[lag:] @ one[:-lag]) for one in centred if len(one) > lag) / square
        for lag in range(1, most + 1)
    ]
    return np.array(correlations), count


def normal_quantiles(values: Array) -> tuple[Array, Array]:
    """Return the expected standard normal quantiles, and the finite values, both sorted.

    The quantiles are those of G. Blom, Statistical Estimates and Transformed Beta-Variables, 1958.
    """
    from scipy.special import ndtri

    ordered = np.sort(values[np.isfinite(values)])
    places = (np.arange(1, len(ordered) + 1) - 0.375) / (len(ordered) + 0.25)
    return np.asarray(ndtri(places)), ordered


def quantile_band(count: int, level: float = 0.95, places: IntArray | None = None) -> Array:
    """Return the limits of sorted normal values, shape (2, k), all of them or those at `places`.

    The rank of each of the `count` values has the beta distribution of an order statistic.
    """
    from scipy.special import betaincinv, ndtri

    rank = 1 + (np.arange(count) if places is None else places)
    tails = np.array([0.5 - level / 2, 0.5 + level / 2])[:, None]
    return np.asarray(ndtri(betaincinv(rank, count + 1 - rank, tails)))
