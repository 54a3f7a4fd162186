"""Recognition of equations that are linear in the states, and their coefficients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.problem.vector_field import VectorField
from odefit.simulation.engines.linear.equations import MOST_STATES, linear_equations


def field(ode: Mapping[str, str], **more: object) -> VectorField:
    model = Model(ode=dict(ode), **more)  # type: ignore[arg-type]
    columns = {"t": [0.0, 1.0], **{name: [1.0, 1.0] for name in ode}}
    columns |= {name: [0.0, 1.0] for name in model.inputs}
    parameters: dict[str, dict[str, float]] = {name: {} for name in model.parameters}
    return ForwardMap(Problem(model, columns, parameters, dict.fromkeys(ode, 1.0))).field


LINEAR: list[dict[str, str]] = [
    {"x": "-k*x"},
    {"x": "a"},
    {"x": "0"},
    {"x": "v", "v": "-w^2*x - 2*d*w*v + exp(-a)"},
    {"gut": "-ka*gut", "blood": "ka*gut - CL/V*blood"},
    {"x": "k*(u - x)/(1 + c^2)", "u": "sqrt(2)*x - 1"},
]
OTHERS: list[dict[str, str]] = [
    {"x": "-k*x^2"},
    {"x": "-k*x*t"},
    {"x": "sin(t) - x"},
    {"x": "-k*x/(1 + x)"},
    {"x": "a*y", "y": "x*y"},
    {"x": "-k*max(x, 0)"},
    {"x": "if(x > 1, 1, 2)"},
    {"x": "sign(x)"},
]


@pytest.mark.parametrize("ode", LINEAR)
def test_coefficients_give_the_rates_and_their_derivatives(ode: dict[str, str]) -> None:
    found = field(ode)
    equations = linear_equations(found)
    assert equations is not None
    rng = np.random.default_rng(1)
    scalars, states = rng.uniform(0.5, 2.0, len(found.scalars)), rng.normal(size=len(ode))
    changes = rng.normal(size=(len(scalars), 3))
    a, b, along, constant_along = equations.at(scalars, changes)

    def rates(p: np.ndarray) -> np.ndarray:
        values = dict(zip((*found.states, *found.scalars), (*states, *p), strict=True))
        from odefit.expressions.algebras import NUMPY

        return np.array(found.rhs(values, NUMPY), dtype=float)

    assert a @ states + b == pytest.approx(rates(scalars), rel=1e-13)
    for j in range(3):
        step = 1e-6 * changes[:, j]
        slope = (rates(scalars + step) - rates(scalars - step)) / 2e-6
        assert along[j] @ states + constant_along[j] == pytest.approx(slope, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("ode", OTHERS)
def test_other_equations_have_no_such_coefficients(ode: dict[str, str]) -> None:
    assert linear_equations(field(ode)) is None


def test_coefficients_that_inputs_multiply_give_the_rates() -> None:
    found = field(
        {"x": "g*u - (k + c*w)*x + y", "y": "-k*y + u + w + 3"},
        inputs={"u": "linear", "w": "constant"},
    )
    equations = linear_equations(found)
    assert equations is not None
    assert equations.bilinear
    scalars = {"g": 1.3, "k": 0.4, "c": 0.2}
    given = np.array([scalars[name] for name in found.scalars])
    values, along = equations.values(given, np.eye(3))
    inputs = {"u": 2.5, "w": -0.7}
    x, y, u, w = 1.1, 0.9, inputs["u"], inputs["w"]
    factor = np.array([1.0, *(inputs[name] for name in found.inputs)])[equations.factors]
    state = np.array([*({"x": x, "y": y}[name] for name in found.states), 1.0])
    terms, row = factor * state[equations.columns], found.states.index("x")
    rate = terms[equations.rows == row] @ values[equations.rows == row]
    assert rate == pytest.approx(1.3 * u - (0.4 + 0.2 * w) * x + y)
    slopes = terms[equations.rows == row] @ along[equations.rows == row]
    exact = {"g": u, "k": -x, "c": -w * x}
    assert slopes == pytest.approx([exact[name] for name in found.scalars])


@pytest.mark.parametrize("rate", ["u^2 - x", "max(u, 0) - x", "u*t - x", "x*u^2", "x/u"])
def test_equations_not_linear_in_the_inputs_have_no_linear_form(rate: str) -> None:
    assert linear_equations(field({"x": rate}, inputs={"u": "linear"})) is None


def test_large_models_are_left_to_the_engines() -> None:
    assert linear_equations(field({f"x{i}": f"-x{i}" for i in range(MOST_STATES + 1)})) is None
    assert linear_equations(field({f"x{i}": f"-x{i}" for i in range(MOST_STATES)})) is not None


def test_a_division_by_zero_gives_coefficients_that_are_not_finite() -> None:
    equations = linear_equations(field({"x": "-x/V"}))
    assert equations is not None
    with np.errstate(all="ignore"):
        a, *_ = equations.at(np.zeros(1), np.ones((1, 1)))
    assert not np.isfinite(a).any()
