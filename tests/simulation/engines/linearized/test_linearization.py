"""The linearisation of a field, against finite differences of its right-hand side."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.linearized.linearization import Linearization
from tests.simulation.numerics import Array, differences

STATES = np.array([[0.7, 1.3], [2.0, -0.4]])
TIMES = np.array([0.8, 1.7])
POLYNOMIALS = np.array([[[0.5, 1.0, -2.0, 0.6, 0.9]], [[1.5, -1.0, 3.0, 2.0, -4.0]]])
"""Of each trajectory the left end and the coefficients of a cubic."""


def field() -> VectorField:
    problem = Problem(
        Model(ode={"x": "a*y*u - b*x^2*t", "y": "exp(-b*x) - y*u^2"}, inputs={"u": "cubic"}),
        {"t": [0.0, 1.0, 2.0], "u": [1.0, 0.0, 1.0], "x": [1.0, 1.0, 1.0]},
        {"a": {}, "b": {}},
        {"x": {}, "y": {}},
    )
    return VectorField.of(problem.model, problem.conditions)


def test_derivatives_by_states_time_and_scalars_are_those_of_the_right_hand_side() -> None:
    """That by the time goes through the cubic of the input too."""
    found_of = field()
    active, changes = np.arange(2), np.array([[1.0, 0.5], [0.0, 2.0]])

    def linear(scalars: Array) -> Linearization:
        return Linearization(found_of, active, scalars, changes)

    scalars = np.array([1.2, 0.3])
    found = linear(scalars).at(TIMES, STATES, POLYNOMIALS)
    assert found.rhs == pytest.approx(linear(scalars).rhs(TIMES, STATES, POLYNOMIALS))
    for k in range(2):
        one = slice(k, k + 1)

        def rhs(at: Array, one: slice = one) -> Array:
            """Of time, states and scalars."""
            found: Array = linear(at[3:]).rhs(at[:1], at[None, 1:3], POLYNOMIALS[one])[0]
            return found

        expected = differences(rhs, np.concatenate([TIMES[one], STATES[k], scalars]))
        assert found.by_time[k] == pytest.approx(expected[:, 0], rel=1e-8)
        assert found.jacobian[k] == pytest.approx(expected[:, 1:3], rel=1e-8)
        assert found.by_scalars[k] == pytest.approx(expected[:, 3:] @ changes, rel=1e-8)
