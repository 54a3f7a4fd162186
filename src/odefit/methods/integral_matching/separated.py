"""Curves on a grid as sums of products: a function of the unknowns times a function of time.

If the equations are recorded over this algebra, quantities that do not depend on unknowns are
computed once, also under integrals. A match evaluates the criterion many times on the same curves.
Products of two sums are not expanded, as that would lose digits if cancellation makes each of them
small. Derivatives of recorded quantities are recorded as well, so that a search evaluates values
and derivatives alike.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.expressions.algebras import (
    COMPARISONS,
    DERIVATIVES,
    FUNCTIONS,
    LIMITS,
    LOGIC,
    power_by_exponent,
    power_slope,
)
from odefit.expressions.expressions import CONDITIONS, PIECEWISE
from odefit.methods.integral_matching.segments import Grid

INTEGRAL = "integral"  # operation that needs the grid; all others are among :data:`OPERATIONS`
SCALED = "scaled"  # operation "factor times a derivative"

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    **FUNCTIONS,
    # Python's operators accept numbers and arrays, and are faster than NumPy's functions.
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "negate": operator.neg,
    "^": np.power,
    "sqrt": LIMITS.sqrt,  # smoothed data may be slightly below its domain
    "min": np.minimum,
    "max": np.maximum,
    **COMPARISONS,
    **LOGIC,
    # The parts of a piecewise function:
    "if": lambda condition, value: np.where(condition, value, 0.0),
    "if not": lambda condition, value: np.where(condition, 0.0, value),
    # Parts that occur only in derivatives:
    SCALED: operator.mul,
    "slope of ^": power_slope,
    "^ by exponent": power_by_exponent,
    "first is min": np.less_equal,
    "first is max": np.greater_equal,
    **{f"slope of {name}": slope for name, slope in DERIVATIVES.items()},
}
"""The function of one or two arguments for each operation."""


def scaled_with_zeros(factor: Any, derivative: Any) -> Any:
    """Return a factor times a derivative; a derivative of zero stays zero.

    Dual numbers behave likewise: an unknown without effect has a zero derivative, however steep the
    function is.
    """
    return np.where(np.equal(derivative, 0.0), 0.0, factor * derivative)


Value = Array | np.float64
"""A function of time on a grid, shape (m,), or a number independent of time."""


class Node:
    """A recorded quantity: a number, a curve, or an operation on other quantities.

    The `operation` is "known", "unknown", "integral" or one of :data:`OPERATIONS`. `value` is None
    if the quantity depends on any of the `unknowns`, which are given by their bits. `varies` is
    true if it depends on time. `number` counts the quantities recorded before.
    """

    __slots__ = ("arguments", "number", "operation", "unknowns", "value", "varies")

    def __init__(
        self,
        operation: str,
        arguments: tuple[Node, ...],
        value: Value | None,
        unknowns: int,
        varies: bool,
        number: int,
    ) -> None:
        self.operation, self.arguments, self.value = operation, arguments, value
        self.unknowns, self.varies, self.number = unknowns, varies, number


class Recorder:
    """The algebra that records the equations of one segment; see :class:`Separated`."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._by_operation: dict[tuple[str, tuple[int, ...]], Node] = {}
        self._numbers: dict[float, Node] = {}
        self._count = 0
        self.derivatives: dict[tuple[Node, int], Node] = {}
        self.zero, self.one = self._known(0.0), self._known(1.0)

    def known(self, value: Array | float) -> Separated:
        """Return a known number, or a known curve of shape (m,)."""
        return self.separated(self._known(value))

    def unknown(self, index: int) -> Separated:
        """Return the unknown with an index."""
        return Separated(self, self.zero, {self.one: self._node("unknown", (), index=index)})

    def number(self, text: str) -> Separated:
        """Return the number written as `text`."""
        return self.known(float(text))

    def power(self, base: Separated, exponent: Separated) -> Separated:
        """Return ``base ** exponent``."""
        return self.separated(self.apply("^", base.node(), exponent.node()))

    def call(self, function: str, arguments: Sequence[Separated]) -> Separated:
        """Return the value of a function."""
        nodes = [a.node() for a in arguments]
        if function in ("min", "max"):
            return self.separated(reduce(lambda a, b: self.apply(function, a, b), nodes))
        if function == PIECEWISE:
            result = nodes[-1]
            for k in range(len(nodes) - 3, -1, -2):
                value, condition = nodes[k], nodes[k + 1]
                rest = self.apply("if not", condition, result)
                result = self.apply("+", self.apply("if", condition, value), rest)
            return self.separated(result)
        return self.separated(self.apply(function, *nodes))

    def integral(self, curve: Separated) -> Separated:
        """Return the integral from the start of the grid to all its times."""
        return Separated(
            self,
            self.apply(INTEGRAL, curve.known) if curve.known is not self.zero else self.zero,
            {self.apply(INTEGRAL, a): c for a, c in curve.terms.items()},
        )

    def separated(self, node: Node) -> Separated:
        """Return a quantity as an element of the algebra."""
        if node.value is not None:
            return Separated(self, node, {})
        return Separated(self, self.zero, {node: self.one} if node.varies else {self.one: node})

    def sum_of(self, products: Iterable[tuple[Node, Node]]) -> Separated:
        """Return a sum of products, given as functions of time and their coefficients."""
        known = self.zero
        terms: dict[Node, Node] = {}
        for curve, coefficient in products:
            if curve.value is not None and coefficient.value is not None:
                known = self.apply("+", known, self.apply("*", coefficient, curve))
            else:
                terms[curve] = self.apply("+", terms.get(curve, self.zero), coefficient)
        return Separated(self, known, terms)

    def apply(self, operation: str, *arguments: Node) -> Node:
        """Return an operation on quantities; if these are known, it is computed at once."""
        a, b = arguments[0], arguments[-1]
        if operation in ("*", SCALED):
            if a is self.one:
                return b
            if b is self.one:
                return a
        elif operation == "/":
            if b is self.one:
                return a
        elif operation in ("+", "-"):
            if b is self.zero:
                return a
            if a is self.zero:
                return b if operation == "+" else self.apply("negate", b)
        elif operation == "negate" and a.operation == "negate":
            return a.arguments[0]
        return self._node(operation, arguments)

    def _known(self, value: Array | float) -> Node:
        if isinstance(value, np.ndarray) and value.ndim:
            return Node("known", (), value, 0, True, self._next())
        number = float(value)
        if number not in self._numbers:
            self._numbers[number] = Node("known", (), np.float64(number), 0, False, self._next())
        return self._numbers[number]

    def _node(self, operation: str, arguments: tuple[Node, ...], index: int = -1) -> Node:
        key = operation, (index,) if index >= 0 else tuple(a.number for a in arguments)
        if key not in self._by_operation:
            unknowns = 1 << index if index >= 0 else 0
            varies = operation == INTEGRAL
            for argument in arguments:
                unknowns |= argument.unknowns
                varies |= argument.varies
            if unknowns:
                node = Node(operation, arguments, None, unknowns, varies, self._next())
            else:
                node = self._known(self._computed(operation, arguments))
            self._by_operation[key] = node
        return self._by_operation[key]

    def _computed(self, operation: str, arguments: Sequence[Node]) -> Any:
        values: list[Any] = [a.value for a in arguments]
        with np.errstate(all="ignore"):
            if operation == INTEGRAL:
                return self.grid.cumulative(np.broadcast_to(values[0], self.grid.times.shape))
            if operation == SCALED:
                return scaled_with_zeros(values[0], values[1])
            return OPERATIONS[operation](*values)

    def _next(self) -> int:
        self._count += 1
        return self._count


class Separated:
    """A known part, and terms: functions of time and the unknowns times functions of the unknowns.

    `terms` holds the coefficient of each function of time; it depends on unknowns alone. A single
    coefficient belongs to the function 1.
    """

    __slots__ = ("known", "recorder", "terms")

    def __init__(self, recorder: Recorder, known: Node, terms: Mapping[Node, Node]) -> None:
        self.recorder, self.known, self.terms = recorder, known, terms

    def node(self) -> Node:
        """Return the whole sum as one quantity."""
        apply, total = self.recorder.apply, self.known
        for curve, coefficient in self.terms.items():
            total = apply("+", total, apply("*", coefficient, curve))
        return total

    def __neg__(self) -> Separated:
        apply = self.recorder.apply
        negative = {a: apply("negate", c) for a, c in self.terms.items()}
        return Separated(self.recorder, apply("-", self.recorder.zero, self.known), negative)

    def __add__(self, other: Separated) -> Separated:
        return self._with("+", other)

    def __sub__(self, other: Separated) -> Separated:
        return self._with("-", other)

    def __mul__(self, other: Separated) -> Separated:
        recorder, terms, others = self.recorder, self._parts(), other._parts()
        if len(terms) > 1 and len(others) > 1:
            return recorder.separated(recorder.apply("*", self.node(), other.node()))
        return recorder.sum_of(
            (recorder.apply("*", a, b), recorder.apply("*", c, d))
            for a, c in terms
            for b, d in others
        )

    def __truediv__(self, other: Separated) -> Separated:
        recorder, divisor = self.recorder, other.node()
        divide = recorder.apply
        if divisor.varies:
            return recorder.sum_of((divide("/", a, divisor), c) for a, c in self._parts())
        if divisor.value is not None:
            terms = {a: divide("/", c, divisor) for a, c in self.terms.items()}
            return Separated(recorder, divide("/", self.known, divisor), terms)
        return recorder.sum_of((a, divide("/", c, divisor)) for a, c in self._parts())

    def _with(self, operation: str, other: Separated) -> Separated:
        apply = self.recorder.apply
        terms = dict(self.terms)
        for curve, coefficient in other.terms.items():
            terms[curve] = apply(operation, terms.get(curve, self.recorder.zero), coefficient)
        return Separated(self.recorder, apply(operation, self.known, other.known), terms)

    def _parts(self) -> list[tuple[Node, Node]]:
        """Return all products, as functions of time and coefficients."""
        zero, one = self.recorder.zero, self.recorder.one
        if not self.known.varies and all(curve is one for curve in self.terms):
            return [(one, self.node())]
        parts = list(self.terms.items())
        if self.known is not zero:
            parts.append((self.known, one) if self.known.varies else (one, self.known))
        return parts


def derivative(recorder: Recorder, node: Node, unknown: int) -> Node:
    """Return the derivative of a quantity by an unknown; ``recorder.zero`` if independent of it."""
    if not node.unknowns >> unknown & 1:
        return recorder.zero
    derivatives = recorder.derivatives
    # A loop, since a product of hundreds of factors is nested too deeply for recursion.
    waiting = [] if (node, unknown) in derivatives else [node]
    while waiting:
        last = waiting[-1]
        inner = [a for a in last.arguments if a.unknowns >> unknown & 1]
        missing = next((a for a in inner if (a, unknown) not in derivatives), None)
        if missing is not None and last.operation not in CONDITIONS:
            waiting.append(missing)
        else:
            derivatives[waiting.pop(), unknown] = _derivative(recorder, last, unknown)
    return derivatives[node, unknown]


def _derivative(recorder: Recorder, node: Node, unknown: int) -> Node:
    """Return the derivative of a quantity, from those of its arguments."""
    apply, operation = recorder.apply, node.operation
    if operation == "unknown":
        return recorder.one
    if operation in CONDITIONS:
        return recorder.zero
    inner = [recorder.derivatives.get((a, unknown), recorder.zero) for a in node.arguments]
    a, b = node.arguments[0], node.arguments[-1]
    if operation in (INTEGRAL, "negate"):
        return apply(operation, inner[0])
    if operation in ("+", "-"):
        return apply(operation, *inner)
    if operation in ("if", "if not"):
        return apply(operation, a, inner[1])
    if operation in ("min", "max"):
        first = apply(f"first is {operation}", a, b)
        return apply("+", apply("if", first, inner[0]), apply("if not", first, inner[1]))
    total = recorder.zero
    for number, derivative_node in enumerate(inner):
        if derivative_node is not recorder.zero:
            factor = _factor(recorder, node, number)
            total = apply(
                "+",
                total,
                factor
                if derivative_node is recorder.one
                else apply(SCALED, factor, derivative_node),
            )
    return total


def _factor(recorder: Recorder, node: Node, number: int) -> Node:
    """Return the derivative of an operation by one of its arguments."""
    apply, operation = recorder.apply, node.operation
    a, b = node.arguments[0], node.arguments[-1]
    if operation == "*":
        return a if number else b
    if operation == "/":
        inverse = apply("/", recorder.one, b)
        return apply("negate", apply("*", node, inverse)) if number else inverse
    if operation == "^":
        return apply("^ by exponent", a, node) if number else apply("slope of ^", a, b)
    return apply(f"slope of {operation}", a, node)
