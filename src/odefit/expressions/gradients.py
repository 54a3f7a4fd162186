"""Values of expressions with their derivatives by the names in them, over NumPy arrays.

Reverse mode: one pass back through the postfix form gives the derivatives by all names, in a few
times the time of the value. The chain rule from names to unknowns is then one product of arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from odefit.expressions.algebras import DERIVATIVES, NUMPY, ArrayLike
from odefit.expressions.expressions import CONDITIONS, PIECEWISE, Expression

_ZERO, _MINUS_ONE = np.float64(0.0), np.float64(-1.0)

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "negate": operator.neg,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.divide,
    "^": np.power,
    "**": np.power,
}


class _Operation(NamedTuple):
    """An operation on nodes: its own number, its arguments, and which of these have derivatives."""

    number: int
    text: str
    arguments: tuple[int, ...]
    needed: tuple[bool, ...]


class Gradient:
    """An expression as a function that returns its value and its partial derivatives.

    A name without influence keeps a zero derivative, however steep the function is, as in
    :class:`odefit.expressions.algebras.Dual`.

    Parameters
    ----------
    expression
        The expression.
    names
        Names for which derivatives are computed.

    Attributes
    ----------
    names
        Those of them that occur in the expression, in alphabetical order.

    Examples
    --------
    >>> from odefit.expressions.expressions import parse
    >>> gradient = Gradient(parse("a*x^2"), {"x"})
    >>> gradient({"a": np.float64(3.0), "x": np.array([1.0, 2.0])})
    (array([ 3., 12.]), {'x': array([ 6., 12.])})
    """

    def __init__(self, expression: Expression, names: Collection[str]) -> None:
        self.names = tuple(sorted(expression.names & set(names)))
        self._leaves: list[tuple[int, str]] = []
        self._constants: list[Any] = []  # by node: a number's value, else None
        self._operations: list[_Operation] = []
        known: dict[Any, int] = {}  # parts that occur several times are evaluated once
        active: set[int] = set()
        stack: list[int] = []
        for kind, text, arity in expression.program:
            size = {"name": 0, "number": 0, "negate": 1, "binary": 2}.get(kind, arity)
            arguments = tuple(stack[len(stack) - size :])
            del stack[len(stack) - size :]
            key = kind, text, arguments
            if key not in known:
                number = known[key] = len(self._constants)
                self._constants.append(NUMPY.number(text) if kind == "number" else None)
                if kind == "name":
                    self._leaves.append((number, text))
                elif size:
                    name = "negate" if kind == "negate" else text
                    needed = tuple(a in active for a in arguments)
                    self._operations.append(_Operation(number, name, arguments, needed))
                if kind == "call" and text in CONDITIONS:
                    continues = False  # true or false, without a derivative
                elif kind == "name":
                    continues = text in self.names
                else:
                    continues = bool(active.intersection(arguments))
                if continues:
                    active.add(number)
            stack.append(known[key])
        self._root = stack[0]
        self._named_leaves = sorted(
            (name, leaf) for leaf, name in self._leaves if name in self.names
        )
        self._backwards = [o for o in reversed(self._operations) if o.number in active]

    def value(self, values: Mapping[str, Any]) -> Any:
        """Return the value alone."""
        return self._forward(values)[self._root]

    def __call__(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, ArrayLike]]:
        """Return the value, and its partial derivatives by name.

        `values` has NumPy floats, or arrays of one shape, for each name; a constant derivative may
        be a float.
        """
        node = self._forward(values)
        if not self._named_leaves:
            return node[self._root], {}
        partials = self._pass_back(node, operator.mul)
        if not all(map(_is_finite, partials.values())):
            partials = self._pass_back(node, _product_that_keeps_zero)
        return node[self._root], partials

    def _forward(self, values: Mapping[str, Any]) -> list[Any]:
        node = list(self._constants)
        for i, name in self._leaves:
            node[i] = values[name]
        for i, text, arguments, _ in self._operations:
            function = _FUNCTIONS.get(text)
            if function is None:
                node[i] = NUMPY.call(text, [node[a] for a in arguments])
            elif len(arguments) == 2:
                node[i] = function(node[arguments[0]], node[arguments[1]])
            else:
                node[i] = function(node[arguments[0]])
        return node

    def _pass_back(self, node: list[Any], product: Any) -> dict[str, ArrayLike]:
        adjoint: list[Any] = [None] * len(node)
        adjoint[self._root] = np.float64(1.0)
        for i, text, arguments, needed in self._backwards:
            sensitivity = adjoint[i]
            if sensitivity is None:
                continue  # only conditions depend on it
            factors = _factors(text, [node[a] for a in arguments], node[i], needed)
            for a, factor, is_wanted in zip(arguments, factors, needed, strict=False):
                if is_wanted:
                    term = sensitivity if factor is None else product(sensitivity, factor)
                    adjoint[a] = term if adjoint[a] is None else adjoint[a] + term
        # A name that occurs only in conditions has no derivative.
        by_name = {name: adjoint[leaf] for name, leaf in self._named_leaves}
        return {
            name: _ZERO if sensitivity is None else sensitivity
            for name, sensitivity in by_name.items()
        }


def _factors(text: str, x: list[Any], value: Any, needed: tuple[bool, ...]) -> list[Any]:
    """Return the derivatives of an operation by its arguments; None for 1, or if not needed."""
    if text == "negate":
        return [_MINUS_ONE]
    if text == "+":
        return [None, None]
    if text == "-":
        return [None, _MINUS_ONE]
    if text == "*":
        return [x[1], x[0]]
    if text == "/":
        inverse = np.divide(1.0, x[1])
        return [inverse, -value * inverse if needed[1] else None]
    if text in {"^", "**"}:
        return _power_factors(x[0], x[1], value, needed)
    if text in {"min", "max"}:
        return _choices(text, x)
    if text == PIECEWISE:
        return _pieces(x)
    return [DERIVATIVES[text](x[0], value)]


def _power_factors(base: Any, exponent: Any, value: Any, needed: tuple[bool, ...]) -> list[Any]:
    factors: list[Any] = [None, None]
    if needed[0]:
        # The slope of 0 ** 0 is 0, not 0 * inf.
        slope = exponent * np.power(base, np.subtract(exponent, 1.0))
        factors[0] = np.where(np.equal(exponent, 0.0), 0.0, slope)
    if needed[1]:
        # 0 ** p is 0 for every positive p.
        factors[1] = np.where(np.equal(value, 0.0), 0.0, value * np.log(base))
    return factors


def _choices(text: str, x: list[Any]) -> list[Any]:
    """Return 1 where an argument is the first smallest (largest) one, else 0."""
    compare = np.less_equal if text == "min" else np.greater_equal
    choices: list[Any] = [1.0]
    best = x[0]
    for argument in x[1:]:
        stays = np.asarray(compare(best, argument), dtype=float)
        choices = [*(f * stays for f in choices), 1.0 - stays]
        best = reduce(np.minimum if text == "min" else np.maximum, [best, argument])
    return [np.asarray(f) for f in choices]


def _pieces(x: list[Any]) -> list[Any]:
    """Return 1 for each value of a ``piecewise`` where it is selected, else 0."""
    selected: list[Any] = []
    open_ = np.asarray(True)  # where no condition has been true so far
    for condition in x[1::2]:
        selected += [np.asarray(open_ & condition, dtype=float)[()], None]
        open_ = open_ & ~np.asarray(condition)
    return [*selected, np.asarray(open_, dtype=float)[()]]


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    # A finite square shows that all are finite, in a fraction of the time.
    return math.isfinite(np.vdot(value, value)) or bool(np.isfinite(value).all())


def _product_that_keeps_zero(adjoint: Any, factor: Any) -> Any:
    return np.where(np.equal(adjoint, 0.0), 0.0, adjoint * factor)
