"""Square systems: as many independent equations as unknowns, and their homotopies."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import library
from odefit.structure.homotopy.square import SquareSystem
from odefit.structure.series.differentiated_system import DifferentiatedSystem
from tests.structure.models import problem


def test_low_orders_come_first() -> None:
    square = SquareSystem(DifferentiatedSystem(library.load("rational-seir"), free_states=True))
    assert square.size == 7
    assert square.orders(0) == [5, 0]
    assert [row.order for row in square.rows] == sorted(row.order for row in square.rows)


def test_an_unknown_in_no_equation_is_held() -> None:
    system = DifferentiatedSystem(library.load("rational-biohydrogenation"), free_states=True)
    square = SquareSystem(system)
    assert [system.names[k] for k in square.held] == ["x7@"]
    assert square.size == 9
    assert sum(square.determined) == 9


def test_the_rank_may_rest_and_rise_again() -> None:
    """From known initial values of zero the first four derivatives are zero."""
    model = problem(
        {"a": "k", "b": "m*a", "c": "b", "d": "c"},
        {"y": "d"},
        ["k", "m"],
        {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0},
    )
    square = SquareSystem(DifferentiatedSystem(model, free_states=False))
    assert [(row.order, row.output) for row in square.rows] == [(4, 0)]


@pytest.mark.parametrize("name", ["rational-seir", "rational-hiv", "seasonal-lotka-volterra"])
def test_a_generic_point_solves_its_system(name: str) -> None:
    square = SquareSystem(DifferentiatedSystem(library.load(name), free_states=True))
    point, parameters = square.generic_point(np.random.default_rng(0))
    left, jacobian, _ = square.values(point[None], parameters[None])
    assert left[0] == pytest.approx(parameters[: square.size], abs=1e-12)
    assert np.linalg.matrix_rank(jacobian[0] * np.abs(point)) == square.size


def test_expansion_points_are_those_that_were_packed() -> None:
    square = SquareSystem(
        DifferentiatedSystem(library.load("seasonal-lotka-volterra"), free_states=True)
    )
    values, around = square.system.generic_point(np.random.default_rng(3), square.order)
    targets = np.zeros(square.size, dtype=complex)
    parameters = square.pack(targets, values[square.held], around)
    for (known, functions), (other, series) in zip(
        square.expansion_points(parameters), around, strict=True
    ):
        np.testing.assert_array_equal(known, other)
        np.testing.assert_array_equal(functions, series)
