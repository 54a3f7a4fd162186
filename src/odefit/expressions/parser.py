"""The parser of expressions: operator precedence, from texts to postfix form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from odefit.common.errors import shown
from odefit.expressions.algebras import NUMPY
from odefit.expressions.derived_functions import DERIVED, DerivedFunction
from odefit.expressions.grammar import (
    COMPARISONS,
    CONDITIONS,
    FUNCTIONS,
    LOGIC,
    MAX_DIGITS,
    MAX_EXPONENT,
    MAX_LENGTH,
    MAX_NESTING,
    MAX_PIECES,
    PIECEWISE,
    PRECEDENCE,
    TRUTH,
    ExpressionError,
    Instruction,
    Token,
    tokens_of,
    unknown_function,
    value_at_a_time,
    where,
)
from odefit.expressions.postfix import TIME, Expression


class Parser:
    """Operator-precedence parser from text to postfix form.

    Parts without names are evaluated during parsing, to refuse those without a finite value.
    `functions` holds the user's functions by name, and named expressions, which are functions
    without arguments. `used_own` is True if the text has one; then the text alone does not
    determine the postfix form.
    """

    def __init__(self, text: str, functions: Mapping[str, DerivedFunction] | None = None) -> None:
        self.text = text
        self.functions = functions or {}
        self.used_own = False
        self.program: list[Instruction] = []
        self.folded: list[Any] = []  # by operand: its value, if it contains no name
        self.conditions: list[tuple[bool, int]] = []  # by operand: is it a condition, and its start
        self.nesting = 0
        self.tokens = tokens_of(text)
        self.position = 0

    def _where(self, start: int) -> str:
        return where(self.text, start)

    def parse(self, *, condition: bool | None) -> tuple[Instruction, ...]:
        """Return the postfix form of a condition, of a number, or (None) of either."""
        if not self.tokens:
            raise ExpressionError("the expression is empty")
        with np.errstate(all="ignore"):
            self._operators()
        if self.position < len(self.tokens):
            raise self._unexpected("an operator", operator=True)
        is_condition, start = self.conditions[0]
        if condition and not is_condition:
            raise ExpressionError(
                f"{shown(self.text)} is a number where a condition is expected; write a "
                "comparison such as x < 0.1"
            )
        if is_condition and condition is False:
            raise self._no_number(start)
        return tuple(self.program)

    def _peek(self) -> str:
        return self.tokens[self.position].text if self.position < len(self.tokens) else ""

    def _take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def _emit(self, instruction: Instruction, start: int) -> None:
        """Append `instruction`, read at `start` of the text, and fold its operands."""
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
        """Check which operands are conditions; return the start of the operation in the text."""
        operands = self.conditions[len(self.conditions) - arity :]
        del self.conditions[len(self.conditions) - arity :]
        for k, (is_condition, begin) in enumerate(operands):
            expects_condition = text in LOGIC.values() or (text == PIECEWISE and k % 2 == 1)
            if is_condition and not expects_condition and text in COMPARISONS:
                raise ExpressionError(
                    f"{text!r} {self._where(start)} compares a condition; comparisons are of two "
                    "numbers, and several are joined by &&, as in a < b && b < c"
                )
            if is_condition and not expects_condition:
                raise self._no_number(begin)
            if expects_condition and not is_condition:
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

    def _unexpected(self, expected: str, operator: bool = False) -> ExpressionError:
        if self.position >= len(self.tokens):
            return ExpressionError(f"{shown(self.text)} ends where {expected} is expected")
        kind, token, start = self.tokens[self.position]
        remedy = f"expected {expected}"
        if self.position and operator:
            before = self.tokens[self.position - 1]
            if token in ("if", "else", "then") or before.text == "if":
                remedy = "write piecewise(a, condition, b)"
            elif token == "(" or (kind in ("name", "number") and token not in LOGIC):
                glue = "" if token == "(" else " "
                remedy = f"a product needs a *, as in {before.text}*{token}" + "..." * (not glue)
        return ExpressionError(f"unexpected {token!r} {self._where(start)}; {remedy}")

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
        # All nesting passes here once per level: parentheses, signs, powers, arguments.
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
            if len(token) > MAX_DIGITS:
                raise ExpressionError(
                    f"the number {self._where(start)} has more than {MAX_DIGITS} digits; round it"
                )
            if not math.isfinite(float(token)) or abs(_exponent(token)) > 400:
                raise ExpressionError(f"the number {self._where(start)} is out of range")
            self._emit(Instruction("number", token), start)
        elif kind == "name" and token not in LOGIC:
            self._take()
            derived = self.functions.get(token)
            if self._peek() == "(":
                self._call(token, start)
            elif derived is not None and not derived.arguments:
                self._derived(token, derived, [], start)
                self.used_own = True
            elif token in TRUTH:
                self._emit(Instruction("number", "1"), start)
                self._emit(Instruction("number", "1"), start)
                self._emit(Instruction("call", TRUTH[token], 2), start)
            elif token in FUNCTIONS or token == PIECEWISE or derived is not None:
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
        users = self.functions.get(function)
        derived = DERIVED.get(function) if users is None else users
        if users is not None and not users.arguments:
            raise ExpressionError(
                f"{function!r} {self._where(start)} is not a function and takes no arguments; a "
                "product "
                "needs a *"
            )
        if function not in FUNCTIONS and function != PIECEWISE and derived is None:
            raise self._unknown_function(function, start)
        self.used_own |= users is not None
        self._take()
        starts = []  # of the arguments, in the program
        if self._peek() != ")":
            starts.append(len(self.program))
            self._operators()
            while self._peek() == ",":
                self._take()
                starts.append(len(self.program))
                self._operators()
        self._expect(")")
        count = len(starts)
        if derived is not None:
            self._derived(function, derived, starts, start)
            return
        fewest, most = FUNCTIONS.get(function, (3, MAX_PIECES))
        if not fewest <= count <= most:
            arity = "one argument" if most == 1 else f"{fewest} to {most} arguments"
            base = "; to another base write log(x)/log(base)" if function == "log" else ""
            raise ExpressionError(
                f"{function} takes {arity}, got {count}, {self._where(start)}{base}"
            )
        if function == PIECEWISE and count % 2 == 0:
            raise ExpressionError(
                f"{function} takes pairs of a value and its condition, and last the value where "
                f"no condition is true: an odd number of arguments, got {count}, "
                f"{self._where(start)}"
            )
        self._emit(Instruction("call", function, count), start)

    def _unknown_function(self, function: str, start: int) -> ExpressionError:
        rest = [token.text for token in self.tokens[self.position + 1 :]]
        inside = rest[: rest.index(")")] if ")" in rest else rest
        if inside[:1] == [TIME] or inside == ["0"]:
            end = value_at_a_time(function, "".join(inside))
            if end is not None:
                return ExpressionError(f"{function}({''.join(inside)}) {self._where(start)}{end}")
        return ExpressionError(
            f"unknown function {shown(function)} {self._where(start)}"
            f"{unknown_function(function, (*FUNCTIONS, *DERIVED, *self.functions))}"
        )

    def _derived(
        self, function: str, derived: DerivedFunction, starts: list[int], start: int
    ) -> None:
        """Replace the arguments just read by the definition of a derived function."""
        count = len(starts)
        if count != len(derived.arguments):
            raise ExpressionError(
                f"{function}({', '.join(derived.arguments)}) takes {len(derived.arguments)} "
                f"argument{'s' * (len(derived.arguments) != 1)}, got {count}, {self._where(start)}"
            )
        ends = [*starts[1:], len(self.program)]
        arguments = [self.program[a:b] for a, b in zip(starts, ends, strict=count > 0)]
        folded = self.folded[len(self.folded) - count :]
        conditions = self.conditions[len(self.conditions) - count :]
        for k, (is_condition, begin) in enumerate(conditions):
            if is_condition and k != derived.condition:
                raise self._no_number(begin)
            if k == derived.condition and not is_condition:
                raise ExpressionError(
                    f"argument {k + 1} of {function} {self._where(begin)} needs a condition, a "
                    "comparison such as x < 0.1"
                )
        if starts:
            del self.program[starts[0] :]
        del self.folded[len(self.folded) - count :]
        del self.conditions[len(self.conditions) - count :]
        for instruction in derived.program:
            if isinstance(instruction, Instruction):
                self._emit(instruction, start)
            else:
                self.program += arguments[instruction]
                self.folded.append(folded[instruction])
                self.conditions.append(conditions[instruction])
            if len(self.program) > MAX_LENGTH:
                raise ExpressionError(
                    f"{function} {self._where(start)} stands for too long an expression; "
                    "nest it less deeply"
                )

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._unexpected(f"{token!r}")
        self._take()


def _exponent(number: str) -> int:
    _, _, exponent = number.lower().partition("e")
    return int(exponent or 0) if len(exponent) < 10 else 10**9
