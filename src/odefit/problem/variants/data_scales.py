"""Scales of the data: sampling intervals, time span, and magnitudes of the measured values."""

from __future__ import annotations

import math

import numpy as np

from odefit.problem.condition import Condition
from odefit.problem.problem import Problem


def time_scale(problem: Problem) -> tuple[float, float]:
    """Return the shortest sampling interval and the longest time span of the measurements."""
    spans = [c.end - c.t0 for c in problem.conditions]
    finite = [c.times[np.isfinite(c.times)] for c in problem.conditions]
    gaps = [float(np.diff(times).min()) for times in finite if len(times) > 1]
    span = max([s for s in spans if s > 0], default=1.0)
    return min(gaps, default=span), span


def data_sizes(problem: Problem) -> dict[str, float]:
    """Return the largest measured magnitude of each observable that has measurements."""
    sizes: dict[str, float] = {}
    for condition in problem.conditions:
        for name, series in condition.series.items():
            finite = np.abs(series.values[np.isfinite(series.values)])
            sizes[name] = max(sizes.get(name, 0.0), float(finite.max(initial=0.0)))
    return {name: size for name, size in sizes.items() if size > 0}


def largest_value(problem: Problem, observable: str) -> float:
    """Return the largest measured value of an observable, zero without any."""
    every = [c.series[observable].values for c in problem.conditions if observable in c.series]
    values = np.concatenate([np.zeros(0), *every])
    return float(values[np.isfinite(values)].max(initial=-math.inf)) if values.size else 0.0


def largest_input(problem: Problem, name: str) -> float:
    """Return the largest magnitude of an input in any experiment, zero without any."""
    knots = [c.inputs[name].values for c in problem.conditions if name in c.inputs]
    return max((float(np.abs(k).max(initial=0.0)) for k in knots), default=0.0)


def data_size(condition: Condition) -> float:
    """Return the largest measured magnitude of a condition; 1 if that is zero."""
    values = np.concatenate([s.values for s in condition.series.values()] or [np.ones(1)])
    return float(np.max(np.abs(values), initial=0.0)) or 1.0
