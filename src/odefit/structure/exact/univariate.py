"""Polynomials in one variable modulo the prime, as lists, the lowest coefficient first."""

from __future__ import annotations

from collections.abc import Sequence

from odefit.structure.series.number_fields import PRIME

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
