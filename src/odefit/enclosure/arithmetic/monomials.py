"""Monomials in a few variables, by degree, and the products of pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError

MAX_MONOMIALS = 20_000
"""Largest number of monomials: with more, a single product of two polynomials takes seconds."""

Support = frozenset[int] | None
"""Monomials whose coefficients may not be zero; None for all."""


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
        """Which monomials are the square of a variable, as booleans, shape (M,)."""
        return np.array([len(e) == 2 and e[0] == e[1] for e in self.exponents])

    @cached_property
    def powers(self) -> Array:
        """The power of each variable in each monomial, shape (M, n)."""
        found = np.zeros((len(self), self.variables))
        for i, exponent in enumerate(self.exponents):
            for k in exponent:
                found[i, k] += 1.0
        return found

    def pairs(self, left: Support, right: Support) -> Sequence[tuple[int, int, int]]:
        """Return triples (i, j, k): monomial i of `left` times j of `right` is monomial k.

        Products beyond the largest degree are left out.
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
