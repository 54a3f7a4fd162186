"""Polynomials in the unknowns and the time of one step: floating-point ones, and rigorous ones.

The unknowns of a box are d in [-1, 1]^n and the time of a step is s in [0, 1]. A :class:`Jet` is a
guess of a solution, computed in floating point. A :class:`Model` is an enclosure: coefficients are
polynomials of balls in s, and a remainder bounds the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from odefit.certificates.verification.balls import UNIT, ZERO, arb, arb_poly, around, ball, series
from odefit.common.arrays import Array, IntArray

MOST_PRODUCTS = 250
"""Number of products of two monomials from which on a lower degree in the unknowns pays."""

DEGREES = (4, 3, 2)
"""Degrees in the unknowns, the best one first."""

ORDER = 10
"""Degree of solutions in the time of a step."""

MOST_DEGREE = 4 * ORDER
"""Degree in time up to which products are kept."""

FURTHER = 8
"""Number of powers of the time in the guess of a reciprocal beyond those of its operand."""

TERMS = 12
"""Largest number of Taylor coefficients of a function of a model."""

ACCURACY = 1e-13
"""Remainder, relative to the value, at which the series of a function ends."""


class Layout:
    """The monomials in n unknowns up to a degree, and the products between them."""

    def __init__(self, unknowns: int, degree: int) -> None:
        self.degree = degree
        self.monomials = [
            m for d in range(degree + 1) for m in combinations_with_replacement(range(unknowns), d)
        ]
        self.unknowns, self.size = unknowns, len(self.monomials)
        places = {m: i for i, m in enumerate(self.monomials)}
        self.linear = [places[(k,)] for k in range(unknowns)]
        self.degrees = [len(m) for m in self.monomials]
        self.products = [
            (i, j, places[tuple(sorted(a + b))])
            for i, a in enumerate(self.monomials)
            for j, b in enumerate(self.monomials)
            if len(a) + len(b) <= degree
        ]
        self._tables: dict[int, IntArray] = {}
        self._pairs = np.array(self.products).T

    def folded(self, products: Array) -> Array:
        """Return the product of two polynomials from those of their coefficients, (size, size)."""
        left, right, places = self._pairs
        return np.asarray(np.bincount(places, products[left, right], self.size), dtype=float)

    def table(self, powers: int) -> IntArray:
        """Return where the factors of a product are in another polynomial, as a flat array.

        Entry (i, j), shape (size*powers, size*powers), is the place of the factor that maps
        coefficient j to coefficient i, or the place after the last for no factor.
        """
        if powers not in self._tables:
            places = np.full((self.size, powers, self.size, powers), self.size * powers)
            lag = np.subtract.outer(np.arange(powers), np.arange(powers))
            for i, j, k in self.products:
                places[k, :, i, :] = np.where(lag >= 0, j * powers + lag, self.size * powers)
            self._tables[powers] = places.reshape(self.size * powers, -1)
        return self._tables[powers]


@lru_cache
def layout(unknowns: int) -> Layout:
    """Return the layout for a number of unknowns.

    Examples
    --------
    >>> [layout(n).degree for n in (1, 3, 4, 5, 8)]
    [4, 4, 3, 2, 2]
    """
    fitting = (d for d in DEGREES if comb(2 * unknowns + d, d) <= MOST_PRODUCTS)
    return Layout(unknowns, next(fitting, DEGREES[-1]) if unknowns else 0)


class Jet:
    """A truncated polynomial in floating point: `c` has shape (monomials, powers of the time)."""

    def __init__(self, c: Array, ring: Layout) -> None:
        self.c, self.ring = c, ring

    def __neg__(self) -> Jet:
        return Jet(-self.c, self.ring)

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.c + other.c, self.ring)

    def __mul__(self, other: Jet) -> Jet:
        table = self.ring.table(self.c.shape[1])
        factors = np.append(other.c, 0.0)[table]
        return Jet((factors @ self.c.ravel()).reshape(self.c.shape), self.ring)

    def reciprocal(self) -> Jet:
        """Return one over the polynomial, power by power of the time."""
        ring, powers = self.ring, self.c.shape[1]
        first = Jets(ring, 1).apply("inv", Jet(self.c[:, :1].copy(), ring)).c[:, 0]
        c = np.zeros_like(self.c)
        c[:, 0] = first
        with np.errstate(all="ignore"):
            for k in range(1, powers):
                rest = ring.folded(self.c[:, 1 : k + 1] @ c[:, :k][:, ::-1].T)
                c[:, k] = -ring.folded(np.multiply.outer(rest, first))
        return Jet(c, ring)

    def widened(self, powers: int) -> Jet:
        """Return the polynomial with more powers of the time."""
        c = np.zeros((self.ring.size, powers))
        c[:, : self.c.shape[1]] = self.c
        return Jet(c, self.ring)


class Jets:
    """The number type of :class:`Jet`, with a number of powers of the time."""

    def __init__(self, ring: Layout, powers: int) -> None:
        self._ring, self._powers = ring, powers

    def number(self, value: Fraction) -> Jet:
        """Return a constant."""
        return self.constant(float(value))

    def constant(self, value: float) -> Jet:
        """Return a constant."""
        c = np.zeros((self._ring.size, self._powers))
        c[0, 0] = value
        return Jet(c, self._ring)

    def apply(self, function: str, x: Jet) -> Jet:
        """Return a function of a jet, exact to its order up to rounding."""
        terms = self._powers + 2  # the rest of the argument has no constant part
        coefficients = [float(a) for a in series(function, arb(float(x.c[0, 0])), terms)]
        rest = Jet(x.c.copy(), self._ring)
        rest.c[0, 0] = 0.0
        total = self.constant(coefficients[-1])
        for a in coefficients[-2::-1]:
            total = total * rest
            total.c[0, 0] += a
        return total


class Model:
    """A rigorous polynomial: `c` has a polynomial of balls in s for each monomial, `rest` >= 0."""

    def __init__(self, c: Sequence[arb_poly], rest: arb, ring: Layout) -> None:
        self.c, self.rest, self.ring = c, rest, ring
        self._sizes: list[arb] | None = None

    @property
    def sizes(self) -> list[arb]:
        """Bounds of the coefficients over the step, one for each monomial."""
        if self._sizes is None:
            self._sizes = [p(UNIT).abs_upper() if p.length() else ZERO for p in self.c]
        return self._sizes

    def by_degree(self) -> list[arb]:
        """Return the sums of the sizes of the monomials of each degree."""
        totals = [ZERO] * (self.ring.degree + 1)
        for degree, size in zip(self.ring.degrees, self.sizes, strict=True):
            totals[degree] += size
        return totals

    @property
    def size(self) -> arb:
        """Bound of the absolute value."""
        return sum(self.sizes, self.rest).abs_upper()

    @property
    def range(self) -> arb:
        """A ball that contains all values."""
        return around(self.c[0](UNIT), sum(self.sizes[1:], self.rest))

    def __neg__(self) -> Model:
        return Model([-p for p in self.c], self.rest, self.ring)

    def __add__(self, other: Model) -> Model:
        c = [a + b for a, b in zip(self.c, other.c, strict=True)]
        return Model(c, (self.rest + other.rest).abs_upper(), self.ring)

    def __mul__(self, other: Model) -> Model:
        c = [arb_poly()] * self.ring.size
        for i, j, k in self.ring.products:
            a, b = self.c[i], other.c[j]
            if a.length() and b.length():
                c[k] = c[k] + a * b
        left, right = self.by_degree(), other.by_degree()
        # The terms of higher degrees, and what the remainders are multiplied by.
        rest = self.rest * sum(right, other.rest)
        for i, size in enumerate(left):
            rest += size * sum(right[len(left) - i :], other.rest)
        return _trimmed(c, rest.abs_upper(), self.ring)


def _trimmed(c: list[arb_poly], rest: arb, ring: Layout) -> Model:
    """Return a model with the highest powers of s in the remainder."""
    for i, p in enumerate(c):
        if p.length() > MOST_DEGREE + 1:
            rest += p.right_shift(MOST_DEGREE + 1)(UNIT).abs_upper()
            c[i] = p.truncate(MOST_DEGREE + 1)
    return Model(c, rest.abs_upper(), ring)


class Models:
    """The number type of :class:`Model`."""

    def __init__(self, ring: Layout) -> None:
        self._ring = ring

    def number(self, value: Fraction) -> Model:
        """Return a constant."""
        return self.constant(ball(value))

    def constant(self, value: arb) -> Model:
        """Return a constant."""
        return self.polynomial([value])

    def ball(self, value: arb) -> Model:
        """Return a constant whose radius is a remainder."""
        middle = self.constant(arb(value.mid()))
        return Model(middle.c, value.rad().abs_upper(), self._ring)

    def polynomial(self, powers: Sequence[arb], slope: tuple[int, float] | None = None) -> Model:
        """Return a polynomial in s, with a multiple of one unknown added."""
        c = [arb_poly()] * self._ring.size
        c[0] = arb_poly(list(powers))
        if slope is not None:
            c[self._ring.linear[slope[0]]] = arb_poly([arb(slope[1])])
        return Model(c, ZERO, self._ring)

    def jet(self, c: Array, rest: arb) -> Model:
        """Return floating-point coefficients, shape (monomials, powers), with a remainder."""
        rows = [arb_poly(row) if any(row) else arb_poly() for row in c.tolist()]
        return Model(rows, rest, self._ring)

    def apply(self, function: str, x: Model) -> Model:
        """Return a function of a model, by its Taylor series with a bound of the rest."""
        if function == "inv":
            quotient = self._reciprocal(x)
            if quotient is not None:
                return quotient
        middle = arb(x.c[0][0].mid()) if x.c[0].length() else ZERO
        rest = x + self.constant(-middle)
        if rest.size == 0:
            return self.constant(series(function, middle, 1)[0])
        size = rest.size
        everywhere = series(function, around(middle, size), TERMS + 1)
        bounds = [(everywhere[k] * size**k).abs_upper() for k in range(1, TERMS + 1)]
        accurate = (everywhere[0].abs_upper() * ACCURACY).abs_upper()
        count = TERMS
        for k, bound in enumerate(bounds, start=1):
            if bound <= accurate:
                count = k
                break
        coefficients = series(function, middle, count)
        total = self.constant(coefficients[-1])
        for a in coefficients[-2::-1]:
            total = total * rest + self.constant(a)
        return Model(total.c, (total.rest + bounds[count - 1]).abs_upper(), self._ring)

    def _reciprocal(self, x: Model) -> Model | None:
        """Return 1/x by a guess q with a bound of ``(1 - x q)/x``; None if that is not better."""
        least = x.range.abs_lower()
        if not least > 0:
            return None
        powers = max(p.length() for p in x.c) + FURTHER
        c = np.zeros((self._ring.size, powers))
        for row, p in zip(c, x.c, strict=True):
            row[: p.length()] = [float(a.mid()) for a in p.coeffs()]
        guess = Jet(c, self._ring).reciprocal()
        if not np.isfinite(guess.c).all():
            return None
        model = self.jet(guess.c, ZERO)
        lacking = (self.constant(arb(-1)) + x * model).size / least
        if not lacking.is_finite():
            return None
        return Model(model.c, lacking.abs_upper(), self._ring)
