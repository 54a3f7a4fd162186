"""Sums of states that do not change, whatever the unknowns are: found and proved exactly.

Right-hand sides are expanded to polynomials with exact coefficients; what makes all of them
cancel is the null space of a matrix of fractions (the conservation relations of reaction networks;
C. Reder, Metabolic control theory: a structural approach, 1988). Quotients and functions count as
variables of their own: what cancels then cancels always, and what is missed costs sharpness alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from odefit.structure.tape import Tape, Term, needed

LARGEST = 500
"""Products in an expansion, above which nothing is looked for."""

Polynomial = dict[tuple[int, ...], Fraction]
"""Coefficients by product of generators: entries of the tape, as often as they occur, in order;
the reciprocal of entry i is -1 - i."""


def invariants(terms: Sequence[Term]) -> list[list[Fraction]]:
    """Independent coefficients w for which ``sum of w[i] terms[i]`` is zero identically."""
    if not terms:
        return []
    tape = terms[0].tape
    expanded = _expanded(tape, terms)
    if expanded is None:
        return []
    rows: dict[tuple[int, ...], list[Fraction]] = {}
    for i, term in enumerate(terms):
        for product, coefficient in expanded[term.index].items():
            row = rows.setdefault(product, [Fraction(0)] * len(terms))
            row[i] = coefficient
    return _null_space(list(rows.values()), len(terms))


def _expanded(tape: Tape, terms: Sequence[Term]) -> dict[int, Polynomial] | None:
    found: dict[int, Polynomial] = {}
    for i in needed(tape, terms):
        operation, a, b = tape.entries[i]
        if i in tape.numbers:
            value = tape.numbers[i]
            found[i] = {(): value} if value else {}
        elif operation in ("+", "-"):
            found[i] = _sum(found[a], found[b], 1 if operation == "+" else -1)
        elif operation == "*":
            if len(found[a]) * len(found[b]) > LARGEST:
                return None
            found[i] = _product(found[a], found[b])
        elif operation == "/":
            divisor = found[b]
            if divisor.keys() == {()}:
                inverse: Polynomial = {(): 1 / divisor[()]}
            else:
                inverse = {(-1 - b,): Fraction(1)}
            found[i] = _product(found[a], inverse)
        else:
            found[i] = {(i,): Fraction(1)}
    return found


def _sum(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    total = dict(left)
    for product, coefficient in right.items():
        value = total.get(product, Fraction(0)) + sign * coefficient
        if value:
            total[product] = value
        else:
            del total[product]
    return total


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for p, a in left.items():
        for q, b in right.items():
            total = _sum(total, {tuple(sorted(p + q)): a * b}, 1)
    return total


def _null_space(rows: list[list[Fraction]], n: int) -> list[list[Fraction]]:
    """A basis of all w with ``row w = 0``, by elimination."""
    rows = [list(row) for row in rows]
    pivots: list[int] = []
    for k in range(n):
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
    found = []
    for free in (k for k in range(n) if k not in pivots):
        w = [Fraction(0)] * n
        w[free] = Fraction(1)
        for r, k in enumerate(pivots):
            w[k] = -rows[r][free]
        found.append(w)
    return found
