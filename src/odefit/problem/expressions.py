"""Expressions of the problem file: a whitelist parser, and evaluation over any algebra.

An :class:`Expression` is kept in postfix form. It is evaluated with a stack, on whatever
objects the caller puts in for the names: floats, arrays, dual numbers, symbols of a computer
algebra system or of an integrator, intervals, elements of a finite field. Nothing is ever
executed as Python code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from odefit.problem.algebras import NUMPY
from odefit.problem.errors import shown
from odefit.problem.grammar import (
    COMPARISONS,
    CONDITIONS,
    FUNCTIONS,
    LOGIC,
    MAX_EXPONENT,
    MAX_LENGTH,
    MAX_NESTING,
    MAX_PIECES,
    NAME_PATTERN,
    NON_SMOOTH,
    PIECEWISE,
    PRECEDENCE,
    TRUTH,
    ExpressionError,
    Instruction,
    Token,
    tokens_of,
    unknown_function,
    where,
)

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

T = TypeVar("T")

TIME = "t"
"""The name of the time in every expression."""


class Algebra(Protocol[T]):
    """The operations beside ``+ - * /`` that objects need so that expressions can be evaluated."""

    def number(self, text: str) -> T:
        """Return the constant written as `text`, e.g. ``"0.1"``, exactly if that is possible."""

    def power(self, base: T, exponent: T) -> T:
        """Return ``base ** exponent``."""

    def call(self, function: str, arguments: Sequence[T]) -> T:
        """Return the value of a function of :data:`FUNCTIONS`, ``piecewise``, or a condition.

        Conditions are the comparisons and ``&& || !``, by their signs; algebras that cannot tell
        true from false refuse them as they refuse other functions of :data:`NON_SMOOTH`.
        """


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
    def is_condition(self) -> bool:
        """Whether its value is true or false, and no number."""
        return self.program[-1].text in CONDITIONS

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

    ``+ - * / ^ **``, parentheses, numbers, names, :data:`FUNCTIONS` and ``piecewise``; ``^`` and
    ``**`` are the same power, right-associative, and bind tighter than a sign to their left. The
    conditions of ``piecewise`` are comparisons ``< <= > >= == !=`` of numbers, joined by
    ``&& || !`` or by ``and or not``; ``!`` binds as a sign does, ``not`` weaker than comparisons.

    Raises
    ------
    ExpressionError
        The text is no expression; the message has the offending piece and its position.
    """
    return Expression(text, _Parser(text).parse(condition=False))


def parse_condition(text: str) -> Expression:
    """Parse `text` as a condition: comparisons, joined by ``&& || !`` or ``and or not``.

    Raises
    ------
    ExpressionError
        The text is no condition; the message has the offending piece and its position.
    """
    return Expression(text, _Parser(text).parse(condition=True))


def as_expression(value: Expression | str | float) -> Expression:
    """Return `value` as an expression: parsed if it is text, a constant if it is a number.

    Raises
    ------
    ExpressionError
        Text that is no expression, a condition, or a number that is not finite.
    TypeError, ValueError, OverflowError
        Neither text nor a number that fits.
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


class _Parser:
    """Operator-precedence parser from text to postfix form.

    Parts without names are evaluated on the way, to refuse those that have no finite value.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.program: list[Instruction] = []
        self.folded: list[Any] = []  # by operand: its value, if no name is in it
        self.conditions: list[tuple[bool, int]] = []  # by operand: is it one, and where it starts
        self.nesting = 0
        self.tokens = tokens_of(text)
        self.position = 0

    def _where(self, start: int) -> str:
        return where(self.text, start)

    def parse(self, *, condition: bool) -> tuple[Instruction, ...]:
        if not self.tokens:
            raise ExpressionError("the expression is empty")
        with np.errstate(all="ignore"):
            self._operators()
        if self.position < len(self.tokens):
            raise self._unexpected("an operator")
        is_condition, start = self.conditions[0]
        if condition and not is_condition:
            raise ExpressionError(
                f"{shown(self.text)} is a number where a condition is expected; write a "
                "comparison such as x < 0.1"
            )
        if is_condition and not condition:
            raise self._no_number(start)
        return tuple(self.program)

    def _peek(self) -> str:
        return self.tokens[self.position].text if self.position < len(self.tokens) else ""

    def _take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def _emit(self, instruction: Instruction, start: int) -> None:
        """Append `instruction`, which was read at `start` of the text, and fold its operands."""
        self.program.append(instruction)
        kind, text, arity = instruction
        begin = self._check_operands(text, arity, start)
        self.conditions.append((kind == "call" and text in CONDITIONS, begin))
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

    def _check_operands(self, text: str, arity: int, start: int) -> int:
        """Check which operands are conditions; return where the text of the operation starts."""
        operands = self.conditions[len(self.conditions) - arity :]
        del self.conditions[len(self.conditions) - arity :]
        for k, (is_condition, begin) in enumerate(operands):
            wanted = text in LOGIC.values() or (text == PIECEWISE and k % 2 == 1)
            if is_condition and not wanted and text in COMPARISONS:
                raise ExpressionError(
                    f"{text!r} {self._where(start)} compares a condition; comparisons are of two "
                    "numbers, and several are joined by &&, as in a < b && b < c"
                )
            if is_condition and not wanted:
                raise self._no_number(begin)
            if wanted and not is_condition:
                whose = f"argument {k + 1} of {PIECEWISE}" if text == PIECEWISE else repr(text)
                remedy = ", as in !(x < 0.1)" if text == "!" else ""
                raise ExpressionError(
                    f"{whose} {self._where(begin)} needs a condition, a comparison such as "
                    f"x < 0.1{remedy}"
                )
        return min([start, *(begin for _, begin in operands)])

    def _no_number(self, start: int) -> ExpressionError:
        return ExpressionError(
            f"the condition {self._where(start)} stands where a number is expected; write "
            f"{PIECEWISE}(value, condition, otherwise)"
        )

    def _unexpected(self, wanted: str) -> ExpressionError:
        if self.position >= len(self.tokens):
            return ExpressionError(f"{shown(self.text)} ends where {wanted} is expected")
        _, token, start = self.tokens[self.position]
        return ExpressionError(f"unexpected {token!r} {self._where(start)}; expected {wanted}")

    def _operators(self) -> None:
        """Read operands and the operators between them, all of which are left-associative."""
        pending: list[tuple[Instruction, int, int]] = []  # with precedence and position
        while True:
            while self._peek() == "not" and (not pending or pending[-1][1] <= PRECEDENCE["not"]):
                start = self._take().start
                pending.append((Instruction("call", "!", 1), PRECEDENCE["not"], start))
            self._sign()
            precedence = 0 if self._peek() == "not" else PRECEDENCE.get(self._peek(), 0)
            while pending and pending[-1][1] >= precedence:
                instruction, _, start = pending.pop()
                self._emit(instruction, start)
            if not precedence:
                return
            _, operator, start = self._take()
            kind: Literal["binary", "call"] = "binary" if operator in "+-*/" else "call"
            sign = LOGIC.get(operator, operator)
            pending.append((Instruction(kind, sign, 2), precedence, start))

    def _deeper(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            start = self.tokens[min(self.position, len(self.tokens) - 1)].start
            raise ExpressionError(f"nested deeper than {MAX_NESTING} levels {self._where(start)}")

    def _sign(self) -> None:
        # Every way to nest passes here once a level: parentheses, signs, powers, arguments.
        self._deeper()
        if self._peek() in {"-", "+", "!"}:
            _, sign, start = self._take()
            self._sign()
            if sign == "-":
                self._emit(Instruction("negate", "-", 1), start)
            elif sign == "!":
                self._emit(Instruction("call", "!", 1), start)
            elif self.conditions[-1][0]:
                raise self._no_number(self.conditions[-1][1])
        else:
            self._power()
        self.nesting -= 1

    def _power(self) -> None:
        self._atom()
        if self._peek() in {"^", "**"}:
            start = self._take().start
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
        elif kind == "name" and token not in LOGIC:
            self._take()
            if self._peek() == "(":
                self._call(token, start)
            elif token in TRUTH:
                self._emit(Instruction("number", "1"), start)
                self._emit(Instruction("number", "1"), start)
                self._emit(Instruction("call", TRUTH[token], 2), start)
            elif token in FUNCTIONS or token == PIECEWISE:
                raise ExpressionError(
                    f"the function {token!r} {self._where(start)} has no arguments; "
                    f"write {token}(...)"
                )
            else:
                self._emit(Instruction("name", token), start)
        elif token == "(":
            self._take()
            self._operators()
            self._expect(")")
        else:
            raise self._unexpected("a number, a name or '('")

    def _call(self, function: str, start: int) -> None:
        if function not in FUNCTIONS and function != PIECEWISE:
            raise ExpressionError(
                f"unknown function {shown(function)} {self._where(start)}"
                f"{unknown_function(function)}"
            )
        self._take()
        count = 0
        if self._peek() != ")":
            self._operators()
            count = 1
            while self._peek() == ",":
                self._take()
                self._operators()
                count += 1
        self._expect(")")
        fewest, most = FUNCTIONS.get(function, (3, MAX_PIECES))
        if not fewest <= count <= most:
            wanted = "one argument" if most == 1 else f"{fewest} to {most} arguments"
            raise ExpressionError(f"{function} takes {wanted}, got {count}, {self._where(start)}")
        if function == PIECEWISE and count % 2 == 0:
            raise ExpressionError(
                f"{function} takes pairs of a value and its condition, and last the value where "
                f"no condition is true: an odd number of arguments, got {count}, "
                f"{self._where(start)}"
            )
        self._emit(Instruction("call", function, count), start)

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._unexpected(f"{token!r}")
        self._take()


def _exponent(number: str) -> int:
    _, _, exponent = number.lower().partition("e")
    return int(exponent or 0) if len(exponent) < 10 else 10**9
