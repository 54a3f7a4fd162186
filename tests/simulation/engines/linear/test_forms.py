"""Which equations are linear in the states, from a few evaluations."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation import Evaluation
from odefit.simulation.engines.heyoka.heyoka_engine import HeyokaEngine
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


@pytest.mark.parametrize("end", [3.0, 3e4])
def test_linear_equations_are_not_compiled_for_the_taylor_method(end: float) -> None:
    """Neither where they take few steps, nor where they are stiff."""
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "k*x - 0.2*y"}),
        {"t": [0.0, 0.1, 1.0, end], "y": [0.0, 0.1, 0.2, 0.3]},
        parameters={"k": (0, 100)},
        initial={"x": 1.0, "y": 0.0},
    )
    forward = ForwardMap(problem)
    with patch.object(HeyokaEngine, "__init__", side_effect=AssertionError):
        found = forward.evaluate(np.array([5.0]))
        assert isinstance(found, Evaluation)
        assert isinstance(forward.evaluate_cost(np.array([6.0])), Evaluation)
    times = np.array([0.0, 0.1, 1.0, end])
    y = 5.0 / 4.8 * (np.exp(-0.2 * times) - np.exp(-5.0 * times))
    assert found.residuals == pytest.approx(y - [0.0, 0.1, 0.2, 0.3], abs=1e-10)
