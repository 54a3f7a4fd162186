"""Functions that are written with others, and the words of other tools: values and messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odefit
from odefit.expressions.algebras import NUMPY
from odefit.expressions.derived_functions import DERIVED
from odefit.expressions.expressions import ExpressionError, parse
from odefit.problem import InputError, Model, Problem
from odefit.simulation.simulations import Simulation

X = st.floats(-4, 4).map(lambda v: round(v, 2))


def value(text: str, **names: float) -> float:
    return float(parse(text).evaluate({k: np.float64(v) for k, v in names.items()}, NUMPY))


@given(X, X, X)
def test_derived_functions_have_the_values_of_numpy(x: float, a: float, b: float) -> None:
    expected = {
        "sign(x - a)": np.sign(x - a),
        "heaviside(x - a)": np.heaviside(x - a, 1.0),
        "step(x, a)": np.heaviside(x - a, 1.0),
        "pulse(x, a, abs(b))": float(a <= x < a + abs(b)),
        "if(x < a && b > 0, x + 1, b)": x + 1 if x < a and b > 0 else b,
        "ifelse(x < a, x, b)": x if x < a else b,
        "where(!(x < a), x, b)": x if not x < a else b,
        "ln(abs(x) + 1)": math.log(abs(x) + 1),
        "log2(abs(x) + 1)": math.log2(abs(x) + 1),
        "pow(abs(x) + 1, a)": (abs(x) + 1) ** a,
        "max(x, a, b, 0)*min(x, a, b)": max(x, a, b, 0) * min(x, a, b),
    }
    for text, wanted in expected.items():
        assert value(text, x=x, a=a, b=b) == pytest.approx(wanted, rel=1e-14, abs=1e-14)


def test_every_derived_function_is_a_text_of_the_others() -> None:
    known = {"log", "piecewise", "<", ">", ">=", "&&"}
    for name, derived in DERIVED.items():
        arguments = [
            "a > 1" if k == derived.condition else "a" for k in range(len(derived.arguments))
        ]
        assert parse(f"{name}({', '.join(arguments)})").functions <= known


def test_words_of_derived_functions_can_be_names() -> None:
    problem = Problem(
        Model(ode={"x": "-step*x*where"}, constants={"where": 2.0}),
        data={"t": [0.0, 1.0], "x": [1.0, 0.5]},
        parameters={"step": {}},
        initial={"x": 1.0},
    )
    assert problem.keys == ("step",)


def test_a_step_of_time_is_an_exact_switch() -> None:
    problem = Problem(
        Model(ode={"x": "-k*step(t, 1.5)*x"}),
        data={"t": [0.0, 1.0, 2.0], "x": [1.0, 1.0, 0.5]},
        parameters={"k": {"guess": 1.0}},
        initial={"x": 1.0},
    )
    assert len(problem.conditions[0].events) == 1
    simulated = odefit.simulate(
        problem, problem.vector({"k": 1.0}), times=np.array([1.0, 2.0, 3.0])
    )
    assert isinstance(simulated, Simulation)
    np.testing.assert_allclose(simulated.states["x"], np.exp([0.0, -0.5, -1.5]), rtol=1e-9)


DELAY = (
    "delays are not integrated: approximate it by a chain of states, each of which follows the one "
    'before: "d[1]" = "r*(x - d[1])" and "d[2:n]" = "r*(d[i-1] - d[i])" in [ode], with '
    "r = n/delay; d[n] then stands for x at the earlier time, the sharper the larger n is"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delay(x, 7)", f"unknown function 'delay' at position 1 of 'delay(x, 7)'; {DELAY}"),
        (
            "2*x(t-7)",
            f"x(t-7) at position 3 of '2*x(t-7)' asks for a value at another time; {DELAY}",
        ),
        (
            "x(t)",
            (
                "x(t) at position 1 of 'x(t)'; a name alone stands for its value at the time "
                "t: write x"
            ),
        ),
        (
            "x(0)",
            (
                "x(0) at position 1 of 'x(0)'; the value of 'x' at the start is not a function "
                "here: write a parameter for it, and the same parameter for x in [initial]"
            ),
        ),
        (
            "-k*x'",
            (
                'unexpected "\'" at position 5 of "-k*x\'"; a derivative cannot be used in an '
                "expression: write out the right-hand side of its equation"
            ),
        ),
        ("2x", "unexpected 'x' at position 2 of '2x'; a product needs a *, as in 2*x"),
        ("k x", "unexpected 'x' at position 3 of 'k x'; a product needs a *, as in k*x"),
        (
            "2(x + 1)",
            "unexpected '(' at position 2 of '2(x + 1)'; a product needs a *, as in 2*(...",
        ),
        (
            "a if b else c",
            "unexpected 'if' at position 3 of 'a if b else c'; write piecewise(a, condition, b)",
        ),
        ("if(x = 1, a, b)", "unexpected '=' at position 6 of 'if(x = 1, a, b)'; write '=='"),
        ("if(x & y, a, b)", "unexpected '&' at position 6 of 'if(x & y, a, b)'; write '&&'"),
        (
            "if(x, a, b)",
            (
                "argument 1 of if at position 4 of 'if(x, a, b)' needs a condition, a comparison "
                "such as x < 0.1"
            ),
        ),
        (
            "heaviside(t > 5)",
            (
                "the condition at position 11 of 'heaviside(t > 5)' stands where a number is "
                "expected; write piecewise(value, condition, otherwise)"
            ),
        ),
        ("step(t)", "step(t, start) takes 2 arguments, got 1, at position 1 of 'step(t)'"),
        (
            "log(x, 2)",
            (
                "log takes one argument, got 2, at position 1 of 'log(x, 2)'; to another base "
                "write log(x)/log(base)"
            ),
        ),
        (
            "log2(0)",
            (
                "'log' at position 1 of 'log2(0)' has no finite value: a division by zero, an "
                "overflow, or a function outside its domain"
            ),
        ),
    ],
)
def test_words_of_other_tools_get_a_remedy(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_nested_signs_do_not_fill_the_memory() -> None:
    with pytest.raises(ExpressionError, match="stands for too long an expression"):
        parse("sign(" * 60 + "x" + ")" * 60)


def right_hand_side(t: float, x: Any, k: float) -> Any:
    return -k * x


@pytest.mark.parametrize("ode", [right_hand_side, {"x": right_hand_side}])
def test_a_python_function_is_refused_with_the_function_that_reads_it(ode: Any) -> None:
    with pytest.raises(InputError) as caught:
        Model(ode=ode)
    assert (
        "got the Python function right_hand_side; write the expression as a text, or let "
        "odefit.Model.from_function(right_hand_side, states=[...], parameters=[...]) read the "
        "whole right-hand side" in str(caught.value)
    )


@pytest.mark.parametrize("key", ["x'", "dx/dt", "d(x)/dt", "x(t)", "dx / dt"])
def test_a_derivative_as_a_key_is_refused_with_the_state(key: str) -> None:
    with pytest.raises(InputError) as caught:
        Model(ode={key: "-k"}, observables={"y": "k"})
    message = "write the name of the state alone on the left: x = ..."
    assert caught.value.messages[0].endswith(message)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("pi", "unknown name 'pi' in '-pi*x'; write pi = 3.141592653589793 in [constants]"),
        (
            "e",
            (
                "unknown name 'e' in '-e*x'; for a power of e write exp(x), or "
                "e = 2.718281828459045 in [constants]"
            ),
        ),
        ("time", "unknown name 'time' in '-time*x'; the time is t"),
    ],
)
def test_constants_of_other_tools_get_a_remedy(name: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        Problem(Model(ode={"x": f"-{name}*x"}), data={"t": [0, 1], "x": [1, 2]}, initial={"x": 1})
    assert caught.value.messages == (f"[ode] x: {remedy}",)
