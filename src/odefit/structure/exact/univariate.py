"""Polynomials in one variable modulo the prime, as lists, the lowest coefficient first."""

from __future__ import annotations

import random
from collections.abc import Sequence

from odefit.structure.series import PRIME

Univariate = list[int]


def trimmed(f: Sequence[int]) -> Univariate:
    """Without leading zeros, coefficients in range."""
    result = [c % PRIME for c in f]
    while result and not result[-1]:
        result.pop()
    return result


def remainder(f: Univariate, g: Univariate) -> Univariate:
    """Of f by g, g not being zero."""
    left, inverse = list(f), pow(g[-1], -1, PRIME)
    while len(left) >= len(g):
        factor, shift = left[-1] * inverse % PRIME, len(left) - len(g)
        for i, c in enumerate(g):
            left[shift + i] = (left[shift + i] - factor * c) % PRIME
        left = trimmed(left)
    return left


def greatest_common_divisor(f: Univariate, g: Univariate) -> Univariate:
    """With leading coefficient 1."""
    a, b = trimmed(f), trimmed(g)
    while b:
        a, b = b, remainder(a, b)
    inverse = pow(a[-1], -1, PRIME)
    return [c * inverse % PRIME for c in a]


def distinct_roots(f: Sequence[int]) -> int:
    """Number of distinct roots, in the algebraic closure; the degree is below the prime."""
    full = trimmed(f)
    derivative = [i * c for i, c in enumerate(full)][1:]
    return len(full) - len(greatest_common_divisor(full, derivative))


def root(f: Sequence[int], rng: random.Random) -> int | None:
    """A root in the prime field, if there is one.

    D. Cantor and H. Zassenhaus, A new algorithm for factoring polynomials over finite fields,
    1981: the roots of ``f`` are those of ``gcd(f, x^p - x)``; half of them, at random, are roots
    of ``(x + a)^((p - 1)/2) - 1``.
    """
    full = trimmed(f)
    if len(full) < 2:
        return None
    if len(full) == 2:
        return -full[0] * pow(full[1], -1, PRIME) % PRIME
    split = _difference(_power([0, 1], PRIME, full), [0, 1])
    linear = greatest_common_divisor(full, split)
    while len(linear) > 2:
        half = _power([rng.randrange(PRIME), 1], (PRIME - 1) // 2, linear)
        part = greatest_common_divisor(linear, _difference(half, [1]))
        if 1 < len(part) < len(linear):
            linear = part
    return -linear[0] % PRIME if len(linear) == 2 else None


def _difference(f: Univariate, g: Univariate) -> Univariate:
    size = max(len(f), len(g))
    padded = [h + [0] * (size - len(h)) for h in (f, g)]
    return trimmed([a - b for a, b in zip(*padded, strict=True)])


def _product(f: Univariate, g: Univariate, modulus: Univariate) -> Univariate:
    result = [0] * max(len(f) + len(g) - 1, 0)
    for i, a in enumerate(f):
        for j, b in enumerate(g):
            result[i + j] += a * b
    return remainder(trimmed(result), modulus)


def _power(f: Univariate, exponent: int, modulus: Univariate) -> Univariate:
    result, square = [1], remainder(trimmed(f), modulus)
    while exponent:
        if exponent % 2:
            result = _product(result, square, modulus)
        square = _product(square, square, modulus)
        exponent //= 2
    return result
