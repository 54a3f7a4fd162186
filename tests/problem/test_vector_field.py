"""When vector fields are equal, so that what is compiled of one serves the other."""

from __future__ import annotations

from typing import Any

import pytest

from odefit import Model, Problem
from odefit.problem.vector_field import VectorField

DATA = {"t": [1.0, 2.0], "x": [0.5, 0.2]}
EQUATIONS = {"x": "-k*x + b*y", "y": "k*x - b*y"}


def field(ode: dict[str, str], b: float | dict[str, float] = 0.3, **initial: float) -> VectorField:
    unknowns: dict[str, Any] = {"k": {"lower": 0.1, "upper": 5.0}, "b": b}
    problem = Problem(Model(ode=ode), DATA, unknowns, {"x": 1.0, "y": 0.0, **initial})
    return VectorField.of(problem.model, problem.conditions)


def test_fields_of_the_same_equations_are_equal() -> None:
    one, other = field(EQUATIONS), field(dict(EQUATIONS), y=0.2)
    assert one.model is not other.model
    assert one == other
    assert hash(one) == hash(other)
    assert one != "a field"


@pytest.mark.parametrize(
    "changed",
    [
        field({"y": EQUATIONS["y"], "x": EQUATIONS["x"]}),
        field({**EQUATIONS, "x": "-k*x + b*y^2"}),
        field(EQUATIONS, 0.4),
        field(EQUATIONS, {"lower": 0.1, "upper": 5.0}),
    ],
    ids=["order", "equation", "known value", "unknown"],
)
def test_a_change_of_the_equations_makes_another_field(changed: VectorField) -> None:
    assert field(EQUATIONS) != changed
