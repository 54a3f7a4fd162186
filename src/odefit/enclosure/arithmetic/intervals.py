"""Intervals of the entries of a tape, for many boxes at once, rounded outwards.

Intervals are coarser than Taylor models and much cheaper, and they keep signs: the lower end of a
nonnegative quantity is exactly zero, not slightly less (R. E. Moore, R. B. Kearfott and M. J.
Cloud, Introduction to interval analysis, 2009).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.enclosure.arithmetic.rounding import OVERFLOW, ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.structure.series.tape import Tape


@dataclass(frozen=True, eq=False)
class Interval:
    """A quantity in B boxes: anything between two ends, shape (B,), which may be infinite."""

    low: Array
    high: Array

    @staticmethod
    def number(exact: Fraction, boxes: int) -> Interval:
        """Return the same number in all boxes, between neighbouring floats unless it is a float."""
        try:
            value = float(exact)
        except OverflowError:
            return Interval.anything(boxes)
        low = value if Fraction(value) <= exact else float(np.nextafter(value, -np.inf))
        high = value if Fraction(value) >= exact else float(np.nextafter(value, np.inf))
        return Interval(np.full(boxes, low), np.full(boxes, high))

    @staticmethod
    def anything(boxes: int) -> Interval:
        """Return the interval of all numbers, for an unknown quantity."""
        return Interval(np.full(boxes, -np.inf), np.full(boxes, np.inf))

    @staticmethod
    def around(middle: Array, radius: Array) -> Interval:
        """Return all numbers whose distance from `middle` is at most `radius`."""
        return Interval(*_rounded(middle - radius, middle + radius))

    @property
    def finite(self) -> BoolArray:
        """The boxes in which both ends are finite, a mask of shape (B,)."""
        return np.isfinite(self.low) & np.isfinite(self.high)

    @property
    def signed(self) -> BoolArray:
        """The boxes in which the quantity does not change its sign, a mask of shape (B,)."""
        return np.asarray((self.low >= 0) | (self.high <= 0))

    def middle(self) -> tuple[Array, Array]:
        """Return the middle and the radius, rounded upwards; not finite if an end is not."""
        middle = 0.5 * self.low + 0.5 * self.high
        radius = np.maximum(self.high - middle, middle - self.low)
        return middle, radius + 4 * UNIT_ROUNDOFF * (np.abs(middle) + radius) + UNDERFLOW

    def put(self, boxes: IntArray, other: Interval) -> Interval:
        """Return the interval with another in the selected boxes."""
        low, high = self.low.copy(), self.high.copy()
        low[boxes], high[boxes] = other.low, other.high
        return Interval(low, high)

    def take(self, boxes: IntArray) -> Interval:
        """Return the interval in the selected boxes."""
        return Interval(self.low[boxes], self.high[boxes])

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval(*_rounded(self.low + other.low, self.high + other.high))

    def __sub__(self, other: Interval) -> Interval:
        return Interval(*_rounded(self.low - other.high, self.high - other.low))

    def __mul__(self, other: Interval) -> Interval:
        # Zero times an infinite end is NaN, so that the product is unknown.
        return _product(self, other, _products(self, other))

    def __truediv__(self, other: Interval) -> Interval:
        return self * _reciprocal(other, (other.low <= 0) & (other.high >= 0))

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        return Interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def within(self, other: Interval) -> Interval:
        """Return the intersection; if it is empty, which only rounding can cause, this interval."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        none = low > high
        return Interval(np.where(none, self.low, low), np.where(none, self.high, high))


def _rounded(low: Array, high: Array) -> tuple[Array, Array]:
    """Return ends rounded one float outwards; an end that is NaN becomes infinite."""
    low = np.where(np.isnan(low) | (low == np.inf), -np.inf, low)
    high = np.where(np.isnan(high) | (high == -np.inf), np.inf, high)
    with np.errstate(invalid="ignore"):
        return low - 4 * UNIT_ROUNDOFF * np.abs(low), high + 4 * UNIT_ROUNDOFF * np.abs(high)


def _products(a: Interval, b: Interval) -> Array:
    """Return the rounded products of all ends, shape (4, B)."""
    with np.errstate(all="ignore"):
        return np.stack([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])


def _product(a: Interval, b: Interval, products: Array) -> Interval:
    """Return the hull of the products of all ends, shape (4, B), rounded outwards."""
    low, high = _rounded(products.min(axis=0), products.max(axis=0))
    # Underflow, unless a factor is zero or the sign is known anyway.
    zero = ((a.low == 0) & (a.high == 0)) | ((b.low == 0) & (b.high == 0))
    same = ((a.low >= 0) & (b.low >= 0)) | ((a.high <= 0) & (b.high <= 0))
    other_sign = ((a.low >= 0) & (b.high <= 0)) | ((a.high <= 0) & (b.low >= 0))
    low = np.where(zero, low, np.where(same, np.maximum(low - UNDERFLOW, 0.0), low - UNDERFLOW))
    high = np.where(
        zero, high, np.where(other_sign, np.minimum(high + UNDERFLOW, 0.0), high + UNDERFLOW)
    )
    return Interval(low, high)


def _reciprocal(b: Interval, pole: BoolArray) -> Interval:
    """Return bounds of ``1 / b``, infinite on both sides where `pole` is true."""
    with np.errstate(all="ignore"):
        low, high = _rounded(1.0 / b.high, 1.0 / b.low)
    # The sign is kept even where the reciprocal underflows.
    low = np.where(b.low >= 0, np.maximum(low - UNDERFLOW, 0.0), low - UNDERFLOW)
    high = np.where(b.high <= 0, np.minimum(high + UNDERFLOW, 0.0), high + UNDERFLOW)
    return Interval(np.where(pole, -np.inf, low), np.where(pole, np.inf, high))


def real_product(a: Interval, b: Interval) -> Interval:
    """Return the product of real quantities, however wide their bounds are.

    Infinite ends are not values here, so that zero times an infinite end is zero. The product ``a *
    b`` is unknown there, because an unknown factor may have a pole.
    """
    products = _products(a, b)
    return _product(a, b, np.where(np.isnan(products), 0.0, products))


def relational_quotient(a: Interval, b: Interval) -> Interval:
    """Return bounds of all real numbers z with ``z y = x`` for an x in `a` and a y in `b`.

    They are infinite on both sides where `b` has zero inside, or is zero, and on one side where `b`
    ends at zero (E. Hansen and G. W. Walster, Global optimization using interval analysis, 2004).
    The quotient ``a / b`` is a function, and unknown as soon as `b` contains zero.
    """
    through = (b.low < 0) & (b.high > 0) | (b.low == 0) & (b.high == 0)
    return real_product(a, _reciprocal(b, through))


def evaluated(
    tape: Tape, entries: Iterable[int], known: Mapping[int, Interval], boxes: int
) -> dict[int, Interval]:
    """Return the intervals of all `entries`, which are in order, from the `known` ones."""
    values = dict(known)
    for i in entries:
        if i in values:
            continue
        if i in tape.numbers:
            values[i] = Interval.number(tape.numbers[i], boxes)
            continue
        operation, a, b = tape.entries[i]
        if operation == "+":
            values[i] = values[a] + values[b]
        elif operation == "-":
            values[i] = values[a] - values[b]
        elif operation == "*":
            values[i] = squared(values[a]) if a == b else values[a] * values[b]
        elif operation == "/":
            values[i] = values[a] / values[b]
        elif operation == "exp":
            values[i] = _exponential(values[a])
        elif operation == "^" and b in tape.numbers:
            values[i] = _power(values[a], tape.numbers[b])
        elif operation in ("sin", "cos"):
            values[i] = Interval(np.full(boxes, -1.0), np.full(boxes, 1.0))
        else:
            values[i] = Interval.anything(boxes)
    return values


def _exponential(a: Interval) -> Interval:
    with np.errstate(over="ignore"):
        low, high = (
            np.exp(a.low) / ROUNDING_MARGIN - UNDERFLOW,
            np.exp(a.high) * ROUNDING_MARGIN + UNDERFLOW,
        )
    # An overflowing number is at least this large.
    return Interval(np.clip(low, 0.0, OVERFLOW), high)


def _power(a: Interval, exponent: Fraction) -> Interval:
    """Return a power of a positive quantity, with a fixed exponent."""
    p = float(exponent)
    with np.errstate(all="ignore"):
        ends = np.stack([np.power(a.low, p), np.power(a.high, p)])
    margin = 1e-13 * (1 + abs(p))
    known = (a.low > 0) & np.isfinite(ends).all(axis=0)
    low = np.where(known, ends.min(axis=0) * (1 - margin), -np.inf)
    high = np.where(known, ends.max(axis=0) * (1 + margin) + UNDERFLOW, np.inf)
    return Interval(np.maximum(low, np.where(known, 0.0, -np.inf)), high)


def squared(a: Interval) -> Interval:
    """Return the square, which is never negative."""
    product = a * a
    # An unknown quantity may have a pole, which must not be hidden.
    return Interval(np.where(a.finite, np.maximum(product.low, 0.0), product.low), product.high)


def polynomial(coefficients: Sequence[float], at: Interval) -> Interval:
    """Return ``c[0] + c[1] x + ...`` by Horner's rule."""
    boxes = len(at.low)
    total = Interval.number(Fraction(0), boxes)
    for c in reversed(coefficients):
        total = total * at + Interval.number(Fraction(c), boxes)
    return total
