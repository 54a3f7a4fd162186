"""The range in which the start values of each unknown lie, from bounds, priors and data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import Array
from odefit.problem.expressions import as_expression
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem

MAX_UNIFORM_DECADES = 2.0
"""Bounds that span more are sampled by order of magnitude."""

DISPERSIONS = (1e-3, 10.0)
"""Range of the dispersion of counts: nearly Poisson counts, and very scattered ones."""


@dataclass(frozen=True)
class Range:
    """The range of the start values of one unknown, in natural units.

    They are uniformly distributed in it, or their logarithms are.
    """

    low: float
    high: float
    logarithmic: bool

    def at(self, u: Array) -> Array:
        """Return the values that belong to `u`, uniformly distributed in [0, 1]."""
        if self.logarithmic and self.low > 0:
            low, high = math.log(self.low), math.log(self.high)
            values = np.exp(low + (high - low) * u)
        else:
            values = self.low + (self.high - self.low) * u
        return np.clip(values, self.low, self.high)


def ranges(problem: Problem) -> list[Range]:
    """Return the range of the start values of every unknown.

    The ranges keep to the bounds. A range that spans more than :data:`MAX_UNIFORM_DECADES`, or
    that begins at zero, is sampled by order of magnitude; where a bound is missing or zero, it is
    replaced by what the data suggest: rates live between 1/(time span) and 1/(shortest
    sampling interval), with a decade to spare on either side; initial values, and parameters
    that do not occur in the right-hand sides (scales, offsets), have the size of the data;
    initial values that are measured are close to the measurement.
    """
    spans = [c.end - c.t0 for c in problem.conditions]
    finite = [c.times[np.isfinite(c.times)] for c in problem.conditions]
    gaps = [float(np.diff(times).min()) for times in finite if len(times) > 1]
    span = max([s for s in spans if s > 0], default=1.0)
    gap = min(gaps, default=span)
    rates = (0.1 / span, 10.0 / gap)
    values = np.concatenate([s.values for c in problem.conditions for s in c.series.values()])
    size = float(np.max(np.abs(values), initial=0.0)) or 1.0
    return [_range(u, rates, size, problem) for u in problem.unknowns]


def _range(unknown: Unknown, rates: tuple[float, float], size: float, problem: Problem) -> Range:
    p = unknown.parameter
    if unknown.kind == "noise":
        dispersion = any(
            n.counts and n.unknown(o) == unknown.name for o, n in problem.noise.items()
        )
        return Range(*DISPERSIONS, True) if dispersion else Range(1e-3 * size, size, True)
    span = _time_span(unknown, problem)
    if span is not None and p.prior is None and p.scale != "log10":
        low, high = max(p.lower, span[0]), min(p.upper, span[1])
        if low < high:
            return Range(low, high, False)
    sized = not _is_rate(unknown, problem)
    typical = (1e-3 * size, 2 * size) if sized else rates
    if unknown.kind == "initial":
        measured = _measured_at_start(unknown, problem)
        if measured is not None and p.lower <= measured <= p.upper:
            width = 0.05 * (abs(measured) or size)
            low, high = max(p.lower, measured - width), min(p.upper, measured + width)
            if low < high:
                return Range(low, high, False)
    low, high = p.lower, p.upper
    in_orders = p.scale == "log10"
    if p.prior is not None:
        in_orders |= p.prior.logarithmic
        central = p.prior.central
        if not p.prior.flat and max(low, central[0]) < min(high, central[1]):
            low, high = max(low, central[0]), min(high, central[1])
    if p.scale == "log10":
        low = max(low, 0.0)
    if low > 0 and math.isfinite(high):
        return Range(low, high, in_orders or high / low > 10**MAX_UNIFORM_DECADES)
    if low == 0 or (low > 0 and not math.isfinite(high)):
        # A rate, most likely; when it is not, the two decades below the bound are kept as well.
        top = min(high, max(typical[1], 100 * low)) if math.isfinite(high) else typical[1]
        top = max(top, 100 * low)
        bottom = low if low > 0 else min(typical[0], 1e-2 * top)
        if math.isfinite(high) and high > top and high / top < 10**MAX_UNIFORM_DECADES:
            top = high
        return Range(bottom, top, True)
    if math.isfinite(low) and math.isfinite(high):
        return Range(low, high, False)
    width = max(typical[1], abs(low) if math.isfinite(low) else 0.0)
    if math.isfinite(low):
        return Range(low, low + 2 * width, False)
    if math.isfinite(high):
        return Range(high - 2 * max(width, abs(high)), high, False)
    if sized:
        return Range(-size, size, False)
    # Without any bound, most parameters of ODE models are positive all the same.
    return Range(typical[0], typical[1], True)


def _time_span(unknown: Unknown, problem: Problem) -> tuple[float, float] | None:
    """Return the time of the measurements, if the unknown is nothing but the time of an event."""
    number = problem.unknowns.index(unknown)
    found = None
    for condition in problem.conditions:
        if any(event.time == number and event.when is None for event in condition.located):
            low, high = condition.t0, condition.end
            found = (low, high) if found is None else (min(low, found[0]), max(high, found[1]))
    return found


def _is_rate(unknown: Unknown, problem: Problem) -> bool:
    """Whether the unknown occurs in the right-hand sides, not only as a scale or an offset."""
    if unknown.kind == "initial":
        return False
    direct = {n for e in problem.given.ode.values() for n in e.names}
    direct |= {n for e in problem.given.algebraic.values() for n in e.names}
    for experiment in problem.experiments:
        for name, value in experiment.constants.items():
            if name in direct and not isinstance(value, float | int):
                direct |= as_expression(value).names
    return unknown.name in direct


def _measured_at_start(unknown: Unknown, problem: Problem) -> float | None:
    """Return the measured initial value, if the state itself is measured at t0."""
    for condition in problem.conditions:
        if unknown.experiment not in (None, condition.name):
            continue
        for name, series in condition.series.items():
            expression = problem.model.observables[name]
            first = condition.times[series.rows[0]]
            if expression.name == unknown.name and first == condition.t0:
                return float(series.values[0])
    return None
