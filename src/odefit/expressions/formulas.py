"""Expressions built from others: their parts in postfix form, with simplifying arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from odefit.expressions.expressions import PIECEWISE, TIME, Expression, Instruction
from odefit.expressions.grammar import COMPARISONS, CONDITIONS


@dataclass(frozen=True)
class Part:
    """A part of an expression; numbers are combined, and idle operations dropped."""

    program: tuple[Instruction, ...]

    @property
    def number(self) -> float | None:
        """The value, if the part is a number."""
        if len(self.program) == 1 and self.program[0].kind == "number":
            return float(self.program[0].text)
        if len(self.program) == 2 and self._last == "negate" and self.program[0].kind == "number":
            return -float(self.program[0].text)
        return None

    @property
    def names(self) -> frozenset[str]:
        """Names that occur in it."""
        return frozenset(i.text for i in self.program if i.kind == "name")

    @property
    def _last(self) -> str:
        return self.program[-1].kind

    @property
    def _negated(self) -> Part | None:
        """The part of which it is the negative, if it has that form."""
        return Part(self.program[:-1]) if self._last == "negate" else None

    def operands(self) -> tuple[Part, Part]:
        """Return the two operands of the last operation."""
        needed, at = 1, len(self.program) - 1
        while needed:  # back to the beginning of the right operand
            at -= 1
            kind, _, arity = self.program[at]
            needed += (arity if kind not in ("name", "number") else 0) - 1
        return Part(self.program[:at]), Part(self.program[at:-1])

    def expression(self) -> Expression:
        """Return it as an expression, with its text."""
        return Expression(text_of(self.program), self.program)

    def __neg__(self) -> Part:
        negated = self._negated
        if negated is not None:
            return negated
        if self.number == 0.0:
            return self
        last = self.program[-1]
        if last.kind == "binary" and last.text == "-":
            left, right = self.operands()
            return right - left
        return Part((*self.program, Instruction("negate", "-", 1)))

    def __add__(self, other: Part) -> Part:
        if self.number == 0.0:
            return other
        if other.number == 0.0:
            return self
        negated = other._negated
        if negated is not None and other.number is None:
            return self - negated
        return self._with("+", other)

    def __sub__(self, other: Part) -> Part:
        if self.number == 0.0:
            return -other
        if other.number == 0.0:
            return self
        negated = other._negated
        if negated is not None and other.number is None:
            return self + negated
        return self._with("-", other)

    def __mul__(self, other: Part) -> Part:
        for one, another in ((self, other), (other, self)):
            if one.number == 0.0:
                return number(0.0)
            if one.number == 1.0:
                return another
        return self._with("*", other)

    def __truediv__(self, other: Part) -> Part:
        if other.number == 1.0 or (self.number == 0.0 and other.number != 0.0):
            return self
        return self._with("/", other)

    def _with(self, operator: str, other: Part) -> Part:
        joined = Part((*self.program, *other.program, Instruction("binary", operator, 2)))
        if self.number is not None and other.number is not None:
            value = joined.expression().constant
            if value is not None and math.isfinite(value):
                return number(value)
        return joined


def number(value: float) -> Part:
    """Return a number as a part."""
    positive = (Instruction("number", repr(abs(float(value)))),)
    return Part((*positive, Instruction("negate", "-", 1)) if value < 0 else positive)


def name(text: str) -> Part:
    """Return a name as a part."""
    return Part((Instruction("name", text),))


def call(function: str, arguments: Sequence[Part]) -> Part:
    """Return a function, a comparison or an operation on conditions as a part."""
    program = tuple(i for argument in arguments for i in argument.program)
    return Part((*program, Instruction("call", function, len(arguments))))


class PartAlgebra:
    """The algebra of parts: an expression evaluated over it is rewritten."""

    def number(self, text: str) -> Part:
        return Part((Instruction("number", text),))

    def power(self, base: Part, exponent: Part) -> Part:
        return Part((*base.program, *exponent.program, Instruction("binary", "^", 2)))

    def call(self, function: str, arguments: Sequence[Part]) -> Any:
        return call(function, arguments)


PARTS = PartAlgebra()


def substituted(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Return `expression` with expressions in place of some names."""
    return evaluated(expression, {n: Part(e.program) for n, e in values.items()}).expression()


def evaluated(expression: Expression, values: Mapping[str, Part], algebra: Any = PARTS) -> Part:
    """Return `expression` over parts; names without a value remain names."""
    part: Part = expression.evaluate({n: values.get(n, name(n)) for n in expression.names}, algebra)
    return part


def joined(instruction: Instruction, operands: Sequence[Part]) -> Part:
    """Return an operation on parts as a part, exactly as written."""
    return Part((*(i for operand in operands for i in operand.program), instruction))


def rewritten(
    program: Sequence[Instruction], write: Callable[[Instruction, list[Part]], Part]
) -> Part:
    """Return a rewritten expression: `write` gets each operation and its operands."""
    stack: list[Part] = []
    for instruction in program:
        if instruction.kind in ("name", "number"):
            stack.append(Part((instruction,)))
            continue
        operands = stack[len(stack) - instruction.arity :]
        del stack[len(stack) - instruction.arity :]
        stack.append(write(instruction, operands))
    return stack[0]


def operations(
    program: Sequence[Instruction], texts: Collection[str]
) -> Iterator[tuple[Instruction, list[Part], Part]]:
    """Yield the operations with these texts, each with its operands and as a part itself."""
    begins: list[int] = []  # beginnings of the operands that are not used yet
    for at, instruction in enumerate(program):
        if instruction.kind in ("name", "number"):
            begins.append(at)
            continue
        first = len(begins) - instruction.arity
        bounds = [*begins[first:], at]
        del begins[first + 1 :]
        if instruction.text in texts:
            operands = [Part(tuple(program[i:j])) for i, j in pairwise(bounds)]
            yield instruction, operands, Part(tuple(program[bounds[0] : at + 1]))


@lru_cache(maxsize=1000)
def with_magnitudes(expression: Expression) -> Expression:
    """Return `expression` with magnitudes in place of fractional powers of even powers.

    Thus sqrt(v^2) becomes abs(v), and (v^2)^(1/3) becomes abs(v)^(2/3): these are kinks, not edges
    of a domain.
    """
    if all(i.text not in ("sqrt", "^") for i in expression.program):
        return expression
    with_them = evaluated(expression, {}, _Magnitudes())
    return expression if with_them == evaluated(expression, {}) else with_them.expression()


class _Magnitudes(PartAlgebra):
    """The algebra of parts that rewrites roots of even powers as magnitudes."""

    def power(self, base: Part, exponent: Part) -> Part:
        return self._root(base, exponent) or super().power(base, exponent)

    def call(self, function: str, arguments: Sequence[Part]) -> Any:
        root = self._root(arguments[0], _HALF) if function == "sqrt" else None
        return root or super().call(function, arguments)

    def _root(self, base: Part, exponent: Part) -> Part | None:
        """Return a fractional power of an even power; None for other bases."""
        last = base.program[-1]
        value = exponent.expression().constant
        if last.kind != "binary" or last.text not in "^*" or (value or 0.5).is_integer():
            return None
        inner, second = base.operands()
        power = second.expression().constant if last.text == "^" else 2.0
        if power is None or power % 2 or (last.text == "*" and inner != second):
            return None
        if value is None:
            return PARTS.power(call("abs", [inner]), number(power) * exponent)
        power *= value
        magnitude = inner if power % 2 == 0 else call("abs", [inner])
        return magnitude if power == 1.0 else PARTS.power(magnitude, number(power))


@dataclass(frozen=True)
class Linear:
    """A quantity that is linear in time, or in another variable: ``constant + slope * t``."""

    constant: Part
    slope: Part

    def zero(self) -> Part:
        """Return the time, or value of the variable, at which it is zero."""
        if self.slope.number is not None and self.slope.number < 0:
            return self.constant / -self.slope
        return -self.constant / self.slope

    def _still(self) -> Part:
        if self.slope.number != 0.0:
            raise NotLinearError
        return self.constant

    def __neg__(self) -> Linear:
        return Linear(-self.constant, -self.slope)

    def __add__(self, other: Linear) -> Linear:
        return Linear(self.constant + other.constant, self.slope + other.slope)

    def __sub__(self, other: Linear) -> Linear:
        return Linear(self.constant - other.constant, self.slope - other.slope)

    def __mul__(self, other: Linear) -> Linear:
        if self.slope.number == 0.0:
            return Linear(self.constant * other.constant, self.constant * other.slope)
        factor = other._still()
        return Linear(self.constant * factor, self.slope * factor)

    def __truediv__(self, other: Linear) -> Linear:
        divisor = other._still()
        slope = self.slope if self.slope.number == 0.0 else self.slope / divisor
        return Linear(self.constant / divisor, slope)


class NotLinearError(Exception):
    """A quantity is not linear in time."""


class _LinearAlgebra:
    """The algebra of :class:`Linear`."""

    def number(self, text: str) -> Linear:
        return Linear(PARTS.number(text), number(0.0))

    def power(self, base: Linear, exponent: Linear) -> Linear:
        return Linear(PARTS.power(base._still(), exponent._still()), number(0.0))

    def call(self, function: str, arguments: Sequence[Linear]) -> Linear:
        if function == PIECEWISE:
            tests = [a._still() for a in arguments[1::2]]
            values = [*arguments[0:-1:2], arguments[-1]]
            constants, slopes = [v.constant for v in values], [v.slope for v in values]
            return Linear(_chosen(constants, tests), _chosen(slopes, tests))
        return Linear(call(function, [a._still() for a in arguments]), number(0.0))


def _chosen(values: Sequence[Part], tests: Sequence[Part]) -> Part:
    """Return the piecewise of values under tests, with the last value if no test holds."""
    if all(v.program == values[0].program for v in values):
        return values[0]
    pairs = [part for pair in zip(values[:-1], tests, strict=True) for part in pair]
    return call(PIECEWISE, [*pairs, values[-1]])


def linear_in(part: Part, variable: str = TIME) -> Linear | None:
    """Return `part` as a linear function of time or of another variable.

    Returns None if its written form is not linear.
    """
    zero, one = number(0.0), number(1.0)
    values = {n: Linear(name(n), zero) for n in part.names} | {variable: Linear(zero, one)}
    try:
        linear: Linear = Expression("", part.program).evaluate(values, _LinearAlgebra())
    except NotLinearError:
        return None
    return linear


_PARTIAL = frozenset("log log10 sqrt tan asin acos".split())

_HALF = number(0.5)
"""A number at which all functions are smooth, and that can be divided by."""


def guarded(part: Part, counts: Callable[[], Part], scalars: AbstractSet[str]) -> Part:
    """Return `part` with a finite value where it does not count, and unchanged elsewhere.

    So it can be multiplied by zero there. Divisors and arguments of roots, logarithms and
    fractional powers become 1/2 there, except those of parameters and constants alone, the names in
    `scalars`. `counts` returns a part that is 1 where it counts, else 0; it is called on demand.
    """

    def safe(argument: Part) -> Part:
        if argument.names <= scalars:
            return argument
        indicator = counts()
        return indicator * argument + (number(1.0) - indicator) * _HALF

    def write(instruction: Instruction, operands: list[Part]) -> Part:
        kind, text, _ = instruction
        if kind == "binary" and text == "/":
            operands[1] = safe(operands[1])
        elif kind == "binary" and text == "^":
            exponent = operands[1].number
            if exponent is None or exponent < 0 or not exponent.is_integer():
                operands[0] = safe(operands[0])
        elif kind == "call" and text in _PARTIAL:
            operands[0] = safe(operands[0])
        return joined(instruction, operands)

    return rewritten(part.program, write)


_TIGHT = {"^": 9, "*": 6, "/": 6, "+": 5, "-": 5}
"""The precedence of operations; signs bind tighter than products, conditions weakest."""


def text_of(program: Sequence[Instruction]) -> str:
    """Return the text of a postfix form, which is parsed to the same form again."""
    stack: list[tuple[str, int]] = []  # texts, and the precedence of their last operation

    def inner(part: tuple[str, int], least: int) -> str:
        text, tight = part
        return text if tight >= least else f"({text})"

    for kind, text, arity in program:
        if kind in ("name", "number"):
            stack.append((text, 10))
            continue
        arguments = stack[len(stack) - arity :]
        del stack[len(stack) - arity :]
        if kind == "negate":
            stack.append((f"-{inner(arguments[0], 9)}", 7))
        elif kind == "binary":
            tight = _TIGHT[text]
            if text == "^":
                joined = f"{inner(arguments[0], 10)}^{inner(arguments[1], 10)}"
            else:
                space = " " if text in "+-" else ""
                left, right = inner(arguments[0], tight), inner(arguments[1], tight + 1)
                joined = f"{left}{space}{text}{space}{right}"
            stack.append((joined, tight))
        elif text == "!":
            stack.append((f"!{inner(arguments[0], 10)}", 0))
        elif text in CONDITIONS:
            least = 1 if text in COMPARISONS else 10
            joined = f" {text} ".join(inner(a, least) for a in arguments)
            stack.append((joined, 0))
        else:
            stack.append((f"{text}({', '.join(a for a, _ in arguments)})", 10))
    return stack[0][0]
