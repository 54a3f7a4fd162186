"""Events: exact solutions of doses, dilutions and switches, sensitivities included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.simulation.engines.registry import EngineName
from tests.simulation.numerics import Array, by_unknown, differences, evaluated, integrated

ENGINES: tuple[EngineName, ...] = ("auto", "runge-kutta", "bdf", "casadi")

TIMES = np.array([0.0, 0.5, 1.0, 1.5, 4.0, 6.0])


def with_events(
    ode: Mapping[str, str],
    events: Sequence[Event],
    parameters: Sequence[str],
    initial: Mapping[str, Any],
    times: Array = TIMES,
    **model: Any,
) -> Problem:
    data = {"t": times, **{s: np.ones(len(times)) for s in model.get("observables", ode)}}
    return Problem(
        Model(ode=ode, **model),
        parameters={p: {} for p in parameters},
        initial=initial,
        experiments=[Experiment("run", data, t0=0.0, events=events)],
    )


def doses(at: Sequence[float]) -> Problem:
    event = Event(tuple(at), {"x": "x + dose"})
    return with_events({"x": "-k*x"}, [event], ["k", "dose"], {"x": {}})


def compartment(v: Array, at: Sequence[float], times: Array) -> Array:
    """Exact solution of `doses`; a time of a dose sees the value before it."""
    k, dose, x0 = v
    found = x0 * np.exp(-k * times)
    for time in at:
        found = found + np.where(times > time, dose * np.exp(-k * (times - time)), 0.0)
    return np.asarray(found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "at",
    [
        [0.0],  # at t0
        [1.0],  # at a data time
        [0.7, 0.2],  # between data times, in any order
        [0.0, 0.25, 0.3, 1.0, 4.0, 5.9],
        [2.0, 3.0],  # two in a gap of the data
        [6.0],  # at the last data time
        [7.0, 100.0],  # after it
    ],
)
def test_doses_are_exact(engine: EngineName, at: list[float]) -> None:
    problem = doses(at)
    vector = problem.vector({"k": 0.8, "dose": 3.0, "x": 1.3})
    found = integrated(ForwardMap(problem, engine), vector)
    assert found.states[:, 0] == pytest.approx(compartment(vector, at, TIMES), rel=1e-7)
    expected = differences(lambda v: compartment(v, at, TIMES), vector, 1e-3)
    assert by_unknown(found, 3)[:, 0] == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_a_measurement_at_the_time_of_an_event_sees_the_values_before() -> None:
    problem = doses([0.0, 1.0])
    found = integrated(ForwardMap(problem), problem.vector({"k": 0.0, "dose": 1.0, "x": 0.0}))
    assert found.states[:, 0].tolist() == [0, 1, 1, 2, 2, 2]


def test_an_event_after_the_last_requested_time_changes_nothing() -> None:
    problem = doses([7.0])
    vector = problem.vector({"k": 0.8, "dose": 1e9, "x": 1.0})
    found = ForwardMap(problem).trajectory(vector, times=np.array([6.5, 7.0]))
    plain = np.exp(-0.8 * np.array([6.5, 7.0]))
    assert getattr(found, "states")[:, 0] == pytest.approx(plain, rel=1e-10)  # noqa: B009


def test_events_at_one_time_happen_in_the_order_given() -> None:
    add, double = Event((1.0,), {"x": "x + a"}), Event((1.0,), {"x": "2*x"})
    for events, expected in (([add, double], 2 * (1 + 5)), ([double, add], 2 * 1 + 5)):
        problem = with_events({"x": "0*k"}, events, ["k", "a"], {"x": 1.0})
        vector = problem.vector({"k": 0.0, "a": 5.0})
        found = integrated(ForwardMap(problem), vector)
        assert found.states[-1, 0] == pytest.approx(expected, rel=1e-12)


def test_assignments_of_one_event_are_simultaneous() -> None:
    swap = Event((1.0,), {"x": "y", "y": "x"})
    problem = with_events({"x": "0*k", "y": "0*k"}, [swap], ["k"], {"x": 1.0, "y": 2.0})
    found = integrated(ForwardMap(problem), np.array([0.0]))
    assert found.states[-1].tolist() == [2.0, 1.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_assignment_that_depends_on_states_and_time_carries_sensitivities(
    engine: EngineName,
) -> None:
    """x grows, is squared with a factor that depends on t and a parameter, and grows on."""
    event = Event((1.0, 4.0), {"x": "c*t*x^2 + exp(-k)"})
    problem = with_events({"x": "-k*x"}, [event], ["k", "c"], {"x": {}})
    vector = problem.vector({"k": 0.3, "c": 0.5, "x": 1.5})

    def exact(v: Array) -> Array:
        k, c, x = v
        found, now = [], 0.0
        for time in TIMES:
            x, now = x * np.exp(-k * (time - now)), time
            found.append(x)
            if time in (1.0, 4.0):
                x = c * time * x**2 + np.exp(-k)
        return np.array(found)

    found = integrated(ForwardMap(problem, engine), vector)
    assert found.states[:, 0] == pytest.approx(exact(vector), rel=1e-7)
    expected = differences(exact, vector, 1e-3)
    assert by_unknown(found, 3)[:, 0] == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rate_that_is_switched_is_exact(engine: EngineName) -> None:
    """A constant rate of infusion, switched to a parameter and off again."""
    events = [Event((1.0,), {"rate": "r2"}), Event((2.5,), {"rate": "rate/4"})]
    problem = with_events(
        {"x": "rate - k*x"},
        events,
        ["k", "r2"],
        {"x": {}},
        constants={"rate": 1.0},
        observables={"x": "x", "flow": "rate*x"},
    )
    vector = problem.vector({"k": 0.9, "r2": 3.0, "x": 0.2})

    def exact(v: Array) -> Array:
        k, r2, x = v
        states, flows, now, rate = [], [], 0.0, 1.0
        for time in (*TIMES[:4], 2.5, *TIMES[4:]):
            steady = rate / k
            x, now = steady + (x - steady) * np.exp(-k * (time - now)), time
            if time in TIMES:
                states.append(x)
                flows.append(rate * x)
            rate = r2 if time == 1.0 else rate / 4 if time == 2.5 else rate
        return np.array([states, flows])

    forward = ForwardMap(problem, engine)
    found = integrated(forward, vector)
    assert found.states[:, 0] == pytest.approx(exact(vector)[0], rel=1e-7)
    expected = differences(exact, vector, 1e-3)
    assert by_unknown(found, 3)[:, 0] == pytest.approx(expected[0], rel=1e-6, abs=1e-8)
    jacobian = evaluated(forward, vector).jacobian
    assert jacobian == pytest.approx(np.concatenate(expected), rel=1e-6, abs=1e-8)


def test_a_switched_constant_is_reset_in_every_experiment() -> None:
    data = {"t": [0.0, 1.0, 2.0], "x": [0.0, 0.0, 0.0]}
    switch = Event((1.0,), {"rate": "5"})
    problem = Problem(
        Model(ode={"x": "k*rate"}, constants={"rate": 1.0}),
        parameters={"k": {}},
        initial={"x": 0.0},
        experiments=[Experiment("a", data, events=[switch]), Experiment("b", data)],
    )
    forward = ForwardMap(problem)
    for _ in range(2):
        assert evaluated(forward, np.array([1.0])).residuals == pytest.approx([0, 1, 6, 0, 1, 2])


def test_a_parameter_that_an_event_assigns_changes_from_then_on() -> None:
    event = Event((1.0,), {"k": "2*k"})
    problem = with_events({"x": "k"}, [event], ["k"], {"x": 0.0})
    found = integrated(ForwardMap(problem), np.array([3.0]))
    exact = np.where(TIMES <= 1.0, 3 * TIMES, 3 + 6 * (TIMES - 1))
    assert found.states[:, 0] == pytest.approx(exact, rel=1e-10)
    assert by_unknown(found, 1)[:, 0, 0] == pytest.approx(exact / 3, rel=1e-10)


def test_times_of_the_user_may_fall_anywhere_between_events() -> None:
    problem = doses([1.0, 2.0])
    vector = problem.vector({"k": 0.8, "dose": 3.0, "x": 1.3})
    for times in ([0.0], [1.0], [2.0], [0.3, 1.0, 1.0000001, 2.5], [9.0]):
        wanted = np.array(times)
        found = integrated(ForwardMap(problem), vector, wanted)
        assert found.states[:, 0] == pytest.approx(
            compartment(vector, [1.0, 2.0], wanted), rel=1e-9
        )


def test_events_at_negative_and_large_times_are_met_exactly() -> None:
    times = np.array([-5.0, -1.0, 1e5])
    problem = Problem(
        Model(ode={"x": "0*k"}),
        parameters={"k": {}},
        initial={"x": 0.0},
        experiments=[
            Experiment(
                "run",
                {"t": times, "x": np.ones(3)},
                events=[Event((-5.0, -1.0, 99_999.999), {"x": "x + 1"})],
            )
        ],
    )
    found = integrated(ForwardMap(problem), np.array([1.0]))
    assert found.states[:, 0].tolist() == [0.0, 1.0, 3.0]
