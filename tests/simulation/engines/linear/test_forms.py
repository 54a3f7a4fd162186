"""Which equations are linear in the states, from a few evaluations."""

from __future__ import annotations

import pytest

from odefit import Model, Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.linear.equations import linear_equations
from odefit.simulation.engines.linear.forms import seem_linear


@pytest.mark.parametrize(
    "rate", ["-k*x + y", "s - k*x", "-x*y", "-k*x^2", "-x/(k + x)", "0*x", "k", "exp(-k*y)"]
)
def test_equations_seem_linear_exactly_where_they_have_coefficients(rate: str) -> None:
    names = [name for name in ("k", "s") if name in rate]
    model = Model(ode={"x": rate, "y": "-y"})
    problem = Problem(
        model,
        {"t": [0.0, 1.0], "x": [1.0, 2.0]},
        parameters=dict.fromkeys(names, (0, 1)),
        initial={"x": 1.0, "y": 1.0},
    )
    field = VectorField.of(problem.model, problem.conditions)
    assert seem_linear(field) == (linear_equations(field) is not None)
