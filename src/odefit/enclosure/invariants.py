"""Linear invariants: sums of states that do not change, whatever the unknowns are.

Right-hand sides are expanded to polynomials with exact coefficients; the weights with which they
cancel are the null space of a matrix of fractions (the conservation relations of reaction networks;
C. Reder, Metabolic control theory: a structural approach, 1988). Quotients and functions count as
variables of their own: an invariant that is found then holds always, and one that is missed costs
sharpness alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from odefit.common.exact_linear_algebra import null_space
from odefit.structure.series.tape import Tape, Term, needed

MAX_PRODUCTS = 500
"""Products in an expansion above which invariants are not searched."""

Polynomial = dict[tuple[int, ...], Fraction]
"""Coefficients by product of generators. A product has entries of the tape, as often as they occur,
in order; the reciprocal of entry i is -1 - i."""


def invariants(terms: Sequence[Term]) -> list[list[Fraction]]:
    """Return independent weights w for which ``sum of w[i] terms[i]`` is zero identically."""
    found = coefficients(terms)
    if found is None:
        return []
    rows = [[row.get(i, Fraction(0)) for i in range(len(terms))] for row in found]
    return null_space(rows, len(terms))


def coefficients(terms: Sequence[Term]) -> list[dict[int, Fraction]] | None:
    """Return for each product in an expansion of `terms` its coefficients, by index of term.

    None if there are no terms, or too many products.
    """
    if not terms:
        return None
    expanded = _expanded(terms[0].tape, terms)
    if expanded is None:
        return None
    rows: dict[tuple[int, ...], dict[int, Fraction]] = {}
    for i, term in enumerate(terms):
        for product, coefficient in expanded[term.index].items():
            rows.setdefault(product, {})[i] = coefficient
    return list(rows.values())


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
            if len(found[a]) * len(found[b]) > MAX_PRODUCTS:
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
