"""The grammar of expressions: its functions, signs and limits, and texts cut into tokens.

A condition is what a comparison, or ``&& || !`` of comparisons, gives: true or false. It may stand
only where that is expected, and a number only where a number is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from odefit.problem.errors import did_you_mean, one_of, shown

FUNCTIONS: Mapping[str, tuple[int, int]] = {
    # name: fewest and most arguments
    **dict.fromkeys(
        "exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh abs".split(), (1, 1)
    ),
    "min": (2, 64),
    "max": (2, 64),
}
"""The functions that an expression may call, with the number of their arguments."""

PIECEWISE = "piecewise"
"""``piecewise(value, condition, value, condition, ..., otherwise)``: the value before the first
condition that is true, or else the last one."""

MAX_PIECES = 1001
"""So many arguments ``piecewise`` can have."""

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
"""Signs between two numbers, which give a condition."""

LOGIC: Mapping[str, str] = {"and": "&&", "or": "||", "not": "!"}
"""Operators of conditions, and the sign that each word stands for."""

PRECEDENCE: Mapping[str, int] = {
    **dict.fromkeys(("||", "or"), 1),
    **dict.fromkeys(("&&", "and"), 2),
    "not": 3,
    **dict.fromkeys(COMPARISONS, 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/", 6),
}
"""How tight operators bind; signs, ``!`` among them, and then powers bind tighter."""

CONDITIONS = frozenset({*COMPARISONS, *LOGIC.values()})
"""Operations whose value is a condition; algebras know them as functions of these names."""

TRUTH: Mapping[str, str] = {"true": "==", "false": "!="}
"""Conditions that always hold, or never do, by the comparison of 1 with itself that says so."""

RESERVED = frozenset({*FUNCTIONS, PIECEWISE, *LOGIC, *TRUTH})
"""Words that cannot be names."""

NON_SMOOTH = frozenset({"abs", "min", "max", PIECEWISE}) | CONDITIONS
"""Functions with a kink: an integrator of high order must not step across it unawares."""

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

MAX_NESTING = 100
MAX_LENGTH = 100_000

MAX_EXPONENT = 1000
"""Numbers as exponents are no larger: exact algebras would fill the memory with digits."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|&&|\|\||[-+*/^(),<>!]))"
)

_OTHER_NAMES = {
    "ln": "log", "log_10": "log10", "lg": "log10", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "fabs": "abs", "minimum": "min", "maximum": "max",
}  # fmt: skip
"""What other tools call our functions."""

_REMEDIES = {
    "pow": "a^b",
    **dict.fromkeys(("if", "ifelse", "if_else", "where"), "piecewise(a, condition, b)"),
    **dict.fromkeys(("heaviside", "step", "theta"), "piecewise(0, x < 0, 1)"),
    "sign": "piecewise(-1, x < 0, 1, x > 0, 0)",
    **dict.fromkeys(("geq", "ge"), "a >= b"),
    **dict.fromkeys(("leq", "le"), "a <= b"),
    **dict.fromkeys(("neq", "ne"), "a != b"),
    "gt": "a > b",
    "lt": "a < b",
    "eq": "a == b",
}
"""What is written here for functions of other tools."""

_LOOKALIKES = {
    "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*",
    "\u2217": "*", "\u00f7": "/", "\u00b2": "^2", "\u00b3": "^3", "[": "(", "]": ")",
    "{": "(", "}": ")", "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "=": "==",
    "&": "&&", "|": "||",
}  # fmt: skip
"""Characters that word processors and other languages put where ours are meant."""


class ExpressionError(ValueError):
    """The error for a text that is no expression; it says what is wrong, and where."""


class Instruction(NamedTuple):
    """One instruction of the postfix form."""

    kind: Literal["number", "name", "negate", "binary", "call"]
    text: str
    arity: int = 0


class Token(NamedTuple):
    """A piece of a text: its kind (number, name or operator), itself, and where it starts."""

    kind: str
    text: str
    start: int


def tokens_of(text: str) -> list[Token]:
    """Return the pieces of `text`.

    Raises
    ------
    ExpressionError
        The text is too long, or has a character that no expression has.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"longer than {MAX_LENGTH} characters: {shown(text)}; split it into several"
        )
    tokens = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = next(i for i in range(at, end) if not text[i].isspace())
            raise _unexpected_character(text, start)
        kind = str(match.lastgroup)
        tokens.append(Token(kind, match.group(kind), match.start(kind)))
        at = match.end()
    return tokens


def where(text: str, start: int) -> str:
    """Return position `start` with the text around it, cut if the text is long."""
    first, last = max(0, start - 30), start + 30
    around = f"{'...' * (first > 0)}{text[first:last]}{'...' * (last < len(text))}"
    if len(text) <= 80:
        around = text
    return f"at position {start + 1} of {around!r}"


def unknown_function(function: str) -> str:
    """Return the end of the sentence on a function that does not exist: what was meant."""
    word = function.casefold()
    known = _OTHER_NAMES.get(word)
    candidates = (*FUNCTIONS, PIECEWISE)
    if word in _REMEDIES:
        return f"; write {_REMEDIES[word]}"
    if known:
        return f"; did you mean '{known}'?"
    if did_you_mean(function, candidates):
        return one_of(function, candidates)
    return f"{one_of(function, candidates)} (a product needs a *)"


def named(function: str) -> str:
    """Return the name by which users know a function: of a comparison the function around it."""
    return PIECEWISE if function in CONDITIONS else function


def _unexpected_character(text: str, start: int) -> ExpressionError:
    character = text[start]
    if character in _LOOKALIKES:
        remedy = f"; write {_LOOKALIKES[character]!r}"
    elif character in "?:":
        remedy = "; write piecewise(value, condition, otherwise)"
    elif character == ".":
        remedy = "; a dot is part of a number only"
    else:
        remedy = "; expressions have numbers, names, functions, + - * / ^ and parentheses"
    return ExpressionError(f"unexpected {character!r} {where(text, start)}{remedy}")
