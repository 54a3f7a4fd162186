"""Smooth functions of Taylor models that are constant in time, by Taylor's theorem.

Where a function's derivatives fall in magnitude as its argument grows, their values at the lower
end of a range bound them over all of it. So the remainder of order D + 1 is known, and the range of
the function follows from its values at both ends.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.enclosure.arithmetic.function_recurrence import FUNCTION_ERROR
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.enclosure.arithmetic.taylor_models import TaylorModel

STIELTJES_ERROR = 1e-9
"""Largest error of the integrals of :class:`Stieltjes`, relative to their value; tests compare them
with ball arithmetic."""

SERIES_RANGE, SERIES_TERMS = 0.6, 120
"""Argument up to which these integrals are summed as power series, and the number of terms."""


class SmoothFunction(ABC):
    """A monotone function of numbers above `least`, with Taylor coefficients at any of them.

    Their magnitudes fall as the argument grows, from the first one on. `error` is their error
    relative to their values, `underflow` an absolute one.
    """

    least = 0.0
    error = FUNCTION_ERROR
    underflow = UNDERFLOW

    @abstractmethod
    def coefficients(self, x: Array, count: int) -> Array:
        """Return the first Taylor coefficients at some points, shape (count, B)."""

    def largest(self, low: Array, high: Array, order: int) -> Array:
        """Return a bound of the magnitude of one coefficient over ranges, shape (B,)."""
        size = np.abs(self.coefficients(low, order + 1)[order])
        return np.asarray(size * (1 + 2 * self.error))

    def range(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the least and the largest value over ranges, rounded outwards."""
        ends = np.stack([self.coefficients(end, 1)[0] for end in (low, high)])
        error = 2 * self.error * np.abs(ends) + self.underflow
        return (ends - error).min(axis=0), (ends + error).max(axis=0)


class Reciprocal(SmoothFunction):
    """``1 / x``."""

    def coefficients(self, x: Array, count: int) -> Array:
        """Return the Taylor coefficients."""
        k = np.arange(count)[:, None]
        return np.asarray(np.where(k % 2, -1.0, 1.0) / x ** (k + 1.0))


class Root(SmoothFunction):
    """The square root."""

    def coefficients(self, x: Array, count: int) -> Array:
        """Return the Taylor coefficients."""
        binomials = np.cumprod([1.0, *((0.5 - k) / (k + 1) for k in range(count - 1))])
        powers = x ** -np.arange(float(count))[:, None]
        return np.asarray(binomials[:, None] * powers * np.sqrt(x))


class Logarithm(SmoothFunction):
    """The natural logarithm."""

    def coefficients(self, x: Array, count: int) -> Array:
        """Return the Taylor coefficients."""
        k = np.arange(1.0, count)[:, None]
        signs = np.where(k % 2, 1.0, -1.0)
        return np.concatenate([np.log(x)[None], signs / k / x**k])


class Stieltjes(SmoothFunction):
    """``(p + 1)`` times the integral of ``s^p / (1 + s x)`` over s in [0, 1], which is 1 at x = 0.

    It is log(1 + x)/x with p = 0, and 2 (x - log(1 + x))/x^2 with p = 1. Its derivatives have
    alternating signs, and the integrands show that their magnitudes fall.
    """

    least = -1.0
    error = STIELTJES_ERROR

    def __init__(self, power: int) -> None:
        self._power = power

    def coefficients(self, x: Array, count: int) -> Array:
        """Return the Taylor coefficients, by series near zero and in closed form elsewhere."""
        p, near = self._power, np.abs(x) <= SERIES_RANGE
        inside, outside = np.where(near, x, 0.0), np.where(near, 1.0, x)
        z, log = 1 + outside, np.log1p(outside)
        # Integrals of z^-j from 1 to z.
        parts = [z - 1, log, *((z ** (1.0 - j) - 1) / (1.0 - j) for j in range(2, count + p + 1))]
        rows = []
        for k in range(count):
            series = np.zeros_like(inside)
            for a in _series(k, p)[::-1]:
                series = series * inside + a
            total = np.zeros_like(inside)
            for j in range(k + p + 1):
                total += (-1.0) ** j * math.comb(k + p, j) * parts[j + 1 - p]
            closed = total / outside ** (k + p + 1)
            rows.append((p + 1) * (-1.0) ** k * np.where(near, series, closed))
        return np.array(rows)


@lru_cache
def _series(k: int, p: int) -> tuple[float, ...]:
    """Return the power series of the integral of ``s^(k + p) / (1 + s x)^(k + 1)``."""
    return tuple((-1.0) ** j * math.comb(k + j, j) / (k + p + 1 + j) for j in range(SERIES_TERMS))


RECIPROCAL, ROOT, LOGARITHM = Reciprocal(), Root(), Logarithm()
LOG_SHARE = Stieltjes(0)
"""``log(1 + x) / x``."""
BEND = Stieltjes(1)
"""``2 (x - log(1 + x)) / x^2``."""


def composed(x: TaylorModel, function: SmoothFunction) -> TaylorModel:
    """Return a function of a Taylor model, unknown in boxes that reach beyond its domain."""
    degree = x.monomials.degree
    middle, low, high = ranges(x)
    with np.errstate(all="ignore"):
        inside = (low > function.least) & np.isfinite(high)
        at, begin = np.where(inside, middle, 1.0), np.where(inside, low, 1.0)
        end = np.where(inside, high, 1.0)
        coefficients = function.coefficients(at, degree + 1)
        away = x - TaylorModel.constant(x.monomials, middle)
        away.c[0, 0] = 0.0
        total = _constant(x, coefficients[-1], function)
        for a in coefficients[-2::-1]:
            total = total * away + _constant(x, a, function)
        radius = np.maximum(end - at, at - begin)
        rest = function.largest(begin, end, degree + 1) * radius ** (degree + 1)
        remainder = (total.remainder + rest) * ROUNDING_MARGIN + UNDERFLOW
        total.put_bounds(np.where(inside, remainder, np.inf), total.truncation)
        return within(total, *function.range(begin, end), inside)


def ranges(x: TaylorModel) -> tuple[Array, Array, Array]:
    """Return the middle of a model's polynomial, and bounds of its values, shape (B,)."""
    middle = x.c[0, 0]
    radius = (np.abs(x.c[1:]).sum((0, 1)) + x.remainder) * ROUNDING_MARGIN
    radius = radius + 4 * UNIT_ROUNDOFF * np.abs(middle)
    return middle, middle - radius, middle + radius


def within(x: TaylorModel, low: Array, high: Array, known: BoolArray) -> TaylorModel:
    """Return a model, or a constant where a `known` range says more than its remainder."""
    with np.errstate(all="ignore"):
        middle = 0.5 * low + 0.5 * high
        half = np.maximum(high - middle, middle - low)
        half = (half + 4 * UNIT_ROUNDOFF * np.abs(middle)) * ROUNDING_MARGIN + UNDERFLOW
        use = known & np.isfinite(half) & ~(half >= x.remainder)
    if not use.any():
        return x
    c = np.where(use, 0.0, x.c)
    c[0, 0] = np.where(use, middle, c[0, 0])
    return TaylorModel(x.monomials, c, None, np.where(use, half, x.remainder), x.truncation)


def chosen(use: BoolArray, first: TaylorModel, second: TaylorModel) -> TaylorModel:
    """Return the first model in some boxes, the second in the others."""
    remainder = np.where(use, first.remainder, second.remainder)
    return TaylorModel(first.monomials, np.where(use, first.c, second.c), None, remainder)


def _constant(like: TaylorModel, values: Array, function: SmoothFunction) -> TaylorModel:
    model = TaylorModel.constant(like.monomials, values)
    model.remainder = np.abs(values) * function.error + function.underflow
    return model
