"""Derivatives of expressions along a motion, written as expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from odefit.expressions.expressions import PIECEWISE, Expression, parse
from odefit.expressions.formulas import PARTS, Part, call, evaluated, name, number
from odefit.expressions.grammar import CONDITIONS

ZERO, ONE = number(0.0), number(1.0)

SLOPES = {
    "exp": "exp(x)",
    "log": "1/x",
    "log10": "1/(x*log(10))",
    "sqrt": "1/(2*sqrt(x))",
    "sin": "cos(x)",
    "cos": "-sin(x)",
    "tan": "1 + tan(x)^2",
    "asin": "1/sqrt(1 - x^2)",
    "acos": "-1/sqrt(1 - x^2)",
    "atan": "1/(1 + x^2)",
    "sinh": "cosh(x)",
    "cosh": "sinh(x)",
    "tanh": "1 - tanh(x)^2",
    "abs": "sign(x)",
}
"""Derivatives of the functions of one argument."""


@dataclass(frozen=True)
class _Moving:
    """A quantity and its derivative in time."""

    value: Part
    rate: Part

    def __neg__(self) -> _Moving:
        return _Moving(-self.value, -self.rate)

    def __add__(self, other: _Moving) -> _Moving:
        return _Moving(self.value + other.value, self.rate + other.rate)

    def __sub__(self, other: _Moving) -> _Moving:
        return _Moving(self.value - other.value, self.rate - other.rate)

    def __mul__(self, other: _Moving) -> _Moving:
        rate = self.rate * other.value + self.value * other.rate
        return _Moving(self.value * other.value, rate)

    def __truediv__(self, other: _Moving) -> _Moving:
        quotient = self.value / other.value
        return _Moving(quotient, (self.rate - quotient * other.rate) / other.value)


class _MovingAlgebra:
    """The algebra of :class:`_Moving`."""

    def number(self, text: str) -> _Moving:
        return _Moving(PARTS.number(text), ZERO)

    def power(self, base: _Moving, exponent: _Moving) -> _Moving:
        value = PARTS.power(base.value, exponent.value)
        lower = exponent.value - ONE
        factor = base.value if lower.number == 1.0 else PARTS.power(base.value, lower)
        rate = exponent.value * factor * base.rate
        if exponent.rate.number != 0.0:
            rate = rate + value * call("log", [base.value]) * exponent.rate
        return _Moving(value, rate)

    def call(self, function: str, arguments: Sequence[_Moving]) -> Any:
        values = [a.value for a in arguments]
        value = call(function, values)
        if function in CONDITIONS:
            return _Moving(value, ZERO)
        if function == PIECEWISE:
            last = len(arguments) - 1
            is_value = [k % 2 == 0 or k == last for k in range(len(arguments))]
            pairs = zip(arguments, is_value, strict=True)
            return _Moving(value, call(PIECEWISE, [a.rate if v else a.value for a, v in pairs]))
        if function in ("min", "max"):
            extreme, sign = arguments[0], "<" if function == "min" else ">"
            for other in arguments[1:]:
                first = call(sign, [extreme.value, other.value])
                rate = call(PIECEWISE, [extreme.rate, first, other.rate])
                extreme = _Moving(call(function, [extreme.value, other.value]), rate)
            return extreme
        slope = evaluated(_slope(function), {"x": values[0]})
        return _Moving(value, slope * arguments[0].rate)


@cache
def _slope(function: str) -> Expression:
    return parse(SLOPES[function])


def time_derivative(expression: Expression, rates: Mapping[str, Part]) -> Part:
    """Return the time derivative of an expression; names without a rate are constant.

    Examples
    --------
    >>> from odefit.expressions.formulas import name
    >>> time_derivative(parse("x^2 - c"), {"x": name("v")}).expression().text
    '2*x*v'
    """
    values = {n: _Moving(name(n), rates.get(n, ZERO)) for n in expression.names}
    moving: _Moving = expression.evaluate(values, _MovingAlgebra())
    return moving.rate
