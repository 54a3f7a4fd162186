"""Relaxations contain every point of the problem, piecewise or not."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.methods.outer_approximation.linear_programs import Polyhedron, minimise
from odefit.methods.outer_approximation.master_problem import (
    active_pieces_halved,
    binary_count,
    master_problem,
    restricted,
    uniform_partition,
    variables_to_partition,
)
from odefit.methods.outer_approximation.relaxation import (
    HyperPlanes,
    linear_relaxation,
    objective_coefficients,
)
from tests.methods.outer_approximation.problems import CHOICES, Planted, in_pieces, lifted, planted

EVERY = [*CHOICES]


def planes(p: Planted) -> HyperPlanes:
    return HyperPlanes.uniform(len(p.form.residuals), 4)


def points(p: Planted, count: int) -> list[Array]:
    """Random points at which all terms hold; the equations between them need not."""
    random = np.random.default_rng(0)
    found = []
    shape = p.d.lower.shape
    low = p.low[: p.d.lower.size].reshape(shape)
    high = p.high[: p.d.lower.size].reshape(shape)
    for _ in range(count):
        corner = random.random(shape) < 0.2
        values = np.where(corner, low, low + (high - low) * random.random(shape))
        own = p.form.parameters
        unknowns = p.low[own] + (p.high - p.low)[own] * random.random(len(own))
        w = lifted(p.form, values, unknowns)
        if (w >= p.low).all() and (w <= p.high).all():
            found.append(np.concatenate([w, w[p.form.residuals] ** 2]))
    return found


def violation(p: Polyhedron, x: Array) -> float:
    rows = p.matrix @ x
    size = abs(p.matrix) @ np.abs(x) + 1e-300
    over = np.maximum(rows - p.row_upper, p.row_lower - rows)
    return float(np.max(over / size, initial=0.0))


def without_equations(p: Planted) -> np.ndarray:
    """None of the linear rows but those that define sums."""
    rows = abs(p.form.matrix)
    own = np.zeros(p.form.size)
    own[p.form.originals :] = 1.0
    sums = [k for k, what in p.form.definitions.items() if what.kind == "sum"]
    keep = np.zeros(rows.shape[0], dtype=bool)
    if sums:
        keep[rows.shape[0] - len(sums) :] = True
    return keep


@pytest.mark.parametrize("name", EVERY)
def test_no_point_at_which_the_terms_hold_is_cut_off(name: str) -> None:
    p = planted(name)
    polyhedron = linear_relaxation(p.form, p.low, p.high, planes(p), keep=without_equations(p))
    found = points(p, 300)
    assert len(found) > 5
    assert max(violation(polyhedron, x) for x in found) < 1e-14


@pytest.mark.parametrize("name", EVERY)
def test_no_point_is_cut_off_by_pieces(name: str) -> None:
    p = planted(name)
    partition = uniform_partition(p.low, p.high, variables_to_partition(p.form, p.low, p.high), 3)
    assert binary_count(partition) == 3 * len(partition)
    partition = active_pieces_halved(partition, p.w, p.low, p.high)
    program = master_problem(p.form, p.low, p.high, planes(p), partition, keep=without_equations(p))
    found = in_pieces(p.form, p.low, p.high, np.array(points(p, 200)), program, partition)
    assert max(violation(program.polyhedron, x) for x in found) < 1e-13


@pytest.mark.parametrize("name", EVERY)
def test_pieces_tighten_the_relaxation(name: str) -> None:
    """The wrong piece excludes what the right one allows: with x fixed, z is nearly known."""
    p = planted(name)
    low, high = p.low.copy(), p.high.copy()
    cost = objective_coefficients(p.form)
    loose = minimise(linear_relaxation(p.form, low, high, planes(p)), cost).bound
    own = p.form.parameters
    low[own] = np.maximum(low[own], p.w[own] - 0.01)
    high[own] = np.minimum(high[own], p.w[own] + 0.01)
    tight = minimise(linear_relaxation(p.form, low, high, planes(p)), cost).bound
    assert loose <= tight <= p.objective


def test_hyper_planes_are_added_where_there_are_none() -> None:
    p = HyperPlanes.uniform(1, 3)
    low, high = np.array([-1.0]), np.array([1.0])
    assert p.contacts(low, high) == [[-1.0, 0.0, 1.0]]
    assert p.add(np.array([0.0]), low, high) == 0
    assert p.add(np.array([0.5]), low, high) == 1
    assert p.contacts(low, high) == [[-1.0, 0.0, 1.0, 0.5]]
    assert p.contacts(np.array([0.6]), high) == [[0.6, 0.8, 1.0]]


def test_pieces_follow_narrower_bounds() -> None:
    partition = uniform_partition(np.array([0.0, 1.0]), np.array([1.0, 100.0]), [0, 1], 2)
    assert partition == {0: (0.0, 0.5, 1.0), 1: (1.0, pytest.approx(10.0), 100.0)}
    narrow = restricted(partition, np.array([0.6, 1.0]), np.array([1.0, 1.0]))
    assert narrow == {0: (0.6, 1.0)}


def test_parameters_are_divided_where_terms_have_one() -> None:
    p = planted("predator")
    names = [p.form.names[k] for k in variables_to_partition(p.form, p.low, p.high)]
    assert "a" in names
    assert "b" in names
    assert all(" at t" in n for n in names if n not in ("a", "b"))
