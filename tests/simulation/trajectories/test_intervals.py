"""Intervals that begin on a trajectory are that trajectory, whatever happens in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from odefit import Event, Experiment, Failure, ForwardMap, Model, Problem, library
from odefit.simulation import Evaluation, Trajectory
from odefit.simulation.engines.engines import Engines
from odefit.simulation.nodes import Nodes, node_names
from odefit.simulation.trajectories.intervals import IntervalSolution
from tests.simulation.numerics import Array, differences, evaluated
from tests.simulation.sampling import (
    chained,
    inner_node_times,
    integrated_intervals,
    interval_map,
    node_values,
    nodes_on,
)
from tests.simulation.zoo import NOISE, ZOO, Case, at

NAN = float("nan")


def corners(kind: Any) -> Callable[[], Case]:
    """An input with corners between the data, of any kind."""

    def build() -> Case:
        times = [0.0, 0.4, 0.7, 1.0, 1.6, 2.2, 2.4, 2.5, 4.0]
        u = [0.0, 2.0, 1.0, NAN, 3.0, -1.0, 0.0, NAN, 1.0]
        x = [0.0, NAN, NAN, 1.0, NAN, NAN, NAN, 2.0, 1.5]
        problem = Problem(
            Model(ode={"x": "a*u - k*x", "y": "u^2 - y"}, inputs={"u": kind}),
            parameters={"a": {}, "k": {}},
            initial={"x": {}, "y": 0.2},
            experiments=[Experiment("run", {"t": times, "u": u, "x": x})],
        )
        return at(problem, a=0.9, k=0.4, x=0.3)

    return build


def doses_of_everything() -> Case:
    """Events at data times, at t0, between data; of states, constants and parameters."""
    problem = Problem(
        Model(
            ode={"x": "-k*x*on + w*y", "y": "k*x - y"},
            observables={"x": "x", "r": "x/(1 + y) + on"},
            constants={"on": 1.0, "w": 0.2},
        ),
        parameters={"k": {}, "dose": {}},
        initial={"x": {}, "y": "dose/2"},
        experiments=[
            Experiment(
                "a",
                {"t": [0.0, 1.0, 2.0, 3.0], "x": [1.0, 2.0, 1.0, NAN], "r": [NAN, 1.0, 1.0, 2.0]},
                events=[
                    Event((0.0,), {"x": "x + dose"}),
                    Event((1.0,), {"on": "on*k", "y": "y + x"}),
                    Event((1.5, 2.5), {"x": "x + on", "w": "w + 0.1*dose"}),
                    Event((1.5,), {"k": "k/2"}),
                    Event((9.0,), {"x": "0"}),
                ],
            ),
            Experiment("b", {"t": [0.5, 2.0], "x": [1.0, 1.0], "r": [1.0, 1.0]}, t0=-1.0),
        ],
    )
    return at(problem, k=0.6, dose=1.3, x=0.9)


CASES: dict[str, Callable[[], Case]] = {
    **ZOO,
    **{f"a {kind} input": corners(kind) for kind in ("constant", "linear", "cubic")},
    "doses of everything": doses_of_everything,
}

ACCURACY = {"kinks": 1e-5, "linear algebra": 1e-5, "nonlinear algebra": 1e-5}
"""Of CVODES and IDAS, which integrate these."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_on_a_trajectory_intervals_are_the_single_integration(name: str) -> None:
    """States, algebraic variables, and by the chain rule all sensitivities."""
    problem, vector = CASES[name]()
    forward = ForwardMap(problem)
    tolerance = ACCURACY.get(name, 1e-8)
    for number, node_times in enumerate(inner_node_times(forward)):
        condition = problem.conditions[number]
        whole = forward.trajectory(vector, condition.name)
        assert isinstance(whole, Trajectory)
        solution = integrated_intervals(forward, vector, number, node_times)
        found = solution.trajectory
        assert found.states == pytest.approx(whole.states, rel=tolerance, abs=tolerance)
        assert found.algebraic == pytest.approx(whole.algebraic, rel=tolerance, abs=tolerance)
        ends = node_values(forward, vector, number, node_times)[1:]
        assert solution.ends == pytest.approx(ends, rel=tolerance, abs=tolerance)
        full = np.zeros((*whole.states.shape, len(vector)))
        full[:, :, list(whole.unknowns)] = whole.sensitivities
        interval = interval_map(forward, vector, number, node_times).interval
        chain = chained(solution, interval)
        assert chain == pytest.approx(full, rel=10 * tolerance, abs=10 * tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, *NOISE])
def test_residuals_on_nodes_are_those_of_the_single_integration(name: str) -> None:
    """Observables, noise models, transforms and priors do not notice the nodes."""
    problem, vector = {**CASES, **NOISE}[name]()
    forward = ForwardMap(problem)
    nodes = nodes_on(forward, vector, inner_node_times(forward))
    whole, pieces = evaluated(forward, vector), evaluated(ForwardMap(problem, nodes=nodes), vector)
    tolerance = ACCURACY.get(name, 1e-8)
    assert pieces.residuals == pytest.approx(whole.residuals, rel=tolerance, abs=10 * tolerance)
    assert pieces.objective == pytest.approx(whole.objective, rel=10 * tolerance)
    if whole.log_likelihood is not None:
        assert pieces.log_likelihood == pytest.approx(whole.log_likelihood, rel=10 * tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_unknowns_and_nodes_are_those_of_finite_differences(name: str) -> None:
    """Also off the trajectory, where nodes are anything."""
    problem, vector = CASES[name]()
    forward = ForwardMap(problem)
    n = len(vector)
    number, node_times = 0, inner_node_times(forward)[0][::2]
    pieces = interval_map(forward, vector, number, node_times)
    nodes = node_values(forward, vector, number, node_times)
    nodes = nodes * (1 + 0.02 * np.random.default_rng(0).normal(size=nodes.shape))
    size = nodes.shape[1]
    exact = pieces(vector, nodes[1:])
    assert isinstance(exact, IntervalSolution)

    def ends(all_values: Array) -> Array:
        """Unknowns, and one shift that all nodes have in common."""
        found = pieces(all_values[:n], nodes[1:] + all_values[n:] - 1.0)
        assert isinstance(found, IntervalSolution)
        values = np.concatenate([found.trajectory.states, found.trajectory.algebraic], axis=1)
        return np.concatenate([values.ravel(), found.ends.ravel()])

    numeric = differences(ends, np.concatenate([vector, np.ones(size)]), 1e-3)
    t = exact.trajectory
    derivatives = np.concatenate([t.sensitivities, t.algebraic_sensitivities], axis=1)
    derivatives[pieces.interval == 0, :, :n] += (
        derivatives[pieces.interval == 0, :, n:] @ exact.first_node_by_unknown
    )
    derivatives[pieces.interval == 0, :, n:] = 0.0  # the first node follows from the unknowns
    by_node, by_unknown = exact.by_node.copy(), exact.by_unknown.copy()
    by_unknown[:1] += by_node[:1] @ exact.first_node_by_unknown
    by_node[:1] = 0.0
    analytic = np.concatenate(
        [
            derivatives.reshape(-1, n + size),
            np.concatenate([by_unknown, by_node], axis=2).reshape(-1, n + size),
        ]
    )
    rough = 3e-3 if name == "kinks" else 2e-5
    assert analytic == pytest.approx(numeric, rel=rough, abs=rough)


# All at once and one by one ----------------------------------------------------------------------


def alone(forward: ForwardMap, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on intervals are integrated one by one."""
    monkeypatch.setattr(Engines, "batch_integrator", lambda *arguments: None)


@pytest.mark.parametrize("name", ["henon-heiles", "fitzhugh-nagumo", "seasonal-lotka-volterra"])
def test_evaluation_at_once_equals_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = library.load(name)
    reference = library.reference(name)
    vector = problem.vector({**reference.parameters, **reference.initial})
    forward = ForwardMap(problem)
    node_times = problem.conditions[0].times[:-1:3]
    node_times = np.unique(np.append(node_times, problem.conditions[0].t0))
    together = integrated_intervals(forward, vector, 0, node_times)
    alone(forward, monkeypatch)
    apart = integrated_intervals(ForwardMap(problem), vector, 0, node_times)
    for one, other in (
        (together.trajectory.states, apart.trajectory.states),
        (together.trajectory.sensitivities, apart.trajectory.sensitivities),
        (together.ends, apart.ends),
        (together.by_node, apart.by_node),
        (together.by_unknown, apart.by_unknown),
    ):
        assert one == pytest.approx(other, rel=1e-8, abs=1e-8 * np.abs(other).max())


def test_stiff_intervals_are_integrated_by_the_implicit_engine() -> None:
    problem = Problem(
        Model(ode={"x": "-k*(x - cos(t))", "y": "x - y"}),
        {"t": np.linspace(0.0, 5.0, 6), "y": np.ones(6)},
        {"k": {}},
        {"x": {}, "y": 0.5},
    )
    vector = problem.vector({"k": 1e5, "x": 2.0})
    forward = ForwardMap(problem)
    node_times = np.array([0.0, 2.0, 4.0])
    nodes = np.array([[2.0, 0.5], [np.cos(2.0), 0.2], [np.cos(4.0), -0.6]])
    solution = interval_map_of(problem, forward, node_times)(vector, nodes[1:])
    assert isinstance(solution, IntervalSolution)
    assert forward.engines.preferred(solution.trajectory.choice) == "bdf"
    assert solution.ends[:, 0] == pytest.approx(np.cos(node_times[1:]), abs=1e-4)
    y = 0.2 * np.exp(-2) + (np.cos(4) + np.sin(4)) / 2 - (np.cos(2) + np.sin(2)) / 2 * np.exp(-2)
    assert solution.ends[1, 1] == pytest.approx(y, abs=1e-4)
    assert solution.by_node[1, 1, 1] == pytest.approx(np.exp(-2), abs=1e-5)
    assert np.abs(solution.by_node[:, :, 0]).max() < 1e-4


def interval_map_of(problem: Problem, forward: ForwardMap, node_times: Array) -> Any:
    from odefit.simulation.trajectories.intervals import IntervalMap

    names = node_names(forward.field, problem.conditions)
    sizes, n = np.ones(len(names)), len(problem.unknowns)
    return IntervalMap(
        forward.field, problem.conditions[0], forward.engines, node_times, sizes, n, names
    )


# Edges -------------------------------------------------------------------------------------------


def decay_on(times: Array, node_times: Array, **more: Any) -> tuple[Problem, Any]:
    data = {"t": times, "x": np.ones(len(times))}
    problem = Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": {}}, **more)
    return problem, interval_map_of(
        problem, ForwardMap(problem), np.asarray(node_times, dtype=float)
    )


def test_a_measurement_at_a_node_is_one_of_the_node() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0])
    _, pieces = decay_on(times, np.array([0.0, 1.0, 2.0]))
    solution = pieces(np.array([0.5, 4.0]), np.array([[10.0], [20.0]]))
    assert isinstance(solution, IntervalSolution)
    assert solution.trajectory.states[:, 0] == pytest.approx([4, 10, 20, 20 * np.exp(-0.5)])
    assert solution.ends[:, 0] == pytest.approx([4 * np.exp(-0.5), 10 * np.exp(-0.5)])
    # By k, by the initial value, by the node.
    assert solution.trajectory.sensitivities[1, 0] == pytest.approx([0, 0, 1])
    assert solution.by_unknown[0, 0] == pytest.approx([-4 * np.exp(-0.5), 0])


def test_a_node_at_the_last_measurement_is_that_measurement() -> None:
    """As a constraint there asks for."""
    _, pieces = decay_on(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))
    solution = pieces(np.array([0.5, 4.0]), np.array([[10.0], [7.0]]))
    assert isinstance(solution, IntervalSolution)
    assert solution.trajectory.states[:, 0] == pytest.approx([4, 10, 7])
    assert solution.trajectory.sensitivities[2, 0] == pytest.approx([0, 0, 1])


def test_intervals_may_lack_measurements_and_precede_all_data() -> None:
    times = np.array([3.0, 8.0])
    _, pieces = decay_on(times, np.array([-1.0, 0.0, 1.0, 2.0, 5.0, 6.0]), t0=-1.0)
    nodes = np.arange(2.0, 7.0)[:, None]
    solution = pieces(np.array([0.5, 1.0]), nodes)
    assert isinstance(solution, IntervalSolution)
    assert solution.trajectory.states[:, 0] == pytest.approx([4 * np.exp(-0.5), 6 * np.exp(-1)])
    starts = np.array([1.0, 2, 3, 4, 5])
    assert solution.ends[:, 0] == pytest.approx(
        starts * np.exp(-0.5 * np.array([1, 1, 1, 3, 1])), rel=1e-9
    )


def test_nodes_a_rounding_error_beside_the_data_are_allowed() -> None:
    times = np.array([0.0, 0.1, 0.3, 0.4])
    _, pieces = decay_on(times, np.array([0.0, 0.1 + 1e-17, 0.1 + 0.2]))
    solution = pieces(np.array([0.5, 1.0]), np.exp(-0.5 * np.array([[0.1], [0.3]])))
    assert isinstance(solution, IntervalSolution)
    assert solution.trajectory.states[:, 0] == pytest.approx(np.exp(-0.5 * times))


def test_two_nodes_may_be_adjacent_floats() -> None:
    cut = np.nextafter(1.0, 2.0)
    _, pieces = decay_on(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, cut]))
    solution = pieces(np.array([0.5, 1.0]), np.array([[0.7], [0.9]]))
    assert isinstance(solution, IntervalSolution)
    assert solution.ends[1, 0] == pytest.approx(0.7)
    assert solution.trajectory.states[:, 0] == pytest.approx([1, 0.7, 0.9 * np.exp(-0.5)])


def test_an_interval_that_blows_up_says_where_and_why() -> None:
    problem = Problem(
        Model(ode={"x": "k*x^2"}),
        {"t": np.linspace(0.0, 4.0, 9), "x": np.ones(9)},
        {"k": {}},
        {"x": 1.0},
    )
    pieces = interval_map_of(problem, ForwardMap(problem), np.array([0.0, 1.0, 2.0, 3.0]))
    failure = pieces(np.array([0.1]), np.array([[1.0], [1e3], [1.0]]))
    assert isinstance(failure, Failure)
    assert failure.experiment == problem.conditions[0].name
    assert failure.time == pytest.approx(2.01, abs=0.02)


def test_a_start_that_is_not_a_number_is_a_failure() -> None:
    _, pieces = decay_on(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0]))
    assert isinstance(pieces(np.array([0.5, 1.0]), np.array([[np.nan]])), Failure)
    with np.errstate(all="ignore"):  # as for all far points of a search
        assert isinstance(pieces(np.array([0.5, np.inf]), np.array([[1.0]])), Failure)


def test_algebraic_equations_without_solution_are_a_failure() -> None:
    problem = Problem(
        Model(ode={"x": "z"}, algebraic={"z": "z^2 + 1 - x"}, observables={"y": "z"}),
        {"t": [0.0, 1.0, 2.0], "y": [1.0, 1.0, 1.0]},
        {"k": {}},
        {"x": {}, "z": 1.0},
    )
    pieces = interval_map_of(problem, ForwardMap(problem), np.array([0.0, 1.0]))
    vector = problem.vector({"k": 1.0, "x": 2.0})
    assert isinstance(pieces(vector, np.array([[-3.0]])), Failure)
    assert isinstance(pieces(vector, np.array([[3.0]])), IntervalSolution)


# Trajectories through nodes ----------------------------------------------------------------------


def through_nodes() -> tuple[Problem, Nodes]:
    """Nodes that do not lie on one trajectory."""
    problem, _ = decay_on(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0]))
    return problem, Nodes((np.array([0.0, 1.0, 2.5]),), (np.array([[9.0], [10.0], [30.0]]),))


def test_a_trajectory_through_nodes_restarts_at_each() -> None:
    problem, nodes = through_nodes()
    vector = np.array([0.5, 4.0])
    forward = ForwardMap(problem, nodes=nodes)
    times = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
    path = forward.trajectory(vector, times=times)
    assert isinstance(path, Trajectory)
    expected = [4, 4 * np.exp(-0.25), 10, 10 * np.exp(-0.5), 30, 30 * np.exp(-0.75)]
    assert path.states[:, 0] == pytest.approx(expected)
    # The nodes are held.
    assert path.sensitivities[:, 0, 1] == pytest.approx(0)
    assert path.sensitivities[3, 0, 0] == pytest.approx(-10 * np.exp(-0.5))


@pytest.mark.parametrize("last", [0.0, 0.5, 1.0, 1.5, 2.5, 7.0])
def test_states_may_be_requested_at_few_times_only(last: float) -> None:
    problem, nodes = through_nodes()
    path = ForwardMap(problem, nodes=nodes).trajectory(np.array([0.5, 4.0]), times=np.array([last]))
    assert isinstance(path, Trajectory)
    start, value = max((t, v) for t, v in [(0, 4.0), (1, 10.0), (2.5, 30.0)] if t < last or t == 0)
    if last == 1.0:
        assert path.states[0, 0] in (pytest.approx(10.0), pytest.approx(4 * np.exp(-0.5)))
    elif last == 2.5:
        assert path.states[0, 0] in (pytest.approx(30.0), pytest.approx(10 * np.exp(-0.75)))
    else:
        assert path.states[0, 0] == pytest.approx(value * np.exp(-0.5 * (last - start)))


def test_an_empty_list_of_times_is_allowed() -> None:
    problem, nodes = through_nodes()
    path = ForwardMap(problem, nodes=nodes).trajectory(np.array([0.5, 4.0]), times=np.zeros(0))
    assert isinstance(path, Trajectory)
    assert path.states.shape == (0, 1)


def test_evaluations_through_nodes_are_as_usual() -> None:
    problem, nodes = through_nodes()
    found = ForwardMap(problem, nodes=nodes).evaluate(np.array([0.5, 4.0]))
    assert isinstance(found, Evaluation)
    r = 1 - np.array([4, 10, 10 * np.exp(-0.5), 30 * np.exp(-0.25)])
    assert found.objective == pytest.approx(float(r @ r))
