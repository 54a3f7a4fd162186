"""Groebner bases modulo a prime: critical pairs degree by degree, reduced as one matrix.

J.-C. Faugere, A new efficient algorithm for computing Groebner bases (F4), J. Pure Appl. Algebra
139, 1999. Pairs that need no reduction are recognised as in R. Gebauer and H. M. Moeller, On an
installation of Buchberger's algorithm, J. Symbolic Comput. 6, 1988.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.structure.exact.matrices import SparseRow, echelon, reduced_by
from odefit.structure.exact.monomials import Packing
from odefit.structure.series.deadline import PER_TERM, Deadline
from odefit.structure.series.number_fields import PRIME, Residues

Terms = Mapping[int, int]
"""A polynomial: its coefficients by packed monomials."""

CHECK_INTERVAL = 64
"""Number of rows of a matrix that are made between two checks of the limit."""

PER_COMPARISON = 5
"""Operations that take as long as asking whether a monomial divides another."""


@dataclass(frozen=True, eq=False)
class Element:
    """A polynomial of a basis, with leading coefficient 1 and packed monomials in decreasing order.

    `exponents` is the integer of exponents of the leading monomial.
    """

    monomials: tuple[int, ...]
    coefficients: Residues
    exponents: int

    @property
    def lead(self) -> int:
        """The leading monomial."""
        return self.monomials[0]


@dataclass(frozen=True, order=True)
class _Pair:
    """A critical pair of elements `first` and `second`, by the lcm of their leading monomials."""

    degree: int
    lcm: int
    first: int
    second: int


def groebner_basis(
    polynomials: Iterable[Terms], packing: Packing, deadline: Deadline | None = None
) -> list[Element]:
    """Return an ideal's reduced Groebner basis, by increasing leading monomials."""
    return _Basis(packing, deadline or Deadline()).of(polynomials)


class _Basis:
    """The basis as elements are added to it."""

    def __init__(self, packing: Packing, deadline: Deadline) -> None:
        self.packing = packing
        self.deadline = deadline
        self.elements: list[Element] = []
        self.pairs: list[_Pair] = []
        self.minimal: list[int] = []  # elements whose leading monomial no other one divides

    def of(self, polynomials: Iterable[Terms]) -> list[Element]:
        """Return the reduced basis of the ideal of these polynomials."""
        degree = self.packing.degree
        waiting = [{m: c % PRIME for m, c in f.items() if c % PRIME} for f in polynomials]
        waiting = [f for f in waiting if f]
        while waiting or self.pairs:
            lowest = min([degree(max(f)) for f in waiting] + [pair.degree for pair in self.pairs])
            rows = [f for f in waiting if degree(max(f)) <= lowest]
            waiting = [f for f in waiting if degree(max(f)) > lowest]
            chosen = [pair for pair in self.pairs if pair.degree <= lowest]
            self.pairs = [pair for pair in self.pairs if pair.degree > lowest]
            for row in self._reduced([*rows, *self._multiples(chosen)]):
                self.deadline.check()
                lead = max(row)
                if lead == 0:
                    return [self._element({0: 1})]
                if self._reducer(lead) is None:
                    self._insert(self._element(row))
                else:  # one of lower degree came with it that divides its leading monomial
                    waiting.append(row)
        return self._interreduced()

    def _element(self, row: Terms) -> Element:
        """Return a polynomial as an element, with leading coefficient 1."""
        monomials = tuple(sorted(row, reverse=True))
        inverse = pow(row[monomials[0]], -1, PRIME)
        coefficients = np.array([row[m] * inverse % PRIME for m in monomials], dtype=np.int64)
        return Element(monomials, coefficients, self.packing.exponents(monomials[0]))

    def _insert(self, element: Element) -> None:
        """Add an element, and the critical pairs that are needed with it."""
        packing, e, new = self.packing, element.exponents, len(self.elements)
        divides, lcm = packing.divides, packing.lcm
        leads = [other.exponents for other in self.elements]
        fresh = []
        for i in self.minimal:
            both = lcm(e, leads[i])
            fresh.append((packing.degree(packing.sums(both)), e + leads[i] != both, both, i))
        fresh.sort()
        # Of pairs with one lcm, and of those whose lcm another divides, one is enough; none is
        # needed where leading monomials are coprime (these come first in their degree).
        kept: list[tuple[int, bool, int, int]] = []
        guard = packing.guard
        compared = 0
        for candidate in fresh:
            guarded = candidate[2] | guard
            for other in kept:  # as Packing.divides: most of the time passes here
                if (guarded - other[2]) & guard == guard:
                    break
            else:
                kept.append(candidate)
            compared += len(kept)
        self.deadline.spend(PER_COMPARISON * (compared / 2 + 4 * len(fresh) + len(self.pairs)))
        self.pairs = [
            pair
            for pair in self.pairs
            if not divides(e, pair.lcm)
            or lcm(e, leads[pair.first]) == pair.lcm
            or lcm(e, leads[pair.second]) == pair.lcm
        ]
        self.pairs += [_Pair(degree, both, i, new) for degree, linked, both, i in kept if linked]
        self.minimal = [i for i in self.minimal if not divides(e, leads[i])]
        self.minimal.append(new)
        self.elements.append(element)

    def _reducer(self, packed: int) -> Element | None:
        """Return an element whose leading monomial divides the given one, if there is one."""
        guard = self.packing.guard
        guarded = self.packing.exponents(packed) | guard
        for i in self.minimal:
            element = self.elements[i]
            if (guarded - element.exponents) & guard == guard:
                return element
        return None

    def _multiples(self, pairs: Sequence[_Pair]) -> list[Terms]:
        """Return the polynomials to be reduced for critical pairs: differences of multiples."""
        members: dict[int, set[int]] = {}
        for pair in pairs:
            members.setdefault(self.packing.sums(pair.lcm), set()).update((pair.first, pair.second))
        rows: list[Terms] = []
        for lead, numbers in members.items():
            # The shortest is what the others are reduced by.
            first, *others = sorted(numbers, key=lambda i: (len(self.elements[i].monomials), i))
            base = self._multiple(self.elements[first], lead)
            for i in others:
                row = self._multiple(self.elements[i], lead)
                for m, c in base.items():
                    value = (row.get(m, 0) - c) % PRIME
                    if value:
                        row[m] = value
                    else:
                        row.pop(m, None)
                if row:
                    rows.append(row)
        return rows

    def _multiple(self, element: Element, lead: int) -> dict[int, int]:
        """Return the multiple of an element whose leading monomial is `lead`."""
        shift = lead - element.lead
        return {
            m + shift: c
            for m, c in zip(element.monomials, element.coefficients.tolist(), strict=True)
        }

    def _reduced(self, rows: Sequence[Terms]) -> list[dict[int, int]]:
        """Return a basis of the rows modulo the elements, by increasing leading monomials."""
        if not rows:
            return []
        columns, left = self._remainders(rows)
        result = []
        for row in echelon(left, self.deadline)[::-1]:
            found = np.flatnonzero(row)
            monomials = [columns[k] for k in found.tolist()]
            result.append(dict(zip(monomials, row[found].tolist(), strict=True)))
        return result

    def _remainders(self, rows: Sequence[Terms]) -> tuple[list[int], Residues]:
        """Return the rows modulo the elements, as a matrix, and the monomials of its columns.

        No leading monomial of an element divides these monomials, which decrease.
        """
        columns, reducers = self._columns(rows)
        place = {m: k for k, m in enumerate(columns)}
        pivots = [self._row(element, lead, place) for lead, element in reducers]
        sparse = [
            (
                np.array([place[m] for m in row], dtype=np.intp),
                np.array(list(row.values()), dtype=np.int64),
            )
            for row in rows
        ]
        free, left = reduced_by(pivots, sparse, len(columns), self.deadline)
        return [columns[k] for k in free.tolist()], left

    def _columns(self, rows: Iterable[Terms]) -> tuple[list[int], list[tuple[int, Element]]]:
        """Return all monomials that come up, decreasing, and the elements that reduce them."""
        seen = {m for row in rows for m in row}
        waiting = list(seen)
        reducers: list[tuple[int, Element]] = []
        while waiting:
            m = waiting.pop()
            element = self._reducer(m)
            self.deadline.spend(PER_COMPARISON * (4 + len(self.minimal) / 2))
            if element is None:
                continue
            self.deadline.spend(PER_TERM / 4 * len(element.monomials))
            if len(reducers) % CHECK_INTERVAL == 0:
                self.deadline.check()
            reducers.append((m, element))
            shift = m - element.lead
            new = {t + shift for t in element.monomials}.difference(seen)
            seen |= new
            waiting += new
        return sorted(seen, reverse=True), sorted(reducers, key=lambda r: r[0], reverse=True)

    def _row(self, element: Element, lead: int, place: Mapping[int, int]) -> SparseRow:
        shift = lead - element.lead
        at = np.array([place[m + shift] for m in element.monomials], dtype=np.intp)
        return at, element.coefficients

    def _interreduced(self) -> list[Element]:
        """Return the minimal elements, each without monomials that others reduce."""
        minimal = sorted((self.elements[i] for i in self.minimal), key=lambda f: f.lead)
        tails = [
            dict(zip(f.monomials[1:], f.coefficients[1:].tolist(), strict=True)) for f in minimal
        ]
        columns, left = self._remainders(tails)
        result = []
        for f, row in zip(minimal, left, strict=True):
            found = np.flatnonzero(row)
            monomials = [columns[k] for k in found.tolist()]
            tail = dict(zip(monomials, row[found].tolist(), strict=True))
            result.append(self._element({f.lead: 1, **tail}))
        return result
