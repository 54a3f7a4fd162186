"""Functions and named expressions of the user are put in as what they stand for."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odefit
from odefit.expressions.algebras import NUMPY
from odefit.expressions.expressions import parse
from odefit.expressions.formulas import text_of
from odefit.problem import InputError, Model, Problem, problem_from_mapping

MM = {"mm(s, vmax, km)": "vmax*s/(km + s)"}


def test_a_function_is_written_out_with_its_arguments() -> None:
    model = Model(
        ode={"s": "-mm(s, v, k)", "p": "mm(s + p, v*2, s) - mm(mm(s, 1, 2), 3, 4)"}, functions=MM
    )
    assert model.ode["s"].text == "-(v*s/(k + s))"
    assert model.ode["p"].text == ("v*2*(s + p)/(s + (s + p)) - 3*(1*s/(2 + s))/(4 + 1*s/(2 + s))")
    assert model.parameters == {"v", "k"}


def test_definitions_refer_to_each_other_in_any_order() -> None:
    model = Model(
        ode={"x": "-flux"},
        observables={"rate": "flux", "double": "2*total"},
        definitions={"flux": "k*total", "total": "x + offset", "offset": 0.5},
    )
    assert model.ode["x"].text == "-(k*(x + 0.5))"
    assert model.observables["double"].text == "2*(x + 0.5)"


def test_an_argument_hides_other_names_like_it() -> None:
    model = Model(
        ode={"x": "f(k, x)"},
        functions={"f(x, k)": "x - k*d + c"},
        definitions={"d": "2", "c": "x^2"},
    )
    assert model.ode["x"].text == "k - x*2 + x^2"


NAMES = ("a", "b", "x")


def bodies(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    atoms = st.sampled_from([*names, "2", "0.5"])
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(
                lambda p: f"({p[0]} {p[1]} {p[2]})"
            ),
            inner.map(lambda e: f"-{e}"),
            inner.map(lambda e: f"sin({e})"),
            st.tuples(inner, inner).map(lambda p: f"f({p[0]}, {p[1]})"),
            inner.map(lambda e: f"g({e})"),
        ),
        max_leaves=6,
    )


plain = bodies(NAMES).filter(lambda text: "f(" not in text and "g(" not in text)


@pytest.mark.slow
@given(plain, plain, bodies(NAMES), st.lists(st.floats(-1.5, 1.5), min_size=3, max_size=3))
@settings(max_examples=80, deadline=None)
def test_calls_have_the_values_of_python_functions(
    body_f: str, body_g: str, text: str, values: list[float]
) -> None:
    names = dict(zip(NAMES, map(float, values), strict=True))
    scope: dict[str, Any] = {"sin": np.sin, **names}
    # In Python the same by closures: arguments hide names of the outside.
    exec(f"def f(a, b): return {body_f}\ndef g(x): return f(x, a) + {body_g}", scope)
    expected = eval(text, scope)
    model = Model(
        ode={"x": text},
        functions={"g(x)": f"f(x, a) + {body_g}", "f(a, b)": body_f},
    )
    found = model.rhs({n: np.float64(v) for n, v in names.items()}, NUMPY)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(bodies(("a", "b", "x")).filter(lambda text: "f(" not in text and "g(" not in text))
def test_texts_of_postfix_forms_are_parsed_to_them_again(text: str) -> None:
    for each in (text, f"({text} - a)^-({text} + b)", f"{text}/({text}*a)/-({text} + b)"):
        program = parse(each).program
        assert parse(text_of(program)).program == program


@pytest.mark.parametrize(
    ("functions", "definitions", "text", "messages"),
    [
        (
            {"f(a)": "g(a)", "g(a)": "f(a)"},
            {},
            "f(x)",
            ["[functions] g(a): refers to itself (f -> g -> f); write its expression without that"],
        ),
        (
            {"f(a, b)": "a*b"},
            {},
            "f(x)",
            ["[ode] x: f(a, b) takes 2 arguments, got 1, at position 1 of 'f(x)'"],
        ),
        (
            {"f(a)": "a"},
            {},
            "f",
            ["[ode] x: the function 'f' at position 1 of 'f' has no arguments; write f(...)"],
        ),
        (
            {"f": "a"},
            {},
            "f(x)",
            [
                (
                    "[functions] f: expected a name with its arguments; write, for example, "
                    '"mm(s, vmax, km)" = "vmax*s/(km + s)"'
                )
            ],
        ),
        (
            {"f()": "a"},
            {},
            "f(x)",
            [
                (
                    "[functions] f(): the function has no arguments; give its expression in "
                    "[definitions] f"
                )
            ],
        ),
        (
            {"exp(a)": "a"},
            {},
            "x",
            ["[functions] exp(a): 'exp' is a function already; choose another name"],
        ),
        ({"x(a)": "a"}, {}, "1", ["[functions] x: 'x' is another quantity, too; rename one"]),
        (
            {"f(a, a)": "a"},
            {},
            "1",
            ["[functions] f(a, a): two arguments have the same name; rename one"],
        ),
        (
            {"f(a)": "a +"},
            {},
            "f(x)",
            ["[functions] f(a): 'a +' ends where a number, a name or '(' is expected"],
        ),
        (
            {"f(a)": "1/(a - 2)"},
            {},
            "f(2)",
            [
                (
                    "[ode] x: '/' at position 1 of 'f(2)' has no finite value: a division by "
                    "zero, an "
                    "overflow, or a function outside its domain"
                )
            ],
        ),
        (
            {},
            {"d": "d + 1"},
            "d",
            ["[definitions] d: refers to itself (d -> d); write its expression without that"],
        ),
        (
            {},
            {"d": "x > 1"},
            "d",
            [
                (
                    "[definitions] d: the condition at position 1 of 'x > 1' stands where a "
                    "number is "
                    "expected; write piecewise(value, condition, otherwise)"
                )
            ],
        ),
        (
            {},
            {"d": "x"},
            "d(2)",
            [
                (
                    "[ode] x: 'd' at position 1 of 'd(2)' is not a function and takes no "
                    "arguments; a "
                    "product needs a *"
                )
            ],
        ),
        (
            {"f(a)": "a"},
            {"f": "1"},
            "x",
            ["[definitions] f: 'f' is defined twice; see [functions] f(a)"],
        ),
        (
            {},
            {"t": "1"},
            "x",
            ["[definitions] t: 't' cannot be a name; choose another"],
        ),
    ],
)
def test_a_mistake_in_a_definition_is_named_once(
    functions: dict[str, str], definitions: dict[str, str], text: str, messages: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        Model(ode={"x": text}, functions=functions, definitions=definitions)
    assert list(caught.value.messages) == messages


@pytest.mark.slow
def test_definitions_that_double_do_not_fill_the_memory() -> None:
    doubling = {f"d{i}": f"d{i - 1}*d{i - 1}" for i in range(1, 61)}
    with pytest.raises(InputError, match="stands for too long an expression"):
        Model(ode={"x": "d60"}, definitions={"d0": "x + 1", **doubling})


def test_a_file_has_functions_wherever_it_has_expressions() -> None:
    problem = problem_from_mapping(
        {
            "format": 1,
            "functions": {"sq(a)": "a^2"},
            "definitions": {"rate": "k*sq(x)"},
            "ode": {"x": "-rate"},
            "observables": {"y": "rate"},
            "parameters": {"k": {}},
            "initial": {"x": "sq(k)"},
            "noise": {"y": {"sd": "sq(0.1) + rate"}},
            "experiment": [
                {
                    "data": {"t": [0.0, 1.0], "y": [1.0, 0.5]},
                    "event": [{"when": "rate < sq(0.1)", "assign": {"x": "sq(x)"}}],
                }
            ],
        }
    )
    event = problem.experiments[0].events[0]
    assert [str(v) for v in (*event.assign.values(), event.when)] == ["x^2", "k*x^2 < 0.1^2"]
    assert str(problem.initial["x"]) == "k^2"
    assert str(problem.noise["y"].sd) == "0.1^2 + k*x^2"
    assert problem.given.notation.written["definitions"] == {"rate": "k*sq(x)"}


def test_a_parameter_cannot_be_a_definition_as_well() -> None:
    with pytest.raises(InputError) as caught:
        Problem(
            Model(ode={"x": "-k*x"}, definitions={"k": "2"}),
            data={"t": [0, 1], "x": [1, 2]},
            parameters={"k": {}},
            initial={"x": 1.0},
        )
    assert caught.value.messages == (
        "[parameters] k: the name is already used in [definitions]; choose another",
    )


def test_a_model_with_functions_can_be_sent_to_other_processes() -> None:
    model = Model(ode={"s": "-mm(s, v, k)*step(t, 1)"}, functions=MM)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert again.notation.functions == model.notation.functions
    problem = odefit.Problem(
        again, {"t": [0, 2], "s": [1, 1]}, {"v": {}, "k": 1.0}, {"s": "mm(1, 2, 3)"}
    )
    assert str(problem.initial["s"]) == "2*1/(3 + 1)"
