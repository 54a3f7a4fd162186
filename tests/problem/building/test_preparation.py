"""Experiments are made uniform, and belong to the problem alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit.problem import Event, Experiment, InputError, Model, Parameter, Problem, parse
from odefit.problem.building.preparation import prepared
from odefit.problem.inputs.issues import Issues

EVENT_WITHOUT_NUMBER = Event(("a +",), {"x": 1.0})
EVENT_WITHOUT_TABLE = Event((1.0,), "x")  # type: ignore[arg-type] # the point of it


def prepare(**fields: Any) -> tuple[Experiment, list[str]]:
    issues = Issues()
    return prepared(Experiment(**{"name": "run", "data": {}, **fields}), issues), issues.errors


def test_every_value_is_parsed() -> None:
    found, errors = prepare(
        t0=0,
        initial={"x": 1.0, "y": "2*a", "z": {"lower": 0}, "w": Parameter()},
        constants={"c": 2, "d": "a"},
        events=[Event((1, 2), {"x": "x + 1"}), Event(3.0, {"x": 0})],  # type: ignore[arg-type]
    )
    assert not errors
    assert found.t0 == 0.0
    assert found.initial == {
        "x": parse("1.0"), "y": parse("2*a"), "z": Parameter(lower=0.0), "w": Parameter()
    }  # fmt: skip
    assert found.constants == {"c": parse("2.0"), "d": parse("a")}
    assert found.events == (
        Event((1.0, 2.0), {"x": parse("x + 1")}),
        Event((3.0,), {"x": parse("0.0")}),
    )


def test_data_that_change_later_do_not_change_the_experiment() -> None:
    columns: dict[str, Any] = {"t": [0.0, 1.0], "x": np.array([1.0, 2.0])}
    frame = pd.DataFrame(columns)
    found = [prepare(data=data)[0].data for data in (columns, frame)]
    columns["x"][0] = frame.loc[0, "x"] = columns["t"][0] = 99.0
    assert [float(data["x"][0]) for data in found] == [1.0, 1.0]
    assert [float(data["t"][0]) for data in found] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": 3}, "[[experiment]] name: expected a text, got 3"),
        ({"name": " "}, "[[experiment]] name: expected a text"),
        ({"name": "a[1]"}, "square brackets"),
        ({"name": "a\nb"}, "line breaks"),
        ({"t0": "0"}, "\"run\" t0: expected a number, got '0'"),
        ({"t0": True}, '"run" t0: expected a number, got true'),
        ({"t0": float("nan")}, '"run" t0: expected a finite number'),
        ({"initial": [1]}, '"run" initial: expected a table (in Python a dict), got a list'),
        ({"initial": {"x": "1 +"}}, "\"run\" initial.x: '1 +' ends"),
        ({"initial": {"x": {"lowr": 1}}}, '"run" initial.x.lowr: unknown field'),
        ({"constants": {"c": True}}, '"run" constants.c: expected an expression or a number'),
        ({"constants": {"c": {}}}, "got a table"),
        ({"constants": 3}, '"run" constants: expected a table (in Python a dict), got 3'),
        ({"events": [Event((), {"x": 1.0})]}, '"run" event 1 time: the event has no time'),
        ({"events": [Event((1.0,), {})]}, '"run" event 1 assign: nothing is assigned'),
        ({"events": [Event((np.inf,), {"x": 1.0})]}, "event 1 time: expected a finite number"),
        ({"events": [EVENT_WITHOUT_NUMBER]}, "event 1 time: 'a +' ends"),
        ({"events": [Event((1.0,), {"x": "x +"})]}, "event 1 assign.x: 'x +' ends"),
        (
            {"events": [EVENT_WITHOUT_TABLE]},
            "event 1 assign: expected a table (in Python a dict), got 'x'",
        ),
    ],
    ids=range(19),
)
def test_a_mistake_gives_one_message(fields: dict[str, Any], message: str) -> None:
    _, errors = prepare(**fields)
    assert len(errors) == 1
    assert message in errors[0]


@pytest.mark.parametrize(
    ("data", "time"),
    [
        ({"t": [0.0, 1.0], "x": [1.0, 2.0]}, "t"),
        ({"TIME": [0.0, 1.0], "x": [1.0, 2.0]}, "TIME"),
        (pd.DataFrame({"x": [1.0, 2.0], "hour of day": [0.0, 1.0]}), "hour of day"),
        (pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([0.0, 1.0], name="t")), "t"),
        (pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([0.0, 1.0], name="Time")), "t"),
        (pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([0.0, 1.0], name="hour")), "hour"),
    ],
    ids=range(6),
)
def test_times_have_any_name_in_a_column_or_the_index(data: Any, time: str) -> None:
    found, errors = prepare(data=data, time=time)
    assert not errors
    assert found.time == "t"
    assert list(found.data["t"]) == [0.0, 1.0]
    assert list(found.data["x"]) == [1.0, 2.0]


def test_a_problem_takes_times_by_their_name() -> None:
    data = pd.DataFrame({"hour": [0.0, 1.0, 2.0], "x": [1.0, 0.5, 0.2]})
    model = Model(ode={"x": "-k*x"})
    problem = Problem(model, data, {"k": {}}, {"x": 1.0}, time="hour")
    assert problem.conditions[0].times.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(InputError) as caught:
        Problem(model, data, {"k": {}}, {"x": 1.0}, time="hours")
    assert caught.value.messages == (
        (
            "data of experiment \"data\": no column 'hours' with the times; columns are: "
            "hour, x; did "
            "you mean 'hour'?"
        ),
    )


def test_another_column_cannot_have_the_name_of_the_time() -> None:
    _, errors = prepare(data={"TIME": [0.0], "t": [1.0], "x": [1.0]}, time="TIME")
    assert errors == [
        (
            "data of experiment \"run\", column t: the times are in column 'TIME', so no other "
            "column can have the name 't', which is that of the time; rename or remove it"
        )
    ]
