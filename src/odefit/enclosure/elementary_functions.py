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

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from odefit.enclosure.monomials import Monomials, Support
from odefit.enclosure.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.taylor_models import TaylorModel
from odefit.problem.arrays import Array, IntArray

ERROR = 16 * UNIT_ROUNDOFF
"""Largest error of NumPy's functions, relative to their value (of sine and cosine, to one).

It documents fewer than four units in the last place, each at most ``2 * UNIT_ROUNDOFF`` of the
value; this is twice that.
"""

AT_ONCE = 500_000
"""Numbers that are multiplied in one go."""

CIRCLE = ("sin", "cos")
"""Functions that are computed in pairs."""

_INVERSE: dict[str, Callable[[Array], Array]] = {
    "log": np.log,
    "atan": np.arctan,
    "asin": np.arcsin,
    "tanh": np.tanh,
}

Bounds = tuple[Array, Array, Array]
"""A remainder, the late part of it, and a remainder from the range alone, shape (B,)."""

Product = tuple[Any, Array, Support, Array]
"""A factor (a number, or one for each box), a polynomial that is known, its support, and one whose
coefficients are wanted."""


class Function(ABC):
    """A function of a Taylor model: coefficients order by order, then the bound.

    Parameters
    ----------
    monomials, length
        In the boxes' variables; orders of time that are kept.
    x, y
        Argument and value. The coefficients of y are put in, its remainder by :meth:`bound`.
    """

    def __init__(self, monomials: Monomials, length: int, x: TaylorModel, y: TaylorModel) -> None:
        self._monomials, self._length = monomials, length
        self.x, self.y = x, y
        self._slope = np.zeros_like(x.c)  # E x
        self._equations: Sequence[Sequence[Product]] = ()
        """What the left-hand side of each, less its term with the highest weight, is made of."""

    def advance(self, k: int) -> None:
        """Coefficients of order k, from those of the argument up to order k."""
        degrees, x = self._monomials.degrees, self.x.c
        if k < x.shape[1]:
            self._slope[:, k] = (degrees + k)[:, None] * x[:, k]
        totals = [self._given(k) for _ in self._equations]
        with np.errstate(all="ignore"):
            for total, products in zip(totals, self._equations, strict=True):
                for product in products:
                    self._add_earlier(total, product, k)
            for degree, part in enumerate(self._monomials.parts):
                for number, total in enumerate(totals):
                    self._settle(number, total[part], part, k, degree + k)
                for total, products in zip(totals, self._equations, strict=True):
                    for product in products:
                        self._add(total, product, k, degree)

    def _given(self, k: int) -> Array:
        """What there is of order k beside products."""
        return np.zeros_like(self.y.c[:, k])

    @abstractmethod
    def _settle(self, number: int, total: Array, part: slice, k: int, weight: int) -> None:
        """Coefficients of one degree and order."""

    def _add_earlier(self, total: Array, product: Product, k: int) -> None:
        """Add what comes of coefficients of orders below k."""
        factor, known, support, wanted = product
        count = min(k, known.shape[1] - 1)
        if count == 0:
            return
        left, right, targets, starts = _gathered(self._monomials, support, self.y.support)
        boxes = total.shape[1]
        share = max(AT_ONCE // (len(left) * count), 1)
        for begin in range(0, boxes, share):
            part = slice(begin, begin + share)
            earlier = wanted[right, k - count : k, part][:, ::-1]
            products = np.einsum("pkb,pkb->pb", known[left, 1 : count + 1, part], earlier)
            sums = np.add.reduceat(products, starts, axis=0)
            total[targets, part] += (factor if np.ndim(factor) == 0 else factor[part]) * sums

    def _add(self, total: Array, product: Product, k: int, degree: int) -> None:
        """Add what comes of coefficients of order k and one degree, to those of higher degrees."""
        factor, known, support, wanted = product
        left, right, targets, starts = _gathered(self._monomials, support, self.y.support, degree)
        if len(left):
            sums = np.add.reduceat(known[left, 0] * wanted[right, k], starts, axis=0)
            total[targets] += factor * sums

    # Bounds -----------------------------------------------------------------------------------

    def bound(self, sizes: Callable[[TaylorModel], Array]) -> None:
        """The remainder, from that of the argument.

        Parameters
        ----------
        sizes
            Sums of magnitudes by degree in d and order in s, shape (D + 1, k, B).
        """
        self._put(self.y, *self._bounded(sizes)[0])

    @abstractmethod
    def _bounded(self, sizes: Callable[[TaylorModel], Array]) -> Sequence[Bounds]:
        """Of what is computed."""

    def _put(self, y: TaylorModel, remainder: Array, late: Array, coarse: Array) -> None:
        # Not-a-number is no bound. Of what nothing is known, the function may not be defined.
        least = np.fmin(remainder, coarse)
        known = np.isfinite(self.x.remainder) & np.isfinite(least)
        y.remainder = np.where(known, least, np.inf)
        y.late = np.where(known & (late >= 0), np.fmin(late, y.remainder), y.remainder)

    def _dropped(self, left: Array, right: Array, by: tuple[float, float]) -> tuple[Array, Array]:
        """Defects, each over its weight: beyond the degree in d; within it, beyond the order in s.

        Of products of polynomials with these sizes, times factors that are linear in the weights
        of left and right: `by` has the two slopes.
        """
        key = (left.shape[1], right.shape[1], self._length, *by)
        tables = _tables(self._monomials.degree, *key)
        boxes = left.shape[2]
        a, b = left.reshape(-1, boxes), right.reshape(-1, boxes)
        beyond, late = ((a * (table @ b)).sum(0) for table in tables)
        return beyond, late

    def _rounding(self, left: Array, right: Array) -> Array:
        """Of all coefficients of a product, and of what is made of them."""
        terms = len(self._monomials) * self._length + 12
        return np.asarray(2 * UNIT_ROUNDOFF * terms * left * right + UNDERFLOW)

    def _range(self, deviation: Array) -> tuple[Array, Array]:
        """Ends of what the argument can be."""
        middle = self.x.c[0, 0]
        rest = (
            (deviation + self.x.remainder) * ROUNDING_MARGIN
            + 4 * UNIT_ROUNDOFF * np.abs(middle)
            + UNDERFLOW
        )
        return middle - rest, middle + rest

    def _coarse(self, low: Array, high: Array, y: TaylorModel, deviation: Array) -> Array:
        """How far the polynomial is from anything between two values."""
        middle = y.c[0, 0]
        farthest = np.maximum(high - middle, middle - low) + deviation
        size = np.abs(low) + np.abs(high) + np.abs(middle)
        return np.asarray(farthest * ROUNDING_MARGIN + ERROR * size + UNDERFLOW)


class Exponential(Function):
    """``y = exp(x)``: a defect grows by the factor exp(x(1) - x(tau)) until tau = 1."""

    def __init__(self, monomials: Monomials, length: int, x: TaylorModel, y: TaylorModel) -> None:
        super().__init__(monomials, length, x, y)
        self._equations = [[(1.0, self._slope, x.support, y.c)]]

    def _settle(self, number: int, total: Array, part: slice, k: int, weight: int) -> None:
        self.y.c[part, k] = total / weight if weight else np.exp(self.x.c[:1, 0])

    def _bounded(self, sizes: Callable[[TaylorModel], Array]) -> Sequence[Bounds]:
        x, y, first = sizes(self.x), sizes(self.y), self.y.c[0, 0]
        deviation, other = _deviation(x), _deviation(y)
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
        deviation, other, first = _deviation(x), _deviation(y), np.abs(self.y.c[0, 0])
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
            _tables(self._monomials.degree, *shape, *by) for by in ((1.0, 0.0), (0.0, 1.0))
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
        deviation, other, first = _deviation(x), _deviation(y), np.abs(self.y.c[0, 0])
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
        deviation, rest = _deviation(x), self.x.remainder
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
            found.append((remainder, late, self._coarse(-one, one, y, _deviation(sizes(y)))))
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


def _deviation(sizes: Array) -> Array:
    """Sum of all but the constant coefficient."""
    return np.asarray(sizes[1:].sum((0, 1)) + sizes[0, 1:].sum(0))


@lru_cache(maxsize=1024)
def _gathered(
    monomials: Monomials, left: Support, right: Support, degree: int | None = None
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Pairs that multiply to the same monomial beside each other.

    If a degree is given, only of right ones that have it with left ones that are not constant.

    Returns
    -------
    left, right
        Of all pairs.
    targets, starts
        What they multiply to, and the first pair of each.
    """
    pairs = [
        (t, i, j)
        for i, j, t in monomials.pairs(left, right)
        if degree is None or (monomials.degrees[i] and monomials.degrees[j] == degree)
    ]
    t, i, j = np.array(sorted(pairs), dtype=np.intp).reshape(-1, 3).T
    targets, starts = np.unique(t, return_index=True)
    return i, j, targets, starts


@lru_cache(maxsize=256)
def _tables(
    degree: int, left: int, right: int, length: int, by_left: float, by_right: float
) -> tuple[Array, Array]:
    """Factors of dropped products: beyond the degree in d; within it, beyond the order in s.

    For two polynomials with `left` and `right` orders, by degree and order; the factor is
    ``|by_left u + by_right v| / (u + v)`` for the weights u and v.
    """
    g, k = (a.ravel()[:, None] for a in np.indices((degree + 1, left)))
    h, j = (a.ravel()[None, :] for a in np.indices((degree + 1, right)))
    u, v = g + k, h + j
    size = np.abs(by_left * u + by_right * v) + 4 * UNIT_ROUNDOFF * (
        abs(by_left) * u + abs(by_right) * v
    )
    factor = size / np.maximum(u + v, 1)
    beyond = g + h > degree
    late = ~beyond & (k + j >= length)
    return np.where(beyond, factor, 0.0), np.where(late, factor, 0.0)
