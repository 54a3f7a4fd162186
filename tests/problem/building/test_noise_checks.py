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
        (X, [0.5], "noise: expected a mapping by observable, got a list"),
        (
            {"t": [0.0, 1, 2], "x": [1.0, 2.0, 3.0], "x_sd": [None, 0.1, None]},
            {},
            (
                "column x_sd: the field at t = 0 is empty (and 1 more), and [noise] does not give "
                "x; "
                'fill it, or write x = { sd = "estimate" } or another sd in [noise], '
                "which holds where "
                "fields are empty"
            ),
        ),
        (
            {"t": [0.0, 1], "x": [0.0, 2.0], "x_sd": [None, 0.1]},
            {"x": {"relative": 0.1}},
            "column x_sd: the field at t = 0 is empty, and relative noise gives the value zero",
        ),
        (X, {"x": {"sd": 1e-160}}, "[noise] x.sd: 1e-160 is too small, as its square is"),
        (
            {**X, "x": [1.0, 1e90]},
            {"x": {"sd": 1e-90}},
            "1e-90 is too small beside",
        ),
        (X, {"x": {"sd": 1e200}}, "[noise] x.sd: 1e+200 is too large, since its square"),
    ],
    ids=range(15),
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


MIXED = {"t": [0.0, 1, 2], "x": [1.0, 2.0, 3.0], "x_sd": [0.1, None, 0.3]}


@pytest.mark.parametrize(
    ("noise", "sd"), [({"sd": 0.5}, 0.5), ({"sd": "2*0.25"}, 0.5), ({"relative": 0.1}, 0.2)]
)
def test_noise_says_the_standard_deviation_where_a_field_is_empty(noise: Any, sd: float) -> None:
    series = problem(MIXED, {"x": noise}).conditions[0].series["x"]
    assert series.sds is not None
    assert series.sds.tolist() == pytest.approx([0.1, sd, 0.3])


def test_a_standard_deviation_is_estimated_where_a_field_is_empty() -> None:
    found = problem(MIXED, {"x": {"sd": "estimate"}})
    assert found.keys == ("k", "x_sd")
    own, rest = found.conditions[0].series["x"].by_source_of_sds()
    assert own.sds is not None
    assert own.sds.tolist() == [0.1, 0.3]
    assert (rest.sds, rest.values.tolist()) == (None, [2.0])


def test_an_empty_column_of_standard_deviations_leaves_all_to_the_noise() -> None:
    data = {**X, "x_sd": [None, None]}
    assert problem(data, {"x": {"sd": "estimate"}}).conditions[0].series["x"].sds is None
    assert problem(data, {}).conditions[0].series["x"].sds is None
