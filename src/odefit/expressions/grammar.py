"""The grammar of expressions: its functions, signs and limits, and texts cut into tokens.

A condition is the result of a comparison, or of ``&& || !`` of comparisons: true or false. It may
occur only where a condition is expected, and a number only where a number is expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from odefit.common.errors import did_you_mean, one_of, shown

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
true condition, or else the last one."""

MAX_PIECES = 1001
"""Largest number of arguments of ``piecewise``."""

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
"""Signs between two numbers that form a condition."""

LOGIC: Mapping[str, str] = {"and": "&&", "or": "||", "not": "!"}
"""Operators of conditions, and the sign for each word."""

PRECEDENCE: Mapping[str, int] = {
    **dict.fromkeys(("||", "or"), 1),
    **dict.fromkeys(("&&", "and"), 2),
    "not": 3,
    **dict.fromkeys(COMPARISONS, 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/", 6),
}
"""The precedence of operators; signs, including ``!``, and then powers bind tighter."""

CONDITIONS = frozenset({*COMPARISONS, *LOGIC.values()})
"""Operations whose value is a condition; algebras know them as functions with these names."""

TRUTH: Mapping[str, str] = {"true": "==", "false": "!="}
"""Conditions that always or never hold, with the comparison of 1 with itself that expresses
them."""

RESERVED = frozenset({*FUNCTIONS, PIECEWISE, *LOGIC, *TRUTH})
"""Words that cannot be names."""

NON_SMOOTH = frozenset({"abs", "min", "max", PIECEWISE}) | CONDITIONS
"""Functions with a kink, which an integrator of high order must not miss."""

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

MAX_NESTING = 100
MAX_LENGTH = 100_000

MAX_DIGITS = 1000
"""Largest number of characters of a number: Python reads no integer of over 4300."""

MAX_EXPONENT = 1000
"""Largest number as an exponent: exact algebras would fill the memory with digits."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|&&|\|\||[-+*/^(),<>!]))"
)

_OTHER_NAMES = {
    "log_10": "log10", "lg": "log10", "log_e": "log", "log_2": "log2", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "fabs": "abs", "minimum": "min",
    "maximum": "max", "power": "pow", "sgn": "sign", "signum": "sign", "heav": "heaviside",
    "theta": "heaviside", "unit_step": "heaviside", "iif": "if", "if_else": "ifelse",
    "square": "pulse",
}  # fmt: skip
"""Names in other tools for our functions."""

_REMEDIES = {
    **dict.fromkeys(("geq", "ge"), "a >= b"),
    **dict.fromkeys(("leq", "le"), "a <= b"),
    **dict.fromkeys(("neq", "ne"), "a != b"),
    "gt": "a > b",
    "lt": "a < b",
    "eq": "a == b",
    "and": "a && b",
    "or": "a || b",
    "xor": "a && !b || b && !a, each in parentheses",
    "asinh": "log(x + sqrt(x^2 + 1))",
    "acosh": "log(x + sqrt(x^2 - 1))",
    "atanh": "log((1 + x)/(1 - x))/2",
    "cbrt": "x^(1/3)",
    "log1p": "log(1 + x)",
    "expm1": "exp(x) - 1",
    "exp10": "10^x",
    "root": "a^(1/b)",
    "sqr": "x^2",
    "sec": "1/cos(x)",
    "csc": "1/sin(x)",
    "cot": "1/tan(x)",
    "hill": "x^n/(k^n + x^n), or define the function in [functions]",
}
"""Our equivalents of other tools' functions."""

_DELAYS = frozenset(("delay", "delayed", "lag", "delay1", "delay3", "dde", "history"))
"""Other tools' names for a value at an earlier time."""

CHAIN_REMEDY = (
    "approximate it by a chain of states, each of which follows the one before: "
    '"d[1]" = "r*(x - d[1])" and "d[2:n]" = "r*(d[i-1] - d[i])" in [ode], with r = n/delay; '
    "d[n] then stands for x at the earlier time, the sharper the larger n is"
)
"""The replacement of a delay: the linear chain trick."""

_LOOKALIKES = {
    "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*",
    "\u2217": "*", "\u00f7": "/", "\u00b2": "^2", "\u00b3": "^3", "[": "(", "]": ")",
    "{": "(", "}": ")", "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "=": "==",
    "&": "&&", "|": "||", "\u00b5": "u", "\u03bc": "mu", "\u221a": "sqrt",
}  # fmt: skip
"""Characters that word processors and other languages use instead of ours."""


class ExpressionError(ValueError):
    """The error for a text that is not an expression, with the reason and the place."""


class Instruction(NamedTuple):
    """One instruction of the postfix form."""

    kind: Literal["number", "name", "negate", "binary", "call"]
    text: str
    arity: int = 0


class Token(NamedTuple):
    """A piece of a text: its kind (number, name or operator), its text, and its start."""

    kind: str
    text: str
    start: int


def tokens_of(text: str) -> list[Token]:
    """Return the pieces of `text`, or raise ExpressionError: too long, a foreign character."""
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


def unknown_function(function: str, functions: Iterable[str]) -> str:
    """Return the end of the sentence on an unknown function: a suggestion."""
    word = function.casefold()
    known = _OTHER_NAMES.get(word)
    candidates = (*functions, PIECEWISE)
    if word in _DELAYS:
        return f"; delays are not integrated: {CHAIN_REMEDY}"
    if known and known in candidates:
        return f"; did you mean '{known}'?"
    if word in _REMEDIES:
        return f"; write {_REMEDIES[word]}"
    if did_you_mean(function, candidates):
        return one_of(function, candidates)
    return f"{one_of(function, candidates)} (a product needs a *)"


def value_at_a_time(name: str, inside: str) -> str | None:
    """Return the end of the sentence on a name with the time in parentheses, as in ``x(t - 7)``.

    Returns None if the name is more likely a function of other tools.
    """
    if name.casefold() in {*_OTHER_NAMES, *_REMEDIES, *_DELAYS}:
        return None
    if inside == "t":
        return f"; a name alone stands for its value at the time t: write {name}"
    if inside == "0":
        return (
            f"; the value of '{name}' at the start is not a function here: write a parameter for "
            f"it, and the same parameter for {name} in [initial]"
        )
    return f" asks for a value at another time; delays are not integrated: {CHAIN_REMEDY}"


def named(function: str) -> str:
    """Return the name by which users know a function: for a comparison, the enclosing function."""
    return PIECEWISE if function in CONDITIONS else function


def _unexpected_character(text: str, start: int) -> ExpressionError:
    character = text[start]
    if character in _LOOKALIKES:
        remedy = f"; write {_LOOKALIKES[character]!r}"
    elif character in "?:":
        remedy = "; write piecewise(value, condition, otherwise)"
    elif character in "'\u2032\u2019" and start:
        remedy = (
            "; a derivative cannot be used in an expression: write out the right-hand side of its "
            "equation"
        )
    elif character == "%":
        remedy = "; for per cent divide by 100; there is no remainder operator"
    elif character == ".":
        module = re.search(r"\b(np|numpy|math|sp|sympy|jnp|torch|pm)\Z", text[:start])
        remedy = (
            f"; write the function alone, without {module[0]!r}"
            if module
            else "; a dot is part of a number only"
        )
    else:
        remedy = "; expressions have numbers, names, functions, + - * / ^ and parentheses"
    return ExpressionError(f"unexpected {character!r} {where(text, start)}{remedy}")
