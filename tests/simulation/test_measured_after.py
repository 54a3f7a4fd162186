"""Measurements at the time of an event that see the values after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.simulation.engines.registry import EngineName
from odefit.simulation.nodes import Nodes, node_names
from tests.simulation.numerics import Array, by_unknown, differences, evaluated, integrated

ENGINES: tuple[EngineName, ...] = ("auto", "runge-kutta", "bdf", "casadi")

TIMES = np.array([0.0, 0.5, 1.0, 1.5, 4.0, 6.0])


def doses(at: Sequence[float], *more: Event, times: Array = TIMES) -> Problem:
    event = Event(tuple(at), {"x": "x + dose"}, measured="after")
    experiment = Experiment(
        "run", {"t": times, "x": np.ones(len(times))}, t0=0.0, events=[event, *more]
    )
    return Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}, "dose": {}},
        initial={"x": {}},
        experiments=[experiment],
    )


def compartment(v: Array, at: Sequence[float], times: Array) -> Array:
    """Exact solution of `doses`; a time of a dose sees the value after it."""
    k, dose, x0 = v
    found = x0 * np.exp(-k * times)
    for time in at:
        found = found + np.where(times >= time, dose * np.exp(-k * (times - time)), 0.0)
    return np.asarray(found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "at",
    [
        [0.0],  # at t0
        [1.0],  # at a data time
        [0.7, 0.2],  # between data times
        [0.0, 0.25, 0.3, 1.0, 4.0, 5.9],
        [6.0],  # at the last data time
        [0.0, 6.0],
        [7.0, 100.0],  # after it
    ],
)
def test_values_at_the_time_of_a_dose_contain_it(engine: EngineName, at: list[float]) -> None:
    problem = doses(at)
    vector = problem.vector({"k": 0.8, "dose": 3.0, "x": 1.3})
    found = integrated(ForwardMap(problem, engine), vector)
    assert found.states[:, 0] == pytest.approx(compartment(vector, at, TIMES), rel=1e-7)
    expected = differences(lambda v: compartment(v, at, TIMES), vector, 1e-3)
    assert by_unknown(found, 3)[:, 0] == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_one_event_that_is_measured_after_shows_all_events_of_its_time() -> None:
    problem = doses([1.0, 4.0], Event((1.0, 1.5), {"x": "2*x"}))
    found = integrated(ForwardMap(problem), problem.vector({"k": 0.0, "dose": 1.0, "x": 1.0}))
    assert found.states[:, 0].tolist() == [1, 1, 4, 4, 9, 9]


def test_wanted_times_follow_the_same_rule() -> None:
    problem = doses([1.0])
    vector = problem.vector({"k": 0.0, "dose": 1.0, "x": 1.0})
    for times, expected in ([0.5, 1.0], [1, 2]), ([1.0], [2]), ([1.0, 2.0], [2, 2]):
        found = integrated(ForwardMap(problem), vector, np.array(times))
        assert found.states[:, 0].tolist() == expected


def switched(*at: float, name: str = "run", **more: Any) -> Experiment:
    """A rate that doubles, which is observed itself."""
    event = Event(at, {"rate": "2*rate"}, measured="after")
    data = {"t": [0.0, 1.0, 2.0], "x": np.zeros(3), "r": np.zeros(3)}
    return Experiment(name, data, events=[event], **more)


def with_rates(*experiments: Experiment) -> Problem:
    return Problem(
        Model(
            ode={"x": "k*rate"},
            constants={"rate": 1.0},
            observables={"x": "x", "r": "k*rate"},
        ),
        parameters={"k": {}},
        initial={"x": 0.0},
        experiments=experiments,
    )


def test_a_constant_that_an_event_assigns_has_its_new_value_at_once() -> None:
    for at, x, r in (
        ([1.0], [0, 1, 3], [1, 2, 2]),
        ([0.0], [0, 2, 4], [2, 2, 2]),
        ([2.0], [0, 1, 2], [1, 1, 2]),
    ):
        forward = ForwardMap(with_rates(switched(*at)))
        assert evaluated(forward, np.array([3.0])).residuals == pytest.approx(3.0 * np.array(x + r))


def test_conditions_that_share_segments_keep_to_their_own_rule() -> None:
    """Doublings that are integrated alike, measured before or after them; one at the end."""
    before = Event((1.0,), {"rate": "2*rate"})
    data = {"t": [0.0, 1.0, 2.0], "x": np.zeros(3), "r": np.zeros(3)}
    whole = with_rates(
        switched(1.0, name="after"),
        Experiment("before", data, events=[before]),
        switched(0.0, 2.0, name="ends"),
        switched(2.0, name="end"),
    )
    forward = ForwardMap(whole)
    found = evaluated(forward, np.array([3.0]))
    expected = [
        *([0, 1, 3], [1, 2, 2]),
        *([0, 1, 3], [1, 1, 2]),
        *([0, 2, 4], [2, 2, 4]),
        *([0, 1, 2], [1, 1, 2]),
    ]
    assert found.residuals == pytest.approx(3.0 * np.concatenate(expected))
    assert found.jacobian[:, 0] == pytest.approx(np.concatenate(expected))


def test_algebraic_variables_follow_an_event_at_once() -> None:
    """0 = z^2 - x with a dose at 0 and at 1."""
    event = Event((0.0, 1.0), {"x": "x + d"}, measured="after")
    problem = Problem(
        Model(ode={"x": "-k*x"}, algebraic={"z": "z^2 - x"}, observables={"z": "z"}),
        parameters={"k": {}, "d": {}},
        initial={"x": 1.0, "z": 1.0},
        experiments=[Experiment("a", {"t": [0.0, 1.0], "z": np.zeros(2)}, events=[event])],
    )

    def exact(v: Array) -> Array:
        k, d = v
        return np.array([np.sqrt(1 + d), np.sqrt((1 + d) * np.exp(-k) + d)])

    vector = np.array([0.4, 3.0])
    found = evaluated(ForwardMap(problem), vector)
    assert found.residuals == pytest.approx(exact(vector), rel=1e-7)
    assert found.jacobian == pytest.approx(differences(exact, vector, 1e-3), rel=1e-6)


@pytest.mark.parametrize("starts", [[0.0], [0.0, 1.0], [0.0, 0.7, 4.0], [0.0, 5.0]])
@pytest.mark.parametrize("at", [[0.0, 1.0], [6.0], [1.0, 4.0, 6.0]])
def test_nodes_on_the_trajectory_change_nothing(starts: list[float], at: list[float]) -> None:
    problem = doses(at)
    vector = problem.vector({"k": 0.8, "dose": 3.0, "x": 1.3})
    forward = ForwardMap(problem)
    assert node_names(forward.field, problem.conditions) == ("x",)
    # A node holds the values before the events of its time.
    before = np.array([compartment(vector, at, np.array([t])) for t in starts])
    before[:, 0] -= [3.0 if t in at else 0.0 for t in starts]
    nodes = Nodes((np.array(starts),), (before,))
    through = integrated(ForwardMap(problem, nodes=nodes), vector)
    assert through.states[:, 0] == pytest.approx(compartment(vector, at, TIMES), rel=1e-8)
