"""Who writes what other programs want is told what to write here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import InputError

MODEL = odefit.Model(ode={"x": "-k*x"})
DATA = {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]}
PROBLEM = odefit.Problem(MODEL, DATA, {"k": (0, 5)}, {"x": 1.0})

any_call: Any = odefit  # whose arguments are wrong on purpose


def decay(t: float, y: Any, k: float) -> Any:
    return [-k * y[0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            decay,
            (
                "fit: expected a problem, got the Python function decay; write odefit.Problem("
                'odefit.Model.from_function(decay), data, parameters={"k": (0, 5)}, '
                'initial={"x": 1.0}) for the problem'
            ),
        ),
        ("model.toml", "got 'model.toml'; write odefit.fit(odefit.load('model.toml'))"),
        (MODEL, "got an object of Model; write odefit.Problem(model, data, parameters=..., "),
        (np.zeros(3), "got an object of ndarray; write odefit.Problem(model, data, "),
    ],
)
def test_a_value_that_is_not_a_problem_is_refused_with_a_remedy(given: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        any_call.fit(given, DATA)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("verb", "call"),
    [
        ("simulate", lambda given: any_call.simulate(given, {"k": 0.5})),
        ("identifiability", any_call.identifiability),
        ("check_units", any_call.check_units),
        ("save", lambda given: any_call.save(given, "new.toml")),
        ("explore", any_call.explore),
    ],
)
def test_every_function_refuses_a_python_function_under_its_name(
    verb: str, call: Callable[[Any], Any]
) -> None:
    with pytest.raises(InputError, match=f"^{verb}: expected a problem, got the Python function"):
        call(decay)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: any_call.Problem(MODEL, DATA, bounds={"k": (0, 5)}),
            "odefit.Problem has no argument 'bounds'; write parameters={\"k\": (0, 5)}",
        ),
        (
            lambda: any_call.Problem(MODEL, DATA, p0={"k": 1}, y0=[1.0], paramters={}),
            (
                'odefit.Problem has no argument \'p0\'; write parameters={"k": {"lower": 0, '
                '"upper": 5, "guess": 1.0}}\n'
                "odefit.Problem has no argument 'y0'; write initial={\"x\": 1.0}\n"
                "odefit.Problem has no argument 'paramters'; did you mean 'parameters'?"
            ),
        ),
        (
            lambda: any_call.Model(ode={"x": "-k*x"}, initial={"x": 1}),
            (
                "odefit.Model has no argument 'initial'; write odefit.Problem(model, data, "
                'initial={"x": 1.0})'
            ),
        ),
        (
            lambda: any_call.fit(PROBLEM, n_starts=5),
            (
                "odefit.fit has no argument 'n_starts'; write "
                "odefit.fit(problem, odefit.MultiStart(starts=50))"
            ),
        ),
    ],
)
def test_a_foreign_argument_name_is_refused_with_a_remedy(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            decay,
            (
                "model: expected an odefit.Model, got the Python function decay; write "
                "odefit.Problem(odefit.Model.from_function(decay), data, "
                'parameters={"k": (0, 5)}, initial={"x": 1.0})'
            ),
        ),
        ("decay.toml", "got 'decay.toml'; write odefit.load('decay.toml') for a problem file"),
        ({"x": "-k*x"}, "got a dict; write odefit.Model(ode={...}) for the right-hand sides"),
        (None, 'got an object of NoneType; write odefit.Model(ode={"x": "-k*x"})'),
    ],
)
def test_a_value_that_is_not_a_model_is_refused_with_a_remedy(given: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        any_call.Problem(given, DATA, {"k": (0, 5)}, {"x": 1.0})
    assert message in str(caught.value)


def test_the_code_in_the_hints_runs() -> None:
    parameters = {"k": {"lower": 0, "upper": 5, "guess": 1.0}}
    problem = odefit.Problem(odefit.Model.from_function(decay), {"t": [0, 1], "y1": [1, 0.6]},
                             parameters=parameters, initial={"y1": 1.0})  # fmt: skip
    assert problem.keys == ("k",)


def test_equations_and_simulations_are_shown_as_text_and_table() -> None:
    assert str(dict(MODEL.ode)) == "{'x': Expression('-k*x')}"
    found = odefit.simulate(PROBLEM, {"k": 0.5})
    assert repr(found).splitlines()[:2] == ["Simulation at 3 times:", "     t         x"]
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"d": "0.8*b"}, "d: expected a number, got '0.8*b'; a formula of other names belongs in"),
        ({"d": {"fixed": "0.8*b"}}, "d.fixed: expected a number, got '0.8*b'; a formula of other"),
        ({"d": {"guess": "b/2"}}, "d.guess: expected a number, got 'b/2'; a formula of other"),
        ({"d": {"expr": "0.8*b"}}, "d.expr: unknown field; write the formula in [definitions]"),
        ({"d": {"formula": "0.8*b"}}, "d.formula: unknown field; write the formula in"),
    ],
)
def test_a_formula_in_place_of_a_number_leads_to_definitions(
    change: dict[str, Any], words: str
) -> None:
    rates: dict[str, Any] = {"b": (0.0, 5.0), "d": (0.0, 5.0)}
    with pytest.raises(InputError) as error:
        odefit.Problem(odefit.Model(ode={"x": "b - d*x"}), DATA, rates | change, {"x": 1.0})
    assert words in str(error.value)


def test_a_parameter_of_a_function_may_be_a_definition() -> None:
    def growth(t: float, z: Any, b: float, d: float) -> list[Any]:
        return [b - d * z[0]]

    model = odefit.Model.from_function(growth, states=["x"], definitions={"d": "0.8*b"})
    problem = odefit.Problem(model, DATA, {"b": (0.0, 5.0)}, {"x": 1.0})
    assert problem.keys == ("b",)
    exact = 1.25 - 0.25 * np.exp(-0.8 * 2.0 * 3.0)
    assert odefit.simulate(problem, {"b": 2.0}, np.array([3.0])).states["x"] == pytest.approx(
        [exact], rel=1e-7
    )


def test_numbers_in_place_of_unknowns_are_told_to_be_fixed() -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "b - d*x"}), DATA, {"b": 1.0, "d": 0.5}, {"x": 1.0}
    )
    with pytest.raises(InputError, match=r"a number alone is a fixed value, and \{ guess = 0.5 \}"):
        odefit.fit(problem)
