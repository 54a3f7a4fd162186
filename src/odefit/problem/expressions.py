"""Expressions of the problem file: a whitelist parser, and evaluation over any algebra.

An :class:`Expression` is kept in postfix form. It is evaluated with a stack, on whatever
objects the caller puts in for the names: floats, arrays, dual numbers, symbols of a computer
algebra system or of an integrator, intervals, elements of a finite field. Nothing is ever
executed as Python code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from odefit.problem.algebras import NUMPY
from odefit.problem.errors import did_you_mean, one_of, shown

T = TypeVar("T")

FUNCTIONS: Mapping[str, tuple[int, int]] = {
    # name: fewest and most arguments
    **dict.fromkeys(
        "exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh abs".split(), (1, 1)
    ),
    "min": (2, 64),
    "max": (2, 64),
}
"""The functions that an expression may call, with the number of their arguments."""

NON_SMOOTH = frozenset({"abs", "min", "max"})
"""Functions with a kink: an integrator of high order must not step across it unawares."""

TIME = "t"
"""The name of the time in every expression."""

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

MAX_NESTING = 100
MAX_LENGTH = 100_000

MAX_EXPONENT = 1000
"""Numbers as exponents are no larger: exact algebras would fill the memory with digits."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|[-+*/^(),]))"
)

_OTHER_NAMES = {
    "ln": "log", "log_10": "log10", "lg": "log10", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "fabs": "abs", "minimum": "min", "maximum": "max",
}  # fmt: skip
"""What other tools call our functions."""

_LOOKALIKES = {
    "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*",
    "\u2217": "*", "\u00f7": "/", "\u00b2": "^2", "\u00b3": "^3", "[": "(", "]": ")",
    "{": "(", "}": ")",
}  # fmt: skip
"""Characters that word processors and other languages put where ours are meant."""


class ExpressionError(ValueError):
    """The error for a text that is no expression; it says what is wrong, and where."""


class Instruction(NamedTuple):
    """One instruction of the postfix form."""

    kind: Literal["number", "name", "negate", "binary", "call"]
    text: str
    arity: int = 0


class Algebra(Protocol[T]):
    """The operations beside ``+ - * /`` that objects need so that expressions can be evaluated."""

    def number(self, text: str) -> T:
        """Return the constant written as `text`, e.g. ``"0.1"``, exactly if that is possible."""

    def power(self, base: T, exponent: T) -> T:
        """Return ``base ** exponent``."""

    def call(self, function: str, arguments: Sequence[T]) -> T:
        """Return the value of a function of :data:`FUNCTIONS`."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression.

    Attributes
    ----------
    text
        The expression as the user wrote it.
    program
        Its postfix form.
    """

    text: str
    program: tuple[Instruction, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that occur in it (functions not counted)."""
        return frozenset(i.text for i in self.program if i.kind == "name")

    @cached_property
    def functions(self) -> frozenset[str]:
        """Functions that it calls."""
        return frozenset(i.text for i in self.program if i.kind == "call")

    @property
    def name(self) -> str | None:
        """The name, if the expression is nothing but one."""
        return self.program[0].text if self._is_single("name") else None

    @property
    def constant(self) -> float | None:
        """The value, if no name occurs in it."""
        if self.names:
            return None
        with np.errstate(all="ignore"):
            return float(self.evaluate({}, NUMPY))

    def _is_single(self, kind: str) -> bool:
        return len(self.program) == 1 and self.program[0].kind == kind

    def evaluate(self, values: Mapping[str, Any], algebra: Algebra[Any]) -> Any:
        """Return the value over `algebra`, with `values` for the names.

        Over floats, `values` are NumPy's (Python's own floats raise where 1/0 is inf).

        Raises
        ------
        KeyError
            A name has no value.
        """
        stack: list[Any] = []
        for kind, text, arity in self.program:
            if kind == "name":
                stack.append(values[text])
            elif kind == "number":
                stack.append(algebra.number(text))
            elif kind == "negate":
                stack.append(-stack.pop())
            elif kind == "binary":
                right = stack.pop()
                left = stack.pop()
                if text == "+":
                    stack.append(left + right)
                elif text == "-":
                    stack.append(left - right)
                elif text == "*":
                    stack.append(left * right)
                elif text == "/":
                    stack.append(left / right)
                else:
                    stack.append(algebra.power(left, right))
            else:
                arguments = stack[-arity:]
                del stack[-arity:]
                stack.append(algebra.call(text, arguments))
        return stack[0]

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Expression:
    """Parse `text` by the whitelist grammar.

    ``+ - * / ^ **``, parentheses, numbers, names and :data:`FUNCTIONS`; ``^`` and ``**`` are the
    same power, right-associative, and bind tighter than a sign to their left.

    Raises
    ------
    ExpressionError
        The text is no expression; the message has the offending piece and its position.
    """
    return Expression(text, _Parser(text).parse())


def as_expression(value: Expression | str | float) -> Expression:
    """Return `value` as an expression: parsed if it is text, a constant if it is a number.

    Raises
    ------
    ExpressionError
        Text that is no expression, or a number that is not finite.
    TypeError, ValueError, OverflowError
        Neither text nor a number that fits.
    """
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, (bool, np.bool_)) or np.ndim(value):
        raise TypeError(f"expected an expression or a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number):
        raise ExpressionError(f"{number} is not a finite number")
    return parse(repr(number))


class _Parser:
    """Operator-precedence parser from text to postfix form.

    Parts without names are evaluated on the way, to refuse those that have no finite value.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(
                f"longer than {MAX_LENGTH} characters: {shown(text)}; split it into several"
            )
        self.text = text
        self.program: list[Instruction] = []
        self.folded: list[np.float64 | None] = []  # by operand: its value, if no name is in it
        self.nesting = 0
        self.tokens = self._tokenise()
        self.position = 0

    def _tokenise(self) -> list[tuple[str, str, int]]:
        tokens = []
        at = 0
        end = len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                start = next(i for i in range(at, end) if not self.text[i].isspace())
                raise self._unexpected_character(start)
            kind = str(match.lastgroup)
            tokens.append((kind, match.group(kind), match.start(kind)))
            at = match.end()
        return tokens

    def _unexpected_character(self, start: int) -> ExpressionError:
        character = self.text[start]
        if character in _LOOKALIKES:
            remedy = f"; write {_LOOKALIKES[character]!r}"
        elif character in "<>=!&|?:":
            remedy = "; there are no comparisons, min(...) and max(...) can often do"
        elif character == ".":
            remedy = "; a dot is part of a number only"
        else:
            remedy = "; expressions have numbers, names, functions, + - * / ^ and parentheses"
        return ExpressionError(f"unexpected {character!r} {self._where(start)}{remedy}")

    def _where(self, start: int) -> str:
        """Return position `start` with the text around it, cut if the text is long."""
        first, last = max(0, start - 30), start + 30
        around = f"{'...' * (first > 0)}{self.text[first:last]}{'...' * (last < len(self.text))}"
        if len(self.text) <= 80:
            around = self.text
        return f"at position {start + 1} of {around!r}"

    def parse(self) -> tuple[Instruction, ...]:
        if not self.tokens:
            raise ExpressionError("the expression is empty")
        with np.errstate(all="ignore"):
            self._sum()
        if self.position < len(self.tokens):
            raise self._unexpected("an operator")
        return tuple(self.program)

    def _peek(self) -> str:
        return self.tokens[self.position][1] if self.position < len(self.tokens) else ""

    def _take(self) -> tuple[str, str, int]:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def _emit(self, instruction: Instruction, start: int) -> None:
        """Append `instruction`, which was read at `start` of the text, and fold its operands."""
        self.program.append(instruction)
        kind, text, arity = instruction
        if kind == "name":
            self.folded.append(None)
            return
        operands = self.folded[len(self.folded) - arity :]
        del self.folded[len(self.folded) - arity :]
        if text == "^" and operands[1] is not None and abs(operands[1]) > MAX_EXPONENT:
            raise ExpressionError(
                f"the exponent {self._where(start)} is {operands[1]:g}; "
                f"the largest is {MAX_EXPONENT}"
            )
        if any(operand is None for operand in operands):
            self.folded.append(None)
            return
        names = [f"v{i}" for i in range(arity)]
        step = Expression("", (*(Instruction("name", n) for n in names), instruction))
        value = step.evaluate(dict(zip(names, operands, strict=True)), NUMPY)
        lost = text == "^" and value == 0 and operands[0] != 0  # smaller than any float
        if lost or not np.isfinite(value):
            raise ExpressionError(
                f"{text!r} {self._where(start)} has no finite value: "
                "a division by zero, an overflow, or a function outside its domain"
            )
        self.folded.append(value)

    def _unexpected(self, wanted: str) -> ExpressionError:
        if self.position >= len(self.tokens):
            return ExpressionError(f"{shown(self.text)} ends where {wanted} is expected")
        _, token, start = self.tokens[self.position]
        return ExpressionError(f"unexpected {token!r} {self._where(start)}; expected {wanted}")

    def _sum(self) -> None:
        self._product()
        while self._peek() in {"+", "-"}:
            _, operator, start = self._take()
            self._product()
            self._emit(Instruction("binary", operator, 2), start)

    def _product(self) -> None:
        self._sign()
        while self._peek() in {"*", "/"}:
            _, operator, start = self._take()
            self._sign()
            self._emit(Instruction("binary", operator, 2), start)

    def _sign(self) -> None:
        # Every way to nest passes here once a level: parentheses, signs, powers, arguments.
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            start = self.tokens[min(self.position, len(self.tokens) - 1)][2]
            raise ExpressionError(f"nested deeper than {MAX_NESTING} levels {self._where(start)}")
        if self._peek() in {"-", "+"}:
            _, sign, start = self._take()
            self._sign()
            if sign == "-":
                self._emit(Instruction("negate", "-", 1), start)
        else:
            self._power()
        self.nesting -= 1

    def _power(self) -> None:
        self._atom()
        if self._peek() in {"^", "**"}:
            start = self._take()[2]
            self._sign()
            self._emit(Instruction("binary", "^", 2), start)

    def _atom(self) -> None:
        if self.position >= len(self.tokens):
            raise self._unexpected("a number, a name or '('")
        kind, token, start = self.tokens[self.position]
        if kind == "number":
            self._take()
            if not math.isfinite(float(token)) or abs(_exponent(token)) > 400:
                raise ExpressionError(f"the number {self._where(start)} is out of range")
            self._emit(Instruction("number", token), start)
        elif kind == "name":
            self._take()
            if self._peek() == "(":
                self._call(token, start)
            elif token in FUNCTIONS:
                raise ExpressionError(
                    f"the function {token!r} {self._where(start)} has no arguments; "
                    f"write {token}(...)"
                )
            else:
                self._emit(Instruction("name", token), start)
        elif token == "(":
            self._take()
            self._sum()
            self._expect(")")
        else:
            raise self._unexpected("a number, a name or '('")

    def _call(self, function: str, start: int) -> None:
        if function not in FUNCTIONS:
            known = _OTHER_NAMES.get(function.casefold())
            if function.casefold() == "pow":
                hint = "; write a^b"
            elif known:
                hint = f"; did you mean '{known}'?"
            elif did_you_mean(function, FUNCTIONS):
                hint = one_of(function, FUNCTIONS)
            else:
                hint = f"{one_of(function, FUNCTIONS)} (a product needs a *)"
            raise ExpressionError(f"unknown function {shown(function)} {self._where(start)}{hint}")
        self._take()
        count = 0
        if self._peek() != ")":
            self._sum()
            count = 1
            while self._peek() == ",":
                self._take()
                self._sum()
                count += 1
        self._expect(")")
        fewest, most = FUNCTIONS[function]
        if not fewest <= count <= most:
            wanted = "one argument" if most == 1 else f"{fewest} to {most} arguments"
            raise ExpressionError(f"{function} takes {wanted}, got {count}, {self._where(start)}")
        self._emit(Instruction("call", function, count), start)

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._unexpected(f"{token!r}")
        self._take()


def _exponent(number: str) -> int:
    _, _, exponent = number.lower().partition("e")
    return int(exponent or 0) if len(exponent) < 10 else 10**9
