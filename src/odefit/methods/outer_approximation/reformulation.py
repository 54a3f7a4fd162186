"""Symbolic reformulation of Smith and Pantelides: expressions to the standard form (18)-(25).

An expression is evaluated over affine combinations of variables. Sums remain such combinations;
each product of two variables, each power and each function gets an auxiliary variable, which is
shared by all occurrences of the same term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from odefit.common.errors import InputError
from odefit.expressions.grammar import named
from odefit.methods.outer_approximation.univariate import FUNCTIONS, Univariate, power

MAX_EXPANDED = 9
"""Number of terms up to which products of sums are expanded, as their terms occur elsewhere."""

Number = float | int


@dataclass(frozen=True)
class UnivariateTerm:
    """A term ``w_result = f(w_argument)``, (24) and (25), of two variables by their indices."""

    result: int
    argument: int
    function: Univariate


@dataclass(frozen=True)
class Definition:
    """An auxiliary variable in terms of earlier variables, the `arguments`.

    A sum has coefficients and a constant; a function of one argument is a :class:`Univariate`.
    """

    kind: Literal["sum", "product", "quotient", "function"]
    arguments: tuple[int, ...]
    coefficients: tuple[float, ...] = ()
    constant: float = 0.0
    function: Univariate | None = None


class Affine:
    """An expression ``constant + sum of coefficients[i] w_i``, with the operations of algebras."""

    __slots__ = ("coefficients", "constant", "owner")

    def __init__(
        self, owner: Reformulation, coefficients: Mapping[int, float], constant: float = 0.0
    ) -> None:
        self.owner = owner
        self.coefficients = {i: c for i, c in coefficients.items() if c != 0.0}
        self.constant = float(constant)

    @property
    def variable(self) -> int | None:
        """The variable to which the expression is equal, otherwise None."""
        if self.constant == 0.0 and list(self.coefficients.values()) == [1.0]:
            return next(iter(self.coefficients))
        return None

    def scaled(self, factor: float) -> Affine:
        """Return the expression times a number."""
        coefficients = {i: c * factor for i, c in self.coefficients.items()}
        return Affine(self.owner, coefficients, self.constant * factor)

    def __neg__(self) -> Affine:
        return self.scaled(-1.0)

    def __add__(self, other: Affine | Number) -> Affine:
        if not isinstance(other, Affine):
            return Affine(self.owner, self.coefficients, self.constant + float(other))
        total = dict(self.coefficients)
        for i, c in other.coefficients.items():
            total[i] = total.get(i, 0.0) + c
        return Affine(self.owner, total, self.constant + other.constant)

    __radd__ = __add__

    def __sub__(self, other: Affine | Number) -> Affine:
        return self + (-other)

    def __rsub__(self, other: Number) -> Affine:
        return -self + other

    def __mul__(self, other: Affine | Number) -> Affine:
        if not isinstance(other, Affine):
            return self.scaled(float(other))
        return self.owner.product(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Affine | Number) -> Affine:
        if not isinstance(other, Affine):
            return self.scaled(1.0 / float(other))
        return self.owner.quotient(self, other)

    def __rtruediv__(self, other: Number) -> Affine:
        return self.owner.apply(power(-1.0), self).scaled(float(other))


class Reformulation:
    """The variables and terms so far, each once.

    `rows` are left-hand sides equal to zero: the definitions of sums. The terms are those of
    :class:`~odefit.methods.outer_approximation.standard_form.StandardForm`. Definitions of
    auxiliary variables are in the order in which they were made.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.rows: list[Affine] = []
        self.bilinear: list[tuple[int, int, int]] = []
        self.univariate: list[UnivariateTerm] = []
        self.definitions: dict[int, Definition] = {}
        self._auxiliary: dict[Definition, int] = {}

    def variable(self, number: int) -> Affine:
        """Return variable `number` as an expression."""
        return Affine(self, {number: 1.0})

    def auxiliary(self, expression: Affine) -> int:
        """Return the variable that equals `expression`; create it if needed."""
        if expression.variable is not None:
            return expression.variable
        arguments, coefficients = zip(*sorted(expression.coefficients.items()), strict=True)
        definition = Definition("sum", arguments, coefficients, expression.constant)
        return self._defined(definition, f"sum {len(self._auxiliary)}")

    def _defined(self, definition: Definition, name: str) -> int:
        """Return the variable with this definition; create it and its row or term if needed."""
        if definition in self._auxiliary:
            return self._auxiliary[definition]
        number = self._auxiliary[definition] = len(self.names)
        self.names.append(name)
        self.definitions[number] = definition
        if definition.kind == "sum":
            total = {
                **dict(zip(definition.arguments, definition.coefficients, strict=True)),
                number: -1.0,
            }
            self.rows.append(Affine(self, total, definition.constant))
        elif definition.kind == "product":
            i, j = definition.arguments
            self.bilinear.append((number, i, j))
        elif definition.kind == "quotient":  # (23) as a bilinear term
            i, j = definition.arguments
            self.bilinear.append((i, number, j))
        elif definition.function is not None:
            self.univariate.append(
                UnivariateTerm(number, definition.arguments[0], definition.function)
            )
        return number

    def product(self, a: Affine, b: Affine) -> Affine:
        """Return the product (22), expanded if that is short."""
        for one, other in ((a, b), (b, a)):
            if not one.coefficients:
                return other.scaled(one.constant)
        if len(a.coefficients) * len(b.coefficients) > MAX_EXPANDED:
            a, b = (
                x if len(x.coefficients) == 1 else self.variable(self.auxiliary(x)) for x in (a, b)
            )
        total = a.scaled(b.constant) + b.scaled(a.constant)
        total = total + (-a.constant * b.constant)
        for i, c in a.coefficients.items():
            for j, d in b.coefficients.items():
                total = total + self._product_of_variables(i, j).scaled(c * d)
        return total

    def _product_of_variables(self, i: int, j: int) -> Affine:
        if i == j:
            return self.apply(power(2.0), self.variable(i))
        i, j = min(i, j), max(i, j)
        name = f"({self.names[i]})*({self.names[j]})"
        return self.variable(self._defined(Definition("product", (i, j)), name))

    def quotient(self, a: Affine, b: Affine) -> Affine:
        """Return the quotient (23)."""
        if not b.coefficients:
            return a.scaled(1.0 / b.constant)
        if not a.coefficients:
            return self.apply(power(-1.0), b).scaled(a.constant)
        if len(b.coefficients) == 1 and b.constant == 0.0:  # a factor does not prevent sharing
            ((j, factor),) = b.coefficients.items()
            a = a.scaled(1.0 / factor)
        else:
            j = self.auxiliary(b)
        # A common factor of the numerator is kept outside.
        lead = 1.0
        if a.constant == 0.0 and len(a.coefficients) == 1:
            lead = next(iter(a.coefficients.values()))
            a = a.scaled(1.0 / lead)
        i = self.auxiliary(a)
        if i == j:
            return Affine(self, {}, lead)
        name = f"({self.names[i]})/({self.names[j]})"
        return Affine(self, {self._defined(Definition("quotient", (i, j)), name): lead})

    def apply(self, function: Univariate, argument: Affine) -> Affine:
        """Return a function of an expression, (24) and (25).

        Raises ZeroDivisionError for a number at which the function has no finite value.
        """
        if not argument.coefficients:
            value = function.at(argument.constant)
            if not math.isfinite(value):
                raise ZeroDivisionError(
                    f"{function.name}({argument.constant:g}) has no finite value"
                )
            return Affine(self, {}, value)
        k = self.auxiliary(argument)
        shown = f"({self.names[k]})"
        shown = f"{shown}^{function.exponent:g}" if function.exponent else function.name + shown
        definition = Definition("function", (k,), function=function)
        return self.variable(self._defined(definition, shown))


class AffineAlgebra:
    """The algebra of expressions over :class:`Affine`, in which known values are plain numbers."""

    def __init__(self, reformulation: Reformulation) -> None:
        self._reformulation = reformulation

    def number(self, text: str) -> Affine:
        return self.affine(text)

    def power(self, base: Any, exponent: Any) -> Affine:
        x, n = self.affine(base), self.affine(exponent)
        if not n.coefficients:
            if n.constant == 0.0:
                return self.affine(1.0)
            return x if n.constant == 1.0 else self._reformulation.apply(power(n.constant), x)
        if not x.coefficients and x.constant == 0.0:
            return x  # as everywhere: 0^p is 0 for every positive p
        return self._apply("exp", n * self._apply("log", x))

    def call(self, function: str, arguments: Sequence[Any]) -> Affine:
        operands = [self.affine(a) for a in arguments]
        if function in {"min", "max"}:
            # The larger of two numbers is half their sum and half their distance.
            sign = 0.5 if function == "max" else -0.5
            return reduce(
                lambda a, b: (a + b).scaled(0.5) + self._apply("abs", a - b).scaled(sign), operands
            )
        if function == "log10":
            return self._apply("log", operands[0]).scaled(1.0 / math.log(10.0))
        if function not in FUNCTIONS:
            raise InputError(
                f"outer approximation: the model uses {named(function)}(), which cannot be "
                "bounded here; take another method, or write the equations without it"
            )
        return self._apply(function, operands[0])

    def _apply(self, function: str, argument: Affine) -> Affine:
        return self._reformulation.apply(FUNCTIONS[function], argument)

    def affine(self, value: Any) -> Affine:
        """Return `value` as an expression, even if it is a number."""
        if isinstance(value, Affine):
            return value
        return Affine(self._reformulation, {}, float(value))
