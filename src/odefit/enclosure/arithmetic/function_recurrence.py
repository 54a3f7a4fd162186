"""Recurrences for the coefficients of functions of Taylor models, with bounds of the defect.

The differential equations of :mod:`odefit.enclosure.arithmetic.elementary_functions` share these
properties. They give the coefficients weight by weight. Products in them drop terms that are
divided by their weights. The range of the function gives a second bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import Monomials, Support, TaylorModel

FUNCTION_ERROR = 16 * UNIT_ROUNDOFF
"""Largest error of NumPy's functions, relative to their value (of sine and cosine, to one).

It documents fewer than four units in the last place, each at most ``2 * UNIT_ROUNDOFF`` of the
value; this is twice that.
"""

PRODUCTS_AT_ONCE = 500_000
"""Largest number of products of coefficients that are held in memory at once."""

Bounds = tuple[Array, Array, Array]
"""A remainder, its part due to truncation in time, and a remainder from the range of the function
alone, shape (B,)."""

Product = tuple[Any, Array, Support, Array]
"""A factor (a number, or one for each box), a known polynomial, its support, and a polynomial with
unknown coefficients."""


class ElementaryFunction(ABC):
    """A function y of a Taylor model x: coefficients order by order, then the bound.

    :meth:`compute_order` sets the coefficients of y, and :meth:`bound` its remainder; `length`
    orders in time are kept.
    """

    def __init__(self, length: int, x: TaylorModel, y: TaylorModel) -> None:
        self._monomials, self._length = x.monomials, length
        self.x, self.y = x, y
        self._values: Sequence[TaylorModel] = (y,)
        self._weighted_x = np.zeros_like(x.c)  # E x
        self._equations: Sequence[Sequence[Product]] = ()
        """The products, by equation, whose sum is its term with the highest weight."""

    def compute_order(self, k: int) -> None:
        """Compute the coefficients of order k, from those of the argument up to order k."""
        degrees, x = self._monomials.degrees, self.x.c
        if k < x.shape[1]:
            self._weighted_x[:, k] = (degrees + k)[:, None] * x[:, k]
        totals = [self._inhomogeneity(k) for _ in self._equations]
        with np.errstate(all="ignore"):
            for total, products in zip(totals, self._equations, strict=True):
                for product in products:
                    self._add_earlier(total, product, k)
            for degree, part in enumerate(self._monomials.parts):
                for number, total in enumerate(totals):
                    self._put_coefficients(number, total[part], part, k, degree + k)
                for total, products in zip(totals, self._equations, strict=True):
                    for product in products:
                        self._add(total, product, k, degree)

    def _inhomogeneity(self, k: int) -> Array:
        """Return the terms of order k of an equation that are not products, shape (M, B)."""
        return np.zeros_like(self.y.c[:, k])

    @abstractmethod
    def _put_coefficients(
        self, number: int, total: Array, part: slice, k: int, weight: int
    ) -> None:
        """Set the coefficients of one degree and order, from an equation's number and total."""

    def _add_earlier(self, total: Array, product: Product, k: int) -> None:
        """Add the products with unknown coefficients of orders below k."""
        factor, known, support, unknown_factor = product
        count = min(k, known.shape[1] - 1)
        if count == 0:
            return
        left, right, targets, starts = _gathered(self._monomials, support, self.y.support)
        boxes = total.shape[1]
        share = max(PRODUCTS_AT_ONCE // (len(left) * count), 1)
        for begin in range(0, boxes, share):
            part = slice(begin, begin + share)
            earlier = unknown_factor[right, k - count : k, part][:, ::-1]
            products = np.einsum("pkb,pkb->pb", known[left, 1 : count + 1, part], earlier)
            sums = np.add.reduceat(products, starts, axis=0)
            total[targets, part] += (factor if np.ndim(factor) == 0 else factor[part]) * sums

    def _add(self, total: Array, product: Product, k: int, degree: int) -> None:
        """Add the products with unknown coefficients of order k and one degree."""
        factor, known, support, unknown_factor = product
        left, right, targets, starts = _gathered(self._monomials, support, self.y.support, degree)
        if len(left):
            sums = np.add.reduceat(known[left, 0] * unknown_factor[right, k], starts, axis=0)
            total[targets] += factor * sums

    def bound(self) -> None:
        """Set the remainder, from that of the argument."""
        for y, (remainder, truncation, range_bound) in zip(
            self._values, self._bounds(), strict=True
        ):
            # NaN is not a bound; if the argument is unknown, the function may not exist.
            least = np.fmin(remainder, range_bound)
            known = np.isfinite(self.x.remainder) & np.isfinite(least)
            y.remainder = np.where(known, least, np.inf)
            usable = known & (truncation >= 0)
            y.truncation = np.where(usable, np.fmin(truncation, y.remainder), y.remainder)

    @abstractmethod
    def _bounds(self) -> Sequence[Bounds]:
        """Return the bounds of all values."""

    def _dropped(self, left: Array, right: Array, by: tuple[float, float]) -> tuple[Array, Array]:
        """Return bounds of the terms dropped by products, over their weights, shape (B,).

        The first is for terms that exceed the degree in d, the second for other terms that exceed
        the order in s. The polynomials are given by their norms; their products are multiplied by
        factors that are linear in the weights of left and right, with the two coefficients `by`.
        """
        orders = left.shape[1], right.shape[1], self._length
        boxes = left.shape[2]
        a, b = left.reshape(-1, boxes), right.reshape(-1, boxes)
        tables = dropping_factors(self._monomials.degree, *orders, *by)
        beyond, truncation = ((a * (table @ b)).sum(0) for table in tables)
        return beyond, truncation

    def _rounding(self, left: Array, right: Array) -> Array:
        """Return a bound of the rounding of a product and of the operations that use it."""
        terms = len(self._monomials) * self._length + 12
        return np.asarray(2 * UNIT_ROUNDOFF * terms * left * right + UNDERFLOW)

    def _range(self, deviation: Array) -> tuple[Array, Array]:
        """Return the ends of the argument's range, from the deviation of its polynomial."""
        middle = self.x.c[0, 0]
        rest = (
            (deviation + self.x.remainder) * ROUNDING_MARGIN
            + 4 * UNIT_ROUNDOFF * np.abs(middle)
            + UNDERFLOW
        )
        return middle - rest, middle + rest

    def _range_bound(self, low: Array, high: Array, y: TaylorModel, deviation: Array) -> Array:
        """Return a bound of the distance of y's polynomial from all values between two numbers."""
        middle = y.c[0, 0]
        farthest = np.maximum(high - middle, middle - low) + deviation
        size = np.abs(low) + np.abs(high) + np.abs(middle)
        return np.asarray(farthest * ROUNDING_MARGIN + FUNCTION_ERROR * size + UNDERFLOW)


def deviation_of(norms: Array) -> Array:
    """Return the sum of all norms but that of the constant coefficient, shape (B,)."""
    return np.asarray(norms[1:].sum((0, 1)) + norms[0, 1:].sum(0))


@lru_cache(maxsize=1024)
def _gathered(
    monomials: Monomials, left: Support, right: Support, degree: int | None = None
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return all pairs of monomials, sorted by the monomial that is their product.

    If a degree is given, the right ones have that degree, and the left ones are not constant. The
    last two arrays are the monomials that are products, and the number of the first pair of each.
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
def dropping_factors(
    degree: int, left: int, right: int, length: int, by_left: float, by_right: float
) -> tuple[Array, Array]:
    """Return ``|by_left u + by_right v| / (u + v)`` for dropped products of weights u and v.

    The rows and columns are the degrees and orders of two polynomials with `left` and `right`
    orders; factors of other products are zero. The first matrix is for terms that exceed the degree
    in d, the second for other terms that exceed the order in s.
    """
    g, k = (a.ravel()[:, None] for a in np.indices((degree + 1, left)))
    h, j = (a.ravel()[None, :] for a in np.indices((degree + 1, right)))
    u, v = g + k, h + j
    size = np.abs(by_left * u + by_right * v) + 4 * UNIT_ROUNDOFF * (
        abs(by_left) * u + abs(by_right) * v
    )
    factor = size / np.maximum(u + v, 1)
    beyond = g + h > degree
    truncation = ~beyond & (k + j >= length)
    return np.where(beyond, factor, 0.0), np.where(truncation, factor, 0.0)
