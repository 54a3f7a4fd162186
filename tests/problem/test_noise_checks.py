"""Either all measurements have a weight, or none has."""

from __future__ import annotations

from typing import Any

import pytest

from odefit.problem import Experiment, InputError, Model, Problem

X = {"t": [0.0, 1], "x": [1.0, 2.0]}
XY = {**X, "y": [1.0, 0.0]}


def problem(data: Any, noise: Any, parameters: Any = None) -> Problem:
    several = isinstance(data, list)
    return Problem(
        Model(ode={"x": "-k*x", "y": "k*x"}),
        None if several else data,
        {"k": {}} if parameters is None else parameters,
        {"x": 1.0, "y": 0.0},
        noise=noise,
        experiments=[Experiment(f"E{i}", d) for i, d in enumerate(data)] if several else (),
    )


@pytest.mark.parametrize(
    ("data", "noise"),
    [
        (XY, {}),
        (XY, {"x": {"sd": 1}, "y": {"sd": "estimate"}}),
        ({**XY, "x_sd": [1, 1]}, {"y": {"sd": 0.1}}),
        ({**XY, "x_sd": [1, 1], "y_sd": [1, 1]}, {}),
        (X, {"x": {"relative": 0.1}}),
        (X, {"x": {"sd": "k*x"}}),
        (X, {"x": {"sd": "0.1 + t*x^2"}}),
        (X, {"x": {"transform": "log"}}),
        ({**XY, "y_sd": [1, 1]}, {"y": {"relative": 0.1}, "x": {"sd": 1}}),
    ],
    ids=range(9),
)
def test_noise_that_fits_the_data_is_accepted(data: Any, noise: Any) -> None:
    assert problem(data, noise).size > 0


@pytest.mark.parametrize(
    ("data", "noise", "message"),
    [
        (XY, {"x": {"sd": 1}}, "[noise] y: the noise of x is given, but not that of y"),
        ({**XY, "x_sd": [1, 1]}, {}, "[noise] y: the noise of x is given, but not that of y"),
        ([{**X, "x_sd": [1, 1]}, X], {}, 'the noise of x is not known in experiment "E1"'),
        (XY, {"x": {"sd": -1}, "y": {"sd": 1}}, "[noise] x.sd: must be positive"),
        (X, {"z": {"sd": 1}, "x": {"sd": 1}}, "[noise] z: there is no observable 'z'"),
        (X, {"x": {"sd": "q*x"}}, "[noise] x.sd: unknown name 'q'"),
        (XY, {"x": {"sd": 1}, "y": {"relative": 0.1}}, "column y: the value at t = 1 is zero"),
        (XY, {"y": {"transform": "log"}}, "column y: the value at t = 1 is not positive"),
        (XY, {"y": 0.5}, "[noise] y: expected a table"),
        (X, [0.5], "[noise]: expected a table (in Python a dict), got a list"),
    ],
    ids=range(10),
)
def test_a_mistake_gives_one_message(data: Any, noise: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        problem(data, noise)
    assert len(caught.value.messages) == 1, caught.value.messages
    assert message in caught.value.messages[0]


def test_an_estimated_sd_is_an_unknown_that_is_not_negative() -> None:
    p = problem(X, {"x": {"sd": "estimate"}})
    assert p.keys == ("k", "x_sd")
    assert p.unknowns[1].parameter.lower == 0.0


def test_sds_in_the_data_override_an_estimated_one() -> None:
    assert problem({**X, "x_sd": [1, 1]}, {"x": {"sd": "estimate"}}).keys == ("k",)


def test_the_name_of_an_estimated_sd_must_be_free() -> None:
    with pytest.raises(InputError, match="the name 'x_sd' is taken"):
        problem(X, {"x": {"sd": "estimate"}}, {"k": {}, "x_sd": {}})


def test_a_declared_observable_that_is_never_measured_is_a_warning() -> None:
    model = Model(ode={"x": "-k*x"}, observables={"x": "x", "total": "2*x"})
    p = Problem(model, X, {"k": {}}, {"x": 1.0})
    assert p.warnings == ("[observables] total: is never measured",)
    assert problem(X, {}).warnings == ()  # without [observables], all states may be measured
