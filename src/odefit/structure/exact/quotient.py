"""The quotient ring of an ideal with finitely many zeros, and its multiplication matrices.

The monomials that no leading monomial of a Groebner basis divides are a basis of the quotient ring
(D. Cox, J. Little, D. O'Shea, Using Algebraic Geometry, chapter 2). The values of a linear form at
the zeros are the roots of its minimal polynomial there, which is computed from the powers of the
form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from odefit.structure.exact.f4 import PER_COMPARISON, Element
from odefit.structure.exact.monomials import Packing
from odefit.structure.series.deadline import PER_CALL, Deadline, UnfinishedError
from odefit.structure.series.echelon import Echelon
from odefit.structure.series.number_fields import PRIME, Residues

Univariate = list[int]
"""The coefficients of a polynomial in one variable, the lowest first."""


def trimmed(f: Sequence[int]) -> Univariate:
    """Return a polynomial without leading zeros, its coefficients reduced modulo the prime."""
    result = [c % PRIME for c in f]
    while result and not result[-1]:
        result.pop()
    return result


def remainder(f: Univariate, g: Univariate) -> Univariate:
    """Return the remainder of f divided by g, which is not zero."""
    left, inverse = list(f), pow(g[-1], -1, PRIME)
    while len(left) >= len(g):
        factor, shift = left[-1] * inverse % PRIME, len(left) - len(g)
        for i, c in enumerate(g):
            left[shift + i] = (left[shift + i] - factor * c) % PRIME
        left = trimmed(left)
    return left


def greatest_common_divisor(f: Univariate, g: Univariate) -> Univariate:
    """Return the greatest common divisor, with leading coefficient 1."""
    a, b = trimmed(f), trimmed(g)
    while b:
        a, b = b, remainder(a, b)
    inverse = pow(a[-1], -1, PRIME)
    return [c * inverse % PRIME for c in a]


def distinct_roots(f: Sequence[int]) -> int:
    """Return the number of distinct roots in the algebraic closure.

    The degree of the polynomial must be below the prime.
    """
    full = trimmed(f)
    derivative = [i * c for i, c in enumerate(full)][1:]
    return len(full) - len(greatest_common_divisor(full, derivative))


MAX_DIMENSION = 3000
"""Largest dimension of the quotient ring."""

MAX_ENTRIES = 100_000_000
"""Largest number of entries of all multiplication matrices."""


class NotZeroDimensionalError(ValueError):
    """An ideal has infinitely many zeros."""


class Quotient:
    """The ring of polynomials modulo an ideal with finitely many zeros.

    `basis` is the reduced Groebner basis. `monomials` is a basis of the ring, in increasing order;
    their number is that of the zeros, counted with multiplicity. Raises NotZeroDimensionalError for
    infinitely many zeros, and UnfinishedError if the deadline passes or the dimension is too large.
    """

    def __init__(
        self, basis: Sequence[Element], packing: Packing, deadline: Deadline | None = None
    ) -> None:
        self._packing = packing
        self._deadline = deadline or Deadline()
        self._basis = basis
        self.monomials = self._standard_monomials()
        self._matrices = self._multiplications()

    @property
    def dimension(self) -> int:
        """The dimension of the quotient ring as a vector space."""
        return len(self.monomials)

    def _standard_monomials(self) -> list[int]:
        """Return the monomials that no leading monomial divides."""
        packing = self._packing
        leads = [f.exponents for f in self._basis]
        if any(f.lead == 0 for f in self._basis):
            return []
        # A power of every variable has to be a leading monomial.
        for v in range(packing.count):
            others = [e for k, e in enumerate(packing.variables) if k != v]
            masks = [packing.exponents(e) for e in others]
            if not any(not any(packing.divides(m, lead) for m in masks) for lead in leads):
                raise NotZeroDimensionalError("there are infinitely many solutions")
        # A monomial is standard if it is not a leading one and all its divisors are standard, which
        # a few sets per degree decide.
        leading = {f.lead for f in self._basis}
        masks = [packing.exponents(v) for v in packing.variables]
        seen, level = {0}, [0]
        while level:
            following: set[int] = set()
            for m in level:
                self._deadline.check()
                self._deadline.spend(PER_COMPARISON * packing.count * (1 + packing.count / 2))
                for v in packing.variables:
                    n = m + v
                    if n in following or n in leading:
                        continue
                    exponents = packing.exponents(n)
                    if all(
                        n - below in seen
                        for below, mask in zip(packing.variables, masks, strict=True)
                        if packing.divides(mask, exponents)
                    ):
                        following.add(n)
            seen |= following
            level = sorted(following)
            if len(seen) > MAX_DIMENSION:
                raise UnfinishedError(f"more than {MAX_DIMENSION} solutions")
        return sorted(seen)

    def _multiplications(self) -> Residues:
        """Return each variable's multiplication matrix: row i is its product with monomial i."""
        count, size = self._packing.count, self.dimension
        if count * size * size > MAX_ENTRIES:
            raise UnfinishedError("the multiplication matrices are too large")
        place = {m: i for i, m in enumerate(self.monomials)}
        rules = {f.lead: f for f in self._basis}
        matrices = np.zeros((count, size, size), dtype=np.int64)
        pairs: dict[int, list[tuple[int, int]]] = {}
        for i, m in enumerate(self.monomials):
            for v, x in enumerate(self._packing.variables):
                pairs.setdefault(m + x, []).append((v, i))
        border: dict[int, Residues] = {}
        # In increasing order, the parts of a product come before it.
        for m in sorted(pairs):
            self._deadline.check()
            if m in place:
                row = np.zeros(size, dtype=np.int64)
                row[place[m]] = 1
            elif m in rules:
                row = np.zeros(size, dtype=np.int64)
                f = rules[m]
                row[[place[n] for n in f.monomials[1:]]] = PRIME - f.coefficients[1:]
                border[m] = row
            else:
                self._deadline.spend(PER_CALL + size * size / 4)
                row = self._from_below(m, border, matrices)
                border[m] = row
            for v, i in pairs[m]:
                matrices[v, i] = row
        return matrices

    def _from_below(self, m: int, border: Mapping[int, Residues], matrices: Residues) -> Residues:
        """Return a border monomial as a variable times another border monomial."""
        v, form = next(
            (v, border[m - x]) for v, x in enumerate(self._packing.variables) if m - x in border
        )
        return _times(form, matrices[v])

    def minimal_polynomial(self, form: Mapping[int, int]) -> list[int]:
        """Return the monic minimal polynomial of a linear form, lowest coefficient first.

        `form` maps the numbers of variables to their coefficients.
        """
        size = self.dimension
        if not size:
            return [1]
        matrix = np.zeros((size, size), dtype=np.int64)
        for v, c in form.items():
            matrix = (matrix + c % PRIME * self._matrices[v]) % PRIME
        power = np.zeros(size, dtype=np.int64)
        power[0] = 1  # the monomial 1
        # Every power is followed by a unit vector, which records a row as a combination of powers.
        echelon = Echelon(2 * size + 1)
        for k in range(size + 1):
            self._deadline.check()
            # The power times the matrix, and the rows so far with the remainder of the new one.
            self._deadline.spend(3 * PER_CALL + size * size / 4 + size * (k + 1))
            unit = np.zeros(size + 1, dtype=np.int64)
            unit[k] = 1
            echelon.add(np.concatenate([power, unit]))
            if echelon.pivots[-1] >= size:  # the powers so far are dependent
                relation = echelon.rows[-1, size : size + k + 1]
                return [int(c) for c in relation * pow(int(relation[k]), -1, PRIME) % PRIME]
            power = _times(power, matrix)
        raise AssertionError("more independent powers than the dimension")


def _times(row: Residues, matrix: Residues) -> Residues:
    """Return a row vector times a matrix, modulo the prime."""
    used = np.flatnonzero(row)
    return np.asarray((row[used, None] * matrix[used] % PRIME).sum(axis=0) % PRIME)
