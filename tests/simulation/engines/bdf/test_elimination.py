"""Elimination with a fixed pattern solves what NumPy solves."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import IntArray
from odefit.simulation.engines.bdf.elimination import (
    Elimination,
    elimination,
    factorise,
    minimum_degree,
    solve,
    solve_one,
    solve_transposed,
)


def arrow(n: int) -> tuple[Elimination, IntArray, IntArray]:
    """A matrix whose first row and column are full, and its elimination in a good order."""
    rows = np.concatenate([np.zeros(n), np.arange(1, n), np.arange(1, n)]).astype(np.intp)
    columns = np.concatenate([np.arange(n), np.zeros(n - 1), np.arange(1, n)]).astype(np.intp)
    order = minimum_degree(rows, columns, n)
    place = np.argsort(order)
    return elimination(place[rows], place[columns], n), rows, order


def test_minimum_degree_leaves_no_fill_in_in_an_arrow() -> None:
    n = 20
    found, rows, order = arrow(n)
    assert found.size == len(rows) + n
    assert sorted(order) == list(range(n))
    assert elimination(np.arange(n) * 0, np.arange(n), n).size == 2 * n - 1 + n


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_solutions_are_those_of_a_dense_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    filled = rng.random((n, n)) < 0.2
    rows, columns = (a.astype(np.intp) for a in np.nonzero(filled))
    order = minimum_degree(rows, columns, n)
    place = np.argsort(order)
    rows, columns = place[rows], place[columns]
    e = elimination(rows, columns, n)
    jacobian = rng.normal(size=len(rows))
    jacobian[rows == columns] -= 3.0
    lu = np.empty(e.size)
    assert factorise(e, 0.3, jacobian, lu)
    matrix = np.eye(n)
    matrix[rows, columns] -= 0.3 * jacobian
    right = rng.normal(size=(n, 8))
    many, one, other = right.copy(), right[:, 3].copy(), right[:, 5].copy()
    solve(e, lu, many)
    solve_one(e, lu, one)
    solve_transposed(e, lu, other)
    assert np.allclose(many, np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-12)
    assert np.allclose(one, many[:, 3], rtol=1e-12, atol=1e-14)
    assert np.allclose(other, np.linalg.solve(matrix.T, right[:, 5]), rtol=1e-9, atol=1e-12)


def test_a_vanishing_pivot_is_not_trusted() -> None:
    e = elimination(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 2)
    lu = np.empty(e.size)
    assert not factorise(e, 1.0, np.array([1.0, 1.0, 1.0, 1.0]), lu)
    assert factorise(e, 1.0, np.array([0.5, 1.0, 1.0, 0.5]), lu)


def test_rounding_in_place_of_a_pivot_is_not_trusted() -> None:
    e = elimination(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 2)
    jacobian = np.array([1.0 - 1e-12, 1.0, 1.0, 1.0])
    assert not factorise(e, 1.0, jacobian, np.empty(e.size))


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1.0, 1e9, 1e12])
def test_trust_does_not_depend_on_the_units_of_the_states(unit: float) -> None:
    """Multipliers have units: in a ring of states of very different sizes some are huge."""
    n = 4
    rows, columns = (a.ravel() for a in np.mgrid[:n, :n])
    e = elimination(rows, columns, n)
    rng = np.random.default_rng(1)
    sizes = unit ** np.array([0.0, 1.0, -0.5, 0.3])
    dense = rng.normal(size=(n, n)) - 3.0 * np.eye(n)
    right = rng.normal(size=n)
    exact = np.linalg.solve(np.eye(n) - 0.3 * dense, right)
    scaled = (dense * sizes[:, None] / sizes).ravel()
    lu, solution = np.empty(e.size), right * sizes
    assert factorise(e, 0.3, scaled, lu)
    solve_one(e, lu, solution)
    assert np.allclose(solution / sizes, exact, rtol=1e-12)
    # The last pivot is the difference of terms that are alike to ten digits.
    singular = dense.copy()
    minor = np.linalg.det((np.eye(n) - 0.3 * dense)[:-1, :-1])
    singular[-1, -1] += np.linalg.det(np.eye(n) - 0.3 * dense) / minor / 0.3 * (1 - 1e-10)
    assert not factorise(e, 0.3, (singular * sizes[:, None] / sizes).ravel(), lu)


def test_a_one_way_coupling_of_any_size_is_trusted() -> None:
    e = elimination(np.array([0, 1, 1]), np.array([0, 0, 1]), 2)
    lu, solution = np.empty(e.size), np.array([2.0, 3.0])
    assert factorise(e, 1.0, np.array([-1.0, 1e15, -2.0]), lu)
    solve_one(e, lu, solution)
    assert np.allclose(solution, [1.0, (3.0 + 1e15) / 3.0], rtol=1e-15)
