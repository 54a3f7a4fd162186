"""Expressions joined from parts, with no more parentheses than necessary.

Sums and products of many parts come out flat, however they were nested: the parser of expressions
limits the depth, not the length of a sum.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odefit.expressions.expressions import FUNCTIONS, MAX_LENGTH, ExpressionError

EITHER, BOTH, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)
"""The precedence of the outermost operator of a text, lowest first."""

OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
"""Comparisons with their negations."""


class Term(NamedTuple):
    """A part of an expression."""

    text: str  # the part as an expression
    level: int = ATOM  # the precedence of its outermost operator
    logical: bool = False  # whether it is a condition, true or false


TRUE = Term("1 > 0", COMPARISON, logical=True)
FALSE = Term("0 > 1", COMPARISON, logical=True)
ZERO, ONE, TWO = Term("0"), Term("1"), Term("2")


def number(value: float) -> Term:
    """Return a finite number as a term."""
    if not math.isfinite(value):
        raise ExpressionError(f"the number {value} is not finite; expressions have finite ones")
    whole = float(value).is_integer() and abs(value) < 1e15
    text = str(int(value)) if whole else repr(float(value))
    return Term(text, SIGN if text.startswith("-") else ATOM)


def number_in(term: Term) -> float | None:
    """Return the value of a term that is a number, otherwise None."""
    if not term.text.lstrip("-")[:1].isdigit():
        return None  # a name such as nan
    try:
        return float(term.text)
    except ValueError:
        return None


def numeric(term: Term) -> Term:
    """Return a condition as a number, 1 where it holds and 0 elsewhere; numbers unchanged."""
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
    """Return the smallest (``"min"``) or the largest (``"max"``) of any number of terms."""
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
    """Return the condition that at least one of some conditions holds."""
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
    """Return the negation of a condition."""
    term = condition(term)
    if term in {TRUE, FALSE}:
        return FALSE if term == TRUE else TRUE
    if term.text.startswith("!(") and term.level == ATOM:
        inside = term.text[2:-1]
        return Term(inside, EITHER if "||" in inside else BOTH, logical=True)
    operators = [f" {operator} " for operator in OPPOSITES if f" {operator} " in term.text]
    if term.level == COMPARISON and len(operators) == 1 and term.text.count(operators[0]) == 1:
        text = term.text.replace(operators[0], f" {OPPOSITES[operators[0].strip()]} ")
        return Term(text, COMPARISON, logical=True)
    return Term(f"!({term.text})", ATOM, logical=True)


def piecewise(terms: Sequence[Term]) -> Term:
    """Return value, condition, value, condition, ..., otherwise as an expression.

    Known conditions are resolved. Without a last value, the second of two conditions must be the
    negation of the first.
    """
    values, conditions = list(terms[::2]), [condition(term) for term in terms[1::2]]
    logical = bool(values) and all(value.logical for value in values)
    pieces: list[tuple[Term, Term]] = []
    otherwise = values.pop() if len(values) > len(conditions) else None
    for value, holds in zip(values, conditions, strict=True):
        if holds == TRUE:
            otherwise = value
            break
        if holds != FALSE:
            pieces.append((value, holds))
    if otherwise is None and len(pieces) == 2 and pieces[1][1] == opposite(pieces[0][1]):
        otherwise = pieces.pop()[0]
    if otherwise is None:
        raise ExpressionError(
            "piecewise has no value where none of its conditions holds; add an otherwise"
        )
    if logical:
        return _chosen(pieces, otherwise)
    if not pieces:
        return numeric(otherwise)
    parts = [part for value, holds in pieces for part in (numeric(value), holds)]
    return call("piecewise", [*parts, numeric(otherwise)])


def _chosen(pieces: list[tuple[Term, Term]], otherwise: Term) -> Term:
    """Return the condition that is one of several, selected by others."""
    result = otherwise
    for value, holds in reversed(pieces):
        result = any_of([all_of([holds, value]), all_of([opposite(holds), result])])
    return result


def _within(term: Term, level: int) -> str:
    """Return the text of a term as a part of one that binds like `level`."""
    return f"({term.text})" if term.level < level else term.text


def _made(text: str, level: int) -> Term:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"written out, it is longer than {MAX_LENGTH} characters")
    return Term(text, level)


def without_factor(term: Term, name: str) -> Term | None:
    """Return a product without one factor `name`, None if it is not a factor.

    Examples
    --------
    >>> without_factor(Term("V*k*(a + b)", PRODUCT), "V").text
    'k*(a + b)'
    """
    if term.text == name:
        return ONE
    if term.level != PRODUCT or name not in term.text:
        return None
    pieces = _factors(term.text)
    if ("*", name) not in pieces:
        return None
    pieces.remove(("*", name))
    if pieces[0][0] == "/":
        pieces.insert(0, ("*", "1"))
    if len(pieces) == 1:
        return _bare(pieces[0][1])
    text = "".join(f"{operator}{factor}" for operator, factor in pieces)[1:]
    return Term(text, PRODUCT)


def _factors(text: str) -> list[tuple[str, str]]:
    """Return the factors of a product, each with the operator before it."""
    pieces: list[tuple[str, str]] = []
    operator, start, depth = "*", 0, 0
    for i, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif depth == 0 and character in "*/":
            pieces.append((operator, text[start:i]))
            operator, start = character, i + 1
    return [*pieces, (operator, text[start:])]


def _bare(text: str) -> Term:
    """Return one factor without the parentheses around it."""
    if not (text.startswith("(") and text.endswith(")")):
        level = ATOM if text.isidentifier() else PRODUCT
        return Term(text, level)
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return Term(text[1:-1], SUM) if i == len(text) - 1 else Term(text, PRODUCT)
    return Term(text, PRODUCT)


_NAME = re.compile(r"(?<![A-Za-z0-9_.])[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(
    r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[A-Za-z_][A-Za-z0-9_]*|\*\*|\S"
)
_LOOSE_BEFORE = frozenset("(,+<>=&|")
_LOOSE_AFTER = frozenset("),+-<>=&|!")
"""Characters that may precede and follow a sum that needs no parentheses."""


def substituted(text: str, replacements: Mapping[str, str]) -> str:
    """Return an expression with names replaced by expressions, all of them at once.

    Raises
    ------
    ExpressionError
        The result is longer than an expression may be.

    Examples
    --------
    >>> substituted("k*x - x_0", {"x": "a + b", "x_0": "2"})
    'k*(a + b) - 2'
    """
    terms = {n: as_term(replacements[n]) for n in names_in(text) if n in replacements}
    return replaced_in(Term(text), terms).text


def as_term(text: str) -> Term:
    """Return an expression as a term."""
    if text.isidentifier() or text.isdecimal():
        return Term(text)
    tokens = _TOKEN.findall(text)
    level, depth, operand = ATOM, 0, False
    for token in tokens:
        if token in {"(", ")"}:
            depth += 1 if token == "(" else -1
        elif depth == 0:
            level = min(level, _level(token, operand))
        operand = token == ")" or token[0].isalnum() or token[0] in "_."
    return Term(text, level)


def _level(token: str, after_operand: bool) -> int:
    """Return the precedence of a token, as an operator after an operand or as a sign."""
    if token in {"+", "-"}:
        return SUM if after_operand else SIGN
    if token in {"*", "/"}:
        return PRODUCT
    if token in {"^", "**"}:
        return POWER
    return EITHER if token in {"<", ">", "=", "!", "&", "|", "and", "or", "not"} else ATOM


def names_in(text: str) -> list[str]:
    """Return the names in an expression, including functions, in order."""
    return _NAME.findall(text)


def replaced_in(term: Term, replacements: Mapping[str, Term]) -> Term:
    """Return a term with names replaced by terms; raise ExpressionError if it becomes too long."""
    whole = replacements.get(term.text)
    if whole is not None:
        return whole

    def inserted(match: re.Match[str]) -> str:
        value = replacements.get(match[0])
        if value is None:
            return match[0]
        if value.level == ATOM or (value.level >= SUM and _stands_loose(match, value)):
            return value.text
        return f"({value.text})"

    result = _NAME.sub(inserted, term.text)
    if len(result) > MAX_LENGTH:
        raise ExpressionError(f"written out, it is longer than {MAX_LENGTH} characters")
    return Term(result, term.level, term.logical)


def _stands_loose(match: re.Match[str], value: Term) -> bool:
    """True if a sum or product needs no parentheses in place of a name."""
    text, before, after = match.string, match.start() - 1, match.end()
    while before >= 0 and text[before] == " ":
        before -= 1
    while after < len(text) and text[after] == " ":
        after += 1
    if after < len(text) and text[after] not in _LOOSE_AFTER:
        return False
    if before < 0 or text[before] in _LOOSE_BEFORE:
        return True
    return text[before] == "-" and value.level in {PRODUCT, POWER} and value.text[0] != "-"


def expanded(definitions: Mapping[str, Term]) -> dict[str, Term]:
    """Return definitions with all names that they define expanded.

    Raises ExpressionError if definitions are circular, or one becomes too long.
    """
    done: dict[str, Term] = {}
    for first in definitions:
        _expand(first, definitions, done)
    return done


def _expand(first: str, definitions: Mapping[str, Term], done: dict[str, Term]) -> None:
    path: dict[str, Iterable[str]] = {}
    pending = [first]
    while pending:
        name = pending[-1]
        if name in done:
            pending.pop()
            continue
        needed = [n for n in dict.fromkeys(names_in(definitions[name].text)) if n in definitions]
        missing = [n for n in needed if n not in done]
        if not missing:
            done[name] = replaced_in(definitions[name], done)
            path.pop(name, None)
            pending.pop()
            continue
        path[name] = missing
        for other in missing:
            if other in path:
                circle = [n for n in path if n in pending]
                around = " -> ".join([*circle[circle.index(other) :], other])
                raise ExpressionError(f"defined by itself: {around}")
        pending.append(missing[0])
