"""CasADi's symbols as an algebra of expressions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import casadi as ca

SMALLEST_BASE = 1e-300
"""Least base of a power whose exponent is not a constant."""


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
        return getattr(ca, function)(arguments[0])
