"""Monomials in order of degree, and their products."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odefit import InputError
from odefit.enclosure.arithmetic.taylor_models import Monomials
from tests.enclosure.containment import at


def test_the_order_is_by_degree() -> None:
    monomials = Monomials(2, 2)
    assert monomials.exponents == [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    assert monomials.degrees.tolist() == [0, 1, 1, 2, 2, 2]
    assert [monomials.exponents[part] for part in monomials.parts] == [
        [()],
        [(0,), (1,)],
        [(0, 0), (0, 1), (1, 1)],
    ]
    assert monomials.linear == [1, 2]
    assert monomials.squares.tolist() == [False, False, False, True, False, True]
    assert monomials.powers.tolist() == [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]


@pytest.mark.parametrize("variables", range(1, 6))
@pytest.mark.parametrize("degree", range(4))
def test_the_number_of_monomials_is_a_binomial_coefficient(variables: int, degree: int) -> None:
    assert len(Monomials(variables, degree)) == comb(variables + degree, degree)


def test_degree_zero_has_no_variables() -> None:
    monomials = Monomials(3, 0)
    assert monomials.exponents == [()]
    assert monomials.linear == []


def test_one_monomial_exists_without_variables() -> None:
    assert len(Monomials(0, 3)) == 1


def test_lower_degrees_come_first_and_are_the_same() -> None:
    low, high = Monomials(4, 1), Monomials(4, 3)
    assert high.exponents[: len(low)] == low.exponents


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3), st.data())
def test_pairs_are_all_products_within_the_degree(n: int, degree: int, data: st.DataObject) -> None:
    monomials = Monomials.of(n, degree)
    numbers = st.one_of(st.none(), st.frozensets(st.integers(0, len(monomials) - 1)))
    left, right = data.draw(numbers), data.draw(numbers)
    rng = np.random.default_rng(0)
    d = rng.uniform(-1, 1, (1, n))
    values = at(monomials, d)[0]
    pairs = monomials.pairs(left, right)
    for i, j, k in pairs:
        assert values[i] * values[j] == pytest.approx(values[k], rel=1e-14)
    every = range(len(monomials))
    wanted = {
        (i, j)
        for i in (every if left is None else left)
        for j in (every if right is None else right)
        if monomials.degrees[i] + monomials.degrees[j] <= degree
    }
    assert {(i, j) for i, j, _ in pairs} == wanted
    support = monomials.product_support(left, right)
    assert support is None or support == {k for _, _, k in pairs}


def test_too_many_monomials_are_refused() -> None:
    with pytest.raises(InputError, match=r"30 unknowns: polynomials of degree 6 .* lower degree"):
        Monomials(30, 6)


def test_equal_sizes_share_an_object() -> None:
    assert Monomials.of(3, 2) is Monomials.of(3, 2)
