"""Linear algebra with fractions is exact."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.common.exact_linear_algebra import inverse, null_space

ENTRIES = st.integers(-4, 4).map(Fraction)
SQUARE = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(ENTRIES, min_size=n, max_size=n), min_size=n, max_size=n)
)


@pytest.mark.slow
@given(SQUARE)
def test_a_matrix_times_its_inverse_is_the_identity(matrix: list[list[Fraction]]) -> None:
    n = len(matrix)
    found = inverse(matrix)
    if found is None:
        assert null_space(matrix, n)
        return
    product = [[sum(r[k] * found[k][j] for k in range(n)) for j in range(n)] for r in matrix]
    assert product == [[int(i == j) for j in range(n)] for i in range(n)]


@given(SQUARE)
def test_every_row_maps_the_null_space_to_zero(matrix: list[list[Fraction]]) -> None:
    for vector in null_space(matrix, len(matrix)):
        assert any(vector)
        assert all(sum(a * b for a, b in zip(r, vector, strict=True)) == 0 for r in matrix)


def test_a_matrix_with_an_unknown_entry_has_no_inverse() -> None:
    assert inverse([[Fraction(1), None], [Fraction(0), Fraction(1)]]) is None
