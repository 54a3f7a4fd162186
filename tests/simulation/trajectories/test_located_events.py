"""Steady states beside events with conditions: the events happen on the way there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Failure, ForwardMap, InputError, Model, Problem
from odefit.simulation.events.roots import change_time
from odefit.simulation.propagation.propagation import Propagation
from tests.simulation.numerics import differences, evaluated

INF = np.inf


def infusion(when: str, times: list[float], ode: str = "k*on - d*x", **more: Any) -> Problem:
    """x grows towards k/d, twice that once the condition has become true."""
    event = Event((), {"on": "2*on"}, when=when)
    data = {"t": times, "x": np.zeros(len(times))}
    return Problem(
        Model(ode={"x": ode}, constants={"on": 1.0}),
        parameters={"k": {}, "d": {}},
        initial={"x": 0.2},
        experiments=[Experiment("a", data, t0=0.0, events=[event], **more)],
    )


VECTOR = np.array([1.0, 0.7])


@pytest.mark.parametrize(
    ("when", "end"),
    [("x > 0.8", 2.0), ("x > 1.42", 2.0), ("x > 1.44", 1.0), ("x > 0.1", 1.0)],
)
@pytest.mark.parametrize("times", [[INF], [0.0, 1.0, 2.0, INF]])
def test_events_on_the_way_to_the_steady_state_happen(
    when: str, end: float, times: list[float]
) -> None:
    found = evaluated(ForwardMap(infusion(when, times)), VECTOR)
    assert found.residuals[-1] == pytest.approx(end / 0.7, rel=1e-8)
    assert found.jacobian[-1] == pytest.approx([end / 0.7, -end / 0.49], rel=1e-7)


def test_an_event_before_the_experiment_happens_once() -> None:
    problem = infusion("x > 0.8", [0.0, 1.0, INF], steady_state=True)
    found = evaluated(ForwardMap(problem), VECTOR)
    assert found.residuals == pytest.approx([2 / 0.7] * 3, rel=1e-8)


def test_an_experiment_that_only_has_its_first_time_is_reached_in_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is known of the time span then: the first step is short, and the next are longer."""
    integrate, calls = Propagation.integrate, iter(range(500))

    def counted(*arguments: Any) -> Any:
        next(calls)  # a StopIteration after too many
        return integrate(*arguments)

    monkeypatch.setattr(Propagation, "integrate", counted)
    problem = infusion("x > 0.8", [0.0], steady_state=True)
    found = evaluated(ForwardMap(problem), VECTOR)
    assert found.residuals == pytest.approx([2 / 0.7], rel=1e-8)
    assert found.jacobian == pytest.approx(np.array([[2 / 0.7, -2 / 0.49]]), rel=1e-7)


def test_values_between_are_those_of_the_trajectory() -> None:
    problem = infusion("x > 0.8", [0.5, 1.5, INF])
    finite = infusion("x > 0.8", [0.5, 1.5])
    forward, other = ForwardMap(problem), ForwardMap(finite)
    assert evaluated(forward, VECTOR).residuals[:2] == pytest.approx(
        evaluated(other, VECTOR).residuals, rel=1e-8
    )
    expected = differences(lambda v: evaluated(forward, v).residuals, VECTOR, 1e-3)
    assert evaluated(forward, VECTOR).jacobian == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_a_triggered_event_beside_explicit_time_has_no_steady_state() -> None:
    problem = infusion("x > 0.8", [INF], "k*on - d*x + exp(-t)")
    with pytest.raises(InputError, match="steady states cannot be found beside events"):
        ForwardMap(problem).evaluate(VECTOR)


def test_growth_without_end_is_a_failure() -> None:
    found = ForwardMap(infusion("x > 0.8", [INF], "k*on + d")).evaluate(VECTOR)
    assert isinstance(found, Failure)
    assert "no steady state is approached" in found.reason


def test_a_rate_that_stops_where_the_event_happens() -> None:
    """PEtab's case 0023 of version 2: p grows by 1 up to 500, gains 1000 there, and rests."""
    problem = Problem(
        Model(ode={"p": "piecewise(1, p <= 500, 0)"}),
        parameters={"p0": {}},
        initial={"p": "p0"},
        experiments=[
            Experiment(
                "a",
                {"t": [0.0, INF], "p": [0.0, 0.0]},
                steady_state=True,
                events=[Event((), {"p": "p + 1000"}, when="p >= 500", measured="after")],
            )
        ],
    )
    found = evaluated(ForwardMap(problem), np.array([10.0]))
    assert found.residuals == pytest.approx([1500.0, 1500.0], rel=1e-9)
    assert found.jacobian == pytest.approx(np.zeros((2, 1)), abs=1e-9)


def test_the_time_of_a_change_is_found_from_any_guess() -> None:
    for guess in (0.1, 0.5, 1.9):
        time = change_time(
            lambda t: (t**3 - 0.5, 3 * t**2), lambda v: v < 0, 0.0, 2.0, guess, 1e-13, 1e-9
        )
        assert time == pytest.approx(0.5 ** (1 / 3), rel=1e-12)


def test_a_quantity_that_halts_at_zero_is_found_just_before() -> None:
    time = change_time(
        lambda t: (min(t, 1.0) - 1.0 + 1e-15 * (t > 1), float(t <= 1.0)),
        lambda v: v < 0,
        0.0,
        2.0,
        1.5,
        1e-13,
        1e-9,
    )
    assert 1.0 - 1e-12 <= time <= 1.0
