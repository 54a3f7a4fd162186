"""Rough trajectories of many points agree with those whose events are located."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.simulation import Failure
from odefit.simulation.lanes import Lanes

TIMES = np.linspace(0.0, 40.0, 21)
HEATER = {"T": "(5 + G*on - T)/tau"}
LIMITS = [Event((), {"on": "0"}, when="T >= hi"), Event((), {"on": "1"}, when="T <= lo")]


def problem(
    ode: Mapping[str, str],
    events: Sequence[Event],
    unknowns: Sequence[str],
    initial: Mapping[str, Any],
    constants: Mapping[str, float] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Problem:
    (state, *_), given = ode, dict(inputs or {})
    data = {"t": TIMES, state: np.ones(len(TIMES)), **given}
    model = Model(ode=ode, constants=constants or {}, inputs=dict.fromkeys(given, "linear"))
    parameters = {name: {"lower": 0.0} for name in unknowns}
    return Problem(
        model, None, parameters, initial, experiments=[Experiment("a", data, events=events)]
    )


CASES = {
    "a thermostat with a sensor that lags": (
        problem(
            {"T": "(5 + G*on - T)/tau", "s": "(T - s)/2"},
            [Event((), {"on": "0"}, when="s >= hi"), Event((), {"on": "1"}, when="s <= lo")],
            ["tau", "G", "lo", "hi"],
            {"T": 15.0, "s": 15.0},
            {"on": 1.0},
        ),
        [20.0, 25.0, 18.0, 21.0],
    ),
    "a heater that acts after a delay, beside a varying room": (
        problem(
            {"T": "(u + G*on - T)/tau"},
            [
                Event((), {"on": "0"}, when="T >= 21", delay="d"),
                Event((), {"on": "1"}, when="T <= 18", delay="d"),
            ],
            ["tau", "G", "d"],
            {"T": 15.0},
            {"on": 1.0},
            {"u": 5.0 + 2.0 * np.sin(0.2 * TIMES)},
        ),
        [20.0, 25.0, 0.7],
    ),
    "a membrane that fires and is reset": (
        problem(
            {"v": "(I - v)/tau", "n": "0"},
            [Event((), {"v": "0", "n": "n + 1"}, when="v >= c")],
            ["I", "tau", "c"],
            {"v": 0.0, "n": 0.0},
        ),
        [2.0, 5.0, 1.0],
    ),
    "a dose at a trough, one at an unknown and one at a known time": (
        problem(
            {"c": "-k*c"},
            [
                Event((), {"c": "c + D"}, when="c <= low"),
                Event(("lag",), {"c": "c + D"}),
                Event((13.0,), {"c": "c + 1"}, measured="after"),
            ],
            ["k", "D", "low", "lag"],
            {"c": "D"},
        ),
        [0.2, 3.0, 0.8, 4.3],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_lanes_follow_located_events_within_a_hundredth_of_the_range(name: str) -> None:
    made, right = CASES[name]
    (condition,) = made.conditions
    forward, random = ForwardMap(made, "bdf"), np.random.default_rng(1)
    points = np.array(right) * np.exp(random.normal(0.0, 0.05, (5, len(right))))
    assert Lanes.can_follow(forward.field, condition)
    for point, rough in zip(points, Lanes(forward.field, condition)(points, 40.0), strict=True):
        exact = forward.trajectory(point, sensitivities=False)
        assert not isinstance(exact, Failure)
        assert rough is not None
        size = np.ptp(exact.states[:, 0])
        # Beside a jump a value may be that of the other side.
        errors = np.abs(rough.states[:, 0] - exact.states[:, 0])
        assert np.quantile(errors, 0.9) < 1e-2 * size
        for switched, (values, _) in exact.switched.items():
            assert np.mean(rough.switched[switched][0] != values) <= 0.1


@pytest.mark.parametrize("name", CASES)
def test_compiled_steps_equal_those_of_arrays(name: str) -> None:
    made, right = CASES[name]
    (condition,) = made.conditions
    points = np.array(right) * np.exp(np.random.default_rng(2).normal(0.0, 0.2, (9, len(right))))
    lanes = Lanes(ForwardMap(made).field, condition)
    assert lanes.steps is not None
    compiled = lanes(points, 40.0)
    lanes.steps = None
    for one, other in zip(compiled, lanes(points, 40.0), strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            np.testing.assert_allclose(one.states, other.states, rtol=1e-7, atol=1e-9)
            assert one.switched.keys() == other.switched.keys()
            for n, (values, _) in one.switched.items():
                np.testing.assert_allclose(values, other.switched[n][0])


def test_a_lane_that_switches_without_end_has_no_trajectory() -> None:
    made = problem(HEATER, LIMITS, ["tau", "G", "lo", "hi"], {"T": 15.0}, {"on": 1.0})
    lanes = Lanes(ForwardMap(made).field, made.conditions[0])
    found = lanes(np.array([[20.0, 25.0, 19.9999, 20.0], [20.0, 25.0, 18.0, 21.0]]), 40.0)
    assert found[0] is None
    assert found[1] is not None


def test_lanes_end_where_a_part_of_the_data_does() -> None:
    made = problem(HEATER, LIMITS, ["tau", "G", "lo", "hi"], {"T": 15.0}, {"on": 1.0})
    point = np.array([[20.0, 25.0, 18.0, 21.0]])
    lanes = Lanes(ForwardMap(made).field, made.conditions[0])
    (part,), (whole,) = lanes(point, 12.0), lanes(point, 40.0)
    assert part is not None
    assert whole is not None
    assert part.times.tolist() == TIMES[TIMES <= 12.0].tolist()
    np.testing.assert_allclose(part.states, whole.states[: len(part.times)], rtol=1e-12)


@pytest.mark.parametrize("kind", [{"priority": 1.0}, {"persistent": False, "delay": 1.0}])
def test_lanes_do_not_handle_events_of_special_kinds(kind: dict[str, Any]) -> None:
    special = Event((), {"on": "0"}, when="T >= hi", **kind)
    made = problem(HEATER, [special], ["tau", "G", "hi"], {"T": 15.0}, {"on": 1.0})
    assert not Lanes.can_follow(ForwardMap(made).field, made.conditions[0])
