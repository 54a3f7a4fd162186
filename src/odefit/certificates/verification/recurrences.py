"""Solutions as polynomials of the time, coefficient by coefficient, in floating point.

Every operation of a formula adds one coefficient from those of its operands, as in Taylor
arithmetic (A. Griewank and A. Walther, Evaluating Derivatives, 2008, chapter 13). Coefficients are
polynomials in the unknowns of a box. Nothing here is rigorous: the guesses are verified later.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from odefit.certificates.verification.formulas import Formulas
from odefit.certificates.verification.polynomials import Jet, Jets, Layout
from odefit.common.arrays import Array

PARTNER = {"sin": "cos", "cos": "sin"}
"""Functions that are computed in pairs."""


def solution(
    rates: Formulas,
    ring: Layout,
    start: Mapping[str, Array],
    known: Mapping[str, Array],
    width: float,
    order: int,
) -> Array:
    """Return the solution of equations over a step, shape (states, monomials, order + 1).

    `start` has the states at its beginning, shape (monomials,), and `known` the other names, shape
    (monomials, order + 1). The time is in units of the step's `width`.
    """
    x = {name: np.zeros((ring.size, order + 1)) for name in start}
    for name, c in start.items():
        x[name][:, 0] = c
    values = Coefficients(rates, ring, {**known, **x}, {*x, "t"}, order)
    for k in range(order):
        for c, rate in zip(x.values(), values.of_order(k), strict=True):
            c[:, k + 1] = width * rate / (k + 1)
    return np.stack(list(x.values()))


class Coefficients:
    """The coefficients of formulas, order by order, from those of the names in them.

    The names have arrays of shape (monomials, powers), whose columns up to an order must be there
    when that order is computed; only `changing` ones have more than one column.
    """

    def __init__(
        self,
        formulas: Formulas,
        ring: Layout,
        names: Mapping[str, Array],
        changing: Container[str],
        powers: int,
    ) -> None:
        self._steps, self._results = formulas.steps, formulas.results
        self._ring, self._powers = ring, powers
        self._c: list[Array] = []
        self._constant: list[bool] = []
        self._others: dict[int, Array] = {}  # partners of functions, reciprocals of first terms
        for step in self._steps:
            if step.operation == "name":
                c = names[step.name]
                constant = step.name not in changing
            else:
                c = np.zeros((ring.size, powers))
                constant = all(self._constant[p] for p in step.places)
            self._c.append(c)
            self._constant.append(constant)

    def of_order(self, k: int) -> Sequence[Array]:
        """Return the coefficients of order k of the formulas, shape (monomials,) each."""
        for number, step in enumerate(self._steps):
            if step.operation == "name" or (k and self._constant[number]):
                continue
            operands = [self._c[p] for p in step.places]
            out = self._c[number]
            match step.operation:
                case "number":
                    out[0, 0] = float(step.value)
                case "-":
                    out[:, k] = -operands[0][:, k]
                case "sum":
                    out[:, k] = operands[0][:, k] + operands[1][:, k]
                case "product":
                    out[:, k] = self._convolved(operands[0], operands[1], k)
                case function:
                    out[:, k] = self._function(function, number, operands[0], out, k)
        return [self._c[place][:, k] for place in self._results]

    def _function(self, name: str, number: int, x: Array, y: Array, k: int) -> Array:
        """Return the coefficient of order k of a function y of x."""
        if name not in ("inv", "exp", "log", "sqrt", "sin", "cos"):
            known = Jet(x[:, : k + 1].copy(), self._ring)
            return Jets(self._ring, k + 1).apply(name, known).c[:, k]
        if k == 0:
            first = self._first(name, x[:, 0])
            if name in PARTNER:
                self._others[number] = np.zeros_like(y)
                self._others[number][:, 0] = self._first(PARTNER[name], x[:, 0])
            elif name == "log":
                self._others[number] = self._first("inv", x[:, 0])
            elif name == "sqrt":
                self._others[number] = self._first("inv", first) / 2
            elif name == "inv":
                self._others[number] = first
            return first
        weights = np.arange(k + 1)
        moved = x[:, : k + 1] * weights  # derivatives by the logarithm of the time
        if name == "exp":
            return self._convolved(moved, y, k) / k
        if name in PARTNER:
            other, sign = self._others[number], 1.0 if name == "sin" else -1.0
            value = sign * self._convolved(moved, other, k) / k
            other[:, k] = -sign * self._convolved(moved, y, k) / k
            return value
        if name == "inv":
            rest = -self._convolved(x, y, k)  # its last coefficient is still zero
        elif name == "log":
            rest = x[:, k] - self._convolved(y[:, : k + 1] * weights, x, k) / k
        else:
            rest = x[:, k] - self._convolved(y, y, k)
        return self._product(rest, self._others[number])

    def _first(self, name: str, x: Array) -> Array:
        """Return a function of a polynomial in the unknowns alone."""
        return Jets(self._ring, 1).apply(name, Jet(x[:, None].copy(), self._ring)).c[:, 0]

    def _convolved(self, a: Array, b: Array, k: int) -> Array:
        """Return the coefficient of order k of a product."""
        return self._ring.folded(a[:, : k + 1] @ b[:, : k + 1][:, ::-1].T)

    def _product(self, a: Array, b: Array) -> Array:
        return self._ring.folded(np.multiply.outer(a, b))
