"""Elementary functions of Taylor models, as solutions of differential equations.

Consider the ray (tau d, tau s) with tau from 0 to 1, from the middle of a box and the start of a
step. Each monomial is multiplied there by tau to its weight, its degree in d plus its order in s,
and ``E = tau d/dtau`` multiplies its coefficient by that weight. A function y of x obeys an
equation that is linear in y:

- exp: ``E y = y E x``
- powers: ``x E y = p y E x``
- sine and cosine: ``E y = z E x``, ``E z = -y E x``
- inverse functions: ``w(x) E y = E x``, with w = x for log, 1 + x^2 for atan, sqrt(1 - x^2) for
  asin, and cosh(x)^2 for tanh, which is no inverse but obeys the same equation.

Coefficients follow from it weight by weight, as in Taylor arithmetic (A. Griewank and A. Walther,
Evaluating Derivatives, 2008, chapter 13). The polynomials with these coefficients leave a defect:
terms dropped from products, and rounding. Its part of weight w, divided by w, contributes to the
solution at tau = 1, times a bound of the growth of deviations by the equation. So the bound counts
the terms actually dropped, instead of the tail of the function's series (as in K. Makino and M.
Berz, Taylor models and other validated functional inclusion methods, 2003), and it holds for any
errors of the coefficients. Over wide boxes, the range of the function is used if that is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.function_recurrence import (
    FUNCTION_ERROR,
    Bounds,
    ElementaryFunction,
    deviation_of,
    dropping_factors,
)
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import TaylorModel

SINE_COSINE = ("sin", "cos")
"""The functions that are computed as a pair."""

_INVERSE: dict[str, Callable[[Array], Array]] = {
    "log": np.log,
    "atan": np.arctan,
    "asin": np.arcsin,
    "tanh": np.tanh,
}


class Exponential(ElementaryFunction):
    """``y = exp(x)``: a defect grows by the factor exp(x(1) - x(tau)) until tau = 1."""

    def __init__(self, length: int, x: TaylorModel, y: TaylorModel) -> None:
        super().__init__(length, x, y)
        self._equations = [[(1.0, self._weighted_x, x.support, y.c)]]

    def _put_coefficients(
        self, number: int, total: Array, part: slice, k: int, weight: int
    ) -> None:
        self.y.c[part, k] = total / weight if weight else np.exp(self.x.c[:1, 0])

    def _bounds(self) -> Sequence[Bounds]:
        x, y, first = self.x.norms(), self.y.norms(), self.y.c[0, 0]
        deviation, other = deviation_of(x), deviation_of(y)
        beyond, truncation = self._dropped(x, y, (1.0, 0.0))
        # |x(1) - x(tau)| is at most the sum of all coefficients: their weights are positive.
        growth = np.exp(deviation * ROUNDING_MARGIN) * ROUNDING_MARGIN
        defect = beyond + truncation + self._rounding(deviation, y.sum((0, 1)))
        bound_of = growth * (defect + FUNCTION_ERROR * first + UNDERFLOW)
        largest = (growth * first + UNDERFLOW) * ROUNDING_MARGIN
        moved = largest * np.expm1(self.x.remainder) * ROUNDING_MARGIN
        truncation = growth * truncation + largest * np.exp(self.x.remainder) * self.x.truncation
        low, high = (np.exp(end) for end in self._range(deviation))
        remainder = (bound_of + moved) * ROUNDING_MARGIN + UNDERFLOW
        return [(remainder, truncation, self._range_bound(low, high, self.y, other))]


class Power(ElementaryFunction):
    """``y = x^p`` of a positive x, with a number p in each box (a constant Taylor model).

    A defect is divided by x(tau) and grows by the factor (x(1) / x(tau))^p until tau = 1.
    """

    def __init__(self, length: int, x: TaylorModel, y: TaylorModel, p: TaylorModel) -> None:
        super().__init__(length, x, y)
        self._p = p
        self._weighted_y = np.zeros_like(y.c)  # E y
        self._equations = [
            [
                (p.c[0, 0], self._weighted_x, x.support, y.c),
                (-1.0, x.c, x.support, self._weighted_y),
            ]
        ]

    def _put_coefficients(
        self, number: int, total: Array, part: slice, k: int, weight: int
    ) -> None:
        if weight:
            self._weighted_y[part, k] = total / self.x.c[0, 0]
            self.y.c[part, k] = self._weighted_y[part, k] / weight
        else:
            self.y.c[part, k] = np.power(self.x.c[:1, 0], self._p.c[0, 0])

    def _bounds(self) -> Sequence[Bounds]:
        p, p_error, rest = self._p.c[0, 0], self._p.remainder, self.x.remainder
        x, y, middle = self.x.norms(), self.y.norms(), self.x.c[0, 0]
        deviation, other, first = deviation_of(x), deviation_of(y), np.abs(self.y.c[0, 0])
        sx, sy = x.sum((0, 1)), y.sum((0, 1))
        least = 2 * middle - sx * ROUNDING_MARGIN  # lower bound of the polynomial
        low, high = self._range(deviation)
        # Another exponent changes the value by a factor that depends on the logarithm of x.
        scale = (
            np.maximum(np.abs(np.log(low)), np.abs(np.log(high))) * ROUNDING_MARGIN + FUNCTION_ERROR
        )
        most = np.abs(p) + p_error
        # The factor x(1) / x(tau) is at most 1 + |x(1) - x(tau)| over the least x.
        growth = np.power(middle / least, most) * (ROUNDING_MARGIN + FUNCTION_ERROR)
        beyond, truncation = self._dropped_with(x, y, p)
        defect = (
            beyond + truncation + most * self._rounding(deviation, sy) + self._rounding(sx, other)
        )
        bound_of = (defect + p_error * sy * deviation) / least
        bound_of += (
            first
            * (FUNCTION_ERROR + np.expm1(p_error * np.abs(np.log(middle)) * ROUNDING_MARGIN))
            * ROUNDING_MARGIN
            + UNDERFLOW
        )
        ends = np.maximum(np.power(low, p - 1.0), np.power(high, p - 1.0))
        derivative = (
            most
            * ends
            * np.exp((p_error + 4 * UNIT_ROUNDOFF * most) * scale)
            * (ROUNDING_MARGIN + FUNCTION_ERROR)
        )
        remainder = np.where((least > 0) & (low > 0), growth * bound_of + derivative * rest, np.inf)
        truncation = growth * truncation / least + derivative * self.x.truncation
        values = np.power(low, p), np.power(high, p)
        range_bound = self._range_bound(np.minimum(*values), np.maximum(*values), self.y, other)
        range_bound += np.maximum(*values) * np.expm1(p_error * scale) * ROUNDING_MARGIN
        return [
            (
                remainder * ROUNDING_MARGIN + UNDERFLOW,
                truncation,
                np.where(low > 0, range_bound, np.inf),
            )
        ]

    def _dropped_with(self, x: Array, y: Array, p: Array) -> tuple[Array, Array]:
        if (p == p[:1]).all():
            return self._dropped(x, y, (float(p[0]), -1.0))
        shape = x.shape[1], y.shape[1], self._length
        first, second = (
            dropping_factors(self._monomials.degree, *shape, *by) for by in ((1.0, 0.0), (0.0, 1.0))
        )
        boxes = x.shape[2]
        a, b = x.reshape(-1, boxes), y.reshape(-1, boxes)
        dropped_parts = []
        for u, v in zip(first, second, strict=True):
            # Both factors are magnitudes that are rounded upwards; so is their combination.
            up, down = np.multiply.outer(u, np.abs(p)), v[:, :, None]
            factor = np.abs(np.where(p < 0, up + down, up - down)) + 16 * UNIT_ROUNDOFF * (
                up + down
            )
            dropped_parts.append(np.einsum("ab,cb,acb->b", a, b, factor))
        return dropped_parts[0], dropped_parts[1]


class InverseFunction(ElementaryFunction):
    """A function whose derivative is one over a positive w(x): log (w = x), atan, asin, tanh.

    A defect is divided by w(x(tau)) and does not grow until tau = 1.
    """

    def __init__(
        self, length: int, x: TaylorModel, y: TaylorModel, w: TaylorModel, name: str
    ) -> None:
        super().__init__(length, x, y)
        self._w, self._function = w, _INVERSE[name]
        self._weighted_y = np.zeros_like(y.c)  # E y
        self._equations = [[(-1.0, w.c, w.support, self._weighted_y)]]

    def _inhomogeneity(self, k: int) -> Array:
        if k < self._weighted_x.shape[1]:
            return self._weighted_x[:, k].copy()
        return super()._inhomogeneity(k)

    def _put_coefficients(
        self, number: int, total: Array, part: slice, k: int, weight: int
    ) -> None:
        if weight:
            self._weighted_y[part, k] = total / self._w.c[0, 0]
            self.y.c[part, k] = self._weighted_y[part, k] / weight
        else:
            self.y.c[part, k] = self._function(self.x.c[:1, 0])

    def _bounds(self) -> Sequence[Bounds]:
        w = self._w
        x, y, below = self.x.norms(), self.y.norms(), w.norms()
        deviation, other, first = deviation_of(x), deviation_of(y), np.abs(self.y.c[0, 0])
        total = below.sum((0, 1))
        least = 2 * w.c[0, 0] - (total + w.remainder) * ROUNDING_MARGIN
        beyond, truncation = self._dropped(below, y, (0.0, 1.0))
        defect = beyond + truncation + self._rounding(total, other) + 4 * UNIT_ROUNDOFF * deviation
        if w is not self.x:
            # The polynomial of w differs from w at the polynomial of x.
            defect += w.remainder * other
            truncation += w.truncation * other
        remainder = (
            (defect + self.x.remainder) * ROUNDING_MARGIN / least
            + FUNCTION_ERROR * first
            + UNDERFLOW
        )
        truncation = (truncation + self.x.truncation) / least
        low, high = (self._function(end) for end in self._range(deviation))
        range_bound = self._range_bound(low, high, self.y, other)
        return [(np.where(least > 0, remainder, np.inf), truncation, range_bound)]


class SineCosine(ElementaryFunction):
    """Sine and cosine of one argument; their equation rotates a defect and preserves its length."""

    def __init__(self, length: int, x: TaylorModel, y: TaylorModel) -> None:
        super().__init__(length, x, y)
        self.sine = y
        self.cosine = TaylorModel(x.monomials, np.zeros_like(y.c), y.support)
        self._values = (self.sine, self.cosine)
        self._equations = [
            [(1.0, self._weighted_x, x.support, self.cosine.c)],
            [(-1.0, self._weighted_x, x.support, self.sine.c)],
        ]
        self._orders = 0
        self._is_bounded = False

    def of(self, name: str) -> TaylorModel:
        """Return the model of the function of that name."""
        return self.sine if name == "sin" else self.cosine

    def compute_order(self, k: int) -> None:
        """Compute the coefficients of order k of both functions, once."""
        if k == self._orders:
            super().compute_order(k)
            self._orders += 1

    def _put_coefficients(
        self, number: int, total: Array, part: slice, k: int, weight: int
    ) -> None:
        y = self._values[number]
        if weight:
            y.c[part, k] = total / weight
        else:
            y.c[part, k] = (np.sin, np.cos)[number](self.x.c[:1, 0])

    def bound(self) -> None:
        """Set the remainders of both functions, once.

        If one function is unknown, its polynomial is set to zero, which must not change the bound
        of the other.
        """
        if not self._is_bounded:
            self._is_bounded = True
            super().bound()

    def _bounds(self) -> Sequence[Bounds]:
        x, pair = self.x.norms(), self._values
        deviation, rest = deviation_of(x), self.x.remainder
        one = np.ones_like(deviation)
        defects = []
        for y in pair:  # the products of each are in the equation of the other
            norms = y.norms()
            beyond, truncation = self._dropped(x, norms, (1.0, 0.0))
            rounding = self._rounding(deviation, norms.sum((0, 1)))
            defects.append((beyond + truncation + rounding, truncation))
        bounds_of = []
        # The angle of the rotation is x(1) - x(tau), which is at most the deviation.
        sine = np.minimum(deviation * ROUNDING_MARGIN, 1.0)
        for k, y in enumerate(pair):
            (defect_here, own_truncation), (other, other_truncation) = defects[1 - k], defects[k]
            # The derivative is bounded from its value in the middle.
            derivative = np.abs(pair[1 - k].c[0, 0]) + deviation + rest + FUNCTION_ERROR
            derivative = np.minimum(derivative * ROUNDING_MARGIN, 1.0)
            remainder = (
                defect_here + sine * other + derivative * rest + 2 * FUNCTION_ERROR
            ) * ROUNDING_MARGIN + UNDERFLOW
            truncation = own_truncation + sine * other_truncation + derivative * self.x.truncation
            range_bound = self._range_bound(-one, one, y, deviation_of(y.norms()))
            bounds_of.append((remainder, truncation, range_bound))
        return bounds_of


def function_of(
    name: str, length: int, operands: tuple[TaylorModel, TaylorModel], y: TaylorModel
) -> ElementaryFunction:
    """Return the function of that name, see :data:`odefit.structure.series.tape.ELEMENTARY`."""
    x, other = operands
    if name == "exp":
        return Exponential(length, x, y)
    if name == "^":
        return Power(length, x, y, other)
    return InverseFunction(length, x, y, other, name)
