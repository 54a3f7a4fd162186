"""The condensed problem: least squares under equations and inequalities, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.linalg import null_space

from odefit.methods.shooting.linear_problem import (
    GeneralisedInverse,
    Inequalities,
    active_set,
)
from tests.simulation.numerics import Array


def problem(k: int, r: int, w: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """E, e, R, z."""
    random = np.random.default_rng(seed)
    return (
        random.normal(size=(k, w)),
        random.normal(size=k),
        random.normal(size=(r, w)),
        random.normal(size=r),
    )


@pytest.mark.parametrize(
    ("k", "r", "w"), [(0, 6, 3), (2, 6, 4), (3, 2, 4), (4, 6, 4), (1, 0, 3), (0, 0, 2), (2, 9, 3)]
)
def test_the_solution_is_that_of_the_null_space_method(k: int, r: int, w: int) -> None:
    E, e, R, z = problem(k, r, w)
    y = GeneralisedInverse(E, R).solve(e, z)
    assert E @ y == pytest.approx(e)
    free = null_space(E) if k else np.eye(w)
    assert free.T @ R.T @ (R @ y - z) == pytest.approx(0, abs=1e-10)


def test_the_solution_is_the_shortest_of_all() -> None:
    """As the pseudo-inverse of equations that weigh more than anything else."""
    E, e, R, z = problem(1, 2, 6)
    y = GeneralisedInverse(E, R).solve(e, z)
    both, right = np.vstack([E, R]), np.concatenate([e, z])
    assert y == pytest.approx(np.linalg.pinv(both) @ right)
    assert GeneralisedInverse(E, R).undetermined.shape == (6, 3)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
def test_equations_of_very_different_sizes_are_all_exact(size: float) -> None:
    E, e, R, z = problem(2, 6, 4)
    E[1] *= size
    y = GeneralisedInverse(E, R).solve(e * [1, size], z)
    assert E @ y == pytest.approx(e * [1, size], rel=1e-9, abs=0)


def test_equal_equations_count_once_and_contradict_only_if_they_do() -> None:
    E, _, R, z = problem(1, 6, 3)
    inverse = GeneralisedInverse(np.vstack([E, 3 * E]), R)
    assert inverse.free.shape == (3, 2)
    assert inverse.contradiction(np.array([1.0, 3.0])) == pytest.approx(0, abs=1e-12)
    assert inverse.contradiction(np.array([1.0, 4.0])) > 0.1
    assert E @ inverse.solve(np.array([1.0, 3.0]), z) == pytest.approx(1)


def test_an_empty_equation_is_a_contradiction_unless_it_is_zero() -> None:
    inverse = GeneralisedInverse(np.zeros((1, 2)), np.eye(2))
    assert inverse.contradiction(np.array([0.0])) == 0
    assert inverse.contradiction(np.array([0.5])) == pytest.approx(0.5)
    assert inverse.solve(np.array([0.5]), np.array([1.0, 2.0])) == pytest.approx([1, 2])


def test_the_covariance_is_that_of_the_free_directions() -> None:
    E, _, R, _ = problem(2, 9, 4)
    root = GeneralisedInverse(E, R).covariance_root()
    free = null_space(E)
    expected = free @ np.linalg.inv(free.T @ R.T @ R @ free) @ free.T
    assert root @ root.T == pytest.approx(expected)


def slsqp(
    E: Array, e: Array, R: Array, z: Array, G: Array, g: Array, start: Array
) -> tuple[Array, bool]:
    solve: Any = optimize.minimize
    found = solve(
        lambda y: float(np.sum((R @ y - z) ** 2)) / 2,
        start,
        jac=lambda y: R.T @ (R @ y - z),
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda y: E @ y - e, "jac": lambda y: E},
            {"type": "ineq", "fun": lambda y: G @ y - g, "jac": lambda y: G},
        ],
        options={"maxiter": 500, "ftol": 1e-15},
    )
    return np.asarray(found.x), bool(found.success)


def solved(E: Array, e: Array, R: Array, z: Array, G: Array, g: Array) -> Array | None:
    active = active_set(E, e, R, z, Inequalities(G, g))
    if active is None:
        return None
    inverse = GeneralisedInverse(np.vstack([E, G[active]]), R)
    return inverse.solve(np.concatenate([e, g[active]]), z)


@settings(max_examples=60, deadline=None)
@given(
    k=st.integers(0, 2), c=st.integers(1, 6), extra=st.integers(0, 5), seed=st.integers(0, 10**6)
)
def test_inequalities_are_those_of_a_quadratic_program(
    k: int, c: int, extra: int, seed: int
) -> None:
    w = 5
    E, e, R, z = problem(k, w + extra, w, seed)
    random = np.random.default_rng(seed + 1)
    inside: Array = np.linalg.lstsq(E, e, rcond=None)[0].astype(float) if k else np.zeros(w)
    G = random.normal(size=(c, w))
    g = G @ inside - random.exponential(size=c)  # something is feasible
    y = solved(E, e, R, z, G, g)
    assert y is not None
    assert (G @ y >= g - 1e-7).all()
    expected, success = slsqp(E, e, R, z, G, g, inside)
    cost, least = (float(np.sum((R @ v - z) ** 2)) for v in (y, expected))
    assert cost <= least + 1e-7 * (1 + least)
    if success:
        assert y == pytest.approx(expected, abs=2e-4)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.floats(0.01, 2.0))
def test_bounds_are_those_of_bounded_least_squares(seed: int, width: float) -> None:
    _, _, R, z = problem(0, 8, 5, seed)
    G, g = np.vstack([np.eye(5), -np.eye(5)]), np.full(10, -width)
    y = solved(np.zeros((0, 5)), np.zeros(0), R, z, G, g)
    assert y is not None
    assert y == pytest.approx(optimize.lsq_linear(R, z, (-width, width), method="bvls").x, abs=1e-8)


def test_bounds_hold_where_the_rows_determine_nothing() -> None:
    """One row for two unknowns, and the bounds keep out the shortest solution."""
    R, z = np.array([[1.0, 1.0]]), np.array([4.0])
    G, g = np.array([[-1.0, 0.0]]), np.array([-0.5])  # y0 <= 0.5
    y = solved(np.zeros((0, 2)), np.zeros(0), R, z, G, g)
    assert y == pytest.approx([0.5, 3.5])


def test_inactive_inequalities_change_nothing() -> None:
    E, e, R, z = problem(1, 6, 4)
    active = active_set(E, e, R, z, Inequalities(np.eye(4), np.full(4, -1e3)))
    assert active is not None
    assert not active.any()


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e6])
def test_bounds_that_leave_nothing_are_infeasible(size: float) -> None:
    _, _, R, z = problem(0, 6, 2)
    G, g = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([size, size])  # y0 >= size, <= -size
    assert solved(np.zeros((0, 2)), np.zeros(0), R, z, G, g) is None


def test_bounds_that_the_equations_exclude_are_infeasible() -> None:
    _, _, R, z = problem(0, 6, 2)
    E, e = np.array([[1.0, 1.0]]), np.array([1.0])
    G, g = np.eye(2), np.array([0.8, 0.8])
    assert solved(E, e, R, z, G, g) is None
    assert solved(E, e, R, z, G, np.array([0.5, 0.5])) == pytest.approx([0.5, 0.5])


def test_a_single_equation_may_lie_beyond_a_bound() -> None:
    """No direction is left in which the bound could be met."""
    E, e = np.array([[1.0]]), np.array([2.0])
    none = solved(E, e, np.ones((3, 1)), np.zeros(3), np.array([[-1.0]]), np.array([-1.0]))
    assert none is None
