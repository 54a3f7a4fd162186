"""Curves of a fit: measurements with their spread, and the model as a smooth line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odefit.assessment.predictions.bands import Band, BandSource
from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.errors import InputError
from odefit.problem.calendars import Calendar, as_times, calendar_of, equal_times
from odefit.problem.condition import Condition, Series
from odefit.problem.inputs.cells import plain_number
from odefit.problem.inputs.dates import moment
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import Transform
from odefit.problem.problem import Problem
from odefit.reporting.driving import event_times
from odefit.reporting.spreads import ends, standard_deviations
from odefit.result_data import ResultData
from odefit.simulation import Failure, ForwardMap, simulated
from odefit.simulation.other_integrations import able_to_integrate

DENSE = 2000
"""Smallest number of points for which a panel shows their density."""

LINE_POINTS = 240
"""Number of points of a smooth line, enough for the pixels of a panel."""

SEEN_COLUMNS = 300
"""Number of columns of a panel. Of a line with many points, each column shows the first, the last,
the lowest and the highest."""

SEEN_ROWS = 60
"""Number of rows of cells in which a panel shows separate measurements."""

FEWEST_SUMS = 5
"""Smallest number of measurements for which a sum with resets is drawn only at its resets."""

SHARE_SET_BACK = 0.8
"""Smallest share of measurements at resets for which a sum is drawn only there."""

SET_BACK = 1e-6
"""A value after an event counts as zero below this fraction of the value before it."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The measurements of one observable in one experiment, shape (n,), and the model beside them.

    ``spread``, shape (2, n), is one standard deviation around the measurements, None where the
    noise is not known. The model and ``band`` are given at the model's own times, shape (m,).
    Without a solution there is no model, and ``failure`` has the reason. ``infinity`` is the place
    of t = inf on the axis, for measurements of the steady state and the last point of the model.
    ``no_band`` is the reason for a missing band. With a ``calendar`` the axis of time shows dates.
    ``others``, shape (k, m), are the curves of other solutions that fit. ``until`` is the last time
    of curves that extend beyond the measurements.
    ``argument`` is the name and the unit of the state on which an estimated function depends, whose
    values are then in place of times.
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
    band: Band | None = None
    validation: tuple[Array, Array] | None = None
    censored: IntArray | None = None
    infinity: float | None = None
    no_band: str = ""
    calendar: Calendar | None = None
    others: Array = field(default_factory=lambda: np.zeros((0, 0)))
    unit: str = ""
    until: float | None = None
    argument: tuple[str, str] | None = None

    @property
    def dense(self) -> bool:
        """True where there are so many measurements that the figure shows their density."""
        return len(self.times) > DENSE


def last_time(problem: Problem, until: Any, experiment: str | None = None) -> float:
    """Return the time, a number or a date, to which curves of experiments extend.

    Raises InputError for anything else, and for a date that differs between the experiments.
    """
    number = plain_number(until) if isinstance(until, str) else until
    if isinstance(number, int | float) and not isinstance(number, bool) and np.isfinite(number):
        return float(number)
    if moment(until) is None:
        raise InputError(
            "until: expected a time, as a finite number, or a date such as 2024-01-31, got "
            f"{until!r}"
        )
    chosen = problem.conditions if experiment is None else (problem.condition(experiment),)
    try:
        ends = [as_times(until, problem, condition) for condition in chosen]
    except InputError as error:
        raise InputError(f"until: {str(error).removeprefix('times: ')}") from error
    remedy = "give a number, or draw one experiment"
    return float(equal_times(ends, f"until: {until}", remedy)[0])


def fit_curves(
    result: ResultData,
    experiment: str | None = None,
    bands: BandSource | None = None,
    level: float = 0.95,
    validation: Mapping[tuple[str, str], tuple[Array, Array]] | None = None,
    observables: Collection[str] | None = None,
    forward: ForwardMap | None = None,
    until: float | None = None,
) -> Iterator[Curve]:
    """Yield a curve for each measured observable of every experiment, or of one experiment.

    ``bands`` makes bands at ``level``; ``validation`` has times and values that were not fitted, by
    experiment and observable. With ``observables`` given, only these are drawn. ``forward``
    integrates the best solution. Curves extend to the time ``until`` if that is later than the
    measurements.
    """
    problem = result.problem
    conditions = problem.conditions if experiment is None else (problem.condition(experiment),)
    if result.solutions and forward is None:
        # It is compiled once for all experiments.
        forward = able_to_integrate(problem, result.best.vector, result.best.nodes)
    apart = validation or {}
    for condition in conditions:
        validation_series = {o: series for (e, o), series in apart.items() if e == condition.name}
        names = [
            n
            for n in {**condition.series, **validation_series}
            if observables is None or n in observables
        ]
        for curve in _condition_curves(
            result, condition, forward, bands, level, validation_series, names, until
        ):
            yield replace(curve, validation=validation_series.get(curve.observable))


def _condition_curves(
    result: ResultData,
    condition: Condition,
    forward: ForwardMap | None,
    bands: BandSource | None,
    level: float,
    validation: Mapping[str, tuple[Array, Array]],
    names: Sequence[str],
    until: float | None = None,
) -> Iterator[Curve]:
    problem = result.problem
    events = event_times(problem, condition)
    log_time = spreads_over_decades(condition.times)
    longest = max((float(t.max()) for t, _ in validation.values() if len(t)), default=-np.inf)
    if until is not None:
        longest = max(longest, until)
    grid = fine_times(condition, log_time, longest)
    infinity = place_of_infinity(grid, log_time)
    model: Mapping[str, Array] = {}
    at_data: Mapping[str, Array] = {}
    failure = ""
    if not result.solutions:
        failure = "no solution was found"
    else:
        vector = result.best.vector
        line = simulated(problem, vector, times=grid, experiment=condition.name, forward=forward)
        if isinstance(line, Failure):
            failure = f"the simulation failed at t = {line.time:.4g}: {line.reason}"
        else:
            model = line.observables
        points = simulated(problem, vector, experiment=condition.name, forward=forward)
        if not isinstance(points, Failure):
            at_data = {**points.states, **points.observables}
    drawn = {
        name: _drawn(grid, model[name], condition, condition.series.get(name, NOTHING), log_time)
        for name in names
        if name in model
    }
    others = _other_lines(result, condition, grid, forward) if model else []
    made = {} if bands is None or not model else _bands(bands, condition, grid, level, drawn)
    for name in names:
        series = condition.series.get(name, NOTHING)
        noise = problem.noise.get(name, Noise())
        sds = None
        if result.solutions and name in condition.series:
            sds = standard_deviations(problem, condition, name, result.best.vector, at_data)
        elif series.sds is not None:
            sds = series.sds
        band = made.get(name)
        failed = band if isinstance(band, Failure) else None
        yield Curve(
            experiment=condition.name,
            observable=name,
            times=placed(condition.times[series.rows], infinity),
            measured=series.values,
            spread=None if sds is None else ends(series.values, sds, noise.transform),
            model_times=placed(grid, infinity)[drawn[name]] if name in model else np.zeros(0),
            model=model[name][drawn[name]] if name in model else np.zeros(0),
            failure=failure,
            events=events,
            transform=noise.transform,
            log_time=log_time,
            time_unit=problem.time_unit,
            calendar=calendar_on(problem, condition),
            band=replace(band, times=placed(band.times, infinity))
            if isinstance(band, Band)
            else None,
            censored=series.censored,
            infinity=infinity,
            no_band="" if failed is None else f"the integration fails: {failed}",
            unit=problem.units.get(name, ""),
            until=until if until is not None and until > condition.end else None,
            others=np.array([line[name][drawn[name]] for line in others if name in line]),
        )


def _other_lines(
    result: ResultData, condition: Condition, grid: Array, forward: ForwardMap | None
) -> list[Mapping[str, Array]]:
    """Return the observables of the other solutions that fit, if they can be integrated."""
    if forward is None or forward.nodes is not None:
        return []
    lines = (
        simulated(result.problem, s.vector, times=grid, experiment=condition.name, forward=forward)
        for s in result.fitting[1:]
    )
    return [line.observables for line in lines if not isinstance(line, Failure)]


def distinguishable(times: Array, values: Array, log_time: bool = False) -> IntArray:
    """Return the rows of measurements that a panel can show separately, one for each small cell.

    All rows are returned unless there are many.
    """
    every = np.arange(len(times))
    if len(times) <= DENSE:
        return every
    finite = np.isfinite(times) & np.isfinite(values)
    place = np.log(np.maximum(times, np.min(times[times > 0]))) if log_time else times
    cells = [
        np.where(finite, (v - v[finite].min()) / (np.ptp(v[finite]) or 1.0) * count, -1).astype(int)
        for v, count in ((place, SEEN_COLUMNS), (values, SEEN_ROWS))
    ]
    return np.sort(np.unique(cells[0] * (SEEN_ROWS + 2) + cells[1], return_index=True)[1])


NOTHING = Series(np.zeros(0, dtype=np.intp), np.zeros(0), None)
"""The series of an observable without measurements."""


def _bands(
    bands: BandSource,
    condition: Condition,
    grid: Array,
    level: float,
    drawn: Mapping[str, BoolArray],
) -> dict[str, Band | Failure]:
    """Return the bands of some observables, at the times at which each is drawn.

    All are computed at their joint times in one go, unless these are many.
    """
    by_observable: dict[str, Band | Failure] = {}
    few = len(grid) <= 4 * SEEN_COLUMNS
    groups = [list(drawn)] if few else [[name] for name in drawn]
    for names in groups:
        drawn_times = np.ones(len(grid), dtype=bool) if few else drawn[names[0]]
        made = bands.bands(condition, grid[drawn_times], level, names)
        if isinstance(made, Failure):
            by_observable |= dict.fromkeys(names, made)
        else:
            by_observable |= {b.name: _part(b, drawn[b.name][drawn_times]) for b in made}
    return by_observable


def _drawn(
    grid: Array, values: Array, condition: Condition, series: Series, log_time: bool
) -> BoolArray:
    """Return a mask of the grid's times at which a line is drawn, shape (n,)."""
    shown = read_off(grid, values, condition, series)
    chosen = np.flatnonzero(shown)
    shown[chosen] = seen(grid[chosen], values[chosen], log_time)
    return shown


def seen(times: Array, values: Array, log_time: bool = False) -> BoolArray:
    """Return a mask of the points that preserve the look of a line, shape (n,).

    In each of many columns it keeps the first, the last, the lowest and the highest point (U. Jugel
    et al., M4: a visualization-oriented time series data aggregation, 2014).
    """
    if len(times) <= 4 * SEEN_COLUMNS:
        return np.ones(len(times), dtype=bool)
    finite = np.isfinite(times)
    place = np.log(np.maximum(times, np.min(times[times > 0]))) if log_time else times
    low, high = place[finite].min(), place[finite].max()
    column = np.full(len(times), SEEN_COLUMNS)
    column[finite] = np.minimum(
        (place[finite] - low) / (high - low) * SEEN_COLUMNS, SEEN_COLUMNS - 1
    )
    order = np.lexsort((np.nan_to_num(values), column))
    visible = np.zeros(len(times), dtype=bool)
    for sequence in (np.arange(len(times)), order):  # by time, and by value
        new = np.diff(column[sequence]) != 0
        visible[sequence[np.append(True, new)]] = True
        visible[sequence[np.append(new, True)]] = True
    return visible


def calendar_on(problem: Problem, condition: Condition) -> Calendar | None:
    """Return the calendar of an axis of time; None for a logarithmic axis or one without dates."""
    return None if spreads_over_decades(condition.times) else calendar_of(problem, condition)


def place_of_infinity(times: Array, log_time: bool = False) -> float | None:
    """Return the place of t = inf, right of all finite times; None if all are finite."""
    if not np.isinf(times).any():
        return None
    finite = times[np.isfinite(times)]
    if not len(finite):
        return 1.0
    first, last = float(finite.min()), float(finite.max())
    if log_time and first > 0:
        return float(last * (last / first) ** 0.1)
    return last + (0.1 * (last - first) or 1.0)


def placed(times: Array, infinity: float | None) -> Array:
    """Return times with infinite ones replaced by their place on the axis."""
    return times if infinity is None else np.where(np.isinf(times), infinity, times)


def read_off(times: Array, values: Array, condition: Condition, series: Series) -> BoolArray:
    """Return a mask of the times at which the line shows a measured quantity, shape (n,).

    The exception is a sum that is reset to zero at each measurement, such as the new cases of a
    day. Within a day the sum differs from the count, so the line joins its values at the resets.
    The line is that of :func:`fine_times`.
    """
    everywhere = np.ones(len(times), dtype=bool)
    at = np.unique([time for time, _ in condition.events])
    measured = np.unique(condition.times[series.rows])
    measured = measured[measured > condition.t0]
    if len(at) == 0 or len(measured) < FEWEST_SUMS:
        return everywhere
    place = np.searchsorted(times, at)
    at, place = at[place < len(times) - 1], place[place < len(times) - 1]
    before, after = np.abs(values[place]), np.abs(values[place + 1])
    back = at[(times[place] == at) & (after <= SET_BACK * before) & (before > 0)]
    # An event at the end does not show.
    ends = np.append(back, measured[-1]) if len(back) else back
    if np.isin(measured, ends).mean() < SHARE_SET_BACK:
        return everywhere
    return np.isin(times, ends) | np.isinf(times)


def _part(band: Band, rows: BoolArray) -> Band:
    """Return a band at a subset of its times."""
    return replace(
        band,
        times=band.times[rows],
        values=band.values[rows],
        errors=band.errors[rows],
        confidence=band.confidence[:, rows],
        prediction=band.prediction[:, rows],
        scatter=band.scatter[:, rows],
        others=band.others[:, rows] if band.others.size else band.others,
    )


def spreads_over_decades(times: Array) -> bool:
    """Tell whether measurement times grow by factors rather than by steps."""
    times = times[np.isfinite(times)]
    positive = times[times > 0]
    if len(positive) < 5 or len(times) - len(positive) > 1:
        return False
    return bool(positive[-1] > 1000 * positive[0] and np.median(positive) < 0.1 * positive[-1])


def fine_times(condition: Condition, log_time: bool = False, longest: float = -np.inf) -> Array:
    """Return the times of a smooth line from t0 to the last measurement, events on both sides.

    The last time is infinite where the steady state is measured. With ``log_time`` the times grow
    by factors. They reach ``longest`` if that is later.
    """
    start, stop = condition.t0, max(condition.end, longest)
    infinite = condition.times[np.isinf(condition.times)]
    if stop <= start:
        return np.append(start, infinite)
    if log_time:
        first = condition.times[condition.times > 0][0]
        grid = np.geomspace(first, stop, LINE_POINTS)
    else:
        grid = np.linspace(start, stop, LINE_POINTS)
    at = np.array([time for time, _ in condition.events], dtype=float)
    after = at + 1e-9 * (stop - start)  # at the event itself, the line shows the value before it
    extra = np.concatenate([at, after, condition.times])
    inside = extra[(extra >= grid[0]) & (extra <= stop)]
    return np.unique(np.concatenate([grid, inside, infinite]))
