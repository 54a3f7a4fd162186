"""A problem is made once, and knows its unknowns and data."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit.problem import Experiment, InputError, Model, Parameter, Problem, problem_to_mapping

DATA = {"t": [0.0, 1, 2], "x": [1.0, None, 0.4]}


def decay(**more: Any) -> Problem:
    arguments: dict[str, Any] = {
        "model": Model(ode={"x": "-k*x"}),
        "data": DATA,
        "parameters": {"k": {"lower": 0, "upper": 2}},
        "initial": {"x": {}},
        **more,
    }
    return Problem(**arguments)


def test_a_problem_counts_its_measurements_and_unknowns() -> None:
    problem = decay()
    assert problem.size == 2
    assert problem.keys == ("k", "x")
    assert repr(problem) == "Problem('problem': 1 state, 2 unknowns, 2 measurements, 1 experiment)"


def test_data_come_back_as_a_table() -> None:
    frame = decay().data()
    assert list(frame.columns) == ["t", "x"]
    assert frame["t"].tolist() == [0, 1, 2]
    assert np.isnan(frame["x"][1])


def test_a_vector_is_made_of_values_by_key() -> None:
    assert decay().vector({"x": 3.0, "k": np.float64(1.0)}).tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"k": 1.0}, "no value for 'x'"),
        ({"k": 1.0, "X": 1.0}, "unknown name 'X'; did you mean 'x'?"),
        ({"k": 1.0, "x": "a"}, "values x: expected a number, got 'a'"),
    ],
)
def test_a_vector_needs_a_number_for_every_unknown(values: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        decay().vector(values)
    assert len(caught.value.messages) == 1
    assert message in caught.value.messages[0]


def test_a_problem_survives_pickling() -> None:
    problem = decay(noise={"x": {"sd": "0.1 + 0.1*x"}}, data=pd.DataFrame(DATA))
    _ = problem.lower
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.unknowns == problem.unknowns
    assert copy.model == problem.model
    assert problem_to_mapping(copy) == problem_to_mapping(problem)


def test_other_data_make_another_problem() -> None:
    problem = decay()
    other = problem.with_data({"data": {"t": [0.0], "x": [5.0]}})
    assert other.size == 1
    assert problem.size == 2


def test_other_knowledge_makes_another_problem() -> None:
    problem = decay()
    other = problem.with_parameters(k=0.5, x={"lower": 0})
    assert other.keys == ("x",)
    assert other.lower.tolist() == [0.0]
    assert problem.keys == ("k", "x")


def test_changing_what_was_given_does_not_change_the_problem() -> None:
    frame = pd.DataFrame(DATA)
    parameters = {"k": {"lower": 0}}
    problem = decay(data=frame, parameters=parameters)
    frame.loc[0, "x"] = 99.0
    parameters["k"]["lower"] = 5
    assert problem.with_parameters(x=1.0).data()["x"][0] == 1.0
    assert problem.parameters["k"] == Parameter(lower=0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decay().condition("B"), "unknown experiment 'B' (experiments are: 'data')"),
        (lambda: decay().with_data({"dat": {}}), "unknown experiment 'dat'; did you mean 'data'?"),
        (lambda: decay().with_parameters(K=1), "unknown name 'K'; did you mean 'k'?"),
        (lambda: decay(experiments=[Experiment("A", DATA)]), "give data or experiments, not both"),
        (lambda: decay(data=None), "no experiment"),
        (lambda: decay(data=None, t0=0.0, experiments=[Experiment("A", DATA)]), "t0 belongs to"),
        (lambda: decay(data=None, experiments=[{"name": "A"}]), "expected objects of Experiment"),
        (lambda: decay(data=3), "expected a DataFrame or a dict of columns, got a int"),
        (
            lambda: decay(parameters=["k"]),
            "[parameters]: expected a table (in Python a dict), got a list",
        ),
        (lambda: decay(initial="x"), "[initial]: expected a table (in Python a dict)"),
    ],
    ids=range(10),
)
def test_wrong_use_is_refused_with_a_remedy(call: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert any(message in m for m in caught.value.messages), caught.value.messages


def test_the_first_condition_is_the_default() -> None:
    assert decay().condition().name == decay().condition("data").name == "data"


def test_a_problem_without_unknowns_can_be_made() -> None:
    problem = decay(parameters={"k": 1.0}, initial={"x": 1.0})
    assert problem.keys == ()
    assert problem.lower.shape == problem.vector({}).shape == (0,)
