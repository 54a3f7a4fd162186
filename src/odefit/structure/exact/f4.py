"""Groebner bases modulo a prime: critical pairs degree by degree, reduced as one matrix.

J.-C. Faugere, A new efficient algorithm for computing Groebner bases (F4), J. Pure Appl. Algebra
139, 1999. Pairs that need no reduction are recognised as in R. Gebauer and H. M. Moeller, On an
installation of Buchberger's algorithm, J. Symbolic Comput. 6, 1988.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import IntArray
from odefit.structure.exact.monomials import Packing
from odefit.structure.series.deadline import PER_CALL, PER_TERM, Deadline, UnfinishedError
from odefit.structure.series.number_fields import PRIME, Residues

SparseRow = tuple[IntArray, Residues]
"""Columns of a row, and its residues there."""

CHUNK_ENTRIES = 8_000_000
"""Number of entries of the dense matrix that are reduced together."""

MAX_ENTRIES = 60_000_000
"""Largest number of entries of a dense matrix: half a gigabyte."""

CHECK_INTERVAL = 32
"""Number of steps of elimination between two checks of the limit."""

PER_ENTRY = 0.7
"""Number of operations equivalent to reducing an entry of a row by another row."""


def reduced_by(
    pivots: Sequence[SparseRow], rows: Sequence[SparseRow], width: int, deadline: Deadline
) -> tuple[IntArray, Residues]:
    """Reduce `rows` by `pivots`, which begin with 1 in separate columns, in column order.

    The results are the columns in which no pivot begins, and the reduced rows there. Raises
    UnfinishedError if the deadline passes or the matrix would be too large.
    """
    begins = np.array([at[0] for at, _ in pivots], dtype=np.intp)
    free = np.setdiff1d(np.arange(width), begins)
    if len(rows) * len(free) > MAX_ENTRIES or width > MAX_ENTRIES:
        raise UnfinishedError("a matrix is too large")
    result = np.zeros((len(rows), len(free)), dtype=np.int64)
    size = max(1, CHUNK_ENTRIES // max(width, 1))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        # Columns are contiguous in memory, as columns are selected.
        dense = np.zeros((width, len(some)), dtype=np.int64)
        for k, (at, values) in enumerate(some):
            dense[at, k] = values
        for k, (at, values) in enumerate(pivots):
            if k % CHECK_INTERVAL == 0:
                deadline.check()
            factors = PRIME - dense[at[0]]
            touched = np.flatnonzero(factors != PRIME)
            if not len(touched):
                deadline.spend(PER_CALL / 4)
                continue
            deadline.spend(PER_CALL + PER_ENTRY * len(at) * len(touched))
            if 2 * len(touched) > len(some):
                dense[at] = (dense[at] + values[:, None] * factors) % PRIME
            else:
                where = np.ix_(at, touched)
                dense[where] = (dense[where] + values[:, None] * factors[touched]) % PRIME
        result[start : start + size] = dense[free].T
    return free, result


def echelon(matrix: Residues, deadline: Deadline) -> Residues:
    """Return the reduced echelon form, without rows of zeros; `matrix` is overwritten."""
    rank = 0
    for column in range(matrix.shape[1]):
        if column % CHECK_INTERVAL == 0:
            deadline.check()
        if rank == len(matrix):
            break
        nonzero = np.flatnonzero(matrix[rank:, column])
        if not len(nonzero):
            continue
        pivot = rank + int(nonzero[0])
        if pivot != rank:
            matrix[[rank, pivot]] = matrix[[pivot, rank]]
        row = matrix[rank, column:]
        row *= pow(int(row[0]), -1, PRIME)
        row %= PRIME
        others = np.flatnonzero(matrix[:, column])
        others = others[others != rank]
        factors = PRIME - matrix[others, column]
        support = np.flatnonzero(row)
        deadline.spend(2 * PER_CALL + PER_ENTRY * (len(others) * len(support) + len(matrix)))
        where = np.ix_(others, column + support)
        matrix[where] = (matrix[where] + factors[:, None] * row[support]) % PRIME
        rank += 1
    return matrix[:rank]


Terms = Mapping[int, int]
"""A polynomial: its coefficients by packed monomials."""

CHECK_INTERVAL = 64
"""Number of rows of a matrix that are made between two checks of the limit."""

PER_COMPARISON = 5
"""Number of operations equivalent to testing whether a monomial divides another."""


@dataclass(frozen=True, eq=False)
class Element:
    """A polynomial of a basis, with leading coefficient 1 and packed monomials in decreasing order.

    `exponents` is the leading monomial as an integer of exponents.
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
        self.minimal: list[int] = []  # elements whose leading monomial no other divides

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
                else:  # an element of lower degree, added with it, divides its leading monomial
                    waiting.append(row)
        return self._interreduced()

    def _element(self, row: Terms) -> Element:
        """Return a polynomial as an element, with leading coefficient 1."""
        monomials = tuple(sorted(row, reverse=True))
        inverse = pow(row[monomials[0]], -1, PRIME)
        coefficients = np.array([row[m] * inverse % PRIME for m in monomials], dtype=np.int64)
        return Element(monomials, coefficients, self.packing.exponents(monomials[0]))

    def _insert(self, element: Element) -> None:
        """Add an element, and the critical pairs needed for it."""
        packing, e, new = self.packing, element.exponents, len(self.elements)
        divides, lcm = packing.divides, packing.lcm
        leads = [other.exponents for other in self.elements]
        fresh = []
        for i in self.minimal:
            both = lcm(e, leads[i])
            fresh.append((packing.degree(packing.sums(both)), e + leads[i] != both, both, i))
        fresh.sort()
        # Of pairs with one lcm, or with an lcm that another divides, one is enough; none is needed
        # if leading monomials are coprime (these come first in their degree).
        candidates: list[tuple[int, bool, int, int]] = []
        guard = packing.guard
        compared = 0
        for candidate in fresh:
            guarded = candidate[2] | guard
            for other in candidates:  # as Packing.divides: most of the time is spent here
                if (guarded - other[2]) & guard == guard:
                    break
            else:
                candidates.append(candidate)
            compared += len(candidates)
        self.deadline.spend(PER_COMPARISON * (compared / 2 + 4 * len(fresh) + len(self.pairs)))
        self.pairs = [
            pair
            for pair in self.pairs
            if not divides(e, pair.lcm)
            or lcm(e, leads[pair.first]) == pair.lcm
            or lcm(e, leads[pair.second]) == pair.lcm
        ]
        self.pairs += [
            _Pair(degree, both, i, new) for degree, linked, both, i in candidates if linked
        ]
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
            # The shortest one reduces the others.
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
            nonzero = np.flatnonzero(row)
            monomials = [columns[k] for k in nonzero.tolist()]
            result.append(dict(zip(monomials, row[nonzero].tolist(), strict=True)))
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
        """Return all monomials that occur, decreasing, and the elements that reduce them."""
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
        """Return the minimal elements, without monomials that other elements reduce."""
        minimal = sorted((self.elements[i] for i in self.minimal), key=lambda f: f.lead)
        tails = [
            dict(zip(f.monomials[1:], f.coefficients[1:].tolist(), strict=True)) for f in minimal
        ]
        columns, left = self._remainders(tails)
        result = []
        for f, row in zip(minimal, left, strict=True):
            nonzero = np.flatnonzero(row)
            monomials = [columns[k] for k in nonzero.tolist()]
            tail = dict(zip(monomials, row[nonzero].tolist(), strict=True))
            result.append(self._element({f.lead: 1, **tail}))
        return result
