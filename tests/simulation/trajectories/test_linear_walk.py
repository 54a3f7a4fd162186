"""Many events of linear equations at once, beside an engine that integrates each segment."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.simulation import Failure
from odefit.simulation.trajectories.linear_walk import LinearWalk, is_linear
from tests.simulation.numerics import Array, by_unknown, differences, evaluated, integrated

ORAL = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood + leak"})
VALUES = np.array([1.1, 0.13, 0.02, 0.8, 2.0])
TIMES = np.array([0.0, 0.5, 3.0, 11.0, 12.0, 30.0, 71.0, 95.0, 96.0, 108.5])


def doses(count: int, assign: dict[str, str], **more: Any) -> list[Event]:
    return [Event((12.0 * k,), assign, **more) for k in range(count)]


def dosed(events: list[Event], model: Model = ORAL) -> Problem:
    data = {"t": TIMES, "blood": np.ones(len(TIMES))}
    return Problem(
        model,
        parameters={"ka": {}, "ke": {}, "leak": {}, "F": {}},
        initial={"gut": 0.0, "blood": {}},
        experiments=[Experiment("a", data, t0=0.0, events=events)],
    )


CASES = {
    "bolus": doses(9, {"gut": "gut + F*5"}),
    "measured after": doses(9, {"gut": "gut + F*5"}, measured="after"),
    "different": [Event((7.0 * k,), {"gut": f"gut + {k + 1}*F"}) for k in range(9)],
    "part is taken away": doses(9, {"blood": "0.7*blood", "gut": "gut + 3*F*ka"}),
    "moved": doses(9, {"blood": "blood + F*gut", "gut": "0"}),
    "irregular": [Event((k**1.7,), {"gut": "gut + 2"}) for k in range(1, 12)],
}


@pytest.mark.parametrize("name", CASES)
def test_states_and_sensitivities_are_those_of_the_taylor_method(name: str) -> None:
    problem = dosed(CASES[name])
    with patch.object(
        LinearWalk, "__call__", autospec=True, side_effect=LinearWalk.__call__
    ) as used:
        found = integrated(ForwardMap(problem), VALUES)
    assert used.called
    other = integrated(ForwardMap(problem, "heyoka"), VALUES)
    assert found.states == pytest.approx(other.states, rel=1e-10, abs=1e-11)
    ours, theirs = by_unknown(found, 5), by_unknown(other, 5)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-10)
    alone = ForwardMap(problem).trajectory(VALUES, sensitivities=False)
    assert not isinstance(alone, Failure)
    assert alone.states == pytest.approx(found.states, rel=1e-13)


LATE = {
    "lag": [Event((f"{12 * k} + ka",), {"gut": "gut + F*5"}) for k in range(9)],
    "lag and known times": [
        *[Event((f"{12 * k} + 3*ke",), {"gut": "0.5*gut + F*5"}) for k in range(9)],
        Event((20.0,), {"blood": "blood - 1"}),
    ],
    "at measurements": [
        Event((f"{12 * k} + 10*(ka - 1.1)",), {"gut": "gut + F*5"}, measured="after")
        for k in range(9)
    ],
    "at the start": [Event((f"{12 * k} + ka - 1.1",), {"gut": "gut + F*5"}) for k in range(9)],
}


@pytest.mark.parametrize("name", LATE)
def test_events_at_unknown_times_are_those_of_the_taylor_method(name: str) -> None:
    problem = dosed(LATE[name])
    with patch.object(LinearWalk, "located", autospec=True, side_effect=LinearWalk.located) as used:
        found = integrated(ForwardMap(problem), VALUES)
    assert used.called
    other = integrated(ForwardMap(problem, "heyoka"), VALUES)
    assert found.states == pytest.approx(other.states, rel=1e-10, abs=1e-11)
    ours, theirs = by_unknown(found, 5), by_unknown(other, 5)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-10)
    alone = ForwardMap(problem).trajectory(VALUES, sensitivities=False)
    assert not isinstance(alone, Failure)
    assert alone.states == pytest.approx(found.states, rel=1e-13)


def test_sensitivities_to_a_lag_are_those_of_differences() -> None:
    problem = dosed(LATE["lag"])
    forward = ForwardMap(problem)
    found = by_unknown(integrated(forward, VALUES), 5)

    def states(vector: Array) -> Array:
        return integrated(forward, vector).states

    assert found == pytest.approx(differences(states, VALUES), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    "assign",
    [{"gut": "gut^2"}, {"gut": "gut + t"}, {"gut": "max(gut, 3)"}, {"gut": "gut*blood"}],
)
def test_events_that_are_not_linear_are_carried_out_one_by_one(assign: dict[str, str]) -> None:
    problem = dosed(doses(9, assign))
    condition = problem.conditions[0]
    assert not is_linear(condition, ("gut", "blood"))
    with patch.object(LinearWalk, "__call__", side_effect=AssertionError):
        evaluated(ForwardMap(problem), VALUES)


def test_equal_rates_are_integrated_between_the_events() -> None:
    problem = dosed(CASES["bolus"])
    equal = np.array([0.3, 0.3, 0.02, 0.8, 2.0])
    near = np.array([0.3, 0.3 * (1 + 1e-2), 0.02, 0.8, 2.0])
    found = integrated(ForwardMap(problem), equal)
    assert found.states == pytest.approx(integrated(ForwardMap(problem), near).states, rel=5e-2)
    assert found.states == pytest.approx(
        integrated(ForwardMap(problem, "heyoka"), equal).states, rel=1e-10
    )


def test_a_solution_that_grows_without_bound_fails_as_usual() -> None:
    problem = dosed(CASES["bolus"])
    found = ForwardMap(problem).evaluate(np.array([-80.0, 0.1, 0.0, 1.0, 1.0]))
    assert isinstance(found, Failure)
    assert "a" in found.experiment


def test_few_events_are_left_to_the_engines() -> None:
    problem = dosed(doses(3, {"gut": "gut + F*5"}))
    with patch.object(LinearWalk, "__call__", side_effect=AssertionError):
        evaluated(ForwardMap(problem), VALUES)
