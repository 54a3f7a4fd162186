"""Sparse polynomials, and variables that linear equations put aside."""

from __future__ import annotations

import random

from odefit.structure.exact.polynomials import (
    Polynomial,
    add,
    constant,
    degree,
    is_constant,
    multiply,
    scale,
    substitute,
    variable,
    variables,
    without_linear,
)
from odefit.structure.series.number_fields import PRIME


def value(f: Polynomial, at: dict[int, int]) -> int:
    total = 0
    for m, c in f.items():
        for v, e in m:
            c = c * pow(at[v], e, PRIME)
        total += c
    return total % PRIME


def some(rng: random.Random) -> Polynomial:
    f = constant(rng.randrange(PRIME))
    for _ in range(4):
        term = constant(rng.randrange(PRIME))
        for _ in range(rng.randrange(1, 4)):
            term = multiply(term, variable(rng.randrange(3)))
        f = add(f, term)
    return f


def test_operations_agree_with_those_of_values() -> None:
    rng = random.Random(1)
    for _ in range(20):
        f, g = some(rng), some(rng)
        at = {v: rng.randrange(PRIME) for v in range(3)}
        a, b = value(f, at), value(g, at)
        assert value(add(f, g, 7), at) == (a + 7 * b) % PRIME
        assert value(multiply(f, g), at) == a * b % PRIME
        assert value(scale(f, 5), at) == 5 * a % PRIME
        assert value(substitute(f, 1, g), at) == value(f, {**at, 1: b})
        assert 1 not in variables(substitute(f, 1, constant(3)))


def test_zero_is_not_a_term() -> None:
    x = variable(0)
    assert add(x, x, -1) == {}
    assert constant(PRIME) == {}
    assert is_constant({})
    assert degree({}) == -1
    assert degree(multiply(x, x)) == 2


def test_linear_equations_are_put_aside() -> None:
    """z = x + y goes (it is the deepest), and x y = 2 with x = 2 y is left of one variable."""
    x, y, z = (variable(k) for k in range(3))
    equations = [
        add(z, add(x, y), -1),
        add(multiply(z, y), constant(6), -1),
        add(x, scale(y, 2), -1),
    ]
    left = without_linear(equations, [0, 0, 1])
    assert len(left.equations) == 1
    assert variables(left.equations[0]) <= {0, 1}
    assert len(variables(left.equations[0])) == 1
    assert set(left.forms) == {0, 1, 2} - variables(left.equations[0])
