"""Surfaces of right-hand sides, and the equations on their sides."""

from __future__ import annotations

import pytest

from odefit import Experiment, ForwardMap, Model, Problem
from odefit.expressions.algebras import NUMPY
from odefit.simulation.modes.sliding import mode_field
from odefit.simulation.modes.surfaces import Surfaces


def surfaces(**ode: str) -> Surfaces | None:
    model = Model(ode=ode)
    data = {"t": [0.0, 1.0], **{state: [1.0, 1.0] for state in ode}}
    parameters: dict[str, dict[str, float]] = {name: {} for name in sorted(model.parameters)}
    problem = Problem(
        model,
        experiments=[Experiment("one", data)],
        parameters=parameters,
        initial=dict.fromkeys(ode, 1.0),
    )
    return Surfaces.of(ForwardMap(problem).field)


def found(**ode: str) -> Surfaces:
    of = surfaces(**ode)
    assert of is not None
    return of


def test_comparisons_of_the_same_two_sides_share_a_surface() -> None:
    of = found(x="sign(x - c) + heaviside(c - x) + if(c <= x && x < c, 1, 2)", y="if(0 > y, 1, 2)")
    assert [q.text for q in of.quantities] == ["x - c", "y"]


def test_kinks_and_conditions_without_states_make_no_surface() -> None:
    assert surfaces(x="abs(x) + max(x, 1) + if(t > c, 1, 2) + if(c > 2, 1, 2)") is None


@pytest.mark.parametrize(
    "text",
    [
        "if(x > c, x - c, 0)",
        "c*if(x <= c, x^2 - c*x, 0)",
        "if(x > 2*c, a/x, if(x > c, a/(2*c), a/(c + y)*(c + y)/(2*c)))",
        "if(x > c && y > 1, (x - c)*(y - 1), 0)",
        "if(x*y < 1, exp(a*x*y), exp(a))",
        "if(x < 1, x, if(x < 2, 2*x - 1, if(x < 3, 5 - x, 2)))",
    ],
)
def test_values_that_meet_make_a_kink_and_no_surface(text: str) -> None:
    assert surfaces(x=text, y="x") is None


@pytest.mark.parametrize(
    "text",
    [
        "if(x > c, x - c, 1e-30)",
        "if(x > c && y > 1, x - c, 0)",
        "if(x > c, sqrt(x - c), 0)",
        "if(x > c, (x - c)/(x - c), 1)",
        "if(x > c, x - y, 0)",
        "if(x < 1, x, if(x < 2, 2*x - 1, 4))",
        "if(x > c, x - c, if(x > 2*c, 1, 0))",
    ],
)
def test_values_that_may_not_meet_make_a_surface(text: str) -> None:
    assert surfaces(x=text, y="x") is not None


def test_a_quotient_by_a_magnitude_jumps() -> None:
    of = found(v="-F*v/abs(v)")
    assert of.on((1,)).model.ode["v"].text == "-F"
    assert of.on((-1,)).model.ode["v"].text == "F"
    quotient = found(v="F/2*(v*a/abs(v)) - b*v/abs(v - 1)").on((-1, -1)).model.ode["v"].text
    assert quotient == "F/2*-a - b*v/(1 - v)"


@pytest.mark.parametrize("sign", ["v/sqrt(v^2)", "v/(v*v)^0.5", "abs(v)/v", "(v^2)^(1/2)/v"])
def test_quotients_with_a_root_of_a_square_jump_like_signs(sign: str) -> None:
    of = found(v=f"u - F*{sign}", u="1")
    assert [q.text for q in of.quantities] == ["v"]
    above, below = (of.on((side,)).model.ode["v"] for side in (1, -1))
    values = {"u": 3.0, "F": 0.25, "v": 0.0}
    for equation, rate in ((above, 2.75), (below, 3.25)):
        assert equation.evaluate({n: values[n] for n in equation.names}, NUMPY) == rate


@pytest.mark.parametrize(
    ("text", "above", "below"),
    [
        ("-k*sign(x - c)", "-k", "-k*-1"),
        ("if(x > c, a, if(x > c, b, k))", "a", "k"),
        ("if(!(x < c) && a > y, a, k)", "piecewise(a, a > y, k)", "k"),
        ("if(x != c, a, b) + if(x > c, 1, 0)", "a + 1", "a"),
        ("abs(x - c)*if(x > c, 1, 2)", "x - c", "(c - x)*2"),
        ("max(c, x)*if(x > c, 1, 2)", "x", "c*2"),
    ],
)
def test_conditions_are_left_out_on_each_side(text: str, above: str, below: str) -> None:
    of = found(x=text, y="x")
    sides = [of.on((side, *(0 for _ in of.quantities[1:]))) for side in (1, -1)]
    assert [field.model.ode["x"].text for field in sides] == [above, below]


def test_a_field_that_slides_keeps_its_surface() -> None:
    field = mode_field(found(x="a - b*if(x > c, 1, 0)", y="x - y"), (0,))
    assert field is not None
    assert field.field.model.ode["x"].constant == 0.0
    assert field.shares[0].text == "-a/(a - b - a)"


def test_a_magnitude_within_a_condition_is_the_one_that_was_written() -> None:
    of = found(v="if(abs(v) < 0.01, 0, u - F*sign(v))", u="0")
    assert [q.text for q in of.quantities] == ["abs(v) - 0.01", "v"]
    assert of.on((1, -1)).model.ode["v"].text == "u - F*-1"
    assert of.on((-1, 1)).model.ode["v"].constant == 0.0
