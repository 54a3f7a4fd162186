"""The ranges from which start values of the unknowns are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.expressions import Expression, as_expression
from odefit.expressions.grammar import COMPARISONS
from odefit.problem.noise import is_correlation_time
from odefit.problem.parameters import Unknown
from odefit.problem.problem import Problem
from odefit.problem.variants.data_scales import data_sizes, time_scale
from odefit.problem.variants.sizes import Sizes, TypicalSize, typical_sizes

MAX_UNIFORM_DECADES = 2.0
"""Number of decades above which bounds are sampled on a logarithmic scale."""

ALIKE = 0.1
"""Smallest ratio to the largest data at which observables may share a unit."""

BEYOND = 0.1
"""Distance beyond the measured range of a state within which its threshold may lie, relative to
that range: noise and the gaps between measurements hide the crossing."""

SPREAD = 8.0
"""Largest factor by which sizes known only from equations may exceed them."""


@dataclass(frozen=True)
class Follows:
    """The range of an unknown given other unknowns, such as A in A*exp(-E/(R*T)) given E."""

    low: float  # without the others, as a logarithm
    high: float
    factors: tuple[tuple[int, float], ...]  # factors of the others, by index, in the logarithm

    def at(self, u: Array, others: Array, whole: Range) -> Array:
        """Return the values within `whole` for `u`, given all unknowns, (k, n).

        If `whole` is not logarithmic, the unknown is itself a logarithm.
        """
        shift = sum((f * others[:, i] for i, f in self.factors), np.zeros(len(u)))
        values = self.low + (self.high - self.low) * u + shift
        with np.errstate(over="ignore"):
            values = np.exp(values) if whole.logarithmic else values
        return np.clip(values, whole.low, whole.high)


@dataclass(frozen=True)
class Range:
    """The range of an unknown's start values, uniform in the value or its logarithm."""

    low: float
    high: float
    logarithmic: bool
    follows: Follows | None = None

    def at(self, u: Array) -> Array:
        """Return the values for `u`, uniformly distributed in [0, 1]."""
        if self.logarithmic and self.low > 0:
            low, high = math.log(self.low), math.log(self.high)
            values = np.exp(low + (high - low) * u)
        else:
            values = self.low + (self.high - self.low) * u
        return np.clip(values, self.low, self.high)


def ranges(problem: Problem) -> list[Range]:
    """Return the range of the start values of every unknown.

    The ranges respect the bounds. A range that spans more than :data:`MAX_UNIFORM_DECADES`, or
    begins at zero, is sampled on a logarithmic scale. A missing or zero bound is replaced by one
    suggested by data and equations. A parameter of the equations of motion has the size that its
    unit and the sizes of states and time scale give it (see :mod:`odefit.problem.variants.sizes`).
    A rate lies between a tenth of 1/(time span) and ten times 1/(shortest sampling interval).
    Initial values, and parameters that do not occur in the right-hand sides (scales, offsets), have
    the size of the data, as far as that is in their unit. Initial values that are measured are
    close to the measurement. A parameter E in an exponent, as in A*exp(-E/(R*T)), is uniform, and A
    follows it: their product has the size of a rate. E is uniform in k*exp(-E/R*(1/T - 1/Tref)),
    too. The logarithm of a quantity, such as lKa in exp(lKa)*x or 10^lKa*x, has the range of that
    quantity.
    """
    return _Ranges(problem).all()


def values_at(problem: Problem, u: Array, held_values: Array | None = None) -> Array:
    """Return start values, shape (k, n), for `u`, uniformly distributed in [0, 1].

    Values in `held_values`, shape (n,), are used unchanged where they are not NaN.
    """
    every = ranges(problem)
    known = np.full(len(every), math.nan) if held_values is None else held_values
    values = np.column_stack([r.at(u[:, i]) for i, r in enumerate(every)])
    values = np.where(np.isnan(known), values, known)
    for i, one in enumerate(every):
        if one.follows is not None and math.isnan(known[i]):
            values[:, i] = one.follows.at(u[:, i], values, one)
    return values


class _Ranges:
    """The basis of the ranges of a problem's unknowns."""

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
        alone = [self._range(number, u) for number, u in enumerate(self.problem.unknowns)]
        return [
            self._following(*pair, alone) for pair in zip(self.problem.unknowns, alone, strict=True)
        ]

    def _following(self, unknown: Unknown, alone: Range, every: Sequence[Range]) -> Range:
        """Return the range of an unknown that follows others, such as A in A*exp(-E/(R*T))."""
        p = unknown.parameter
        if (
            unknown.kind == "noise"
            or p.prior is not None
            or (p.lower > 0 and math.isfinite(p.upper))
        ):
            return alone
        numbers = self._numbers
        typical = self._sizes.unknowns[unknown.kind, unknown.name]
        bounded = math.isfinite(p.lower) and math.isfinite(p.upper)
        logarithm = None if bounded else typical.exponential
        leader, unit = logarithm or (typical, 1.0)
        factors = tuple((numbers[n], f / unit) for n, f in leader.follows if n in numbers)
        if not factors or (logarithm is None and not (alone.logarithmic and alone.low > 0)):
            return alone
        ends = [sorted((f * every[i].low, f * every[i].high)) for i, f in factors]
        least, most = (min(max(sum(e), -300.0), 300.0) for e in zip(*ends, strict=True))
        if logarithm is not None:
            low, high = max(alone.low + least, p.lower), min(alone.high + most, p.upper)
            return Range(low, high, False, Follows(alone.low, alone.high, factors))
        low = max(alone.low * math.exp(least), p.lower)
        high = min(alone.high * math.exp(most), p.upper)
        return Range(low, high, True, Follows(math.log(alone.low), math.log(alone.high), factors))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The indices of the parameters among the unknowns."""
        return {u.name: i for i, u in enumerate(self.problem.unknowns) if u.kind == "parameter"}

    @cached_property
    def _in_rates(self) -> set[str]:
        return _names_in_rates(self.problem)

    def _is_rate(self, unknown: Unknown) -> bool:
        """True if the unknown occurs in the right-hand sides, not only as a scale or an offset."""
        return unknown.kind != "initial" and unknown.name in self._in_rates

    @cached_property
    def _leaders(self) -> set[str]:
        """The parameters that others depend on, or that an exponent contains linearly."""
        sizes = self._sizes.unknowns
        linear = {name for (_, name), size in sizes.items() if size.linear}
        return linear | {name for size in sizes.values() for name, _ in size.follows}

    def _range(self, number: int, unknown: Unknown) -> Range:
        p = unknown.parameter
        if unknown.kind == "noise":
            return self._of_noise(unknown)
        span = _time_span(number, self.problem)
        time = self._sizes.unknowns[unknown.kind, unknown.name].time
        if span is None and time is not None:
            span = _times(self.problem, *time)
        if span is not None and p.prior is None and p.scale != "log10":
            low, high = max(p.lower, span[0]), min(p.upper, span[1])
            if low < high:
                return Range(low, high, False)
        between = _threshold(number, self.problem)
        if between is not None and p.prior is None:
            low, high = max(p.lower, between[0]), min(p.upper, between[1])
            if low < high:
                return Range(low, high, False)
        if unknown.kind == "initial" or not self._is_rate(unknown):
            measured = _measured_at_start(number, self.problem)
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
        if (of_logarithm := self._of_logarithm(unknown, low, high)) is not None:
            return of_logarithm
        if low == 0 and math.isfinite(high):
            return self._from_zero(unknown, high)
        if math.isfinite(low) and math.isfinite(high):
            return Range(low, high, False)
        return self._open(unknown, low, high)

    def _beside_zero(self, observable: str) -> float:
        """Return the size of the data for a measured initial value of zero.

        It is that of all data, unless their unit clearly differs from the observable's.
        """
        size = self.sizes.get(observable, self.size)
        return self.size if size >= ALIKE * self.size else size

    def _of_noise(self, unknown: Unknown) -> Range:
        if is_correlation_time(self.problem.noise, unknown.name):
            least, most = unknown.parameter.lower, unknown.parameter.upper
            return Range(max(0.25 * self.gap, least), min(self.span, most), True)
        noises = {o: n for o, n in self.problem.noise.items() if n.unknown(o) == unknown.name}
        for noise in noises.values():
            if noise.law.spread_range is not None:
                return Range(*noise.law.spread_range, True)
        if any(noise.transform is not None for noise in noises.values()):
            return Range(1e-3, 1.0, True)  # of logarithms, which have no unit
        size = max((self.sizes.get(o, 0.0) for o in noises), default=0.0) or self.size
        return Range(1e-3 * size, size, True)

    def _from_zero(self, unknown: Unknown, high: float) -> Range:
        """Return the range of an unknown between zero and an upper bound.

        An unknown whose size allows a rate is treated as a rate, whatever its unit.
        """
        sized = not self._is_rate(unknown)
        typical = self._typical(unknown, sized)
        if unknown.name in self._leaders:
            return Range(0.0, high if high <= 3 * typical[1] else typical[1], False)
        if self._sizes.unknowns[unknown.kind, unknown.name].exponent:
            return _below(typical, high)
        plain = _below((1e-3 * self.size, 2 * self.size) if sized else self.rates, high)
        middle = min(math.sqrt(typical[0]) * math.sqrt(typical[1]), high)
        if plain.low <= middle <= plain.high:
            return plain
        low_range = _below(typical, high)
        if 0.1 * plain.low <= middle <= 10 * plain.high:
            return Range(min(plain.low, low_range.low), max(plain.high, low_range.high), True)
        return low_range

    def _open(self, unknown: Unknown, low: float, high: float) -> Range:
        """Return the range of an unknown that lacks a bound."""
        sized = not self._is_rate(unknown)
        typical = self._typical(unknown, sized)
        if unknown.name in self._leaders and max(low, -typical[1]) < min(high, typical[1]):
            return Range(max(low, -typical[1]), min(high, typical[1]), False)
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
        # Even without bounds, most parameters of ODE models are positive.
        return Range(typical[0], typical[1], True)

    def _of_logarithm(self, unknown: Unknown, low: float, high: float) -> Range | None:
        """Return the range of an unknown without bounds that is the logarithm of a rate or size.

        The range is None if a bound excludes the usual values.
        """
        exponential = self._sizes.unknowns[unknown.kind, unknown.name].exponential
        if exponential is None or (math.isfinite(low) and math.isfinite(high)):
            return None
        typical, factor = exponential
        sized = not self._is_rate(unknown)
        least, most = self._usual(typical, sized)
        if sized and not typical.measured:
            most = typical.size / least * typical.size
        low, high = max(low, math.log(least) / factor), min(high, math.log(most) / factor)
        return Range(low, high, False) if low < high else None

    def _typical(self, unknown: Unknown, sized: bool) -> tuple[float, float]:
        """Return the values between which an unbounded unknown lies."""
        return self._usual(self._sizes.unknowns[unknown.kind, unknown.name], sized)

    def _usual(self, typical: TypicalSize, sized: bool) -> tuple[float, float]:
        power = abs(typical.time_exponent)
        if sized:
            spread = SPREAD * (self.span / self.gap) ** (0.5 * power)
            return 1e-3 * typical.size, (2.0 if typical.measured else spread) * typical.size
        # A rate is between a tenth of 1/span and ten times 1/gap. A peak or a step whose width is
        # outside half the gap and twice the span cannot be seen.
        factor = (2.0 if typical.width else 10.0) ** (
            1.0 + (0.0 if typical.exponent else max(1.0 - power, 0.0))
        )
        factor *= (self.span / self.gap) ** (0.5 * power)
        return typical.size / factor, typical.size * factor


def _below(typical: tuple[float, float], high: float) -> Range:
    """Return the part of a typical range below a bound, at least two decades."""
    top = min(high, typical[1])
    bottom = min(typical[0], 1e-2 * top)
    if high > top and high / top < 10**MAX_UNIFORM_DECADES:
        top = high
    return Range(bottom, top, True)


def _time_span(number: int, problem: Problem) -> tuple[float, float] | None:
    """Return the times of the measurements, if the unknown is only the time of an event."""
    span = None
    for condition in problem.conditions:
        if any(event.time == number and event.when is None for event in condition.located):
            low, high = condition.t0, condition.end
            span = (low, high) if span is None else (min(low, span[0]), max(high, span[1]))
    return span


def _times(problem: Problem, factor: float, offset: float) -> tuple[float, float]:
    """Return the first and the last measured time of all experiments, in another unit."""
    conditions = problem.conditions
    first, last = min(c.t0 for c in conditions), max(c.end for c in conditions)
    return factor * first + offset, factor * last + offset


def _threshold(number: int, problem: Problem) -> tuple[float, float] | None:
    """Return the range of the measured states that events compare with the unknown."""
    thresholds: list[Array] = []
    for condition in problem.conditions:
        compared = {
            other
            for event in condition.located
            if event.when is not None
            for pair in _compared(event.when)
            for one, other in (pair, pair[::-1])
            if condition.scalars.get(one) == number
        }
        for name, series in condition.series.items():
            if problem.model.observables[name].name in compared:
                thresholds.append(series.values)
    if not thresholds:
        return None
    low, high = (float(f(np.concatenate(thresholds))) for f in (np.min, np.max))
    return low - BEYOND * (high - low), high + BEYOND * (high - low)


def _compared(condition: Expression) -> list[tuple[str, str]]:
    """Return the pairs of names that a condition compares with each other."""
    steps = condition.program
    triples = zip(steps, steps[1:], steps[2:], strict=False)
    return [
        (a.text, b.text)
        for a, b, c in triples
        if c.text in COMPARISONS and a.kind == b.kind == "name"
    ]


def _names_in_rates(problem: Problem) -> set[str]:
    """Return the names in the right-hand sides, and in constants that occur there."""
    direct = {n for e in problem.given.ode.values() for n in e.names}
    direct |= {n for e in problem.given.algebraic.values() for n in e.names}
    for experiment in problem.experiments:
        for name, value in experiment.constants.items():
            if name in direct and not isinstance(value, float | int):
                direct |= as_expression(value).names
    return direct


def _measured_at_start(number: int, problem: Problem) -> tuple[str, float] | None:
    """Return observable and value if the state itself is measured at t0."""
    for condition in problem.conditions:
        for name, series in condition.series.items():
            state = problem.model.observables[name].name
            first = condition.times[series.rows[0]]
            initial = None if state is None else condition.initial.get(state)
            is_initial = isinstance(initial, int) and initial == number
            if is_initial and first == condition.t0:
                return name, float(series.values[0])
    return None
