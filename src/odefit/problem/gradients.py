"""Values of expressions with their derivatives by the names in them, over NumPy arrays.

Reverse mode: one pass back through the postfix form gives the derivatives by all names, in a few
times the time of the value. The chain rule from names to unknowns is then one product of arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from typing import Any

import numpy as np

from odefit.problem.algebras import DERIVATIVES, NUMPY, ArrayLike
from odefit.problem.expressions import Expression

_NO_PARTIALS: dict[str, Any] = {}


class Gradient:
    """An expression as a function that returns its value and its partial derivatives.

    A name that has no influence keeps a derivative of zero however steep the function is beside
    it, as in :class:`odefit.problem.algebras.Dual`.

    Parameters
    ----------
    expression
        The expression.
    names
        Names by which derivatives are wanted.

    Attributes
    ----------
    names
        Those of them that occur in the expression, in alphabetical order.

    Examples
    --------
    >>> from odefit.problem.expressions import parse
    >>> gradient = Gradient(parse("a*x^2"), {"x"})
    >>> gradient({"a": np.float64(3.0), "x": np.array([1.0, 2.0])})
    (array([ 3., 12.]), {'x': array([ 6., 12.])})
    """

    def __init__(self, expression: Expression, names: Collection[str]) -> None:
        self.names = tuple(sorted(expression.names & set(names)))
        self._expression = expression
        leaves: dict[str, int] = {}
        self._leaves: list[tuple[int, str]] = []
        self._numbers: list[tuple[int, Any]] = []
        self._operations: list[tuple[int, str, tuple[int, ...]]] = []
        active: set[int] = set()
        stack: list[int] = []
        count = 0
        for kind, text, arity in expression.program:
            if kind == "name" and text in leaves:
                stack.append(leaves[text])
                continue
            if kind == "name":
                leaves[text] = count
                self._leaves.append((count, text))
                if text in self.names:
                    active.add(count)
            elif kind == "number":
                self._numbers.append((count, NUMPY.number(text)))
            else:
                size = {"negate": 1, "binary": 2}.get(kind, arity)
                arguments = tuple(stack[-size:])
                del stack[-size:]
                operation = "negate" if kind == "negate" else text
                self._operations.append((count, operation, arguments))
                if active.intersection(arguments):
                    active.add(count)
            stack.append(count)
            count += 1
        self._root = stack[0]
        self._count = count
        self._wanted = [(leaves[name], name) for name in self.names]
        # Backwards, with the arguments through which the wanted names act.
        self._backwards = [
            (i, text, arguments, tuple(a in active for a in arguments))
            for i, text, arguments in reversed(self._operations)
            if i in active
        ]

    def value(self, values: Mapping[str, Any]) -> Any:
        """Return the value alone."""
        return self._expression.evaluate(values, NUMPY)

    def __call__(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, ArrayLike]]:
        """Return the value, and its partial derivatives by name.

        Parameters
        ----------
        values
            A value for each name of the expression: NumPy's floats, or arrays of one shape.

        Returns
        -------
        value, partials
            Floats, or arrays of that shape; a derivative that is constant may be a float.
        """
        node: list[Any] = [None] * self._count
        for i, name in self._leaves:
            node[i] = values[name]
        for i, number in self._numbers:
            node[i] = number
        for i, text, arguments in self._operations:
            node[i] = _forward(text, [node[a] for a in arguments])
        if not self._wanted:
            return node[self._root], _NO_PARTIALS
        partials = self._pass_back(node, _product)
        if not all(np.isfinite(p).all() for p in partials.values()):
            partials = self._pass_back(node, _product_that_keeps_zero)
        return node[self._root], partials

    def _pass_back(self, node: list[Any], product: Any) -> dict[str, ArrayLike]:
        adjoint: list[Any] = [None] * self._count
        adjoint[self._root] = np.float64(1.0)
        for i, text, arguments, wanted in self._backwards:
            own = adjoint[i]
            factors = _factors(text, [node[a] for a in arguments], node[i], wanted)
            for a, factor, is_wanted in zip(arguments, factors, wanted, strict=True):
                if not is_wanted:
                    continue
                if isinstance(factor, int):  # 1 or -1
                    term = own if factor == 1 else -own
                else:
                    term = product(own, factor)
                adjoint[a] = term if adjoint[a] is None else adjoint[a] + term
        return {name: adjoint[leaf] for leaf, name in self._wanted}


def _forward(text: str, arguments: list[Any]) -> Any:
    if text == "negate":
        return -arguments[0]
    if text in {"+", "-", "*", "/"}:
        left, right = arguments
        if text == "+":
            return left + right
        if text == "-":
            return left - right
        return left * right if text == "*" else np.divide(left, right)
    if text in {"^", "**"}:
        return NUMPY.power(*arguments)
    return NUMPY.call(text, arguments)


def _factors(text: str, x: list[Any], value: Any, wanted: tuple[bool, ...]) -> list[Any]:
    """Return the derivatives of an operation by its arguments; 1 and -1 as integers."""
    if text == "negate":
        return [-1]
    if text == "+":
        return [1, 1]
    if text == "-":
        return [1, -1]
    if text == "*":
        return [x[1], x[0]]
    if text == "/":
        inverse = np.divide(1.0, x[1])
        return [inverse, -value * inverse if wanted[1] else None]
    if text in {"^", "**"}:
        return _power_factors(x[0], x[1], value, wanted)
    if text in {"min", "max"}:
        return _choices(text, x)
    return [DERIVATIVES[text](x[0], value)]


def _power_factors(base: Any, exponent: Any, value: Any, wanted: tuple[bool, ...]) -> list[Any]:
    found: list[Any] = [None, None]
    if wanted[0]:
        # The slope of 0 ** 0 is 0, not 0 * inf.
        slope = exponent * np.power(base, np.subtract(exponent, 1.0))
        found[0] = np.where(np.equal(exponent, 0.0), 0.0, slope)
    if wanted[1]:
        # 0 ** p is 0 for every positive p.
        found[1] = np.where(np.equal(value, 0.0), 0.0, value * np.log(base))
    return found


def _choices(text: str, x: list[Any]) -> list[Any]:
    """Return 1 where an argument is the first that is the smallest (largest), else 0."""
    compare = np.less_equal if text == "min" else np.greater_equal
    found: list[Any] = [1.0]
    best = x[0]
    for argument in x[1:]:
        stays = np.asarray(compare(best, argument), dtype=float)
        found = [*(f * stays for f in found), 1.0 - stays]
        best = reduce(np.minimum if text == "min" else np.maximum, [best, argument])
    return [np.asarray(f) for f in found]


def _product(adjoint: Any, factor: Any) -> Any:
    return adjoint * factor


def _product_that_keeps_zero(adjoint: Any, factor: Any) -> Any:
    return np.where(np.equal(adjoint, 0.0), 0.0, adjoint * factor)
