"""Quantities of doses: numbers, or expressions in parameters and constants."""

from __future__ import annotations

import math

from odefit.expressions.expressions import Expression, parse

Quantity = float | Expression
"""A number, or an expression in parameters and constants."""


def as_text(quantity: Quantity) -> str:
    """Return a quantity as a part of an expression."""
    if isinstance(quantity, float):
        return repr(quantity)
    return quantity.text if quantity.text.isidentifier() else f"({quantity.text})"


def combined(first: Quantity, sign: str, second: Quantity | None) -> Quantity:
    """Return the sum, product or ratio of two quantities, or the only given one."""
    if second is None:
        return first
    if isinstance(first, float) and isinstance(second, float):
        return {"+": first + second, "*": first * second}[sign] if sign != "/" else first / second
    return parse(f"{as_text(first)} {sign} {as_text(second)}")


def quotient(first: Quantity, second: Quantity) -> Quantity:
    """Return the ratio of two quantities; infinite for a divisor of zero."""
    return math.inf if second == 0.0 else combined(first, "/", second)


def before(quantity: Quantity, time: Quantity, end: float) -> Quantity:
    """Return `quantity` if `time` is before `end`, and zero otherwise."""
    if isinstance(time, float):
        return quantity if time < end else 0.0
    return parse(f"piecewise({as_text(quantity)}, {time.text} < {end!r}, 0)")
