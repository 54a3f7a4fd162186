"""The states as functions of time, from the data alone: x-hat of (5), segment by segment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.expressions.algebras import NUMPY
from odefit.methods.integral_matching.state_reconstruction import AffineObservables
from odefit.methods.smoothing import SmoothingSpline
from odefit.methods.smoothing.smoother import Interpolant, Smoother, average_replicates
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import cut_off

MIN_PANEL_POINTS = 5  # the rule is a cubic through four points of a panel


@dataclass(frozen=True, eq=False)
class Grid:
    """The times at which a segment of a trajectory is matched.

    They are equidistant in each panel, from one corner of the inputs to the next. A corner occurs
    twice, as the end of one panel and the start of the next.
    """

    times: Array  # all times, shape (m,)
    # same times, moved by a rounding error into their panel, where inputs have the panel's values
    interior: Array
    panels: tuple[int, ...]  # first index of each panel, and one more for the end

    @classmethod
    def over(cls, start: float, stop: float, corners: Array, points: int) -> Grid:
        """Return a grid of at least `points` times from `start` to `stop`."""
        cuts = np.concatenate([[start], corners[(corners > start) & (corners < stop)], [stop]])
        counts = np.ceil(points * np.diff(cuts) / (stop - start)).astype(int)
        counts = np.maximum(counts, MIN_PANEL_POINTS)
        parts = [np.linspace(a, b, n) for a, b, n in zip(cuts, cuts[1:], counts, strict=False)]
        margins = [1e-9 * (p[1] - p[0]) for p in parts]
        interior = [np.clip(p, p[0] + e, p[-1] - e) for p, e in zip(parts, margins, strict=True)]
        ends = np.concatenate([[0], np.cumsum(counts)])
        return cls(np.concatenate(parts), np.concatenate(interior), tuple(int(e) for e in ends))

    @property
    def weights(self) -> Array:
        """The quadrature weights of the whole grid, by the trapezoidal rule, shape (m,)."""
        weights = np.zeros(len(self.times))
        for a, b in zip(self.panels, self.panels[1:], strict=False):
            steps = np.diff(self.times[a:b])
            weights[a : b - 1] += steps / 2
            weights[a + 1 : b] += steps / 2
        return weights

    def cumulative(self, values: Array) -> Array:
        """Return integrals of curves, shape (..., m), from the start to each time, of order 4."""
        integrals = np.empty(values.shape)
        carried = np.zeros(values.shape[:-1])
        for a, b in zip(self.panels, self.panels[1:], strict=False):
            f = values[..., a:b]
            step = (self.times[b - 1] - self.times[a]) / (b - a - 1)
            steps = np.empty((*f.shape[:-1], b - a - 1))
            # Cubics are integrated through the two points of an interval and their neighbours.
            steps[..., 1:-1] = (13 * (f[..., 1:-2] + f[..., 2:-1]) - f[..., :-3] - f[..., 3:]) / 24
            ends = np.array([9.0, 19.0, -5.0, 1.0]) / 24
            steps[..., 0] = f[..., :4] @ ends
            steps[..., -1] = f[..., -4:] @ ends[::-1]
            integrals[..., a] = carried
            integrals[..., a + 1 : b] = carried[..., None] + step * np.cumsum(steps, axis=-1)
            carried = integrals[..., b - 1]
        return integrals


MIN_GRID_POINTS = 200  # smallest number of points of a grid
GRID_POINTS_PER_MEASUREMENT = 2  # smallest number of points of a grid for each time of measurement
MIN_SPLINE_ORDER = 2  # lowest order of a smoothing spline for a short series


@dataclass(frozen=True, eq=False)
class SmoothedSegment:
    """A time span of one condition between two events, with its smoothed states."""

    condition: int  # index of the condition
    at_start: bool  # whether the segment begins at t0, with the condition's initial values
    # ends of the time span between the events
    start: float
    end: float
    # times at which it is matched: from the first to the last measurement, as far as all states are
    # measured
    grid: Grid
    states: Mapping[str, Array]  # values on the grid of the states that are measured, by name
    # standard deviation of the noise as the smoother estimates it, by observable
    sds: Mapping[str, float]


def smoothed_segments(
    problem: Problem, smoother: Smoother, required: Iterable[str]
) -> tuple[list[SmoothedSegment], list[str]]:
    """Return the segments of all conditions, and reasons why some could not be smoothed.

    Every segment must have the `required` states. Raises InputError if no segment can be smoothed;
    the message gives the place and a remedy.
    """
    segments: list[SmoothedSegment] = []
    reasons: list[str] = []
    required = set(required)
    for index, condition in enumerate(problem.conditions):
        observed = AffineObservables.of(problem.model, condition)
        last = float(condition.times[-1])
        events = sorted({t for t, _ in condition.events if condition.t0 < t < last})
        for start, end in pairwise([condition.t0, *events, last]):
            try:
                segments.append(_segment(problem, index, observed, start, end, smoother, required))
            except InputError as error:
                reasons.append(str(error))
    if not segments:
        raise InputError(reasons[0])
    return segments, reasons


def _segment(
    problem: Problem,
    index: int,
    observed: AffineObservables,
    start: float,
    end: float,
    smoother: Smoother,
    required: set[str],
) -> SmoothedSegment:
    condition, states = problem.conditions[index], problem.model.states
    assigned = {n for t, event in condition.events if t == start for n in event}
    at_start = start == condition.t0 and not assigned
    curves: dict[str, Interpolant] = {}
    spans: dict[str, tuple[float, float]] = {}
    reasons = []
    for name, row in zip(observed.names, observed.matrix, strict=True):
        if cut_off().reached:
            raise InputError("the search ended before all series were smoothed")
        times, values = _measurements(condition, observed, name, start, end, at_start)
        if at_start and (not len(times) or times[0] > start):
            known = _known_start(condition, row, states)
            if known is not None:
                times, values = np.append(start, times), np.append(known, values)
        try:
            curves[name] = _smoothed(smoother, times, values)
            spans[name] = float(times[0]), float(times[-1])
        except InputError as error:
            place = f'"{condition.name}", {name} from t = {start:g} to {end:g}'
            reasons.append(f"{place}: {error}")
    sds = {name: curve.sd for name, curve in curves.items()}
    weights = observed.states(list(curves), sds)
    if reasons and not required <= {states[k] for k in weights}:
        raise InputError(reasons[0])
    used = [span for i, span in enumerate(spans.values()) if any(w[i] for w in weights.values())]
    first = max([start, *(span[0] for span in used)])
    last = min([end, *(span[1] for span in used)])
    if not last > first:
        raise InputError(
            f'"{condition.name}" from t = {start:g} to {end:g}: measured at no common times, or at '
            f"one; measure more, or take another method"
        )
    count = int(((condition.times >= first) & (condition.times <= last)).sum())
    inputs = [condition.inputs[name].times for name in problem.model.inputs]
    corners = np.unique(np.concatenate([np.zeros(0), *inputs]))
    points = max(MIN_GRID_POINTS, GRID_POINTS_PER_MEASUREMENT * count)
    grid = Grid.over(first, last, corners, points)
    series = [curve(grid.times) for curve in curves.values()]
    combined = {states[k]: np.asarray(w @ np.array(series)) for k, w in weights.items()}
    return SmoothedSegment(
        condition=index,
        at_start=at_start and first == start,
        start=start,
        end=end,
        grid=grid,
        states=combined,
        sds=sds,
    )


def _measurements(
    condition: Condition,
    observed: AffineObservables,
    name: str,
    start: float,
    end: float,
    at_start: bool,
) -> tuple[Array, Array]:
    """Return the measurements of a series within a segment, with replicates averaged."""
    series = condition.series[name]
    times, values = condition.times[series.rows], series.values - observed.offsets[name]
    # A measurement at an event precedes the event.
    inside = (times <= end) & ((times > start) | ((times == start) & at_start))
    return average_replicates(times[inside], values[inside])


def _smoothed(smoother: Smoother, times: Array, values: Array) -> Interpolant:
    """Smooth a series, by a spline of lower order if it is short."""
    if isinstance(smoother, SmoothingSpline):
        order = min(smoother.order, max(len(times) - 2, MIN_SPLINE_ORDER))
        smoother = replace(smoother, order=order)
    return smoother.fit(times, values)


def _known_start(condition: Condition, row: Array, states: tuple[str, ...]) -> float | None:
    """Return the combination `row` of the initial values; None if it depends on an unknown."""
    total = 0.0
    for weight, state in zip(row, states, strict=True):
        if weight:
            try:
                value = bound_value(condition.initial[state], condition.scalars, [], NUMPY)
            except IndexError:  # it depends on an unknown
                return None
            total += weight * float(value)
    return total
