"""CasADi's symbols as an algebra of expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import casadi as ca

SMALLEST_BASE = 1e-300
"""Least base of a power whose exponent is not a constant."""

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


class CasadiAlgebra:
    """CasADi SX symbols."""

    def number(self, text: str) -> Any:
        return ca.SX(float(text))

    def power(self, base: Any, exponent: Any) -> Any:
        if exponent.is_constant():
            return base**exponent
        # The derivative of x^n by n is x^n log(x), which is 0 * inf where x is 0: keep off zero.
        # A base that roundoff has taken below zero counts as zero.
        return ca.fmax(base, SMALLEST_BASE) ** exponent

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
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
