"""Bounds from inexact multipliers hold against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from odefit.common.arrays import Array
from odefit.methods.outer_approximation.linear_programs import (
    Polyhedron,
    is_proved_empty,
    minimise,
    safe_dual_bound,
)


def random_polyhedron(random: np.random.Generator, n: int = 2, rows: int = 4) -> Polyhedron:
    matrix = random.normal(size=(rows, n)) * 10.0 ** random.integers(-3, 4, size=(rows, 1))
    inside = random.uniform(-1, 1, n)
    right = matrix @ inside + np.abs(matrix).sum(axis=1) * random.uniform(0, 0.5, rows)
    low = np.where(random.random(rows) < 0.3, -np.abs(matrix).sum(axis=1) * 5, -np.inf)
    return Polyhedron(csr_array(matrix), low, right, np.full(n, -2.0), np.full(n, 1.5))


def exact_minimum(p: Polyhedron, cost: Array) -> Fraction:
    """The best vertex, in rational arithmetic (two variables)."""
    matrix = p.matrix.toarray()
    lines = [(Fraction(1), Fraction(0), Fraction(v)) for v in (p.lower[0], p.upper[0])]
    lines += [(Fraction(0), Fraction(1), Fraction(v)) for v in (p.lower[1], p.upper[1])]
    sides = []
    for row, low, high in zip(matrix, p.row_lower, p.row_upper, strict=True):
        a, b = Fraction(row[0]), Fraction(row[1])
        for end in (low, high):
            if np.isfinite(end):
                lines.append((a, b, Fraction(end)))
        sides.append((a, b, low, high))
    best = None
    for (a, b, e), (c, d, f) in combinations(lines, 2):
        determinant = a * d - b * c
        if determinant == 0:
            continue
        x, y = (e * d - b * f) / determinant, (a * f - e * c) / determinant
        if not (p.lower[0] <= x <= p.upper[0] and p.lower[1] <= y <= p.upper[1]):
            continue
        if all(
            (not np.isfinite(low) or a * x + b * y >= Fraction(low))
            and (not np.isfinite(high) or a * x + b * y <= Fraction(high))
            for a, b, low, high in sides
        ):
            value = Fraction(cost[0]) * x + Fraction(cost[1]) * y
            best = value if best is None else min(best, value)
    assert best is not None
    return best


def test_a_bound_is_just_below_the_exact_minimum() -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        p = random_polyhedron(random)
        cost = random.normal(size=2)
        exact = exact_minimum(p, cost)
        found = minimise(p, cost)
        assert Fraction(found.bound) <= exact
        assert float(exact) - found.bound <= 1e-6 * (1 + abs(float(exact)))


def test_any_multipliers_give_a_bound() -> None:
    random = np.random.default_rng(1)
    for _ in range(60):
        p = random_polyhedron(random)
        cost = random.normal(size=2)
        bound = safe_dual_bound(p, cost, random.normal(size=4) * 10.0 ** random.integers(-3, 3))
        assert Fraction(bound) <= exact_minimum(p, cost)


def empty(gap: float) -> Polyhedron:
    matrix = csr_array(np.array([[1.0, 1.0], [1.0, 1.0]]))
    lower, upper = np.array([1.0 + gap, -np.inf]), np.array([np.inf, 1.0])
    return Polyhedron(matrix, lower, upper, np.zeros(2), np.ones(2))


def test_a_box_is_called_empty_only_with_a_proof() -> None:
    assert is_proved_empty(empty(1e-3))
    assert minimise(empty(1e-3), np.ones(2)).bound == math.inf
    # The solver may call this empty, as it is within its tolerance of it; it is not.
    assert not is_proved_empty(empty(0.0))
    assert minimise(empty(-1e-12), np.ones(2)).bound < math.inf


@pytest.mark.parametrize("width", [1e-9, 1.0, 1e9])
def test_scales_do_not_matter(width: float) -> None:
    matrix = csr_array(np.array([[1.0, -1.0]]))
    p = Polyhedron(
        matrix, np.array([0.0]), np.array([0.0]), np.zeros(2), np.array([width, width / 3])
    )
    assert minimise(p, np.array([-1.0, 0.0])).bound == pytest.approx(-width / 3, rel=1e-9)
