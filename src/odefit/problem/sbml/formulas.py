"""Formulas of PEtab tables as expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from odefit.expressions.expressions import MAX_LENGTH, MAX_NESTING, TIME, ExpressionError
from odefit.problem.sbml.math_trees import applied, is_function
from odefit.problem.sbml.terms import (
    FALSE,
    TRUE,
    Term,
    all_of,
    any_of,
    as_term,
    compared,
    difference,
    negative,
    number,
    numeric,
    opposite,
    power,
    product,
    quotient,
    total,
)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|&&|\|\||[<>=!]=|[-+*/^(),<>!]))"
)

LEVELS = {
    "||": 1, "&&": 1, "<": 2, "<=": 2, ">": 2, ">=": 2, "==": 2, "!=": 2,
    "+": 3, "-": 3, "*": 4, "/": 4,
}  # fmt: skip
"""The precedence of operators, lowest first; in PEtab ``&&`` and ``||`` have the same."""


def formula_text(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a formula of PEtab (version 1 or 2) as an expression.

    Parameters
    ----------
    text
        The formula: ``log`` is the natural logarithm, ``log(x, b)`` that to the base b, ``time``
        the time, ``&&`` and ``||`` bind alike.
    names
        Expressions that replace names.

    Raises
    ------
    ExpressionError
        The text is not a formula, or no expression is equivalent; the message gives place and
        reason.

    Examples
    --------
    >>> formula_text("piecewise(1, time > 5, 0) + log(x, 2)")
    'piecewise(1, t > 5, 0) + log(x)/log(2)'
    """
    return numeric(_Formula(text, names or {}).parsed()).text


def condition_text(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a PEtab formula that is a condition, such as a trigger, as a comparison.

    Raises
    ------
    ExpressionError
        The text is not a formula, or no expression is equivalent.
    """
    return all_of([_Formula(text, names or {}).parsed()]).text


class _Formula:
    """Operator-precedence parser from PEtab's formulas to terms."""

    def __init__(self, text: str, names: Mapping[str, str]) -> None:
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"the formula is longer than {MAX_LENGTH} characters")
        self.text = text
        self.names = names
        self.tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                start = next(i for i in range(at, end) if not text[i].isspace())
                raise ExpressionError(f"unexpected {text[start]!r} {self._where(start)}")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind)))
            at = match.end()
        self.position = 0
        self.nesting = 0

    def _where(self, start: int) -> str:
        first, last = max(0, start - 30), start + 30
        around = self.text if len(self.text) <= 80 else f"...{self.text[first:last]}..."
        return f"at position {start + 1} of {around!r}"

    def parsed(self) -> Term:
        if not self.tokens:
            raise ExpressionError("the formula is empty")
        result = self._operation(1)
        if self.position < len(self.tokens):
            raise self._unexpected("an operator")
        return result

    def _peek(self) -> str:
        return self.tokens[self.position][1] if self.position < len(self.tokens) else ""

    def _unexpected(self, expected: str) -> ExpressionError:
        if self.position >= len(self.tokens):
            return ExpressionError(f"the formula {self._short()} ends where {expected} is expected")
        _, token, start = self.tokens[self.position]
        return ExpressionError(f"unexpected {token!r} {self._where(start)}; expected {expected}")

    def _short(self) -> str:
        return repr(self.text if len(self.text) <= 80 else f"...{self.text[-60:]}")

    def _operation(self, lowest: int) -> Term:
        result = self._signed()
        while (level := LEVELS.get(self._peek(), 0)) >= lowest:
            operator = self._peek()
            parts = [result]
            while self._peek() == operator:
                self.position += 1
                parts.append(self._operation(level + 1))
                if operator not in {"+", "*", "&&", "||"}:
                    break  # join sums and products of many parts at once
            result = _combined(operator, parts)
        return result

    def _signed(self) -> Term:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise ExpressionError(f"the formula {self._short()} is nested too deeply")
        operator = self._peek()
        if operator in {"+", "-", "!"}:
            self.position += 1
            operand = self._signed()
            if operator == "!":
                result = opposite(operand)
            else:
                result = negative(operand) if operator == "-" else numeric(operand)
        else:
            result = self._powered()
        self.nesting -= 1
        return result

    def _powered(self) -> Term:
        base = self._atom()
        if self._peek() in {"^", "**"}:
            self.position += 1
            return power(base, self._signed())
        return base

    def _atom(self) -> Term:
        expected = "a number, a name or '('"
        if self.position >= len(self.tokens):
            raise self._unexpected(expected)
        kind, token, start = self.tokens[self.position]
        if token != "(" and kind == "operator":
            raise self._unexpected(expected)
        self.position += 1
        if kind == "number":
            return number(float(token))
        if token == "(":
            return self._closed([self._operation(1)])[0]
        if self._peek() == "(":
            return self._call(token, start)
        return self._name(token, start)

    def _closed(self, inside: list[Term]) -> list[Term]:
        """Return the content of parentheses, which have to close here."""
        if self._peek() != ")":
            raise self._unexpected("')'")
        self.position += 1
        return inside

    def _call(self, function: str, start: int) -> Term:
        if not is_function(function) or function in {"plus", "times", "and", "or", "not"}:
            raise ExpressionError(f"unknown function {function!r} {self._where(start)}")
        self.position += 1
        arguments = [] if self._peek() == ")" else [self._operation(1)]
        while arguments and self._peek() == ",":
            self.position += 1
            arguments.append(self._operation(1))
        self._closed(arguments)
        try:
            return applied(function, arguments)
        except ExpressionError as error:
            raise ExpressionError(f"{error} ({self._where(start)})") from None

    def _name(self, token: str, start: int) -> Term:
        if token in self.names:
            return as_term(self.names[token])
        if token in {"true", "false"}:
            return TRUE if token == "true" else FALSE
        if token in {"inf", "nan"}:
            raise ExpressionError(f"{token!r} {self._where(start)} is not a finite number")
        return Term(TIME if token == "time" else token)


def _combined(operator: str, parts: list[Term]) -> Term:
    if operator == "+":
        return total(parts)
    if operator == "*":
        return product(parts)
    if operator in {"&&", "||"}:
        return all_of(parts) if operator == "&&" else any_of(parts)
    left, right = parts
    if operator == "-":
        return difference(left, right)
    return quotient(left, right) if operator == "/" else compared(operator, left, right)
