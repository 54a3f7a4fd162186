"""Sparse polynomials modulo the prime of :mod:`odefit.structure.series.series`.

A monomial is the sorted tuple of its pairs (variable, exponent), so that variables can be added at
any time; a polynomial maps monomials to nonzero residues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odefit.structure.series.deadline import PER_TERM, Deadline
from odefit.structure.series.number_fields import PRIME

Monomial = tuple[tuple[int, int], ...]
"""The sorted pairs (variable, exponent) of a monomial."""

Polynomial = dict[Monomial, int]
"""The coefficients of a polynomial by its monomials."""

ONE: Monomial = ()
"""The monomial 1."""


def constant(value: int) -> Polynomial:
    """Return the polynomial that is a number."""
    return {ONE: value % PRIME} if value % PRIME else {}


def variable(number: int) -> Polynomial:
    """Return the variable with a number as a polynomial."""
    return {((number, 1),): 1}


def is_constant(f: Polynomial) -> bool:
    """Return whether `f` is a number."""
    return not f or (len(f) == 1 and ONE in f)


def degree(f: Polynomial) -> int:
    """Return the total degree; that of zero is -1."""
    return max((sum(e for _, e in m) for m in f), default=-1)


def variables(f: Polynomial) -> set[int]:
    """Return the numbers of the variables in `f`."""
    return {v for m in f for v, _ in m}


def add(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    """Return ``a + factor * b``."""
    result = dict(a)
    for m, c in b.items():
        value = (result.get(m, 0) + factor * c) % PRIME
        if value:
            result[m] = value
        else:
            result.pop(m, None)
    return result


def scale(a: Polynomial, factor: int) -> Polynomial:
    """Return ``factor * a``; the factor must not be zero."""
    return {m: c * factor % PRIME for m, c in a.items()}


def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return ``a * b``."""
    result: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            both = joined(m, n)
            result[both] = result.get(both, 0) + c * d
    return {m: c % PRIME for m, c in result.items() if c % PRIME}


def joined(m: Monomial, n: Monomial) -> Monomial:
    """Return the product of two monomials."""
    if not m or not n:
        return m or n
    exponents = dict(m)
    for v, e in n:
        exponents[v] = exponents.get(v, 0) + e
    return tuple(sorted(exponents.items()))


def substitute(f: Polynomial, number: int, value: Polynomial) -> Polynomial:
    """Return `f` with one variable replaced by a polynomial."""
    powers = [constant(1), value]
    result: dict[Monomial, int] = {}
    for m, c in f.items():
        exponent = next((e for v, e in m if v == number), 0)
        if not exponent:
            result[m] = result.get(m, 0) + c
            continue
        while len(powers) <= exponent:
            powers.append(multiply(powers[-1], value))
        rest = tuple(pair for pair in m if pair[0] != number)
        for n, d in powers[exponent].items():
            both = joined(rest, n)
            result[both] = result.get(both, 0) + c * d
    return {m: c % PRIME for m, c in result.items() if c % PRIME}


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Equations in fewer variables with the same solutions; `forms` express the eliminated ones."""

    equations: list[Polynomial]
    forms: dict[int, Polynomial]


def without_linear(
    equations: Sequence[Polynomial], depth: Sequence[int], deadline: Deadline | None = None
) -> Eliminated:
    """Eliminate a variable by each equation of degree 1, until no such equation remains.

    Short equations come first, since they lengthen the others least. Each eliminates its variable
    of the greatest depth, so that the unknowns, whose depth is 0, remain if possible.
    """
    left = [f for f in equations if f]
    forms: dict[int, Polynomial] = {}
    while True:
        if deadline is not None:
            deadline.check()
        linear = [(len(f), i) for i, f in enumerate(left) if degree(f) == 1]
        if not linear:
            return Eliminated(left, forms)
        _, i = min(linear)
        f = left.pop(i)
        v = max(variables(f), key=lambda v: (depth[v], v))
        inverse = pow(f[((v, 1),)], -1, PRIME)
        form = add(variable(v), scale(f, inverse), -1)
        if deadline is not None:
            deadline.spend(PER_TERM / 2 * sum(map(len, [*left, *forms.values()])))
        left = [g for g in (substitute(g, v, form) for g in left) if g]
        forms = {w: substitute(g, v, form) for w, g in forms.items()}
        forms[v] = form
