"""Functions of Taylor models by recurrences for their coefficients, with bounds of the defect.

What the equations of :mod:`odefit.enclosure.elementary_functions` have in common: coefficients
weight by weight, what products drop over its weight, and the range of a function.
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
        tables = weighted_tables(self._monomials.degree, *key)
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


def deviation_of(sizes: Array) -> Array:
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
def weighted_tables(
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
