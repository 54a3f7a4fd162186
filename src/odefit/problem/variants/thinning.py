"""Problems with only part of their measurements.

A search far from the optimum learns no more from a thousand measurements than from a hundred. Its
result is the start of a search with all measurements.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem

LEAST_VALUES = 160
"""Number of values of a series that are always kept."""

INTERPOLATION_ERROR = 0.02
"""Interpolation error between kept values, relative to the range of the series, that shows that
they are too few. It allows for noise."""

OVERSAMPLING = 2
"""Ratio of the values kept to those that interpolation needs."""


def with_values_by_variation(problem: Problem) -> Problem:
    """Return the problem with as many values of each series as its shape requires.

    Every second value is dropped repeatedly, as long as cubics through the kept values reproduce
    the others.
    """
    conditions = tuple(map(_thinned, problem.conditions))
    if all(a is b for a, b in zip(conditions, problem.conditions, strict=True)):
        return problem
    fewer = copy(problem)
    fewer.conditions = conditions
    return fewer


def with_fewer_times(problem: Problem, most: int) -> Problem:
    """Return the problem with the values at up to `most` times of each condition.

    They are the first and the last time, and a random one from each of equally large parts of the
    others. Irregular distances add no aliases to those of the times themselves.
    """
    rng = np.random.default_rng(0)
    fewer = copy(problem)
    fewer.conditions = tuple(
        c if len(c.times) <= most else _at_times(c, _one_in_each(len(c.times), most, rng))
        for c in problem.conditions
    )
    same = all(a is b for a, b in zip(fewer.conditions, problem.conditions, strict=True))
    return problem if same else fewer


def _one_in_each(count: int, parts: int, rng: np.random.Generator) -> IntArray:
    """Return the first and the last index below `count`, and one from each part between them."""
    edges = np.linspace(1, count - 1, parts - 1).astype(np.intp)
    inside = rng.integers(edges[:-1], np.maximum(edges[1:], edges[:-1] + 1))
    return np.unique(np.concatenate([[0], inside, [count - 1]]))


def _at_times(condition: Condition, rows: IntArray) -> Condition:
    """Return a condition with the measurements in some rows alone."""
    series = {}
    for name, one in condition.series.items():
        part = one.part(np.isin(one.rows, rows))
        series[name] = replace(part, rows=np.searchsorted(rows, part.rows))
    return replace(condition, times=condition.times[rows], series=series)


def _stride(times: Array, values: Array) -> int:
    """Return the stride at which values still determine the shape of a series."""
    values, times = values[np.isfinite(times)], times[np.isfinite(times)]
    if not len(values):
        return 1
    range_ = float(np.ptp(values))
    allowed, stride_kept, stride = 0.0, 1, 2
    while len(values) // stride * OVERSAMPLING >= LEAST_VALUES:
        chosen = _every(len(values), stride)
        error = np.abs(_interpolated(times[chosen], values[chosen], times) - values)
        if stride == 2:
            # For homogeneous noise, the largest of a thousand errors is five medians.
            missed = np.delete(error, chosen)
            noise = min(float(missed.max()), 6 * float(np.median(missed)))
            allowed = INTERPOLATION_ERROR * range_ + 1.5 * noise
        if not error.max() <= allowed:
            break
        stride_kept = stride
        stride *= 2
    return max(stride_kept // OVERSAMPLING, 1)


def _interpolated(times: Array, values: Array, at: Array) -> Array:
    """Return the cubic through the four neighbours of each time in `at` (Lagrange)."""
    first = np.clip(np.searchsorted(times, at, side="right") - 2, 0, len(times) - 4)
    places = first[:, None] + np.arange(4)
    nodes = times[places]
    values_at = np.zeros(len(at))
    for i in range(4):
        others = [j for j in range(4) if j != i]
        ratios = (at[:, None] - nodes[:, others]) / (nodes[:, [i]] - nodes[:, others])
        values_at += values[places[:, i]] * ratios.prod(axis=1)
    return values_at


def _every(count: int, stride: int) -> IntArray:
    """Return every index below `count` that is a multiple of `stride`, and the last."""
    return np.unique(np.append(np.arange(0, count, stride), count - 1))


def _thinned(condition: Condition) -> Condition:
    strides = {n: _stride(condition.times[s.rows], s.values) for n, s in condition.series.items()}
    if all(s == 1 for s in strides.values()):
        return condition
    thinned = {n: s.part(_every(len(s.rows), strides[n])) for n, s in condition.series.items()}
    rows = np.unique(np.concatenate([s.rows for s in thinned.values()]))
    series = {n: replace(s, rows=np.searchsorted(rows, s.rows)) for n, s in thinned.items()}
    return replace(condition, times=condition.times[rows], series=series)


def with_horizon(problem: Problem, fraction: float) -> Problem:
    """Return the problem with the measurements in the first part of each time span.

    `fraction` is the length of that part over the time from the initial time to the last
    measurement. Unknowns, bounds, inputs and events stay, so that vectors of unknowns serve both
    problems. The problem is for searches only: its ``experiments`` still hold all measurements.
    """
    shorter = copy(problem)
    shorter.conditions = tuple(_with_horizon(c, fraction) for c in problem.conditions)
    return shorter


def _with_horizon(condition: Condition, fraction: float) -> Condition:
    if fraction >= 1.0:
        return condition
    end = condition.t0 + fraction * (condition.end - condition.t0)
    # A condition keeps its first time, since it needs a trajectory.
    count = max(int(np.searchsorted(condition.times, end, side="right")), 1)
    series = {}
    for name, one in condition.series.items():
        inside = one.rows < count
        if inside.any():
            series[name] = one.part(inside)
    return replace(condition, times=condition.times[:count], series=series)
