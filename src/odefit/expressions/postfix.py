"""Expressions in postfix form, evaluable over any algebra.

An :class:`Expression` is evaluated with a stack, on any objects that the caller gives for the
names. They may be floats, arrays, dual numbers, intervals, symbols of a computer algebra system or
of an integrator, or elements of a finite field. Nothing is ever executed as Python code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from odefit.expressions.algebras import NUMPY
from odefit.expressions.grammar import CONDITIONS, Instruction

T = TypeVar("T")

TIME = "t"
"""The name of the time in every expression."""


class Algebra(Protocol[T]):
    """The operations besides ``+ - * /`` that evaluation of expressions needs."""

    def number(self, text: str) -> T:
        """Return the constant written as `text`, e.g. ``"0.1"``, exactly if that is possible."""

    def power(self, base: T, exponent: T) -> T:
        """Return ``base ** exponent``."""

    def call(self, function: str, arguments: Sequence[T]) -> T:
        """Return the value of a function of :data:`FUNCTIONS`, ``piecewise``, or a condition.

        Conditions are the comparisons and ``&& || !``, by their signs; algebras without truth
        values refuse them like other functions of :data:`NON_SMOOTH`.
        """


@dataclass(frozen=True, repr=False)
class Expression:
    """A parsed expression: the user's text, and its postfix form."""

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
        """True if its value is a condition instead of a number."""
        return self.program[-1].text in CONDITIONS

    @property
    def name(self) -> str | None:
        """The name, if the expression is a single name."""
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
        """Return the value over `algebra`; a name without a value raises KeyError.

        Over floats, `values` are NumPy's (Python's floats raise an error for 1/0).
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

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"
