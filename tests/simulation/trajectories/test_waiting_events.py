"""Events that wait for a delay, or for others at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import odefit
from odefit.problem import problem_from_mapping
from odefit.simulation import Failure, ForwardMap


def problem(
    ode: Mapping[str, str],
    events: Sequence[Mapping[str, Any]],
    constants: Mapping[str, float] | None = None,
    parameters: Sequence[str] = (),
) -> odefit.Problem:
    """All states begin at zero, and are measured."""
    return problem_from_mapping(
        {
            "format": 1,
            "ode": dict(ode),
            "constants": dict(constants or {}),
            "parameters": {name: {"guess": 1.0} for name in parameters},
            "initial": dict.fromkeys(ode, 0.0),
            "experiment": [
                {
                    "data": {"t": [0.0, 10.0]} | {name: [0.0, 0.0] for name in ode},
                    "event": list(events),
                }
            ],
        }
    )


def states(given: odefit.Problem, times: Sequence[float], **values: float) -> Mapping[str, Any]:
    return odefit.simulate(given, values if values else np.zeros(0), list(times)).states


CLOCK = {"x": "1", "n": "0"}


def test_an_event_with_a_delay_happens_later_with_values_of_then_or_of_its_trigger() -> None:
    late = {"when": "x > 1", "delay": 2, "assign": {"n": "x"}}
    assert states(problem(CLOCK, [late]), [2.9, 3.1])["n"] == pytest.approx([0.0, 3.0])
    early = {**late, "values": "trigger"}
    assert states(problem(CLOCK, [early]), [2.9, 3.1])["n"] == pytest.approx([0.0, 1.0])


def test_a_delay_has_its_value_of_the_time_of_the_trigger() -> None:
    rising = {"when": "x > 1", "delay": "2*x", "assign": {"n": "1"}}
    assert list(states(problem(CLOCK, [rising]), [2.95, 3.05])["n"]) == [0.0, 1.0]


def test_an_event_that_is_not_persistent_is_cancelled_where_its_condition_ends_before() -> None:
    pulse = {"when": "x > 1 && x < 2", "delay": 1.5, "assign": {"n": "1"}}
    assert states(problem(CLOCK, [pulse]), [5.0])["n"] == [1.0]
    assert states(problem(CLOCK, [{**pulse, "persistent": False}]), [5.0])["n"] == [0.0]
    short = {**pulse, "persistent": False, "delay": 0.9}
    assert states(problem(CLOCK, [short]), [5.0])["n"] == [1.0]


VALVE = {"level": "1", "valve": "0", "bypass": "0", "record": "0"}


def test_the_event_of_the_highest_priority_goes_first_and_may_cancel_others() -> None:
    when = "level > 2 && valve < 0.5"
    events: list[dict[str, Any]] = [
        {"when": when, "priority": 5, "persistent": False, "assign": {"bypass": "1"}},
        {"when": when, "priority": "level*5", "assign": {"valve": "1"}},
        {"when": when, "priority": 1, "assign": {"record": "record + 1"}},
    ]
    found = states(problem(VALVE, events), [3.0])
    assert (found["valve"], found["bypass"], found["record"]) == ([1.0], [0.0], [1.0])


def test_events_at_the_same_time_see_values_of_their_trigger_if_they_want_to() -> None:
    events = [
        {"when": "x >= 1", "assign": {"a": "a + 1"}, "values": "trigger"},
        {"when": "x >= 1", "assign": {"b": "a"}, "values": "trigger"},
        {"when": "x >= 1", "assign": {"c": "a"}},
    ]
    found = states(problem({"x": "1", "a": "0", "b": "0", "c": "0"}, events), [2.0])
    assert (found["a"], found["b"], found["c"]) == ([1.0], [0.0], [1.0])


def test_each_rise_of_a_condition_counts_between_events_of_one_time() -> None:
    ranked = [
        {"when": "x >= 1", "priority": 9 - k, "assign": {"n": f"{(k + 1) % 2}"}} for k in range(5)
    ]
    count = {"when": "n > 0.5", "priority": 1, "assign": {"c": "c + 1"}}
    found = states(problem({"x": "1", "n": "0", "c": "0"}, [*ranked, count]), [2.0])
    assert found["c"] == [3.0]


def test_the_order_of_equal_priorities_does_not_change_evaluations() -> None:
    race = [
        {
            "when": "x >= 1",
            "priority": 1,
            "persistent": False,
            "assign": {"x": "0", who: f"{who}+1"},
        }
        for who in ("a", "b")
    ]
    given = problem({"x": "10", "a": "0", "b": "0"}, race)
    found, again = (states(given, [10.05]) for _ in range(2))
    assert found["a"] + found["b"] == [100.0]
    assert 25 < found["a"][0] < 75
    assert found["a"] == again["a"]


@pytest.mark.slow
def test_thousands_of_events_are_integrated() -> None:
    count = {"when": "x >= 0.005", "assign": {"x": "0", "n": "n + 1"}}
    found = states(problem({"x": "1", "n": "0"}, [count]), [10.0025])
    assert found["n"] == [2000.0]


def test_a_negative_delay_is_a_failure_with_its_reason() -> None:
    given = problem(CLOCK, [{"when": "x > 1", "delay": "0.5 - x", "assign": {"n": "1"}}])
    with pytest.raises(odefit.SimulationError, match=r"delay 0\.5 - x of an event is -0\.5"):
        states(given, [3.0])


def derivatives(given: odefit.Problem, at: npt.NDArray[np.float64], times: Any) -> None:
    """Compare sensitivities with differences."""
    forward = ForwardMap(given)
    found = forward.trajectory(at, None, times)
    assert not isinstance(found, Failure)
    for j in range(len(at)):
        step = np.zeros(len(at))
        step[j] = 1e-5
        sides = [forward.trajectory(at + s * step, None, times) for s in (1, -1)]
        assert not any(isinstance(side, Failure) for side in sides)
        slope = (sides[0].states - sides[1].states) / 2e-5  # type: ignore[union-attr]
        assert found.sensitivities[:, :, j] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("values", ["event", "trigger"])
def test_delays_have_exact_sensitivities(values: str) -> None:
    ode = {"x": "k - 0.2*x", "y": "x - y", "n": "0"}
    events: list[dict[str, Any]] = [
        {"when": "x > 1", "delay": "lag + x*y", "values": values, "assign": {"y": "y + k*x*t"}},
        {"when": "x > 2", "assign": {"x": "x - k", "n": "n + y"}, "priority": 2},
    ]
    given = problem(ode, events, parameters=["k", "lag"])
    derivatives(given, given.vector({"k": 1.1, "lag": 0.3}), np.linspace(0.1, 9.7, 13))


def test_events_at_times_that_are_known_and_apart_need_no_location() -> None:
    doses = [
        {"when": f"t >= {t}", "delay": 0.5, "values": "event", "assign": {"n": "n + 1"}}
        for t in (1, 2)
    ]
    [condition] = problem(CLOCK, doses).conditions
    assert [time for time, _ in condition.events] == [1.5, 2.5]
    assert not condition.located


@pytest.mark.parametrize("key", ["delay", "priority", "persistent", "values"])
def test_options_of_waiting_belong_to_events_with_a_condition(key: str) -> None:
    value: Any = {"delay": 1, "priority": 1, "persistent": False, "values": "trigger"}[key]
    with pytest.raises(odefit.InputError, match=f"{key}: it belongs to an event with when"):
        problem(CLOCK, [{"time": 1.0, "assign": {"n": "1"}, key: value}])
