"""Sums that events reset, beside trajectories that are divided at each reset."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.simulation import Failure
from odefit.simulation.propagation.propagation import Propagation
from odefit.simulation.trajectories import conditions
from odefit.simulation.trajectories.sums import Sum, sums_of
from tests.simulation.numerics import by_unknown, differences, integrated

WEEKS = np.linspace(7.0, 84.0, 12)
ODE = {
    "S": "-beta*S*I/N",
    "I": "beta*S*I/N - gamma*I",
    "new": "rho*beta*S*I/N",
    "gone": "gamma*I",
}
SPREAD = np.array([0.5, 0.2, 0.3, 20.0, 33.0])
FADING = np.array([0.1, 0.35, 0.3, 20.0, 33.0])
SUDDEN = np.array([0.1, 3.5, 0.3, 20.0, 33.0])


def outbreak(*events: Event, ode: dict[str, str] = ODE) -> Problem:
    """Return weekly reports of an outbreak with five unknowns."""
    data = {"t": WEEKS, "cases": np.ones(len(WEEKS)), "left": np.ones(len(WEEKS))}
    return Problem(
        Model(ode=ode, observables={"cases": "new", "left": "gone"}, constants={"N": 1e4}),
        parameters={"beta": {}, "gamma": {}, "rho": {}, "begun": {}, "tc": {}},
        initial={"S": "N - begun", "I": "begun", "new": 0.0, "gone": 0.0},
        experiments=[Experiment("a", data, t0=0.0, events=list(events))],
    )


def weekly(assign: dict[str, Any], count: int = 14) -> list[Event]:
    return [Event((7.0 * k,), assign) for k in range(1, count)]


RESETS = weekly({"new": 0})
CASES = {
    "each week": RESETS,
    "to other numbers": [Event((w,), {"new": float(k)}) for k, w in enumerate(WEEKS)],
    "beside an event that matters": [*RESETS, Event((14.0,), {"S": "0.5*S", "new": 0})],
    "with an event at an unknown time": [*RESETS, Event(("tc",), {"S": "0.3*S"})],
    "two sums": [*RESETS, *weekly({"gone": 2})],
    "between reports": [Event((5.5 * k,), {"new": 0}) for k in range(16)],
}


@pytest.mark.parametrize("vector", [SPREAD, FADING, SUDDEN], ids=["spread", "fading", "sudden"])
@pytest.mark.parametrize("name", CASES)
def test_sums_are_those_of_a_trajectory_that_is_divided_at_each_reset(
    name: str, vector: np.ndarray[Any, Any]
) -> None:
    problem = outbreak(*CASES[name])
    found = integrated(ForwardMap(problem), vector)
    with patch.object(conditions, "sums_of", return_value=[]):
        other = integrated(ForwardMap(problem), vector)
    assert found.states == pytest.approx(other.states, rel=1e-6, abs=1e-8)
    ours, theirs = by_unknown(found, 5), by_unknown(other, 5)
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("vector", [SPREAD, SUDDEN], ids=["spread", "sudden"])
def test_sensitivities_of_sums_are_the_differences_of_their_values(
    vector: np.ndarray[Any, Any],
) -> None:
    forward = ForwardMap(outbreak(*CASES["with an event at an unknown time"]))
    along = by_unknown(integrated(forward, vector), 5)
    numeric = differences(lambda v: integrated(forward, v).states, vector)
    assert along == pytest.approx(numeric, rel=1e-4, abs=1e-4)


def test_reports_do_not_divide_the_trajectory() -> None:
    with patch.object(
        Propagation, "integrate", autospec=True, side_effect=Propagation.integrate
    ) as used:
        integrated(ForwardMap(outbreak(*RESETS)), SPREAD)
        assert used.call_count == 1
        used.reset_mock()
        integrated(ForwardMap(outbreak(*RESETS)), FADING)
        assert used.call_count == 1 + 3  # without resets, then divided at two of them


def test_other_times_are_those_of_the_divided_trajectory() -> None:
    problem = outbreak(*RESETS)
    times = np.array([0.0, 3.0, 7.0, 7.0 + 1e-7, 20.0, 83.9, 90.0])
    found = ForwardMap(problem).trajectory(SPREAD, times=times)
    with patch.object(conditions, "sums_of", return_value=[]):
        other = ForwardMap(problem).trajectory(SPREAD, times=times)
    assert not isinstance(found, Failure)
    assert not isinstance(other, Failure)
    assert found.times == pytest.approx(times)
    assert found.states == pytest.approx(other.states, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize(
    ("events", "ode"),
    [
        (RESETS, {**ODE, "I": "beta*S*I/N - gamma*I - 0.001*new"}),
        (weekly({"new": "0.5*new"}), ODE),
        (weekly({"new": "begun"}), ODE),
        ([*RESETS, Event((10.0,), {"S": "S - new"})], ODE),
        ([*RESETS, Event(("tc",), {"new": 0})], ODE),
        ([*RESETS, Event((), {"S": "0.5*S"}, when="I > 30")], ODE),
        (RESETS[:3], ODE),
        ([Event((w,), {"new": 0}, measured="after") for w in WEEKS], ODE),
    ],
    ids=["fed back", "halved", "unknown", "used", "lagged", "triggered", "few", "after"],
)
def test_a_sum_on_which_something_depends_is_not_a_difference(
    events: list[Event], ode: dict[str, str]
) -> None:
    problem = outbreak(*events, ode=ode)
    forward = ForwardMap(problem)
    assert sums_of(forward.field, problem.conditions[0]) == []


def test_every_fifth_reset_is_kept_before_all_are() -> None:
    one = Sum(0, WEEKS, np.zeros(len(WEEKS)))
    assert [int(kept.sum()) for kept in one.kept()] == [0, 2, 12]
