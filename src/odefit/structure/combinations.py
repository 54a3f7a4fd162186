"""What is identifiable where single unknowns are not: products, quotients and sums of them.

A function of the unknowns is identifiable, at least locally, if its gradient vanishes on the null
space of the equations. Candidates are tried exactly, modulo the prime, at several random points:
pairs and triples of unknowns, then what the symmetries leave alone. A null vector that is
constant in logarithmic coordinates is a scaling (each unknown by its own power of a common
factor), and monomials are left alone by it; one that is constant as it is, is a translation, and
linear forms are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import lcm

import numpy as np

from odefit.structure.echelon import Echelon
from odefit.structure.ranks import LocalRank, PointRank
from odefit.structure.series import PRIME, Residues

LARGEST = 6
"""Numerator and denominator, at most, of exponents and coefficients."""

MANY = 40
"""Unknowns that are not identifiable up to which triples are tried."""


@dataclass(frozen=True)
class Combination:
    """A monomial or a linear form of unknowns.

    Attributes
    ----------
    powers
        By unknown: its exponent, or its coefficient.
    linear
        Whether it is a sum.
    """

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
class Combined:
    """What is known of the unknowns that are not identifiable by themselves.

    Attributes
    ----------
    found
        Identifiable functions of them, independent of each other.
    missing
        How many more there are, of which none was found.
    involved
        The unknowns of which something is identifiable in combination.
    """

    found: tuple[Combination, ...]
    missing: int
    involved: tuple[str, ...]


def identifiable_combinations(local: LocalRank, names: Sequence[str]) -> Combined:
    """Functions of the non-identifiable ones of `names` that are identifiable."""
    place = {name: i for i, name in enumerate(local.names)}
    best = local.best
    chosen = [place[n] for n in names if n in place and not best.determined[place[n]]]
    spaces = [_Space.at(point, chosen) for point in local.points]
    if not chosen:
        return Combined((), 0, ())
    freedom = spaces[0].dimension
    alone = [i for i in range(len(chosen)) if _is_alone(spaces[0], i)]
    active = [i for i in range(len(chosen)) if i not in alone]
    wanted = len(active) - (freedom - len(alone))
    keys = [local.names[c] for c in chosen]
    found: list[Combination] = []
    gradients = Echelon(len(chosen))
    for candidate in _candidates(spaces, active):
        if len(found) == wanted:
            break
        if all(s.sees_not(candidate) for s in spaces) and gradients.add(
            spaces[0].gradient(candidate)
        ):
            found.append(_named(candidate, keys))
    return Combined(tuple(found), wanted - len(found), tuple(keys[i] for i in active))


@dataclass(frozen=True)
class _Candidate:
    """Exponents or coefficients by place among the non-identifiable unknowns."""

    powers: Mapping[int, int]
    linear: bool


@dataclass(frozen=True, eq=False)
class _Space:
    """The null space at a point, of the non-identifiable unknowns alone.

    Attributes
    ----------
    values
        Of these unknowns, shape (m,).
    basis
        Shape (dimension, m).
    relative
        The same in logarithmic coordinates.
    """

    values: Residues
    basis: Residues
    relative: Residues

    @classmethod
    def at(cls, point: PointRank, chosen: Sequence[int]) -> _Space:
        """From what a point says of all unknowns."""
        rows = Echelon(len(chosen))
        for row in point.null_space[:, chosen]:
            rows.add(row)
        values = point.values[list(chosen)]
        inverse = np.array([pow(int(v), -1, PRIME) if v else 0 for v in values], dtype=np.int64)
        return cls(values, rows.rows, rows.rows * inverse % PRIME)

    @property
    def dimension(self) -> int:
        return len(self.basis)

    def sees_not(self, candidate: _Candidate) -> bool:
        """Whether the candidate is the same along all of the null space, to first order."""
        vectors = self.basis if candidate.linear else self.relative
        total = np.zeros(len(vectors), dtype=np.int64)
        for i, power in candidate.powers.items():
            total = (total + power * vectors[:, i]) % PRIME
        return not total.any()

    def gradient(self, candidate: _Candidate) -> Residues:
        """Of the candidate (of its logarithm, for a monomial)."""
        row = np.zeros(len(self.values), dtype=np.int64)
        for i, power in candidate.powers.items():
            value = 1 if candidate.linear else pow(int(self.values[i]), -1, PRIME)
            row[i] = power * value % PRIME
        return row


def _is_alone(space: _Space, i: int) -> bool:
    """Whether an unknown can be moved by itself: nothing of it is identifiable."""
    rows = Echelon(len(space.values))
    for row in space.basis:
        rows.add(row)
    return rows.determines(i)


def _candidates(spaces: Sequence[_Space], active: Sequence[int]) -> Iterator[_Candidate]:
    """What may be identifiable, the simplest first."""
    pairs = list(_pairs(spaces[0], active))
    yield from (p for p in pairs if set(map(abs, p.powers.values())) == {1})
    if len(active) <= MANY:
        for linear in (False, True):
            for triple in combinations(active, 3):
                for signs in product((1, -1), repeat=2):
                    powers = dict(zip(triple, (1, *signs), strict=True))
                    candidate = _Candidate(powers, linear)
                    if spaces[0].sees_not(candidate):
                        yield candidate
    yield from pairs
    for linear in (False, True):
        yield from _invariants(spaces, linear)


def _pairs(space: _Space, active: Sequence[int]) -> Iterator[_Candidate]:
    for i, k in combinations(active, 2):
        for linear in (False, True):
            vectors = space.basis if linear else space.relative
            ratio = _ratio(vectors[:, i], vectors[:, k])
            if ratio is not None:
                # v_i = r v_k, so that v_i - r v_k vanishes.
                yield _cleared({i: Fraction(1), k: -ratio}, linear)


def _ratio(a: Residues, b: Residues) -> Fraction | None:
    """The small rational r with ``a = r b``, if there is one and it is not zero."""
    used = np.flatnonzero(b)
    if not len(used) or not a.any():
        return None
    k = int(used[0])
    quotient = int(a[k]) * pow(int(b[k]), -1, PRIME) % PRIME
    if ((a - quotient * b) % PRIME).any():
        return None
    return rational(quotient)


def rational(residue: int, largest: int = LARGEST) -> Fraction | None:
    """The fraction with small numerator and denominator that is `residue`, if there is one."""
    for denominator in range(1, largest + 1):
        numerator = residue * denominator % PRIME
        numerator = numerator - PRIME if numerator > PRIME // 2 else numerator
        if abs(numerator) <= largest:
            return Fraction(numerator, denominator)
    return None


def _invariants(spaces: Sequence[_Space], linear: bool) -> Iterator[_Candidate]:
    """Monomials or linear forms that the symmetries with constant coefficients leave alone."""
    common = spaces[0].basis if linear else spaces[0].relative
    for space in spaces[1:]:
        common = _intersection(common, space.basis if linear else space.relative)
    rows = Echelon(len(spaces[0].values))
    for row in common:
        rows.add(row)
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


def _intersection(a: Residues, b: Residues) -> Residues:
    """What two row spaces share."""
    equations = Echelon(len(a) + len(b))
    for row in np.concatenate([a, -b % PRIME]).T:
        equations.add(row)
    weights = equations.null_space()[:, : len(a)]
    shared = (weights[:, :, None] * a[None] % PRIME).sum(axis=1) % PRIME
    return np.asarray(shared, dtype=np.int64)


def _cleared(powers: Mapping[int, Fraction], linear: bool) -> _Candidate:
    """Whole numbers in place of fractions; more of them positive than negative."""
    common = lcm(*(p.denominator for p in powers.values()))
    whole = {i: int(p * common) for i, p in sorted(powers.items())}
    if sum(np.sign(list(whole.values()))) < 0:
        whole = {i: -p for i, p in whole.items()}
    return _Candidate(whole, linear)


def _named(candidate: _Candidate, keys: Sequence[str]) -> Combination:
    powers = tuple((keys[i], p) for i, p in sorted(candidate.powers.items()))
    return Combination(powers, candidate.linear)
