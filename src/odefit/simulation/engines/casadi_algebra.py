"""CasADi's symbols as an algebra of expressions.

CasADi's own operators test every possible kind of argument, which takes ten times as long as making
the expression; the operators of :class:`Symbol` know theirs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import casadi as ca

from odefit.expressions.expressions import TIME
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.segments import input_value

SMALLEST_BASE = 1e-300  # smallest base of a power with a variable exponent

_CONDITIONS: Mapping[str, Callable[..., Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&&": ca.logic_and,
    "||": ca.logic_or,
    "!": ca.logic_not,
}
"""Comparisons and operations on conditions, which are symbols that are 0 or 1."""


class Symbol:
    """A scalar expression in CasADi's symbols."""

    __slots__ = ("sx",)

    def __init__(self, sx: Any) -> None:
        self.sx = sx

    def __neg__(self) -> Symbol:
        return Symbol(-self.sx)

    def __add__(self, other: Symbol) -> Symbol:
        return Symbol(ca.SX.binary(ca.OP_ADD, self.sx, other.sx))

    def __sub__(self, other: Symbol) -> Symbol:
        return Symbol(ca.SX.binary(ca.OP_SUB, self.sx, other.sx))

    def __mul__(self, other: Symbol) -> Symbol:
        return Symbol(ca.SX.binary(ca.OP_MUL, self.sx, other.sx))

    def __truediv__(self, other: Symbol) -> Symbol:
        return Symbol(ca.SX.binary(ca.OP_DIV, self.sx, other.sx))


def symbols_of(column: Any) -> list[Symbol]:
    """Return the entries of a column of CasADi's symbols, which may be empty."""
    return [Symbol(entry) for entry in ca.vertsplit(column)] if column.numel() else []


def column_of(values: Iterable[Symbol]) -> Any:
    """Return scalar expressions as a dense column of CasADi's symbols."""
    entries = [value.sx for value in values]
    return ca.densify(ca.vertcat(*entries)) if entries else ca.SX(0, 1)


def flat_symbols(field: VectorField) -> tuple[Any, list[Symbol], dict[str, Symbol]]:
    """Return a vector of symbols for a field, its entries, and the values of names in them.

    They are the time, the states, the scalars, and five numbers of each input's polynomial.
    """
    n, p = len(field.states), len(field.scalars)
    vector = ca.SX.sym("x", 1 + n + p + 5 * len(field.inputs))
    symbols = symbols_of(vector)
    values = dict(zip((TIME, *field.states, *field.scalars), symbols, strict=False))
    for k, name in enumerate(field.inputs):
        values[name] = input_value(symbols[1 + n + p + 5 * k :][:5], symbols[0])
    return vector, symbols, values


class CasadiAlgebra:
    """Expressions in CasADi's symbols, see :class:`Symbol`."""

    def number(self, text: str) -> Symbol:
        return Symbol(ca.SX(float(text)))

    def power(self, base: Symbol, exponent: Symbol) -> Symbol:
        value = base.sx
        if not exponent.sx.is_constant():
            # The derivative of x^n with respect to n is x^n log(x), which is 0 * inf at x = 0:
            # avoid zero. A base that is negative by rounding counts as zero.
            value = ca.fmax(value, SMALLEST_BASE)
        return Symbol(ca.SX.binary(ca.OP_POW, value, exponent.sx))

    def call(self, function: str, arguments: Sequence[Symbol]) -> Symbol:
        return Symbol(_called(function, [argument.sx for argument in arguments]))


def _called(function: str, arguments: Sequence[Any]) -> Any:
    if function == "min":
        return reduce(ca.fmin, arguments)
    if function == "max":
        return reduce(ca.fmax, arguments)
    if function == "abs":
        return ca.fabs(arguments[0])
    if function == "piecewise":
        result = arguments[-1]
        for k in range(len(arguments) - 3, -1, -2):
            result = ca.if_else(arguments[k + 1], arguments[k], result)
        return result
    if function in _CONDITIONS:
        return _CONDITIONS[function](*arguments)
    return getattr(ca, function)(arguments[0])
