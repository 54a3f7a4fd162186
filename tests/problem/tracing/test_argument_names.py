"""The names of states and parameters are those of a function's arguments, or of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit.problem import InputError, Model


def apart(t: float, S: float, I: float, beta: float, gamma: float) -> Any:  # noqa: E741
    return [-beta * S * I, beta * S * I - gamma * I]


def unpacked(t: float, y: Any, beta: float, gamma: float) -> Any:
    S, I = y  # noqa: E741
    return apart(t, S, I, beta, gamma)


def both_unpacked(t: float, y: Any, p: Any) -> Any:
    S, I = y  # noqa: E741
    beta, gamma = p
    return np.array(apart(t, S, I, beta, gamma))


def by_key(y: Any, t: float, p: Any) -> Any:
    S = y[0]
    I = y[1]  # noqa: E741
    return apart(t, S, I, p["beta"], p["gamma"])


def attributes(t: float, y: Any, p: Any) -> Any:
    S, I = y[0], y[1]  # noqa: E741
    return apart(t, S, I, p.beta, p.gamma)


def as_dict(t: float, S: float, I: float, beta: float, gamma: float) -> Any:  # noqa: E741
    return dict(zip("SI", apart(t, S, I, beta, gamma), strict=True))


@pytest.mark.parametrize("function", [apart, unpacked, both_unpacked, by_key, as_dict])
def test_names_come_from_the_signature_of_a_function(function: Any) -> None:
    model = Model.from_function(function)
    assert {k: str(e) for k, e in model.ode.items()} == {
        "S": "-beta*S*I",
        "I": "beta*S*I - gamma*I",
    }
    assert model.parameters == {"beta", "gamma"}


def filled(t: float, y: Any, k: float) -> Any:
    dy = np.zeros_like(y)
    dy[0], dy[1] = -k * y[0], k * y[0]
    return dy


def test_states_without_names_are_numbered() -> None:
    model = Model.from_function(filled)
    assert {k: str(e) for k, e in model.ode.items()} == {"y1": "-k*y1", "y2": "k*y1"}
    numbered = Model.from_function(attributes)
    assert numbered.states == ("y1", "y2")
    assert numbered.parameters == {"beta", "gamma"}


def test_given_names_stay_and_the_others_are_read() -> None:
    assert Model.from_function(unpacked, ["a", "b"]).parameters == {"beta", "gamma"}
    assert Model.from_function(apart, parameters=["beta", "gamma"]).states == ("S", "I")
    assert Model.from_function(lambda t, x, r: r * x * (1 - x)).states == ("x",)


def branching(t: float, x: float, k: float) -> float:
    return -k * x if x > 1 else -k


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (branching, "the function branches on"),
        (lambda y, p: [-p * y[0]], "does not tell the names of its states and parameters; give "),
        (lambda t, y, *p: [-p[0] * y[0]], r"<lambda>\(t, y, \*p\) does not tell the names"),
        (5, "expected a Python function, got 5"),
    ],
)
def test_information_missing_from_a_function_is_requested(function: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Model.from_function(function)
