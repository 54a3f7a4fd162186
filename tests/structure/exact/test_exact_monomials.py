"""Packed monomials: arithmetic and order of exponents."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from odefit.structure.exact.monomials import Packing

EXPONENTS = st.lists(st.integers(0, 40), min_size=4, max_size=4)
PACKING = Packing(4)


@given(EXPONENTS, EXPONENTS)
def test_packed_arithmetic_is_that_of_exponents(a: list[int], b: list[int]) -> None:
    p, q = PACKING.pack(a), PACKING.pack(b)
    e, f = PACKING.exponents(p), PACKING.exponents(q)
    assert PACKING.unpack(p) == tuple(a)
    assert PACKING.sums(e) == p
    assert PACKING.degree(p) == sum(a)
    assert PACKING.unpack(p + q) == tuple(x + y for x, y in zip(a, b, strict=True))
    assert PACKING.divides(e, f) == all(x <= y for x, y in zip(a, b, strict=True))
    both = PACKING.sums(PACKING.lcm(e, f))
    assert PACKING.unpack(both) == tuple(max(x, y) for x, y in zip(a, b, strict=True))


def test_integers_are_ordered_degree_reverse_lexicographically() -> None:
    """``x^2 > xy > y^2 > xz > yz > z^2 > x > y > z > 1``: the textbooks' example."""
    packing = Packing(3)
    decreasing = [(2, 0, 0), (1, 1, 0), (0, 2, 0), (1, 0, 1), (0, 1, 1), (0, 0, 2)]
    decreasing += [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]
    packed = [packing.pack(m) for m in decreasing]
    assert all(a > b for a, b in itertools.pairwise(packed))
