"""Expressions put together from parts, with no more parentheses than they need.

Sums and products of many parts come out flat, however they were nested: the parser of expressions
limits the depth, not the length of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from odefit.expressions.expressions import FUNCTIONS, MAX_LENGTH, ExpressionError

EITHER, BOTH, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)
"""How tightly the outermost operator of a text binds its parts, the loosest first."""

OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
"""Comparisons, and those that hold where they do not."""


class Term(NamedTuple):
    """A part of an expression."""

    text: str  # the part as an expression
    level: int = ATOM  # how tightly its outermost operator binds
    logical: bool = False  # whether it is a condition, true or false


TRUE = Term("1 > 0", COMPARISON, logical=True)
FALSE = Term("0 > 1", COMPARISON, logical=True)
ZERO, ONE, TWO = Term("0"), Term("1"), Term("2")


def number(value: float) -> Term:
    """Return a finite number as a term."""
    if not math.isfinite(value):
        raise ExpressionError(f"the number {value} is not finite, and expressions have no such")
    whole = float(value).is_integer() and abs(value) < 1e15
    text = str(int(value)) if whole else repr(float(value))
    return Term(text, SIGN if text.startswith("-") else ATOM)


def number_in(term: Term) -> float | None:
    """Return the value of a term that is a number, None of any other."""
    if not term.text.lstrip("-")[:1].isdigit():
        return None  # a name such as nan
    try:
        return float(term.text)
    except ValueError:
        return None


def numeric(term: Term) -> Term:
    """Return a condition as a number, 1 where it holds and 0 elsewhere; numbers as they are."""
    if not term.logical:
        return term
    if term in {TRUE, FALSE}:
        return ONE if term == TRUE else ZERO
    return call("piecewise", [ONE, term, ZERO])


def condition(term: Term) -> Term:
    """Return a number as a condition, which holds where it is not zero."""
    if term.logical:
        return term
    value = number_in(term)
    if value is None:
        return compared("!=", term, ZERO)
    return TRUE if value else FALSE


def total(terms: Iterable[Term]) -> Term:
    """Return the sum of terms."""
    parts = [numeric(term) for term in terms]
    if len(parts) < 2:
        return parts[0] if parts else ZERO
    pieces = [_within(parts[0], SUM)]
    for part in parts[1:]:
        text = _within(part, SUM)
        pieces.append(f" - {text[1:]}" if text.startswith("-") else f" + {text}")
    return _made("".join(pieces), SUM)


def difference(left: Term, right: Term) -> Term:
    """Return ``left - right``."""
    right = numeric(right)
    text = right.text if right.level > SIGN or right.level == PRODUCT else f"({right.text})"
    if text.startswith("-"):
        text = f"({text})"
    return _made(f"{_within(numeric(left), SUM)} - {text}", SUM)


def negative(term: Term) -> Term:
    """Return ``-term``."""
    text = _within(numeric(term), PRODUCT)
    return _made(f"-({text})" if text.startswith("-") else f"-{text}", SIGN)


def product(terms: Iterable[Term]) -> Term:
    """Return the product of terms."""
    parts = [numeric(term) for term in terms]
    if len(parts) < 2:
        return parts[0] if parts else ONE
    pieces = [_within(parts[0], PRODUCT)]
    for part in parts[1:]:
        text = _within(part, PRODUCT)
        pieces.append(f"({text})" if text.startswith("-") else text)
    return _made("*".join(pieces), PRODUCT)


def quotient(above: Term, below: Term) -> Term:
    """Return ``above/below``."""
    text = f"{_within(numeric(above), PRODUCT)}/{_within(numeric(below), POWER)}"
    return _made(text, PRODUCT)


def power(base: Term, exponent: Term) -> Term:
    """Return ``base^exponent``."""
    text = f"{_within(numeric(base), ATOM)}^{_within(numeric(exponent), POWER)}"
    return _made(text, POWER)


def call(function: str, terms: Sequence[Term]) -> Term:
    """Return the value of a function of expressions."""
    return _made(f"{function}({', '.join(term.text for term in terms)})", ATOM)


def extreme(function: str, terms: Sequence[Term]) -> Term:
    """Return the least (``"min"``) or the largest (``"max"``) of any number of terms."""
    parts = [numeric(term) for term in terms]
    most = FUNCTIONS[function][1]
    while len(parts) > most:
        parts = [call(function, parts[:most]), *parts[most:]]
    return parts[0] if len(parts) == 1 else call(function, parts)


def compared(operator: str, left: Term, right: Term) -> Term:
    """Return the comparison of two terms by ``< <= > >= == !=``."""
    if left.logical and right.logical and operator in {"==", "!="}:
        same = any_of([all_of([left, right]), all_of([opposite(left), opposite(right)])])
        return same if operator == "==" else opposite(same)
    left, right = numeric(left), numeric(right)
    a, b = number_in(left), number_in(right)
    if a is None or b is None:
        text = f"{_within(left, SUM)} {operator} {_within(right, SUM)}"
        return Term(_made(text, COMPARISON).text, COMPARISON, logical=True)
    holds = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
    return TRUE if holds[operator] else FALSE


def all_of(terms: Iterable[Term]) -> Term:
    """Return the condition that all of some conditions hold."""
    return _combined([condition(term) for term in terms], "&&", BOTH, TRUE, FALSE)


def any_of(terms: Iterable[Term]) -> Term:
    """Return the condition that one of some conditions holds at least."""
    return _combined([condition(term) for term in terms], "||", EITHER, FALSE, TRUE)


def _combined(parts: list[Term], operator: str, level: int, idle: Term, final: Term) -> Term:
    if final in parts:
        return final
    parts = [part for part in parts if part != idle]
    if len(parts) < 2:
        return parts[0] if parts else idle
    texts = [
        part.text if part.level in {level, COMPARISON, ATOM} else f"({part.text})" for part in parts
    ]
    return Term(_made(f" {operator} ".join(texts), level).text, level, logical=True)


def opposite(term: Term) -> Term:
    """Return the condition that another one does not hold."""
    term = condition(term)
    if term in {TRUE, FALSE}:
        return FALSE if term == TRUE else TRUE
    if term.text.startswith("!(") and term.level == ATOM:
        inside = term.text[2:-1]
        return Term(inside, EITHER if "||" in inside else BOTH, logical=True)
    found = [f" {operator} " for operator in OPPOSITES if f" {operator} " in term.text]
    if term.level == COMPARISON and len(found) == 1 and term.text.count(found[0]) == 1:
        text = term.text.replace(found[0], f" {OPPOSITES[found[0].strip()]} ")
        return Term(text, COMPARISON, logical=True)
    return Term(f"!({term.text})", ATOM, logical=True)


def piecewise(terms: Sequence[Term]) -> Term:
    """Return value, condition, value, condition, ..., otherwise as an expression.

    Conditions that are known are resolved. Without a last value, the second of two conditions must
    be the opposite of the first.
    """
    values, conditions = list(terms[::2]), [condition(term) for term in terms[1::2]]
    logical = bool(values) and all(value.logical for value in values)
    kept: list[tuple[Term, Term]] = []
    otherwise = values.pop() if len(values) > len(conditions) else None
    for value, holds in zip(values, conditions, strict=True):
        if holds == TRUE:
            otherwise = value
            break
        if holds != FALSE:
            kept.append((value, holds))
    if otherwise is None and len(kept) == 2 and kept[1][1] == opposite(kept[0][1]):
        otherwise = kept.pop()[0]
    if otherwise is None:
        raise ExpressionError(
            "piecewise has no value for where none of its conditions holds; add an otherwise"
        )
    if logical:
        return _chosen(kept, otherwise)
    if not kept:
        return numeric(otherwise)
    parts = [part for value, holds in kept for part in (numeric(value), holds)]
    return call("piecewise", [*parts, numeric(otherwise)])


def _chosen(kept: list[tuple[Term, Term]], otherwise: Term) -> Term:
    """Return the condition that is one of several, depending on others."""
    result = otherwise
    for value, holds in reversed(kept):
        result = any_of([all_of([holds, value]), all_of([opposite(holds), result])])
    return result


def _within(term: Term, level: int) -> str:
    """Return the text of a term as a part of one that binds like `level`."""
    return f"({term.text})" if term.level < level else term.text


def _made(text: str, level: int) -> Term:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"written out, it is longer than {MAX_LENGTH} characters")
    return Term(text, level)
