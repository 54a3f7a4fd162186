"""Rounding errors that enclosures add are those of floating-point arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odefit.enclosure.arithmetic.rounding import (
    UNIT_ROUNDOFF,
    round_down,
    round_up,
    summation_error,
)

NUMBERS = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)


@pytest.mark.slow
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30))
def test_a_sum_of_products_is_within_its_error(pairs: list[tuple[float, float]]) -> None:
    found = float(sum(a * b for a, b in pairs))
    exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    size = sum((abs(Fraction(a) * Fraction(b)) for a, b in pairs), Fraction(0))
    assert abs(Fraction(found) - exact) <= Fraction(float(summation_error(len(pairs)))) * size


def test_the_error_of_a_sum_is_no_larger_than_needed() -> None:
    errors = summation_error(np.array([1, 10, 1000]))
    assert np.all(errors <= 1.01 * (np.array([1, 10, 1000]) + 2) * UNIT_ROUNDOFF)


def test_neighbours_enclose_a_number() -> None:
    x = np.array([1.0, -1.0, 0.0])
    assert np.all(round_down(x) < x)
    assert np.all(round_up(x) > x)
