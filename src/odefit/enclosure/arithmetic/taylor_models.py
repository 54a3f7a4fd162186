"""Taylor models: polynomials in time and in a box, with a bound of the rest.

A quantity over a box of unknowns, during a step, is ``sum c[m, k] d^m s^k + r`` with every d in
[-1, 1], s from 0 to 1, and |r| at most the remainder (K. Makino and M. Berz, Taylor models and
other validated functional inclusion methods, 2003). The d^m are monomials, by degree. Products drop
terms that exceed the degree in d or the order in s and count them as remainder, with the rounding
of all operations. Many boxes are computed at once: they are the last axis of all arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from odefit.common.arrays import Array, IntArray
from odefit.common.errors import InputError
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN, UNDERFLOW, UNIT_ROUNDOFF
from odefit.simulation.engines.cut_off import count_work

PER_MODEL, PER_PRODUCT, PER_COEFFICIENT = 2000, 120, 0.2
"""Numbers of operations (:mod:`odefit.simulation.engines.cut_off`) of a Taylor model, of each
product of two monomials, and of each coefficient of a box."""

MAX_MONOMIALS = 20_000
"""Largest number of monomials: with more, a single product of two polynomials takes seconds."""

Support = frozenset[int] | None
"""Monomials whose coefficients may be nonzero; None for all."""


class Monomials:
    """All monomials of at most a degree D in n `variables`, those of a lower degree first.

    `exponents` lists the variables of each, as often as they occur: () is 1, (0, 0) the square of
    the first. `parts` are slices of the monomials of degree 0 ... D. Raises InputError for more
    monomials than :data:`MAX_MONOMIALS`.
    """

    def __init__(self, variables: int, degree: int) -> None:
        count = comb(variables + degree, degree)
        if count > MAX_MONOMIALS:
            raise InputError(
                f"{variables} unknowns: polynomials of degree {degree} in them have {count} "
                "coefficients; take a lower degree, or fix some unknowns"
            )
        self.variables, self.degree = variables, degree
        self.exponents: list[tuple[int, ...]] = []
        self.parts: list[slice] = []
        for g in range(degree + 1):
            begin = len(self.exponents)
            self.exponents += combinations_with_replacement(range(variables), g)
            self.parts.append(slice(begin, len(self.exponents)))
        self._index = {e: i for i, e in enumerate(self.exponents)}
        self.degrees = np.array([len(e) for e in self.exponents])
        self._pairs: dict[tuple[Support, Support], Sequence[tuple[int, int, int]]] = {}

    @staticmethod
    @lru_cache
    def of(variables: int, degree: int) -> Monomials:
        """Return the same object for the same numbers."""
        return Monomials(variables, degree)

    def __len__(self) -> int:
        return len(self.exponents)

    def index(self, *variables: int) -> int:
        """Return the number of the monomial that is the product of some variables."""
        return self._index[tuple(sorted(variables))]

    @cached_property
    def linear(self) -> list[int]:
        """The numbers of the monomials that are the variables themselves."""
        return [self.index(k) for k in range(self.variables)] if self.degree else []

    @cached_property
    def squares(self) -> Array:
        """The monomials that are the square of a variable, as booleans, shape (M,)."""
        return np.array([len(e) == 2 and e[0] == e[1] for e in self.exponents])

    @cached_property
    def powers(self) -> Array:
        """The power of each variable in each monomial, shape (M, n)."""
        exponents = np.zeros((len(self), self.variables))
        for i, exponent in enumerate(self.exponents):
            for k in exponent:
                exponents[i, k] += 1.0
        return exponents

    def pairs(self, left: Support, right: Support) -> Sequence[tuple[int, int, int]]:
        """Return triples (i, j, k): monomial i of `left` times j of `right` is monomial k.

        Products beyond the largest degree are omitted.
        """
        key = (left, right)
        if key not in self._pairs:
            every = range(len(self))
            self._pairs[key] = [
                (i, j, self.index(*self.exponents[i], *self.exponents[j]))
                for i in (every if left is None else sorted(left))
                for j in (every if right is None else sorted(right))
                if self.degrees[i] + self.degrees[j] <= self.degree
            ]
        return self._pairs[key]

    def product_support(self, left: Support, right: Support) -> Support:
        """Return the support of a product of polynomials with these supports."""
        if left is None or right is None:
            return None
        return frozenset(k for _, _, k in self.pairs(left, right))


MIN_KEPT_SHARE = 0.7
"""Share of the boxes below which arrays are reduced to the boxes still of interest.

Above, it costs less to compute the others as well.
"""

CONSTANT: Support = frozenset([0])
"""The support of a quantity that is the same in a whole box."""


class TaylorModel:
    """A quantity in all boxes, as a polynomial and a bound of the rest.

    Taylor models are added, subtracted and multiplied with each other and with exact numbers; all
    rounding is counted in the remainder. Coefficients c have shape (M, k, B): monomials of d,
    powers of s below k, boxes; with k = 1 the polynomial does not depend on time. `support` are the
    monomials whose coefficients may be nonzero, None for all. `remainder`, shape (B,), is at least
    the largest distance from the polynomial, infinite if nothing is known. `truncation` is the part
    of it that shorter steps would reduce: terms that exceed the order in s.
    """

    __slots__ = ("c", "monomials", "remainder", "support", "truncation")

    def __init__(
        self,
        monomials: Monomials,
        c: Array,
        support: Support = None,
        remainder: Array | None = None,
        truncation: Array | None = None,
    ) -> None:
        self.monomials, self.c, self.support = monomials, c, support
        self.remainder: Array = np.zeros(c.shape[2]) if remainder is None else remainder
        self.truncation: Array = np.zeros(c.shape[2]) if truncation is None else truncation

    @staticmethod
    def constant(monomials: Monomials, values: Array) -> TaylorModel:
        """Return exact numbers, one for each box, from an array of shape (B,)."""
        c = np.zeros((len(monomials), 1, len(values)))
        c[0, 0] = values
        return TaylorModel(monomials, c, CONSTANT)

    @staticmethod
    def number(monomials: Monomials, exact: Fraction, boxes: int) -> TaylorModel:
        """Return the same number in all boxes, rounded, with the rounding as remainder."""
        try:
            value = float(exact)
        except OverflowError:
            value = 0.0
            rounding = np.inf
        else:
            rounding = 0.0 if exact == value else 2 * UNIT_ROUNDOFF * abs(value) + UNDERFLOW
        model = TaylorModel.constant(monomials, np.full(boxes, value))
        model.remainder = np.full(boxes, rounding)
        return model

    @staticmethod
    def variable(monomials: Monomials, k: int, middle: Array, radius: Array) -> TaylorModel:
        """Return ``middle + radius d[k]``, from two arrays of shape (B,)."""
        model = TaylorModel.constant(monomials, middle)
        if monomials.degree == 0:
            model.remainder = radius
            return model
        place = monomials.linear[k]
        model.c[place, 0] = radius
        model.support = frozenset([0, place])
        return model

    def __neg__(self) -> TaylorModel:
        return TaylorModel(self.monomials, -self.c, self.support, self.remainder, self.truncation)

    def __add__(self, other: TaylorModel | Fraction | int) -> TaylorModel:
        other = self._as_model(other)
        length = max(self.c.shape[1], other.c.shape[1])
        c = np.zeros((len(self.monomials), length, self.c.shape[2]))
        support = union(self.support, other.support)
        with np.errstate(all="ignore"):
            c[:, : self.c.shape[1]] += self.c
            c[:, : other.c.shape[1]] += other.c
            model = TaylorModel(self.monomials, c, support)
            model.put_bounds(*sum_bounds(self, other, model.norms()))
        return model

    __radd__ = __add__

    def __sub__(self, other: TaylorModel | Fraction | int) -> TaylorModel:
        return self + -other

    def __mul__(self, other: TaylorModel | Fraction | int) -> TaylorModel:
        other = self._as_model(other)
        length = max(self.c.shape[1], other.c.shape[1])
        c = np.zeros((len(self.monomials), length, self.c.shape[2]))
        support = self.monomials.product_support(self.support, other.support)
        with np.errstate(all="ignore"):
            for k in range(length):
                add_product(c[:, k], self, other, k)
            model = TaylorModel(self.monomials, c, support)
            model.put_bounds(*product_bounds(self, other, self.norms(), other.norms(), length))
        return model

    __rmul__ = __mul__

    def _as_model(self, value: TaylorModel | Fraction | int) -> TaylorModel:
        if isinstance(value, TaylorModel):
            return value
        return TaylorModel.number(self.monomials, Fraction(value), self.c.shape[2])

    def put_bounds(self, remainder: Array, truncation: Array) -> None:
        """Set the remainder and its part due to truncation in time, shape (B,).

        If the polynomial or its bound is not finite, nothing is known.
        """
        count_work(PER_MODEL + PER_COEFFICIENT * self.c.size)
        lost = ~np.isfinite(self.c).all((0, 1)) | np.isnan(remainder)
        if lost.any():
            self.c[:, :, lost] = 0.0
            remainder = np.where(lost, np.inf, remainder)
            truncation = np.where(lost, np.inf, truncation)
        self.remainder, self.truncation = remainder, truncation

    def norms(self) -> Array:
        """Return the sums of magnitudes by degree in d and order in s, shape (D + 1, k, B)."""
        sizes = np.abs(self.c)
        return np.stack([sizes[part].sum(0) for part in self.monomials.parts])

    def magnitude(self) -> Array:
        """Return a bound of the absolute value, shape (B,)."""
        return np.asarray((np.abs(self.c).sum((0, 1)) + self.remainder) * ROUNDING_MARGIN)

    def take(self, boxes: IntArray) -> TaylorModel:
        """Return the models in the selected boxes."""
        bounds = self.remainder[boxes], self.truncation[boxes]
        return TaylorModel(self.monomials, self.c[:, :, boxes], self.support, *bounds)

    def tiled(self, count: int) -> TaylorModel:
        """Return the model in all boxes, repeated `count` times."""
        c, bounds = np.tile(self.c, (1, 1, count)), (self.remainder, self.truncation)
        return TaylorModel(self.monomials, c, self.support, *(np.tile(b, count) for b in bounds))

    def raised(self, high: Monomials) -> TaylorModel:
        """Return the same model with more monomials."""
        c = np.zeros((len(high), *self.c.shape[1:]))
        c[: len(self.c)] = self.c
        return TaylorModel(high, c, self.support, self.remainder, self.truncation)

    def lowered(self, low: Monomials) -> TaylorModel:
        """Return the model with fewer monomials, the others in the remainder."""
        m = len(low)
        rest = np.abs(self.c[m:]).sum((0, 1)) * ROUNDING_MARGIN
        support = None if self.support is None else frozenset(k for k in self.support if k < m)
        return TaylorModel(low, self.c[:m], support, self.remainder + rest, self.truncation)


def union(left: Support, right: Support) -> Support:
    """Return the support of a sum."""
    return None if left is None or right is None else left | right


def add_product(target: Array, left: TaylorModel, right: TaylorModel, k: int) -> None:
    """Add the coefficients of order k in s of a product to `target`, shape (M, B)."""
    if right.c.shape[1] == 1:
        left, right = right, left
    pairs = left.monomials.pairs(left.support, right.support)
    a, b = left.c, right.c
    orders = 1 if a.shape[1] == 1 else k + 1
    count_work(len(pairs) * (PER_PRODUCT + PER_COEFFICIENT * orders * target.shape[1]))
    if a.shape[1] == 1:
        if k < b.shape[1]:
            for i, j, t in pairs:
                target[t] += a[i, 0] * b[j, k]
    elif k == 0:
        for i, j, t in pairs:
            target[t] += a[i, 0] * b[j, 0]
    else:
        for i, j, t in pairs:
            target[t] += np.einsum("kb,kb->b", a[i, : k + 1], b[j, k::-1])


def sum_bounds(left: TaylorModel, right: TaylorModel, norms: Array) -> tuple[Array, Array]:
    """Return the remainder and the truncation in time of a sum with the given norms."""
    rounding = 2 * UNIT_ROUNDOFF * norms.sum((0, 1))
    remainder = (left.remainder + right.remainder + rounding) * ROUNDING_MARGIN
    return remainder, left.truncation + right.truncation


def product_bounds(
    left: TaylorModel, right: TaylorModel, left_norms: Array, right_norms: Array, length: int
) -> tuple[Array, Array]:
    """Return the remainder and the truncation in time of a product with `length` orders in s."""
    beyond, truncation = dropped(left_norms, right_norms, length)
    a, b = left_norms.sum((0, 1)), right_norms.sum((0, 1))
    remainders = times_bound(left.remainder, right.remainder)
    crossed = times_bound(a, right.remainder) + times_bound(b, left.remainder)
    rounding = product_rounding(a, b, len(left.monomials) * length)
    remainder = (beyond + truncation + remainders + crossed + rounding) * ROUNDING_MARGIN
    crossed = times_bound(a, right.truncation) + times_bound(b, left.truncation)
    return remainder, truncation + crossed


def dropped(left: Array, right: Array, length: int) -> tuple[Array, Array]:
    """Return bounds of the terms dropped by a product of polynomials with these norms, shape (B,).

    The first is for terms that exceed the degree in d, the second for other terms that exceed the
    order in s.
    """
    degree = len(left) - 1
    beyond = np.zeros(left.shape[2])
    truncation = np.zeros(left.shape[2])
    total_left, total_right = left.sum(1), right.sum(1)
    for g in range(degree + 1):
        for h in range(degree - g + 1, degree + 1):
            beyond += total_left[g] * total_right[h]
    ka, kb = left.shape[1], right.shape[1]
    if ka + kb - 1 > length:
        tails = np.cumsum(right[:, ::-1], axis=1)[:, ::-1]
        # Over degrees that add up to at most D, from the tails of all degrees up to D - g.
        tails = np.cumsum(tails, axis=0)
        for g in range(degree + 1):
            for k in range(max(length - kb + 1, 0), ka):
                truncation += left[g, k] * tails[degree - g, max(length - k, 0)]
    return beyond, truncation


def product_rounding(left: Array, right: Array, terms: int) -> Array:
    """Return a bound of the rounding of a product with `terms` coefficients, shape (B,)."""
    bound = 2 * UNIT_ROUNDOFF * (terms + 4) * left * right + UNDERFLOW
    return np.where((left == 0) | (right == 0), 0.0, bound)


def times_bound(norm: Array, remainder: Array) -> Array:
    """Return a product of bounds in which zero times infinity is zero.

    A quantity that is zero in the whole box stays zero.
    """
    return np.where((norm == 0) | (remainder == 0), 0.0, norm * remainder + UNDERFLOW)
