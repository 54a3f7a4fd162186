"""Quantities that cannot be negative according to the equations and the bounds alone.

A state stays nonnegative if it starts nonnegative and its right-hand side cannot be negative where
the state is zero and all such states are nonnegative. Intervals, rounded outwards, give the
possible values: they miss quantities that only an identity, such as a conserved total, keeps from
being negative. Bands of predictions end at zero for this reason, and global methods bound states by
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from odefit.expressions.expressions import PIECEWISE, TIME, Expression
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem


@dataclass(frozen=True)
class Range:
    """All numbers between two ends, which may be infinite."""

    low: float = -math.inf
    high: float = math.inf

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __add__(self, other: Range) -> Range:
        return Range(
            _rounded_sum(self.low, other.low, -math.inf),
            _rounded_sum(self.high, other.high, math.inf),
        )

    def __sub__(self, other: Range) -> Range:
        return self + -other

    def __mul__(self, other: Range) -> Range:
        ends = [
            0.0 if 0.0 in (a, b) else a * b  # a number times zero is zero
            for a in (self.low, self.high)
            for b in (other.low, other.high)
        ]
        return Range(min(ends), max(ends))

    def __truediv__(self, other: Range) -> Range:
        if self.low == self.high == 0.0:
            return self  # wherever the quotient exists
        if other.low < 0.0 < other.high or other.low == other.high == 0.0:
            return ANYTHING
        ends = sorted(
            math.copysign(math.inf, other.low + other.high) if end == 0.0 else 1.0 / end
            for end in (other.low, other.high)
        )
        return self * Range(*ends)

    @property
    def nonnegative(self) -> bool:
        """True if no number in it is negative."""
        return self.low >= 0.0


def _rounded_sum(a: float, b: float, towards: float) -> float:
    """Return a sum of floats, rounded towards an infinite end unless it is exact."""
    total = a + b
    if math.isinf(total) or math.fsum((a, b, -total)) == 0.0:
        return total
    return math.nextafter(total, towards)


ANYTHING = Range()
NOT_NEGATIVE = Range(0.0)

_IMAGES: Mapping[str, Range] = {
    "exp": NOT_NEGATIVE,
    "abs": NOT_NEGATIVE,
    "sqrt": NOT_NEGATIVE,
    "sin": Range(-1.0, 1.0),
    "cos": Range(-1.0, 1.0),
    "tanh": Range(-1.0, 1.0),
}
"""The range of a function, whatever its argument."""


class RangeAlgebra:
    """The algebra of ranges: the possible values of an expression, ignoring correlations."""

    def number(self, text: str) -> Range:
        """Return a number."""
        return Range(float(text), float(text))

    def power(self, base: Range, exponent: Range) -> Range:
        """Return a power; if the base may be negative, only even powers are known."""
        if base.low == base.high == 0.0 < exponent.low:
            return base
        if base.nonnegative:
            return NOT_NEGATIVE
        even = exponent.low == exponent.high and exponent.low % 2 == 0
        return NOT_NEGATIVE if even else ANYTHING

    def call(self, function: str, arguments: Sequence[Range]) -> Range:
        """Return the values of a function."""
        if function == PIECEWISE:
            values = [*arguments[:-1:2], arguments[-1]]
            return Range(min(v.low for v in values), max(v.high for v in values))
        if function == "min":
            return reduce(lambda a, b: Range(min(a.low, b.low), min(a.high, b.high)), arguments)
        if function == "max":
            return reduce(lambda a, b: Range(max(a.low, b.low), max(a.high, b.high)), arguments)
        return _IMAGES.get(function, ANYTHING)


RANGES = RangeAlgebra()


def nonnegative_names(problem: Problem, condition: Condition) -> frozenset[str]:
    """Return the states and observables that cannot be negative in an experiment.

    Every unknown may be anywhere within its bounds.
    """
    known = _scalars(problem, condition)
    known[TIME] = Range(condition.t0)
    for name, signal in condition.inputs.items():
        low, high = float(np.min(signal.values)), float(np.max(signal.values))
        cubic = problem.model.inputs[name] == "cubic"  # a spline may exceed the range of its points
        known[name] = ANYTHING if cubic else Range(low, high)
    known |= dict.fromkeys(problem.model.algebraic, ANYTHING)
    field = problem.model
    states = {s for s in field.states if _start(problem, condition, s, known).nonnegative}
    while True:
        ranges = known | {s: NOT_NEGATIVE if s in states else ANYTHING for s in field.states}
        remaining = {s for s in states if _stays(s, field.ode[s], condition, ranges)}
        if remaining == states:
            break
        states = remaining
    observables = {n for n, e in field.observables.items() if _of(e, ranges).nonnegative}
    return frozenset(states | observables)


def _of(expression: Expression, ranges: Mapping[str, Range]) -> Range:
    range_found: Range = expression.evaluate(ranges, RANGES)
    return range_found


def _scalars(problem: Problem, condition: Condition) -> dict[str, Range]:
    """Return the ranges of parameters and constants, including values that events assign."""
    scalars = condition.scalars
    ranges = {n: _bounds(problem, b) for n, b in scalars.items() if not isinstance(b, Expression)}
    for name, bound in scalars.items():
        if isinstance(bound, Expression):
            ranges[name] = _of(bound, ranges)
    changed = {n for assign in condition.assignments for n in assign if n in ranges}
    before = dict(ranges)
    for name in changed:
        ranges[name] = ANYTHING
    for name in changed:
        values = [a[name] for a in condition.assignments if name in a]
        known = all(v.names <= ranges.keys() for v in values)  # the sign of a state is unknown here
        if known:
            ranges[name] = _hull([before[name], *(_of(v, ranges) for v in values)])
    return ranges


def _bounds(problem: Problem, bound: int | float) -> Range:
    if isinstance(bound, float):
        return Range(bound, bound)
    parameter = problem.unknowns[bound].parameter
    return Range(parameter.lower, parameter.upper)


def _start(problem: Problem, condition: Condition, state: str, known: Mapping[str, Range]) -> Range:
    bound = condition.initial[state]
    if isinstance(bound, Expression):
        return _of(bound, known) if bound.names <= known.keys() else ANYTHING
    return _bounds(problem, bound)


def _stays(state: str, rate: Expression, condition: Condition, ranges: Mapping[str, Range]) -> bool:
    """Return whether neither the equation nor an event makes a state negative."""
    at_zero = {**ranges, state: Range(0.0, 0.0)}
    assigned = [a[state] for a in condition.assignments if state in a]
    return _of(rate, at_zero).nonnegative and all(_of(v, ranges).nonnegative for v in assigned)


def _hull(ranges: Iterable[Range]) -> Range:
    every = list(ranges)
    return Range(min(r.low for r in every), max(r.high for r in every))
