"""Symbolic reformulation of Smith and Pantelides: expressions to the standard form (18)-(25).

An expression is evaluated over affine combinations of variables. Sums stay such combinations;
each product of two variables, each power and each function gets a variable of its own, the same
one wherever the same term occurs again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np

from odefit.methods.outer_approximation.functions import evaluate
from odefit.methods.outer_approximation.standard_form import Univariate
from odefit.problem.algebras import NUMPY

SPREAD = 9
"""Products of sums with at most so many terms are multiplied out: their terms occur elsewhere."""

Number = float | int


Kind = Literal["sum", "product", "quotient", "function"]


@dataclass(frozen=True, eq=False)
class Definition:
    """What a variable is in terms of earlier ones.

    Attributes
    ----------
    kind
        How it is made.
    arguments
        Numbers of the variables in it.
    expression
        Of a sum.
    term
        Of a function.
    """

    kind: Kind
    arguments: tuple[int, ...]
    expression: Affine | None = None
    term: Univariate | None = None

    def value(self, w: Any) -> float:
        """From the values `w` of the variables, by number."""
        if self.expression is not None:
            return self.expression.value(w)
        if self.term is not None:
            return evaluate(self.term.function, float(w[self.term.argument]), self.term.exponent)
        a, b = (float(w[k]) for k in self.arguments)
        if self.kind == "product":
            return a * b
        return a / b if b else math.nan


class Affine:
    """``constant + sum of coefficients[i] w_i``, with the operations of expressions."""

    __slots__ = ("coefficients", "constant", "terms")

    def __init__(
        self, terms: Terms, coefficients: Mapping[int, float], constant: float = 0.0
    ) -> None:
        self.terms = terms
        self.coefficients = {i: c for i, c in coefficients.items() if c != 0.0}
        self.constant = float(constant)

    @property
    def single(self) -> int | None:
        """The variable, if it is nothing but one."""
        if self.constant == 0.0 and list(self.coefficients.values()) == [1.0]:
            return next(iter(self.coefficients))
        return None

    def value(self, w: Any) -> float:
        """From the values `w` of the variables, by number."""
        return self.constant + sum(c * float(w[i]) for i, c in self.coefficients.items())

    def scaled(self, factor: float) -> Affine:
        """Times a number."""
        own = {i: c * factor for i, c in self.coefficients.items()}
        return Affine(self.terms, own, self.constant * factor)

    def __neg__(self) -> Affine:
        return self.scaled(-1.0)

    def __add__(self, other: Affine | Number) -> Affine:
        if not isinstance(other, Affine):
            return Affine(self.terms, self.coefficients, self.constant + float(other))
        total = dict(self.coefficients)
        for i, c in other.coefficients.items():
            total[i] = total.get(i, 0.0) + c
        return Affine(self.terms, total, self.constant + other.constant)

    __radd__ = __add__

    def __sub__(self, other: Affine | Number) -> Affine:
        return self + (-other)

    def __rsub__(self, other: Number) -> Affine:
        return -self + other

    def __mul__(self, other: Affine | Number) -> Affine:
        if not isinstance(other, Affine):
            return self.scaled(float(other))
        return self.terms.product(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Affine | Number) -> Affine:
        if not isinstance(other, Affine):
            return self.scaled(1.0 / float(other))
        return self.terms.quotient(self, other)

    def __rtruediv__(self, other: Number) -> Affine:
        return self.terms.call("power", self, -1.0).scaled(float(other))


class Terms:
    """The variables and terms that are there so far, each once.

    Attributes
    ----------
    names
        Of the variables.
    rows
        Left-hand sides that are zero.
    bilinear, univariate
        See :class:`StandardForm`.
    definitions
        What each further variable is, in the order in which they were made.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.rows: list[Affine] = []
        self.bilinear: list[tuple[int, int, int]] = []
        self.univariate: list[Univariate] = []
        self.definitions: dict[int, Definition] = {}
        self._known: dict[Any, int] = {}

    def variable(self, number: int) -> Affine:
        """Variable `number` as an expression."""
        return Affine(self, {number: 1.0})

    def new(self, name: str) -> int:
        """A further variable."""
        self.names.append(name)
        return len(self.names) - 1

    def _define(self, number: int, kind: Kind, arguments: tuple[int, ...], **more: Any) -> None:
        self.definitions[number] = Definition(kind, arguments, **more)

    def named(self, expression: Affine) -> int:
        """The variable that equals `expression`, made if there is none."""
        single = expression.single
        if single is not None:
            return single
        key = ("sum", tuple(sorted(expression.coefficients.items())), expression.constant)
        if key not in self._known:
            number = self._known[key] = self.new(f"sum {len(self._known)}")
            self.rows.append(expression - self.variable(number))
            self._define(number, "sum", tuple(expression.coefficients), expression=expression)
        return self._known[key]

    def product(self, a: Affine, b: Affine) -> Affine:
        """(22), multiplied out where that is short."""
        for one, other in ((a, b), (b, a)):
            if not one.coefficients:
                return other.scaled(one.constant)
        if len(a.coefficients) * len(b.coefficients) > SPREAD:
            a, b = (x if len(x.coefficients) == 1 else self.variable(self.named(x)) for x in (a, b))
        total = a.scaled(b.constant) + b.scaled(a.constant)
        total = total + (-a.constant * b.constant)
        for i, c in a.coefficients.items():
            for j, d in b.coefficients.items():
                total = total + Affine(self, {self._times(i, j): c * d})
        return total

    def _times(self, i: int, j: int) -> int:
        if i == j:
            return self._univariate("power", i, 2.0)
        key = ("product", min(i, j), max(i, j))
        if key not in self._known:
            number = self._known[key] = self.new(f"({self.names[i]})*({self.names[j]})")
            self.bilinear.append((number, min(i, j), max(i, j)))
            self._define(number, "product", (i, j))
        return self._known[key]

    def quotient(self, a: Affine, b: Affine) -> Affine:
        """(23) as a bilinear term: the result times `b` is `a`."""
        if not b.coefficients:
            return a.scaled(1.0 / b.constant)
        if not a.coefficients:
            return self.call("power", b, -1.0).scaled(a.constant)
        if len(b.coefficients) == 1 and b.constant == 0.0:  # a factor does not spoil sharing
            ((j, factor),) = b.coefficients.items()
            a = a.scaled(1.0 / factor)
        else:
            j = self.named(b)
        # A common factor of the numerator stays outside.
        lead = next(iter(a.coefficients.values()))
        if a.constant == 0.0 and len(a.coefficients) == 1:
            a = a.scaled(1.0 / lead)
        else:
            lead = 1.0
        i = self.named(a)
        if i == j:
            return Affine(self, {}, lead)
        key = ("quotient", i, j)
        if key not in self._known:
            number = self._known[key] = self.new(f"({self.names[i]})/({self.names[j]})")
            self.bilinear.append((i, number, j))
            self._define(number, "quotient", (i, j))
        return Affine(self, {self._known[key]: lead})

    def call(self, function: str, argument: Affine, exponent: float = 0.0) -> Affine:
        """(24) and (25)."""
        if not argument.coefficients:
            x = np.float64(argument.constant)
            with np.errstate(all="ignore"):
                value = x**exponent if function == "power" else NUMPY.call(function, [x])
            if not math.isfinite(float(value)):
                raise ZeroDivisionError(f"{function}({argument.constant:g}) has no finite value")
            return Affine(self, {}, float(value))
        number = self._univariate(function, self.named(argument), exponent)
        return self.variable(number)

    def _univariate(self, function: str, argument: int, exponent: float) -> int:
        key = (function, argument, exponent)
        if key not in self._known:
            shown = f"^{exponent:g}" if function == "power" else ""
            name = "" if function == "power" else function
            number = self._known[key] = self.new(f"{name}({self.names[argument]}){shown}")
            term = Univariate(number, argument, function, exponent)
            self.univariate.append(term)
            self._define(number, "function", (argument,), term=term)
        return self._known[key]


class AffineAlgebra:
    """Expressions over :class:`Affine`; plain numbers where values are known."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def number(self, text: str) -> Affine:
        return Affine(self._terms, {}, float(text))

    def power(self, base: Any, exponent: Any) -> Affine:
        x, n = self.affine(base), self.affine(exponent)
        if not n.coefficients:
            if n.constant == 0.0:
                return Affine(self._terms, {}, 1.0)
            return x if n.constant == 1.0 else self._terms.call("power", x, n.constant)
        if not x.coefficients and x.constant == 0.0:
            return x  # as everywhere: 0^p is 0 for every positive p
        return self._terms.call("exp", n * self._terms.call("log", x))

    def call(self, function: str, arguments: Sequence[Any]) -> Affine:
        given = [self.affine(a) for a in arguments]
        if function in {"min", "max"}:
            sign = 1.0 if function == "max" else -1.0
            return reduce(lambda a, b: self._extreme(a, b, sign), given)
        if function == "log10":
            return self._terms.call("log", given[0]).scaled(1.0 / math.log(10.0))
        return self._terms.call(function, given[0])

    def _extreme(self, a: Affine, b: Affine, sign: float) -> Affine:
        """The larger of two numbers is half their sum and half their distance."""
        return (a + b + self._terms.call("abs", a - b).scaled(sign)).scaled(0.5)

    def affine(self, value: Any) -> Affine:
        """`value` as an expression, if it is a number."""
        return value if isinstance(value, Affine) else Affine(self._terms, {}, float(value))
