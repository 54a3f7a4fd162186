"""Newton's equations for a steady state: units do not matter, and singular ones are none."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.simulation.steady.newton import NewtonSystem

MATRIX = np.array([[2.0, -1.0, 0.5], [1.0, 3.0, 0.0], [-1.0, 1.0, 4.0]])
NOWHERE = np.zeros(0, dtype=np.intp)


@pytest.mark.parametrize(
    ("equations", "states"),
    [
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        ([1e-9, 1.0, 1e9], [1.0, 1.0, 1.0]),
        ([1.0, 1.0, 1.0], [1e-9, 1.0, 1e9]),
        ([1e9, 1e-9, 1.0], [1.0, 1e-9, 1e9]),
    ],
)
def test_the_units_of_equations_and_states_do_not_make_a_system_singular(
    equations: list[float], states: list[float]
) -> None:
    matrix = np.array(equations)[:, None] * MATRIX * np.array(states)
    expected = np.array([[1.0, 2.0], [-3.0, 0.5], [2.0, 7.0]]) / np.array(states)[:, None]
    found = NewtonSystem.of(np.zeros(3), NOWHERE, matrix)
    assert found is not None
    assert found.solve(matrix @ expected) == pytest.approx(expected, rel=1e-12)
    assert found.solve((matrix @ expected)[:, 0]) == pytest.approx(expected[:, 0], rel=1e-12)


@pytest.mark.parametrize("last", [[3.0, 2.0, 0.5], [0.0, 0.0, 0.0], [np.nan, 0.0, 1.0]])
def test_a_singular_matrix_has_no_equations(last: list[float]) -> None:
    matrix = np.array([*MATRIX[:2], last])  # the first is the sum of the rows before
    assert NewtonSystem.of(np.zeros(3), NOWHERE, matrix) is None
