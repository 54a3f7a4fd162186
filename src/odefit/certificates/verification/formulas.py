"""The formulas of a statement, parsed again and evaluated over any kind of number.

They are fully bracketed, so that Python's own parser reads them; nothing is ever executed. Equal
parts of several formulas are evaluated once.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

SERIES_FUNCTIONS = frozenset({"exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"})
"""Functions of one argument that every kind of number provides; others are expressed by them."""

MAX_POWER = 64
"""Largest integer exponent that is computed by multiplication."""


class Kind(Protocol):
    """A kind of numbers: they have ``+ - *``, and this makes and maps them."""

    def number(self, value: Fraction) -> Any:
        """Return a constant."""

    def apply(self, function: str, x: Any) -> Any:
        """Return a function of :data:`SERIES_FUNCTIONS`, or ``"inv"`` for 1/x."""


class FormulaError(ValueError):
    """The error for a text that is not a formula of a statement."""


@dataclass(frozen=True)
class _Step:
    """One operation on earlier values: its name, and their places or a constant."""

    operation: str
    places: tuple[int, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)


class Formulas:
    """Several formulas in the same names, which are `names`.

    They may have `special` functions of one argument, which have no slopes.
    """

    def __init__(
        self, texts: Sequence[str], names: Sequence[str], special: Container[str] = ()
    ) -> None:
        self._names, self._special = frozenset(names), special
        self._steps: list[_Step] = []
        self._places: dict[_Step, int] = {}
        self._results = [self._parsed(text) for text in texts]

    @property
    def steps(self) -> Sequence[_Step]:
        """The operations in an order of computation."""
        return self._steps

    @property
    def results(self) -> Sequence[int]:
        """The numbers of the operations whose values are those of the formulas."""
        return self._results

    def evaluate(
        self, values: Mapping[str, Any], kind: Kind, known: Mapping[int, Any] | None = None
    ) -> list[Any]:
        """Return the values of all formulas at values of the names.

        Values in `known`, by the number of the operation, are not computed again.
        """
        known = known or {}
        results: list[Any] = []
        for number, step in enumerate(self._steps):
            results.append(
                known[number] if number in known else _value(step, results, values, kind)
            )
        return [results[place] for place in self._results]

    def constant_parts(self, values: Mapping[str, Any], kind: Kind) -> dict[int, Any]:
        """Return the values of all operations on these names alone, by number."""
        constants: dict[int, Any] = {}
        for number, step in enumerate(self._steps):
            if step.operation == "name":
                if step.name in values:
                    constants[number] = values[step.name]
            elif all(place in constants for place in step.places):
                constants[number] = _value(step, constants, values, kind)
        return constants

    def slopes(self, names: Sequence[str]) -> Formulas:
        """Return the derivatives of all formulas by these names, row by row."""
        slopes = Formulas((), tuple(self._names))
        slopes._steps, slopes._places = list(self._steps), dict(self._places)
        zero, unit = slopes._number(0), slopes._number(1)
        by_step: list[list[int]] = []
        for place, step in enumerate(self._steps):
            if step.operation == "name":
                by_step.append([unit if step.name == name else zero for name in names])
            else:
                by_step.append([slopes._slope(place, step, k, by_step) for k in range(len(names))])
        slopes._results = [slope for place in self._results for slope in by_step[place]]
        slopes._prune()
        return slopes

    def _slope(self, place: int, step: _Step, k: int, by_step: Sequence[Sequence[int]]) -> int:
        """Add the derivative of an operation by the k-th name, from those of its operands."""
        inner = [by_step[operand][k] for operand in step.places]
        match step.operation:
            case "number":
                return self._number(0)
            case "-":
                return self._negative(inner[0])
            case "sum":
                return self._binary(ast.Add(), *inner)
            case "product":
                parts = zip(inner, reversed(step.places), strict=True)
                terms = [s if self._constant(s) == 0 else self._product(s, p) for s, p in parts]
                return self._binary(ast.Add(), *terms)
        if self._constant(inner[0]) == 0:
            return inner[0]
        return self._product(self._outer_slope(place, step), inner[0])

    def _outer_slope(self, place: int, step: _Step) -> int:
        """Add the derivative of a function by its argument; `place` has its value."""
        x, unit = step.places[0], self._number(1)
        match step.operation:
            case "exp":
                return place
            case "log":
                return self._add("inv", x)
            case "inv":
                return self._negative(self._product(place, place))
            case "sqrt":
                return self._product(self._number(Fraction(1, 2)), self._add("inv", place))
            case "sin":
                return self._add("cos", x)
            case "cos":
                return self._negative(self._add("sin", x))
            case "tan":
                return self._sum(unit, self._product(place, place))
        square = self._product(x, x)
        if step.operation == "atan":
            return self._add("inv", self._sum(unit, square))
        below = self._add("sqrt", self._sum(unit, self._negative(square)))
        slope = self._add("inv", below)
        return slope if step.operation == "asin" else self._negative(slope)

    def _prune(self) -> None:
        """Remove the operations that no result needs."""
        needed = set(self._results)
        for place in range(len(self._steps) - 1, -1, -1):
            if place in needed:
                needed.update(self._steps[place].places)
        places = {place: number for number, place in enumerate(sorted(needed))}
        self._steps = [
            replace(step, places=tuple(places[p] for p in step.places))
            for place, step in enumerate(self._steps)
            if place in places
        ]
        self._places = {step: number for number, step in enumerate(self._steps)}
        self._results = [places[place] for place in self._results]

    def _parsed(self, text: str) -> int:
        try:
            tree = ast.parse(text, mode="eval")
            return self._node(tree.body)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise FormulaError(f"{text[:80]!r} is no formula: {error}") from None

    def _add(self, operation: str, *places: int, **rest: Any) -> int:
        step = _Step(operation, places, **rest)
        if step not in self._places:
            self._places[step] = len(self._steps)
            self._steps.append(step)
        return self._places[step]

    def _number(self, value: Fraction | int) -> int:
        return self._add("number", value=Fraction(value))

    def _constant(self, place: int) -> Fraction | None:
        step = self._steps[place]
        return step.value if step.operation == "number" else None

    def _node(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                # The exact decimal digits, not the nearest binary number.
                return self._number(Fraction(repr(node.value)))
            case ast.Name(id=name):
                if name not in self._names:
                    raise FormulaError(f"unknown name {name!r}")
                return self._add("name", name=name)
            case ast.UnaryOp(op=ast.USub()):
                return self._negative(self._node(node.operand))
            case ast.BinOp():
                return self._binary(node.op, self._node(node.left), self._node(node.right))
            case ast.Call(func=ast.Name(id=function), keywords=[], args=[argument]):
                return self._call(function, self._node(argument))
        raise FormulaError(f"{ast.unparse(node)[:80]!r} has no meaning here")

    def _negative(self, place: int) -> int:
        value = self._constant(place)
        return self._add("-", place) if value is None else self._number(-value)

    def _binary(self, operator: ast.operator, left: int, right: int) -> int:
        a, b = self._constant(left), self._constant(right)
        match operator:
            case ast.Add():
                if a is not None and b is not None:
                    return self._number(a + b)
                return self._sum(left, right)
            case ast.Sub():
                return self._binary(ast.Add(), left, self._negative(right))
            case ast.Mult():
                return self._product(left, right)
            case ast.Div():
                if b is not None and b != 0:
                    return self._product(left, self._number(1 / b))
                return self._product(left, self._add("inv", right))
            case ast.BitXor() | ast.Pow():
                return self._power(left, right)
        raise FormulaError(f"operator {type(operator).__name__} has no meaning here")

    def _sum(self, left: int, right: int) -> int:
        if self._constant(left) == 0:
            return right
        return left if self._constant(right) == 0 else self._add("sum", left, right)

    def _product(self, left: int, right: int) -> int:
        a, b = self._constant(left), self._constant(right)
        if a is not None and b is not None:
            return self._number(a * b)
        if a == 1:
            return right
        return left if b == 1 else self._add("product", left, right)

    def _power(self, base: int, exponent: int) -> int:
        p = self._constant(exponent)
        if p is not None and p.denominator == 1 and abs(p) <= MAX_POWER:
            return self._whole_power(base, int(p))
        if p == Fraction(1, 2):
            return self._add("sqrt", base)
        return self._add("exp", self._product(exponent, self._add("log", base)))

    def _whole_power(self, base: int, p: int) -> int:
        if p < 0:
            return self._add("inv", self._whole_power(base, -p))
        if p == 0:
            return self._number(1)
        half = self._whole_power(base, p // 2)
        square = self._product(half, half)
        return self._product(square, base) if p % 2 else square

    def _call(self, function: str, x: int) -> int:
        if function in SERIES_FUNCTIONS or function in self._special:
            return self._add(function, x)
        if function == "log10":
            return self._product(
                self._add("log", x), self._add("inv", self._add("log", self._number(10)))
            )
        if function in ("sinh", "cosh", "tanh"):
            up, down = self._add("exp", x), self._add("exp", self._negative(x))
            half = self._number(Fraction(1, 2))
            sine = self._product(self._sum(up, self._negative(down)), half)
            cosine = self._product(self._sum(up, down), half)
            if function == "tanh":
                return self._product(sine, self._add("inv", cosine))
            return sine if function == "sinh" else cosine
        raise FormulaError(f"unknown function {function!r}")


def _value(step: _Step, results: Any, values: Mapping[str, Any], kind: Kind) -> Any:
    """Return the value of an operation from those of earlier ones, by number."""
    match step.operation:
        case "number":
            return kind.number(step.value)
        case "name":
            return values[step.name]
        case "-":
            return -results[step.places[0]]
        case "sum":
            return results[step.places[0]] + results[step.places[1]]
        case "product":
            return results[step.places[0]] * results[step.places[1]]
    return kind.apply(step.operation, results[step.places[0]])
