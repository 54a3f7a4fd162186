"""What is drawn of a fit: measurements with their spread, and the model as a smooth line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from odefit.problem.algebras import NUMPY
from odefit.problem.arrays import Array
from odefit.problem.condition import Condition, Series
from odefit.problem.expressions import Expression
from odefit.problem.noise import Noise, Transform
from odefit.problem.problem import Problem

if TYPE_CHECKING:
    from odefit.result_data import ResultData
    from odefit.simulation import ForwardMap

POINTS = 240
"""Of a smooth line: finer than a panel's pixels need."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One observable of one experiment.

    Attributes
    ----------
    experiment, observable
        Their names.
    times, measured
        The measurements, shape (n,).
    spread
        One standard deviation around the measurements: their lower and upper ends, shape
        (2, n); None where the noise is not known.
    model_times, model
        The fitted model, shape (m,); empty without a solution.
    failure
        Why there is no model; empty if there is one.
    events
        Times at which something happens.
    transform
        The scale on which residuals are taken.
    log_time
        Do the times spread over decades?
    time_unit
        For the label.
    """

    experiment: str
    observable: str
    times: Array
    measured: Array
    spread: Array | None
    model_times: Array
    model: Array
    failure: str
    events: tuple[float, ...]
    transform: Transform | None
    log_time: bool
    time_unit: str


def fit_curves(result: ResultData, experiment: str | None = None) -> Iterator[Curve]:
    """A curve for everything measured, experiment by experiment (or of one alone)."""
    problem = result.problem
    conditions = problem.conditions if experiment is None else (problem.condition(experiment),)
    forward = None
    if result.solutions:
        from odefit.simulation import ForwardMap

        forward = ForwardMap(problem, nodes=result.best.nodes)  # compiled once for all experiments
    for condition in conditions:
        yield from _condition_curves(result, condition, forward)


def _condition_curves(
    result: ResultData, condition: Condition, forward: ForwardMap | None
) -> Iterator[Curve]:
    from odefit.simulation import Failure, simulate

    problem = result.problem
    events = tuple(sorted({time for time, _ in condition.events}))
    log_time = spreads_over_decades(condition.times)
    grid = fine_times(condition, log_time)
    model: Mapping[str, Array] = {}
    at_data: Mapping[str, Array] = {}
    failure = ""
    if not result.solutions:
        failure = "no solution was found"
    else:
        vector = result.best.vector
        line = simulate(problem, vector, times=grid, experiment=condition.name, forward=forward)
        if isinstance(line, Failure):
            failure = f"the simulation failed at t = {line.time:.4g}: {line.reason}"
        else:
            model = line.observables
        points = simulate(problem, vector, experiment=condition.name, forward=forward)
        if not isinstance(points, Failure):
            at_data = points.observables
    for name, series in condition.series.items():
        noise = problem.noise.get(name, Noise())
        sds = None
        if result.solutions:
            sds = standard_deviations(problem, condition, name, result.best.vector, at_data)
        elif series.sds is not None:
            sds = series.sds
        yield Curve(
            experiment=condition.name,
            observable=name,
            times=condition.times[series.rows],
            measured=series.values,
            spread=None if sds is None else ends(series.values, sds, noise.transform),
            model_times=grid if name in model else np.zeros(0),
            model=model.get(name, np.zeros(0)),
            failure=failure,
            events=events,
            transform=noise.transform,
            log_time=log_time,
            time_unit=problem.time_unit,
        )


def spreads_over_decades(times: Array) -> bool:
    """Were the measurements taken at times that grow by factors rather than by steps?"""
    positive = times[times > 0]
    if len(positive) < 5 or len(times) - len(positive) > 1:
        return False
    return bool(positive[-1] > 1000 * positive[0] and np.median(positive) < 0.1 * positive[-1])


def fine_times(condition: Condition, log_time: bool = False) -> Array:
    """Times of a smooth line from t0 to the last measurement, just before and after events."""
    start, stop = condition.t0, float(condition.times[-1])
    if stop <= start:
        return np.array([start])
    if log_time:
        first = condition.times[condition.times > 0][0]
        grid = np.geomspace(first, stop, POINTS)
        grid[0], grid[-1] = first, stop  # geomspace may miss its ends by a rounding
    else:
        grid = np.linspace(start, stop, POINTS)
    at = np.array([time for time, _ in condition.events], dtype=float)
    after = at + 1e-9 * (stop - start)  # at the event itself, the value before it is seen
    extra = np.concatenate([at, after, condition.times])
    kept = extra[(extra >= grid[0]) & (extra <= stop)]
    return np.unique(np.concatenate([grid, kept]))


def standard_deviations(
    problem: Problem,
    condition: Condition,
    observable: str,
    vector: Array,
    predicted: Mapping[str, Array],
) -> Array | None:
    """Of the measurements, shape (n,), on the scale of the transform; None if not known.

    Parameters
    ----------
    problem, condition, observable
        Whose measurements.
    vector
        Unknowns, shape (unknowns,).
    predicted
        Observables at the condition's times, for an sd that depends on them.
    """
    series: Series = condition.series[observable]
    noise = problem.noise.get(observable, Noise())
    if series.sds is not None:
        return series.sds
    if noise.relative is not None:
        return np.abs(noise.relative * series.values)
    if noise.sd is None:
        return None
    if noise.sd == "estimate":
        keys = [u.key for u in problem.unknowns if u.kind == "noise"]
        key = f"{observable}_sd"
        if key not in keys:
            return None
        return np.full(len(series.values), vector[problem.keys.index(key)])
    if not isinstance(noise.sd, Expression):
        return np.full(len(series.values), float(noise.sd))
    with np.errstate(all="ignore"):
        values: dict[str, Array | float] = {}
        for name in noise.sd.names:
            if name in condition.scalars:
                values[name] = scalar(condition, name, vector)
            elif name in predicted:
                values[name] = predicted[name][series.rows]
            else:
                return None
        found = np.broadcast_to(noise.sd.evaluate(values, NUMPY), series.values.shape)
    return np.array(found, dtype=float)


def scalar(condition: Condition, name: str, vector: Array) -> float:
    """Value of a parameter or constant of `condition`."""
    bound = condition.scalars[name]
    if isinstance(bound, Expression):
        values = {n: scalar(condition, n, vector) for n in bound.names}
        return float(bound.evaluate(values, NUMPY))
    return bound if isinstance(bound, float) else float(vector[bound])


def ends(values: Array, sds: Array, transform: Transform | None) -> Array:
    """Lower and upper ends of one standard deviation, shape (2, n)."""
    if transform is None:
        return np.stack([values - sds, values + sds])
    base = np.e if transform == "log" else 10.0
    return np.stack([values * base**-sds, values * base**sds])
