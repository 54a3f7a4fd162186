"""Start values: the range for each unknown, and guesses of states from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import as_expression
from odefit.problem.binding import bound_value
from odefit.problem.condition import Condition
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import Sizes, data_sizes, time_scale, typical_sizes

MAX_UNIFORM_DECADES = 2.0
"""Bounds that span more are sampled by order of magnitude."""

ALIKE = 0.1
"""Observables whose data are this part of the largest, or more, may be in the same unit."""

SPREAD = 8.0
"""Sizes that only the equations tell are at most so many times larger than these say."""


@dataclass(frozen=True)
class Range:
    """The range of one unknown's start values, over which they or their logarithms are uniform."""

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
    replaced by what data and equations suggest: a parameter of the equations of motion has the size
    that its unit and the sizes of states and time scale give it (see
    :mod:`odefit.problem.variants.sizes`), a rate between a tenth of 1/(time span) and ten times
    1/(shortest sampling interval); initial values, and parameters that do not occur in the
    right-hand sides (scales, offsets), have the size of the data, as far as that is in their unit;
    initial values that are measured are close to the measurement.
    """
    return _Ranges(problem).all()


class _Ranges:
    """The basis of the ranges of all unknowns of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.gap, self.span = time_scale(problem)
        self.rates = (0.1 / self.span, 10.0 / self.gap)
        self.sizes = data_sizes(problem)
        self.size = max(self.sizes.values(), default=1.0)

    @cached_property
    def _sizes(self) -> Sizes:
        return typical_sizes(self.problem)

    def all(self) -> list[Range]:
        """Return the ranges in the order of the unknowns."""
        return [self._range(u) for u in self.problem.unknowns]

    def _range(self, unknown: Unknown) -> Range:
        p = unknown.parameter
        if unknown.kind == "noise":
            return self._of_noise(unknown)
        span = _time_span(unknown, self.problem)
        if span is not None and p.prior is None and p.scale != "log10":
            low, high = max(p.lower, span[0]), min(p.upper, span[1])
            if low < high:
                return Range(low, high, False)
        if unknown.kind == "initial":
            measured = _measured_at_start(unknown, self.problem)
            if measured is not None and p.lower <= measured[1] <= p.upper:
                width = 0.05 * (abs(measured[1]) or self._beside_zero(measured[0]))
                low, high = max(p.lower, measured[1] - width), min(p.upper, measured[1] + width)
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
        if low == 0 and math.isfinite(high):
            return self._from_zero(unknown, high)
        if math.isfinite(low) and math.isfinite(high):
            return Range(low, high, False)
        return self._open(unknown, low, high)

    def _beside_zero(self, observable: str) -> float:
        """Return the size of the data where a measured initial value is zero.

        It is that of all data, unless they are clearly in another unit than the observable.
        """
        own = self.sizes.get(observable, self.size)
        return self.size if own >= ALIKE * self.size else own

    def _of_noise(self, unknown: Unknown) -> Range:
        own = {o: n for o, n in self.problem.noise.items() if n.unknown(o) == unknown.name}
        for noise in own.values():
            if noise.law.spread_range is not None:
                return Range(*noise.law.spread_range, True)
        size = max((self.sizes.get(o, 0.0) for o in own), default=0.0) or self.size
        return Range(1e-3 * size, size, True)

    def _from_zero(self, unknown: Unknown, high: float) -> Range:
        """Return the range of an unknown between zero and an upper bound.

        An unknown that may be a rate, by its size, is taken for one whatever its unit.
        """
        sized = not _is_rate(unknown, self.problem)
        plain = _below((1e-3 * self.size, 2 * self.size) if sized else self.rates, high)
        typical = self._typical(unknown, sized)
        middle = min(math.sqrt(typical[0]) * math.sqrt(typical[1]), high)
        return plain if 0.1 * plain.low <= middle <= 10 * plain.high else _below(typical, high)

    def _open(self, unknown: Unknown, low: float, high: float) -> Range:
        """Return the range of an unknown that lacks a bound."""
        sized = not _is_rate(unknown, self.problem)
        typical = self._typical(unknown, sized)
        if low >= 0:
            top = max(typical[1], 100 * low)
            return Range(low if low > 0 else min(typical[0], 1e-2 * top), top, True)
        if math.isfinite(low):
            return Range(low, low + 2 * max(typical[1], abs(low)), False)
        if math.isfinite(high):
            return Range(high - 2 * max(typical[1], abs(high)), high, False)
        if sized:
            size = self._sizes.unknowns[unknown.kind, unknown.name].size
            return Range(-size, size, False)
        # Without any bound, most parameters of ODE models are positive all the same.
        return Range(typical[0], typical[1], True)

    def _typical(self, unknown: Unknown, sized: bool) -> tuple[float, float]:
        """Return the values between which an unknown lies that has no bounds."""
        typical = self._sizes.unknowns[unknown.kind, unknown.name]
        if sized:
            return 1e-3 * typical.size, (2.0 if typical.measured else SPREAD) * typical.size
        # A rate is between a tenth of 1/span and ten times 1/gap.
        power = abs(typical.time_exponent)
        factor = 10.0 ** (1.0 + (0.0 if typical.exponent else max(1.0 - power, 0.0)))
        factor *= (self.span / self.gap) ** (0.5 * power)
        return typical.size / factor, typical.size * factor


def _below(typical: tuple[float, float], high: float) -> Range:
    """Return the part of a typical range below a bound, two decades at least."""
    top = min(high, typical[1])
    bottom = min(typical[0], 1e-2 * top)
    if high > top and high / top < 10**MAX_UNIFORM_DECADES:
        top = high
    return Range(bottom, top, True)


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
    """True if the unknown occurs in the right-hand sides, not only as a scale or an offset."""
    if unknown.kind == "initial":
        return False
    direct = {n for e in problem.given.ode.values() for n in e.names}
    direct |= {n for e in problem.given.algebraic.values() for n in e.names}
    for experiment in problem.experiments:
        for name, value in experiment.constants.items():
            if name in direct and not isinstance(value, float | int):
                direct |= as_expression(value).names
    return unknown.name in direct


def _measured_at_start(unknown: Unknown, problem: Problem) -> tuple[str, float] | None:
    """Return observable and value where the state itself is measured at t0."""
    for condition in problem.conditions:
        if unknown.experiment not in (None, condition.name):
            continue
        for name, series in condition.series.items():
            expression = problem.model.observables[name]
            first = condition.times[series.rows[0]]
            if expression.name == unknown.name and first == condition.t0:
                return name, float(series.values[0])
    return None


def states_from_data(
    problem: Problem, condition: Condition, names: Sequence[str], unknowns: Array, times: Array
) -> Array:
    """Return guesses of the states at `times`, interpolated between measurements, (k, names).

    States that are not measured have their initial value throughout, or their typical size where
    that is not known. `names` are states, algebraic variables, and constants that events assign.
    """
    values = np.tile(_flat(problem, condition, names, unknowns), (len(times), 1))
    for name, series in condition.series.items():
        state = problem.model.observables[name].name
        if state in names and len(series.values):
            known, first = np.unique(condition.times[series.rows], return_index=True)
            values[:, names.index(state)] = np.interp(times, known, series.values[first])
    return values


def data_size(condition: Condition) -> float:
    """Return the largest measured magnitude of a condition; 1 if that is zero."""
    values = np.concatenate([s.values for s in condition.series.values()] or [np.ones(1)])
    return float(np.max(np.abs(values), initial=0.0)) or 1.0


def _flat(problem: Problem, condition: Condition, names: Sequence[str], unknowns: Array) -> Array:
    """Return a value for every name, the same at all times."""
    found = []
    sizes = typical_sizes(problem).states
    for name in names:
        bound = condition.initial.get(name, condition.scalars.get(name))
        if bound is None:
            found.append(condition.algebraic_guess[name])
            continue
        with np.errstate(all="ignore"):
            value = float(bound_value(bound, condition.scalars, unknowns.tolist(), NUMPY))
        found.append(value if np.isfinite(value) else sizes.get(name, data_size(condition)))
    return np.array(found)
