"""Identifiable combinations of unknowns: products, quotients and sums.

A function of the unknowns is identifiable, at least locally, if its gradient vanishes on the null
space of the equations. Candidates are tried exactly, modulo the prime, at several random points:
pairs and triples of unknowns, then functions that are invariant under the symmetries. A null vector
that is constant in logarithmic coordinates is a scaling (each unknown is multiplied by its own
power of a common factor), under which monomials may be invariant. A null vector that is itself
constant is a translation, under which linear forms may be invariant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import lcm

import numpy as np

from odefit.structure.rank.ranks import LocalRank, PointRank
from odefit.structure.series.deadline import NEVER, PER_CALL, Deadline, UnfinishedError
from odefit.structure.series.echelon import Echelon
from odefit.structure.series.number_fields import PRIME, Residues, residues_product

MAX_INTEGER = 32
"""Largest numerator and denominator of exponents and coefficients."""

CALLS_OF_PAIR = 6
"""Calls of array functions that a pair of unknowns takes."""

MANY_ROWS = 100
"""Rows from which on a null space is taken as it is, if it is in reduced echelon form."""

MAX_FOR_TRIPLES = 40
"""Largest number of non-identifiable unknowns for which triples are tried."""


@dataclass(frozen=True)
class Combination:
    """A monomial, or a linear form, of unknowns with their exponents or coefficients."""

    powers: tuple[tuple[str, int], ...]
    linear: bool

    def __str__(self) -> str:
        if self.linear:
            text = ""
            for name, c in self.powers:
                size = name if abs(c) == 1 else f"{abs(c)}*{name}"
                text += f" {'-' if c < 0 else '+'} {size}" if text else f"{'-' * (c < 0)}{size}"
            return text
        above = [_power(name, e) for name, e in self.powers if e > 0]
        below = [_power(name, -e) for name, e in self.powers if e < 0]
        under = f"({'*'.join(below)})" if len(below) > 1 else "".join(below)
        return "*".join(above or ["1"]) + (f"/{under}" if under else "")


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


@dataclass(frozen=True)
class IdentifiableCombinations:
    """Identifiable functions of the unknowns that are not identifiable individually.

    `missing` is the number of further independent functions that were not found; `involved` are the
    unknowns in identifiable functions.
    """

    combinations: tuple[Combination, ...]
    missing: int
    involved: tuple[str, ...]


def identifiable_combinations(
    local: LocalRank, names: Sequence[str], deadline: Deadline = NEVER
) -> IdentifiableCombinations:
    """Find identifiable functions of the non-identifiable unknowns among `names`.

    Functions not found by the `deadline` are missing.
    """
    place = {name: i for i, name in enumerate(local.names)}
    best = local.best
    chosen = [place[n] for n in names if n in place and not best.determined[place[n]]]
    spaces = [_Space.at(point, chosen) for point in local.points]
    if not chosen:
        return IdentifiableCombinations((), 0, ())
    freedom = spaces[0].space.rank
    # Unknowns that can change independently: no function of them is identifiable.
    alone = [i for i in range(len(chosen)) if spaces[0].space.determined[i]]
    active = [i for i in range(len(chosen)) if i not in alone]
    number = len(active) - (freedom - len(alone))
    keys = [local.names[c] for c in chosen]
    functions: list[Combination] = []
    gradients = Echelon(len(chosen))
    for candidate in _candidates(spaces, active, deadline):
        if len(functions) == number or deadline.passed:
            break
        if all(s.leaves_invariant(candidate) for s in spaces) and gradients.add(
            spaces[0].gradient(candidate)
        ):
            functions.append(_named(candidate, keys))
    return IdentifiableCombinations(
        tuple(functions), number - len(functions), tuple(keys[i] for i in active)
    )


@dataclass(frozen=True)
class _Candidate:
    """A candidate for an identifiable function, by the places of the non-identifiable unknowns."""

    powers: Mapping[int, int]
    linear: bool


@dataclass(frozen=True, eq=False)
class _Space:
    """The null space at a point, restricted to the m non-identifiable unknowns.

    `relative` is its basis in logarithmic coordinates, shape (dimension, m).
    """

    values: Residues
    space: Echelon
    relative: Residues

    @classmethod
    def at(cls, point: PointRank, chosen: Sequence[int]) -> _Space:
        """Return the null space of the unknowns `chosen` at a point."""
        rows = point.null_space[:, chosen]
        reduced = Echelon.reduced(rows) if len(rows) >= MANY_ROWS else None
        space = Echelon.of(rows) if reduced is None else reduced
        values = point.values[list(chosen)]
        inverse = np.array([pow(int(v), -1, PRIME) if v else 0 for v in values], dtype=np.int64)
        return cls(values, space, space.rows * inverse % PRIME)

    def basis(self, linear: bool) -> Residues:
        """Return a basis in coordinates in which linear forms, or else monomials, are linear."""
        return self.space.rows if linear else self.relative

    def leaves_invariant(self, candidate: _Candidate) -> bool:
        """Return whether the candidate is constant along the null space, to first order."""
        vectors = self.basis(candidate.linear)
        total = np.zeros(len(vectors), dtype=np.int64)
        for i, power in candidate.powers.items():
            total = (total + power * vectors[:, i]) % PRIME
        return not total.any()

    def gradient(self, candidate: _Candidate) -> Residues:
        """Return the gradient of the candidate, or of its logarithm if it is a monomial."""
        row = np.zeros(len(self.values), dtype=np.int64)
        for i, power in candidate.powers.items():
            value = 1 if candidate.linear else pow(int(self.values[i]), -1, PRIME)
            row[i] = power * value % PRIME
        return row


def _candidates(
    spaces: Sequence[_Space], active: Sequence[int], deadline: Deadline
) -> Iterator[_Candidate]:
    """Yield functions that may be identifiable, the simplest first; few after the deadline."""
    pairs = list(_pairs(spaces[0], active, deadline))
    yield from (p for p in pairs if set(map(abs, p.powers.values())) == {1})
    if len(active) <= MAX_FOR_TRIPLES:
        for linear in (False, True):
            for triple in combinations(active, 3):
                for signs in product((1, -1), repeat=2):
                    powers = dict(zip(triple, (1, *signs), strict=True))
                    candidate = _Candidate(powers, linear)
                    if spaces[0].leaves_invariant(candidate):
                        yield candidate
    yield from pairs
    for linear in (False, True):
        with suppress(UnfinishedError):
            yield from _invariants(spaces, linear, deadline)


def _pairs(space: _Space, active: Sequence[int], deadline: Deadline) -> Iterator[_Candidate]:
    """Yield functions of two unknowns that are constant along the null space."""
    for i, k in combinations(active, 2):
        if deadline.passed:
            return
        deadline.spend(CALLS_OF_PAIR * (PER_CALL + len(space.space.rows)))
        for linear in (False, True):
            vectors = space.basis(linear)
            ratio = _ratio(vectors[:, i], vectors[:, k])
            if ratio is not None:
                # v_i = r v_k, so that v_i - r v_k vanishes.
                yield _cleared({i: Fraction(1), k: -ratio}, linear)


def _ratio(a: Residues, b: Residues) -> Fraction | None:
    """Return the small nonzero rational r with ``a = r b``, if there is one."""
    used = np.flatnonzero(b)
    if not len(used) or not a.any():
        return None
    k = int(used[0])
    quotient = int(a[k]) * pow(int(b[k]), -1, PRIME) % PRIME
    if ((a - quotient * b) % PRIME).any():
        return None
    return rational(quotient)


def rational(residue: int, largest: int = MAX_INTEGER) -> Fraction | None:
    """Return the fraction of small integers that is `residue`, if there is one."""
    for denominator in range(1, largest + 1):
        numerator = residue * denominator % PRIME
        numerator = numerator - PRIME if numerator > PRIME // 2 else numerator
        if abs(numerator) <= largest:
            return Fraction(numerator, denominator)
    return None


def _invariants(spaces: Sequence[_Space], linear: bool, deadline: Deadline) -> Iterator[_Candidate]:
    """Yield monomials or linear forms that are invariant under all constant symmetries."""
    common = spaces[0].basis(linear)
    for space in spaces[1:]:
        common = _intersection(common, space.basis(linear), deadline)
    rows = Echelon.of(common, deadline)
    deadline.spend(PER_CALL * rows.rows.size)
    deadline.check()
    symmetries = [[rational(int(v)) for v in row] for row in rows.rows]
    if any(v is None for row in symmetries for v in row):
        return
    for k in range(rows.width):
        if k in rows.pivots:
            continue
        powers = {k: Fraction(1)}
        for row, pivot in zip(symmetries, rows.pivots, strict=True):
            value = row[k]
            if value:
                powers[pivot] = -value
        if len(powers) > 1:
            yield _cleared(powers, linear)


def _intersection(a: Residues, b: Residues, deadline: Deadline) -> Residues:
    """Return a basis of the intersection of two row spaces."""
    equations = Echelon.of(np.concatenate([a, -b % PRIME]).T, deadline)
    weights = equations.null_space()[:, : len(a)]
    deadline.spend(weights.size * a.shape[1])
    return residues_product(weights, a)


def _cleared(powers: Mapping[int, Fraction], linear: bool) -> _Candidate:
    """Return a candidate with integers instead of fractions, most of them positive."""
    common = lcm(*(p.denominator for p in powers.values()))
    whole = {i: int(p * common) for i, p in sorted(powers.items())}
    if sum(np.sign(list(whole.values()))) < 0:
        whole = {i: -p for i, p in whole.items()}
    return _Candidate(whole, linear)


def _named(candidate: _Candidate, keys: Sequence[str]) -> Combination:
    powers = tuple((keys[i], p) for i, p in sorted(candidate.powers.items()))
    return Combination(powers, candidate.linear)
