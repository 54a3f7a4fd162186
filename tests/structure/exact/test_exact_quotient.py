"""Quotient rings: dimensions, multiplicities, values of linear forms; roots in one variable."""

from __future__ import annotations

import pytest

from odefit.structure.exact.f4 import groebner_basis
from odefit.structure.exact.monomials import Packing
from odefit.structure.exact.quotient import Quotient, distinct_roots
from odefit.structure.series.deadline import Deadline, UnfinishedError
from odefit.structure.series.number_fields import PRIME


def ideal(system: list[dict[tuple[int, ...], int]], count: int) -> Quotient:
    packing = Packing(count)
    terms = [{packing.pack(m): c for m, c in f.items()} for f in system]
    return Quotient(groebner_basis(terms, packing), packing)


def test_minimal_polynomials_have_the_values_for_roots() -> None:
    """x = 1 or 2, y = 3: the values of 10 x + y are 13 and 23."""
    quotient = ideal([{(2, 0): 1, (1, 0): -3, (0, 0): 2}, {(0, 1): 1, (0, 0): -3}], 2)
    assert quotient.dimension == 2
    assert quotient.minimal_polynomial({0: 10, 1: 1}) == [13 * 23, PRIME - 36, 1]
    assert quotient.minimal_polynomial({1: 1}) == [PRIME - 3, 1]
    assert quotient.minimal_polynomial({}) == [0, 1]


def test_multiple_roots_count_once_among_points() -> None:
    """A line that touches a circle."""
    quotient = ideal([{(2, 0): 1, (0, 2): 1, (0, 0): -1}, {(0, 1): 1, (0, 0): -1}], 2)
    assert quotient.dimension == 2
    assert distinct_roots(quotient.minimal_polynomial({0: 17, 1: 4})) == 1


def test_unknowns_may_share_values() -> None:
    """Two circles meet in (0, 2) and (0, -2): one value of x, two of y."""
    circles: list[dict[tuple[int, ...], int]] = [
        {(2, 0): 1, (1, 0): 2 * s, (0, 2): 1, (0, 0): -4} for s in (1, -1)
    ]
    quotient = ideal(circles, 2)
    assert quotient.dimension == 2
    values = [distinct_roots(quotient.minimal_polynomial({v: 1})) for v in (0, 1)]
    assert values == [1, 2]


def test_quotients_obey_the_time_limit() -> None:
    packing = Packing(2)
    basis = groebner_basis([{packing.pack((9, 0)): 1}, {packing.pack((0, 9)): 1}], packing)
    assert Quotient(basis, packing).dimension == 81
    with pytest.raises(UnfinishedError, match="time"):
        Quotient(basis, packing, Deadline(-1.0))


def test_distinct_roots_are_counted_without_multiplicity() -> None:
    assert distinct_roots([6, PRIME - 5, 1]) == 2  # (x - 2)(x - 3)
    assert distinct_roots([4, PRIME - 4, 1]) == 1  # (x - 2)^2
    assert distinct_roots([1, 0, 1]) == 2  # x^2 + 1: not in the field, in its closure
    assert distinct_roots([5]) == 0
