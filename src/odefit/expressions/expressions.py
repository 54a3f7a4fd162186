"""Expressions of the problem file: texts parsed by a whitelist grammar. Nothing is executed."""

from __future__ import annotations

import math
import re

import numpy as np

from odefit.expressions.grammar import (
    CONDITIONS,
    FUNCTIONS,
    MAX_EXPONENT,
    MAX_LENGTH,
    MAX_NESTING,
    NAME_PATTERN,
    NON_SMOOTH,
    PIECEWISE,
    ExpressionError,
    Instruction,
)
from odefit.expressions.parser import Parser
from odefit.expressions.postfix import TIME, Algebra, Expression

__all__ = [
    "CONDITIONS",
    "FUNCTIONS",
    "MAX_EXPONENT",
    "MAX_LENGTH",
    "MAX_NESTING",
    "NAME_PATTERN",
    "NON_SMOOTH",
    "PIECEWISE",
    "TIME",
    "Algebra",
    "Expression",
    "ExpressionError",
    "Instruction",
    "as_expression",
    "parse",
    "parse_condition",
]

_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\Z")


def parse(text: str) -> Expression:
    """Parse `text` by the whitelist grammar.

    ``+ - * / ^ **``, parentheses, numbers, names, :data:`FUNCTIONS` and ``piecewise``; ``^`` and
    ``**`` are the same power, right-associative, and bind tighter than a sign to their left. The
    conditions of ``piecewise`` are comparisons ``< <= > >= == !=`` of numbers, joined by
    ``&& || !`` or by ``and or not``; ``!`` binds as a sign does, ``not`` weaker than comparisons.

    Raises
    ------
    ExpressionError
        The text is not an expression; the message has the offending piece and its position.
    """
    return Expression(text, Parser(text).parse(condition=False))


def number_in(text: str) -> float | None:
    """Return the number in `text`, or the value of an expression without names such as ``1/6``.

    A date such as ``2024-01-31`` is no difference, but no number at all.
    """
    try:
        return float(text)
    except ValueError:
        pass
    if _DATE.match(text.strip()):
        return None
    try:
        return parse(text).constant
    except ExpressionError:
        return None


def parse_condition(text: str) -> Expression:
    """Parse `text` as a condition: comparisons, joined by ``&& || !`` or ``and or not``.

    Raises ExpressionError with the offending piece and its position.
    """
    return Expression(text, Parser(text).parse(condition=True))


def as_expression(value: Expression | str | float) -> Expression:
    """Return `value` as an expression: parsed if it is text, a constant if it is a number.

    Raises ExpressionError for a text that cannot be parsed, a condition, and a number that is not
    finite; TypeError, ValueError or OverflowError for other values.
    """
    if isinstance(value, Expression):
        return parse(value.text) if value.is_condition else value
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, (bool, np.bool_)) or np.ndim(value):
        raise TypeError(f"expected an expression or a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ExpressionError(f"{number} is not a finite number")
    return parse(repr(number))
