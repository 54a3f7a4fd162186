"""Linear algebra with exact fractions: inverses, null spaces, and conserved sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd, lcm

MAX_RAYS = 200
"""Largest number of sums with positive weights that the search for all of them keeps."""

MAX_SPECIES = 60
"""Number of species shared by sums above which their weights may be negative."""

ZERO = Fraction(0)

Row = list[Fraction]

_Weights = dict[str, Fraction]


def inverse(matrix: Sequence[Sequence[Fraction | None]]) -> list[Row] | None:
    """Return the inverse; None if an entry is unknown, or if the matrix is singular."""
    n, rows = len(matrix), list[Row]()
    for i, row in enumerate(matrix):
        known = [a for a in row if a is not None]
        if len(known) < n:
            return None
        rows.append(known + [Fraction(i == j) for j in range(n)])
    reduced, pivots = _reduced_row_echelon_form(rows, n)
    return [row[n:] for row in reduced] if len(pivots) == n else None


def null_space(matrix: Sequence[Sequence[Fraction]], columns: int) -> list[Row]:
    """Return a basis of all vectors that every row of a matrix maps to zero."""
    reduced, pivots = _reduced_row_echelon_form(matrix, columns)
    basis = []
    for free in (k for k in range(columns) if k not in pivots):
        w = [Fraction(k == free) for k in range(columns)]
        for row, k in zip(reduced, pivots, strict=False):
            w[k] = -row[free]
        basis.append(w)
    return basis


def _reduced_row_echelon_form(
    matrix: Sequence[Sequence[Fraction]], columns: int
) -> tuple[list[Row], list[int]]:
    """Return the reduced row echelon form by the first columns, and the columns of its pivots."""
    rows = [list(row) for row in matrix]
    pivots: list[int] = []
    for k in range(columns):
        at = len(pivots)
        pivot = next((r for r in range(at, len(rows)) if rows[r][k]), None)
        if pivot is None:
            continue
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [a / rows[at][k] for a in rows[at]]
        for r in range(len(rows)):
            if r != at and rows[r][k]:
                factor = rows[r][k]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[at], strict=True)]
        pivots.append(k)
    return rows, pivots


def conserved_weights(
    species: Sequence[str], columns: Sequence[Mapping[str, Fraction]]
) -> list[dict[str, Fraction]]:
    """Return a basis of the weights that all columns map to zero, positive if possible."""
    sums: list[_Weights] = []
    for basis in _separate(_left_null_space(species, columns)):
        used = {s for weights in basis for s in weights}
        names = [s for s in species if s in used]
        if len(names) > MAX_SPECIES:
            sums += [dict(zip(w, _whole([*w.values()]), strict=True)) for w in basis]
            continue
        rows = {tuple(column.get(s, ZERO) for s in names): None for column in columns}
        dense = [[weights.get(s, ZERO) for s in names] for weights in basis]
        for vector in _positive_first([list(row) for row in rows if any(row)], dense, len(names)):
            sums.append({s: w for s, w in zip(names, vector, strict=True) if w})
    return sums


def _left_null_space(
    species: Sequence[str], columns: Sequence[Mapping[str, Fraction]]
) -> list[_Weights]:
    """Return a basis of the weights that all columns map to zero, by sparse elimination."""
    rows: dict[str, _Weights] = {}  # by pivot: equations for weights, solved for the pivot
    holders: dict[str, set[str]] = {}  # by species: pivots of the equations in which it is
    for column in columns:
        row = {s: w for s, w in column.items() if w}
        for pivot in [s for s in row if s in rows]:
            _subtract(row, row[pivot], rows[pivot])
        if not row:
            continue
        pivot = min(row, key=lambda s: len(holders.get(s, ())))
        factor = row[pivot]
        row = {s: w / factor for s, w in row.items()}
        for other in holders.pop(pivot, set()):
            other_row = rows[other]
            _subtract(other_row, other_row[pivot], row)
            for s in row:
                if s in other_row:
                    holders.setdefault(s, set()).add(other)
                else:
                    holders.get(s, set()).discard(other)
        rows[pivot] = row
        for s in row:
            if s != pivot:
                holders.setdefault(s, set()).add(pivot)
    free = [s for s in species if s not in rows]
    return [
        {s: Fraction(1), **{p: -rows[p][s] for p in holders.get(s, ()) if s in rows[p]}}
        for s in free
    ]


def _subtract(row: _Weights, factor: Fraction, other: Mapping[str, Fraction]) -> None:
    for s, w in other.items():
        value = row.get(s, ZERO) - factor * w
        if value:
            row[s] = value
        else:
            row.pop(s, None)


def _separate(basis: Sequence[_Weights]) -> list[list[_Weights]]:
    """Return vectors in groups that share no species."""
    groups: list[tuple[set[str], list[_Weights]]] = []
    for weights in basis:
        names, members = set(weights), [weights]
        apart = []
        for species, vectors in groups:
            if species & names:
                names |= species
                members = [*vectors, *members]
            else:
                apart.append((species, vectors))
        groups = [*apart, (names, members)]
    return [vectors for _, vectors in groups]


def _positive_first(
    rows: Sequence[Sequence[Fraction]], basis: Sequence[list[Fraction]], width: int
) -> list[list[Fraction]]:
    chosen: list[list[Fraction]] = []
    candidates = sorted(_rays(rows, width), key=lambda v: (sum(map(bool, v)), sum(v)))
    for vector in [*candidates, *basis]:
        if len(chosen) == len(basis):
            break
        # Independent of those chosen, if fewer vectors are orthogonal to all.
        if len(null_space([*chosen, vector], width)) < width - len(chosen):
            chosen.append(_whole(vector))
    return chosen


def _rays(rows: Sequence[Sequence[Fraction]], width: int) -> list[list[Fraction]]:
    """Return the non-negative vectors that span all others, by Farkas' algorithm.

    Source: S. Schuster and T. Höfer, J. Chem. Soc. Faraday Trans. 87 (1991) 2561, on conserved
    moieties. The list is empty if there are too many.
    """
    rays = [
        ([row[k] for row in rows], [Fraction(k == j) for j in range(width)]) for k in range(width)
    ]
    for k in range(len(rows)):
        positive = [v for v in rays if v[0][k] > 0]
        negative = [v for v in rays if v[0][k] < 0]
        zero = [v for v in rays if v[0][k] == 0]
        if len(positive) * len(negative) + len(zero) > MAX_RAYS:
            return []
        made = [
            (
                [a * -q[0][k] + b * p[0][k] for a, b in zip(p[0], q[0], strict=True)],
                _whole([a * -q[0][k] + b * p[0][k] for a, b in zip(p[1], q[1], strict=True)]),
            )
            for p in positive
            for q in negative
        ]
        rays = _minimal([*zero, *(_rescaled(v, rows) for v in made)])
    return [v[1] for v in rays]


_Ray = tuple[list[Fraction], list[Fraction]]


def _rescaled(ray: _Ray, rows: Sequence[Sequence[Fraction]]) -> _Ray:
    """Return a ray with the matching products after its weights were scaled."""
    weights = ray[1]
    return [sum((a * w for a, w in zip(row, weights, strict=True)), ZERO) for row in rows], weights


def _minimal(rays: Sequence[_Ray]) -> list[_Ray]:
    """Return the rays whose species do not include those of another ray."""
    supports = [frozenset(i for i, w in enumerate(ray[1]) if w) for ray in rays]
    minimal = []
    for k, ray in enumerate(rays):
        smaller = (supports[m] < supports[k] for m in range(len(rays)))
        same = (supports[m] == supports[k] for m in range(k))
        if not any(smaller) and not any(same):
            minimal.append(ray)
    return minimal


def _whole(vector: Sequence[Fraction]) -> list[Fraction]:
    """Return a vector as the smallest integers, the first of them positive."""
    scale = lcm(*(w.denominator for w in vector))
    numbers = [int(w * scale) for w in vector]
    divisor = gcd(*numbers) or 1
    if next((n for n in numbers if n), 0) < 0:
        divisor = -divisor
    return [Fraction(n // divisor) for n in numbers]
