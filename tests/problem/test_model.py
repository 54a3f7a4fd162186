"""A model is consistent in itself, or refused with every reason."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from odefit.expressions.algebras import NUMPY
from odefit.problem import InputError, Model


def errors(**sections: Any) -> tuple[str, ...]:
    try:
        Model(**{"ode": {"x": "-k*x"}, **sections})
    except InputError as error:
        return error.messages
    return ()


def test_without_observables_every_state_is_observed() -> None:
    model = Model(ode={"x": "-k*x", "y": "k*x"})
    assert list(model.observables) == ["x", "y"]
    assert model.states == ("x", "y")
    assert model.parameters == {"k"}


def test_names_that_nothing_defines_are_parameters() -> None:
    model = Model(
        ode={"x": "-k*x + u + c + z + t"},
        algebraic={"z": "z - a*x"},
        observables={"y": "s*x"},
        constants={"c": 1},
        inputs={"u": "linear"},
    )
    assert model.parameters == {"k", "a", "s"}


def test_equations_are_evaluated_in_their_order() -> None:
    model = Model(ode={"x": "2*x", "y": "x - y"}, observables={"s": "x + y"})
    values = {"x": np.float64(1.0), "y": np.float64(3.0)}
    assert model.rhs(values, NUMPY) == [2.0, -2.0]
    assert model.observe(values, NUMPY) == [4.0]
    assert model.constraints(values, NUMPY) == []


def test_a_model_survives_pickling_and_equals_itself() -> None:
    model = Model(ode={"x": "-k*x"}, constants={"c": 1.0}, inputs={"u": "cubic"})
    assert pickle.loads(pickle.dumps(model)) == model
    assert model != Model(ode={"x": "-2*k*x"})


def test_a_model_cannot_be_changed() -> None:
    model = Model(ode={"x": "-k*x"})
    with pytest.raises(TypeError):
        model.ode["x"] = model.ode["x"]  # type: ignore[index] # the point of the test


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"ode": {}}, "[ode]: no equation"),
        ({"ode": "x"}, "[ode]: expected a table"),
        ({"ode": {"x": "k*"}}, "[ode] x: 'k*' ends"),
        ({"ode": {"x": True}}, "[ode] x: expected an expression or a number, got true"),
        ({"ode": {"2x": "1"}}, "[ode] '2x': a name is letters"),
        ({"ode": {"x\u00e9": "1"}}, "a name is letters without accents"),
        ({"ode": {3: "1"}}, "[ode] '3': a name is letters"),
        ({"ode": {"t": "1"}}, "'t' is the time"),
        ({"ode": {"exp": "1"}}, "'exp' is a function"),
        ({"ode": {"__class__": "1"}}, "names that start with __ are reserved"),
        ({"ode": {"x" * 256: "1"}}, "at most 255 characters"),
        ({"constants": {"x": 1}}, "[constants] x: the name is already used in [ode]"),
        ({"inputs": {"x": "linear"}}, "[inputs] x: the name is already used in [ode]"),
        ({"constants": {"c": "1"}}, "[constants] c: expected a number, got '1'"),
        ({"constants": {"c": float("nan")}}, "[constants] c: expected a finite number"),
        ({"constants": {"c": True}}, "[constants] c: expected a number, got true"),
        ({"inputs": {"u": "linar"}}, "did you mean 'linear'?"),
        ({"inputs": {"u": 3}}, "[inputs] u: unknown interpolation 3"),
        ({"observables": {"x": "2*x"}}, "[observables] x: the name is already used in [ode]"),
        (
            {"observables": {"c": "c"}, "constants": {"c": 1}},
            "[observables] c: the name is already used in [constants]",
        ),
        ({"observables": {"y": "x", "w": "2*y"}}, "refers to the observable 'y'"),
        ({"observables": {"y": "x", "y_sd": "x"}}, "the data column y_sd would be both"),
        ({"algebraic": {"z": "x - 1"}}, "[algebraic] z: no algebraic variable occurs in"),
        (
            {"algebraic": {"z": "z - x", "w": "z + x"}},
            "[algebraic] w: 'w' occurs in no algebraic equation",
        ),
    ],
    ids=range(24),
)
def test_a_mistake_gives_one_message(sections: dict[str, Any], message: str) -> None:
    found = errors(**sections)
    assert len(found) == 1
    assert message in found[0]


def test_a_state_may_be_observed_under_its_own_name() -> None:
    assert errors(observables={"x": "x", "y": "2*x"}) == ()


def test_a_model_prints_its_equations() -> None:
    model = Model({"x": "-k*x + z"}, {"y": "2*x", "x": "x"}, {"z": "z - x"})
    assert str(model) == "dx/dt = -k*x + z\n0 = z - x\ny = 2*x"
    assert repr(model) == "Model(1 state, 2 observables, 1 parameter)"


def test_everything_wrong_is_reported_at_once() -> None:
    assert len(errors(ode={"x": "k*", "exp": "1"}, constants={"c": "a"})) == 3
