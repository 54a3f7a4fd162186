"""Scenarios: experiments with what differs from one that was fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, InputError, Model, Parameter, Problem, Scenario
from odefit.problem.variants.scenario import as_scenario
from odefit.problem.variants.scenario_problem import (
    prediction_times,
    scenario_experiment,
    with_scenarios,
)
from odefit.simulation import Failure, ForwardMap, simulated


@pytest.fixture(scope="module")
def problem() -> Problem:
    t = np.linspace(0.0, 4.0, 5)
    data = {"t": t, "u": np.ones(5), "x": t + 1.0}
    return Problem(
        Model(ode={"x": "a*u - k*x", "g": "-c*g"}, constants={"c": 0.5}, inputs={"u": "linear"}),
        parameters={"k": (0.0, 5.0), "a": Parameter(lower=0.0, upper=9.0, per_experiment=True)},
        initial={"x": (0.0, 5.0), "g": 0.0},
        experiments=[
            Experiment("one", data),
            Experiment("two", data, events=[Event((1.0,), {"g": "g + 10"})]),
        ],
    )


VALUES = {"k": 0.7, "a[one]": 1.0, "a[two]": 2.0, "x": 1.5}


def values_of(problem: Problem, name: str, times: list[float]) -> dict[str, Any]:
    found = simulated(problem, problem.vector(VALUES), np.array(times), name)
    assert not hasattr(found, "reason"), found
    return found.states


def test_a_scenario_keeps_unknowns_measurements_and_residuals(problem: Problem) -> None:
    whole = with_scenarios(problem, [Scenario("new", like="two", initial={"x": 0.0})])
    assert whole.keys == problem.keys
    assert whole.size == problem.size
    vector = problem.vector(VALUES)
    before, after = (ForwardMap(p).evaluate(vector) for p in (problem, whole))
    np.testing.assert_allclose(after.residuals, before.residuals)  # type: ignore[union-attr]
    np.testing.assert_allclose(after.jacobian, before.jacobian)  # type: ignore[union-attr]


def test_unknowns_of_one_experiment_are_those_of_the_experiment_it_is_like(
    problem: Problem,
) -> None:
    scenarios = [Scenario(f"like {n}", like=n, constants={"k": 0.0}) for n in ("one", "two")]
    whole = with_scenarios(problem, scenarios)
    # Without loss the state grows by a: x = 1.5 + a t.
    assert values_of(whole, "like one", [3.0])["x"][0] == pytest.approx(4.5)
    assert values_of(whole, "like two", [3.0])["x"][0] == pytest.approx(7.5)


def test_an_initial_value_in_place_of_an_unknown_leaves_the_others_in_their_places(
    problem: Problem,
) -> None:
    alone = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": [0.0, 1.0], "x": [1.0, 0.5]},
        {"k": (0.0, 5.0)},
        {"x": (0.0, 5.0)},
    )
    whole = with_scenarios(alone, [Scenario("full", initial={"x": 8.0})])
    found = simulated(whole, whole.vector({"k": 1.0, "x": 1.0}), np.array([2.0]), "full")
    assert found.states["x"][0] == pytest.approx(8.0 * np.exp(-2.0), rel=1e-8)  # type: ignore[union-attr]


def test_an_input_is_a_number_a_table_or_columns_of_data(problem: Problem) -> None:
    ramp = {"t": [0.0, 4.0], "value": [0.0, 4.0]}
    columns = {"t": [0.0, 4.0], "u": [0.0, 4.0]}
    given = [
        Scenario("number", inputs={"u": 3.0}, constants={"k": 0.0}),
        Scenario("table", inputs={"u": ramp}, constants={"k": 0.0}),
        Scenario("data", data=columns, constants={"k": 0.0}),
    ]
    whole = with_scenarios(problem, given)
    # x = 1.5 + 3 t, and 1.5 + t^2/2 under the ramp.
    assert values_of(whole, "number", [2.0])["x"][0] == pytest.approx(7.5)
    for name in ("table", "data"):
        assert values_of(whole, name, [2.0])["x"][0] == pytest.approx(3.5)


def test_events_stay_unless_there_are_others_or_doses(problem: Problem) -> None:
    doses = [{"time": 0.0, "amount": 4.0, "into": "g", "every": 1.0, "count": 2}]
    given = [
        Scenario("same", like="two"),
        Scenario("none", like="two", events=[]),
        Scenario("dosed", like="two", doses=doses),
        Scenario("infused", doses=[{"time": 0.0, "amount": 6.0, "duration": 2.0, "into": "g"}]),
    ]
    whole = with_scenarios(problem, given)
    decay = float(np.exp(-0.5))
    assert values_of(whole, "same", [2.0])["g"][0] == pytest.approx(10.0 * decay)
    assert values_of(whole, "none", [2.0])["g"][0] == 0.0
    assert values_of(whole, "dosed", [2.0])["g"][0] == pytest.approx(4.0 * (decay + decay**2))
    assert values_of(whole, "infused", [2.0])["g"][0] == pytest.approx(6.0 * (1.0 - decay**2))
    assert values_of(whole, "one", [2.0])["g"][0] == 0.0


def test_lag_and_bioavailability_act_on_doses(problem: Problem) -> None:
    doses = [{"time": 0.0, "amount": 8.0, "into": "g"}]
    dosing = {"lag": 1.0, "bioavailability": 0.25}
    whole = with_scenarios(problem, [Scenario("late", doses=doses, dosing=dosing)])
    found = values_of(whole, "late", [0.5, 3.0])["g"]
    np.testing.assert_allclose(found, [0.0, 2.0 * np.exp(-1.0)])


def test_a_long_table_of_doses_is_read_as_that_of_an_experiment(problem: Problem) -> None:
    table = {"TIME": [0.0, 2.0], "AMT": [4.0, None], "CMT": ["g", None], "u": [2.0, 2.0]}
    whole = with_scenarios(problem, [Scenario("long", data=table, dosing={}, times=[1.0, 2.0])])
    assert values_of(whole, "long", [2.0])["g"][0] == pytest.approx(4.0 * np.exp(-1.0))
    assert values_of(whole, "long", [2.0])["x"][0] == pytest.approx(
        1.5 * np.exp(-1.4) + 2.0 / 0.7 * (1.0 - np.exp(-1.4))
    )


def test_times_are_those_of_the_scenario_its_table_or_its_experiment(problem: Problem) -> None:
    table = {"t": [-1.0, 0.0, 4.0], "u": [1.0, 1.0, 2.0]}
    assert prediction_times(problem, Scenario(times=[3, 1, 1])).tolist() == [1.0, 3.0]
    assert prediction_times(problem, Scenario(data=table)).tolist() == [0.0, 4.0]
    assert prediction_times(problem, Scenario()).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(InputError, match="expected a list of numbers"):
        prediction_times(problem, Scenario(times="soon"))


def test_an_experiment_of_a_scenario_keeps_the_measurements(problem: Problem) -> None:
    made = scenario_experiment(problem, Scenario("one", like="one", inputs={"u": 2.0}))
    again = problem.with_experiments([made, problem.experiments[1]])
    assert again.keys == problem.keys
    assert again.size == problem.size
    assert again.condition("one").inputs["u"](np.array([1.0]))[0] == 2.0


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"like": "onee"}, ["like: there is no experiment 'onee'; did you mean 'one'?"]),
        (
            {"initial": {"y": 1.0}, "constants": {"cc": 1.0, "q": 2.0}, "inputs": {"v": 1.0}},
            [
                "constants.cc: there is no constant or parameter 'cc'; did you mean 'c'?",
                "constants.q: there is no constant or parameter 'q'",
                "inputs.v: there is no input 'v'; expected one of: u",
                "initial.y: there is no state 'y'",
            ],
        ),
        (
            {"doses": [{"time": 0, "amount": 1, "into": "gg"}, {"tim": 1, "into": "g"}]},
            [
                "doses 1 into: there is no state 'gg'; did you mean 'g'?",
                "doses 2 tim: unknown key 'tim'; did you mean 'time'?",
                "doses 2 time: missing; write time = NUMBER",
                "doses 2 amount: missing; write amount = NUMBER",
            ],
        ),
        ({"doses": []}, ["doses: expected a list such as"]),
        ({"doses": [{"time": 0, "amount": 1, "into": "g", "count": 2}]}, ["belong together"]),
        ({"data": {"t": [0.0, 4.0]}}, ["inputs.u: the table has no column 'u' for this input"]),
        (
            {"inputs": {"u": {"t": [0.0, 2.0], "value": [1.0, 2.0]}}},
            ["from t = 0 to 2, but it is needed from t = 0 to 4"],
        ),
        ({"inputs": {"u": {"t": [0.0]}}}, ["expected a number, or the lists t and value"]),
        ({"inputs": {"u": 1.0}, "data": {"t": [0.0], "u": [1.0]}}, ["keep one of the two"]),
        ({"initial": {"x": (0.0, 1.0)}}, ["nothing is estimated in a scenario"]),
        ({"dosing": {"lag": 1.0}}, ["there are no dose records that doses"]),
        ({"name": "one"}, ["there is an experiment or a scenario of this name"]),
        ({"data": 5}, ["expected a DataFrame or a dict of columns"]),
        ({"events": [Event((1.0,), {"gg": 1.0})]}, ["there is no state or constant 'gg'"]),
    ],
)
def test_every_mistake_of_a_scenario_is_reported_with_its_place(
    problem: Problem, fields: dict[str, Any], messages: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        with_scenarios(problem, [as_scenario({"name": "new", **fields})])
    told = caught.value.messages
    assert len(told) == len(messages), told
    for message in messages:
        assert any(message in one for one in told), told
    assert all(f'scenario "{fields.get("name", "new")}"' in one for one in told)


def test_covariates_are_constants() -> None:
    one = as_scenario({"constants": {"w": 2.0}, "covariates": {"age": "3*w"}})
    assert one.constants == {"w": 2.0, "age": "3*w"}
    assert not replace(one, name="other").covariates
    with pytest.raises(InputError, match="covariates: constants has 'w', too"):
        Scenario(constants={"w": 2.0}, covariates={"w": 3.0})


def test_a_scenario_comes_from_an_experiment_or_a_mapping() -> None:
    made = as_scenario(Experiment("e", {"t": [0.0], "u": [1.0]}, constants={"c": 2.0}))
    assert (made.name, made.constants, made.events) == ("e", {"c": 2.0}, ())
    with pytest.raises(InputError, match="unknown field 'inital'; did you mean 'initial'"):
        as_scenario({"inital": {}})
    with pytest.raises(InputError, match=r"expected an odefit\.Scenario"):
        as_scenario(3)


def test_a_dose_repeated_until_the_steady_state_needs_no_count() -> None:
    """It leads to the state after many such doses; without steady state the message says how."""
    data = {"t": [0.0, 1.0, 2.0, 4.0], "c": [np.nan, 0.5, 0.7, 0.6]}
    model = Model(ode={"gut": "-ka*gut", "c": "ka*gut - k*c"})
    dosed = Problem(model, data, {"ka": (0.1, 5.0), "k": (0.05, 2.0)}, {"gut": 1.0, "c": 0.0})
    dose = {"time": 0.0, "amount": 1.0, "into": "gut", "every": 12.0}
    start = {"gut": 0.0}
    runs = [
        Scenario("steady", initial=start, doses=[dose], steady_state=True),
        Scenario("many", initial=start, doses=[{**dose, "count": 40}]),
    ]
    forward = ForwardMap(with_scenarios(dosed, runs))
    vector = np.array([1.0, 0.2])
    ends = []
    for name, time in (("steady", 6.0), ("many", 39 * 12.0 + 6.0)):
        run = simulated(forward.problem, vector, np.array([time]), name)
        assert not isinstance(run, Failure), run
        ends.append(run.observables["c"])
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)
    with pytest.raises(InputError, match="until the steady state, write every alone, and steady"):
        with_scenarios(dosed, [Scenario("s", doses=[dose])])
