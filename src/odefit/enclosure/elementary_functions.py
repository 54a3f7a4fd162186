"""Elementary functions of Taylor models, as solutions of differential equations.

Along the ray from the middle of a box and the start of a step, (tau d, tau s) with tau from 0 to 1,
each monomial is multiplied by tau to its weight, its degree in d plus its order in s, and
``E = tau d/dtau`` multiplies its coefficient by that weight. A function y of x obeys an equation
that is linear in y:

- exp: ``E y = y E x``
- powers: ``x E y = p y E x``
- sine and cosine: ``E y = z E x``, ``E z = -y E x``
- inverse functions: ``w(x) E y = E x``, with w = x for log, 1 + x^2 for atan, sqrt(1 - x^2) for
  asin, cosh(x)^2 for tanh (which is one of them for that reason alone).

Coefficients follow from it weight by weight, as in Taylor arithmetic (A. Griewank and A. Walther,
Evaluating Derivatives, 2008, chapter 13). The polynomials with these coefficients leave a defect:
what products drop, and rounding. Its part of weight w, divided by w, is what it adds to the
solution at tau = 1, times a bound of how the equation stretches deviations. So the bound is of
what is really dropped, not of the series of the function (as in K. Makino and M. Berz, Taylor
models and other validated functional inclusion methods, 2003), and nothing has to be known of the
errors of coefficients. Over wide boxes, the range of the function is taken if that is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from odefit.enclosure.function_recurrence import (
    ERROR,
    Bounds,
    Function,
    deviation_of,
    weighted_tables,
)
from odefit.enclosure.monomials import Monomials
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array

CIRCLE = ("sin", "cos")
"""Functions that are computed in pairs."""

_INVERSE: dict[str, Callable[[Array], Array]] = {
    "log": np.log,
    "atan": np.arctan,
    "asin": np.arcsin,
    "tanh": np.tanh,
}


class Exponential(Function):
    """``y = exp(x)``: a defect grows by the factor exp(x(1) - x(tau)) until tau = 1."""

    def __init__(self, monomials: Monomials, length: int, x: TaylorModel, y: TaylorModel) -> None:
        super().__init__(monomials, length, x, y)
        self._equations = [[(1.0, self._slope, x.support, y.c)]]

    def _settle(self, number: int, total: Array, part: slice, k: int, weight: int) -> None:
        self.y.c[part, k] = total / weight if weight else np.exp(self.x.c[:1, 0])

    def _bounded(self, sizes: Callable[[TaylorModel], Array]) -> Sequence[Bounds]:
        x, y, first = sizes(self.x), sizes(self.y), self.y.c[0, 0]
        deviation, other = deviation_of(x), deviation_of(y)
        beyond, late = self._dropped(x, y, (1.0, 0.0))
        # |x(1) - x(tau)| is at most the sum of all coefficients: their weights are positive.
        growth = np.exp(deviation * ROUNDING_MARGIN) * ROUNDING_MARGIN
        defect = beyond + late + self._rounding(deviation, y.sum((0, 1)))
        own = growth * (defect + ERROR * first + UNDERFLOW)
        largest = (growth * first + UNDERFLOW) * ROUNDING_MARGIN
        moved = largest * np.expm1(self.x.remainder) * ROUNDING_MARGIN
        late = growth * late + largest * np.exp(self.x.remainder) * self.x.late
        low, high = (np.exp(end) for end in self._range(deviation))
        remainder = (own + moved) * ROUNDING_MARGIN + UNDERFLOW
        return [(remainder, late, self._coarse(low, high, self.y, other))]


class Power(Function):
    """``y = x^p`` of a positive x, with a number p in each box.

    A defect is divided by x(tau) and grows by the factor (x(1) / x(tau))^p until tau = 1.

    Parameters
    ----------
    p
        A Taylor model without polynomial.
    """

    def __init__(
        self, monomials: Monomials, length: int, x: TaylorModel, y: TaylorModel, p: TaylorModel
    ) -> None:
        super().__init__(monomials, length, x, y)
        self._p = p
        self._own = np.zeros_like(y.c)  # E y
        self._equations = [
            [(p.c[0, 0], self._slope, x.support, y.c), (-1.0, x.c, x.support, self._own)]
        ]

    def _settle(self, number: int, total: Array, part: slice, k: int, weight: int) -> None:
        if weight:
            self._own[part, k] = total / self.x.c[0, 0]
            self.y.c[part, k] = self._own[part, k] / weight
        else:
            self.y.c[part, k] = np.power(self.x.c[:1, 0], self._p.c[0, 0])

    def _bounded(self, sizes: Callable[[TaylorModel], Array]) -> Sequence[Bounds]:
        p, doubt, rest = self._p.c[0, 0], self._p.remainder, self.x.remainder
        x, y, middle = sizes(self.x), sizes(self.y), self.x.c[0, 0]
        deviation, other, first = deviation_of(x), deviation_of(y), np.abs(self.y.c[0, 0])
        sx, sy = x.sum((0, 1)), y.sum((0, 1))
        least = 2 * middle - sx * ROUNDING_MARGIN  # of the polynomial
        low, high = self._range(deviation)
        # Logarithms of what another exponent changes.
        scale = np.maximum(np.abs(np.log(low)), np.abs(np.log(high))) * ROUNDING_MARGIN + ERROR
        most = np.abs(p) + doubt
        # 1 + |x(1) - x(tau)| / x, for the least x of both.
        growth = np.power(middle / least, most) * (ROUNDING_MARGIN + ERROR)
        beyond, late = self._dropped_with(x, y, p)
        defect = beyond + late + most * self._rounding(deviation, sy) + self._rounding(sx, other)
        own = (defect + doubt * sy * deviation) / least
        own += (
            first
            * (ERROR + np.expm1(doubt * np.abs(np.log(middle)) * ROUNDING_MARGIN))
            * ROUNDING_MARGIN
            + UNDERFLOW
        )
        ends = np.maximum(np.power(low, p - 1.0), np.power(high, p - 1.0))
        slope = (
            most
            * ends
            * np.exp((doubt + 4 * UNIT_ROUNDOFF * most) * scale)
            * (ROUNDING_MARGIN + ERROR)
        )
        remainder = np.where((least > 0) & (low > 0), growth * own + slope * rest, np.inf)
        late = growth * late / least + slope * self.x.late
        values = np.power(low, p), np.power(high, p)
        coarse = self._coarse(np.minimum(*values), np.maximum(*values), self.y, other)
        coarse += np.maximum(*values) * np.expm1(doubt * scale) * ROUNDING_MARGIN
        return [(remainder * ROUNDING_MARGIN + UNDERFLOW, late, np.where(low > 0, coarse, np.inf))]

    def _dropped_with(self, x: Array, y: Array, p: Array) -> tuple[Array, Array]:
        if (p == p[:1]).all():
            return self._dropped(x, y, (float(p[0]), -1.0))
        shape = x.shape[1], y.shape[1], self._length
        first, second = (
            weighted_tables(self._monomials.degree, *shape, *by) for by in ((1.0, 0.0), (0.0, 1.0))
        )
        boxes = x.shape[2]
        a, b = x.reshape(-1, boxes), y.reshape(-1, boxes)
        found = []
        for u, v in zip(first, second, strict=True):
            # Tables are of sizes, rounded upwards; so is their difference times p.
            up, down = np.multiply.outer(u, np.abs(p)), v[:, :, None]
            factor = np.abs(np.where(p < 0, up + down, up - down)) + 16 * UNIT_ROUNDOFF * (
                up + down
            )
            found.append(np.einsum("ab,cb,acb->b", a, b, factor))
        return found[0], found[1]


class InverseFunction(Function):
    """A function whose derivative is one over a positive w(x): log, atan, asin, tanh.

    A defect is divided by w(x(tau)), and stays.

    Parameters
    ----------
    w
        The Taylor model of w(x); for log, x itself.
    """

    def __init__(
        self,
        monomials: Monomials,
        length: int,
        x: TaylorModel,
        y: TaylorModel,
        w: TaylorModel,
        name: str,
    ) -> None:
        super().__init__(monomials, length, x, y)
        self._w, self._function = w, _INVERSE[name]
        self._own = np.zeros_like(y.c)  # E y
        self._equations = [[(-1.0, w.c, w.support, self._own)]]

    def _given(self, k: int) -> Array:
        if k < self._slope.shape[1]:
            return self._slope[:, k].copy()
        return super()._given(k)

    def _settle(self, number: int, total: Array, part: slice, k: int, weight: int) -> None:
        if weight:
            self._own[part, k] = total / self._w.c[0, 0]
            self.y.c[part, k] = self._own[part, k] / weight
        else:
            self.y.c[part, k] = self._function(self.x.c[:1, 0])

    def _bounded(self, sizes: Callable[[TaylorModel], Array]) -> Sequence[Bounds]:
        w = self._w
        x, y, below = sizes(self.x), sizes(self.y), sizes(w)
        deviation, other, first = deviation_of(x), deviation_of(y), np.abs(self.y.c[0, 0])
        total = below.sum((0, 1))
        least = 2 * w.c[0, 0] - (total + w.remainder) * ROUNDING_MARGIN
        beyond, late = self._dropped(below, y, (0.0, 1.0))
        defect = beyond + late + self._rounding(total, other) + 4 * UNIT_ROUNDOFF * deviation
        if w is not self.x:
            # At the polynomial x, w(x) is not w's polynomial.
            defect += w.remainder * other
            late += w.late * other
        remainder = (
            (defect + self.x.remainder) * ROUNDING_MARGIN / least + ERROR * first + UNDERFLOW
        )
        late = (late + self.x.late) / least
        low, high = (self._function(end) for end in self._range(deviation))
        coarse = self._coarse(low, high, self.y, other)
        return [(np.where(least > 0, remainder, np.inf), late, coarse)]


class SineCosine(Function):
    """Sine and cosine of the same argument: their equation turns defects and leaves them as long.

    Attributes
    ----------
    sine, cosine
        Their models.
    """

    def __init__(self, monomials: Monomials, length: int, x: TaylorModel, y: TaylorModel) -> None:
        super().__init__(monomials, length, x, y)
        self.sine = y
        self.cosine = TaylorModel(np.zeros_like(y.c), y.support, y.remainder, y.late)
        self._equations = [
            [(1.0, self._slope, x.support, self.cosine.c)],
            [(-1.0, self._slope, x.support, self.sine.c)],
        ]
        self._orders = 0
        self._is_bounded = False

    def of(self, name: str) -> TaylorModel:
        """One of the two."""
        return self.sine if name == "sin" else self.cosine

    def advance(self, k: int) -> None:
        """As for each of the two: once is enough."""
        if k == self._orders:
            super().advance(k)
            self._orders += 1

    def _settle(self, number: int, total: Array, part: slice, k: int, weight: int) -> None:
        y = (self.sine, self.cosine)[number]
        if weight:
            y.c[part, k] = total / weight
        else:
            y.c[part, k] = (np.sin, np.cos)[number](self.x.c[:1, 0])

    def bound(self, sizes: Callable[[TaylorModel], Array]) -> None:
        """Of both at once: what is lost of one must not change the other's."""
        if self._is_bounded:
            return
        self._is_bounded = True
        found = self._bounded(sizes)
        for y, (remainder, late, coarse) in zip((self.sine, self.cosine), found, strict=True):
            self._put(y, remainder, late, coarse)

    def _bounded(self, sizes: Callable[[TaylorModel], Array]) -> Sequence[Bounds]:
        x, pair = sizes(self.x), (self.sine, self.cosine)
        deviation, rest = deviation_of(x), self.x.remainder
        one = np.ones_like(deviation)
        defects = []
        for y in pair:  # of the other's equation
            size = sizes(y)
            beyond, late = self._dropped(x, size, (1.0, 0.0))
            defects.append((beyond + late + self._rounding(deviation, size.sum((0, 1))), late))
        found = []
        # Turned by x(1) - x(tau), which is at most the deviation.
        turned = np.minimum(deviation * ROUNDING_MARGIN, 1.0)
        for k, y in enumerate(pair):
            (own, own_late), (other, other_late) = defects[1 - k], defects[k]
            # The derivative, from that in the middle.
            slope = np.abs(pair[1 - k].c[0, 0]) + deviation + rest + ERROR
            slope = np.minimum(slope * ROUNDING_MARGIN, 1.0)
            remainder = (
                own + turned * other + slope * rest + 2 * ERROR
            ) * ROUNDING_MARGIN + UNDERFLOW
            late = own_late + turned * other_late + slope * self.x.late
            found.append((remainder, late, self._coarse(-one, one, y, deviation_of(sizes(y)))))
        return found


class ConstantPart(Function):
    """The constant coefficient, exactly."""

    def _settle(self, number: int, total: Array, part: slice, k: int, weight: int) -> None:
        raise NotImplementedError

    def advance(self, k: int) -> None:
        """There is no other coefficient."""
        self.y.c[0, 0] = self.x.c[0, 0]

    def _bounded(self, sizes: Callable[[TaylorModel], Array]) -> Sequence[Bounds]:
        nothing = np.zeros_like(self.x.remainder)
        return [(nothing, nothing, nothing)]


def function_of(
    name: str,
    monomials: Monomials,
    length: int,
    operands: tuple[TaylorModel, TaylorModel],
    y: TaylorModel,
) -> Function:
    """The function of that name, with operands as :data:`odefit.structure.tape.ELEMENTARY` says."""
    x, other = operands
    if name == "exp":
        return Exponential(monomials, length, x, y)
    if name == "^":
        return Power(monomials, length, x, y, other)
    if name == "middle":
        return ConstantPart(monomials, length, x, y)
    if name in CIRCLE:
        return SineCosine(monomials, length, x, y)
    return InverseFunction(monomials, length, x, y, other, name)
