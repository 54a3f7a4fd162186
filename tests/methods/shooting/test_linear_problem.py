"""The Gauss-Newton step is that of all nodes and unknowns at once, bounds and all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.linalg import null_space

from odefit import Event, Experiment, Model, Problem
from odefit.methods.shooting.linear_problem import (
    LinearisedConstraints,
    LinearProblem,
    UserConstraints,
)
from odefit.methods.shooting.node_evaluation import typical_sizes
from odefit.methods.shooting.shooting_problem import Linearisation, Point, ShootingProblem
from tests.methods.shooting.instances import (
    exchange,
    linear_problem,
    linearised,
    on_trajectory,
    shaken,
)
from tests.simulation.numerics import Array


def everything() -> tuple[Problem, Array, list[Array]]:
    """Three experiments of 1, 2 and 6 nodes, events, unknowns of one experiment alone."""
    data = {"t": [0.0, 0.5, 1.0, 2.0, 3.0], "y": [1.0, 0.8, 0.9, 0.6, 0.2]}
    problem = Problem(
        Model(ode={"x": "-k*x + w", "v": "x - m*v"}, observables={"y": "x + v/2"}),
        parameters={"k": {}, "m": {"lower": 0.0}, "w": {}},
        initial={"x": {"per_experiment": True}, "v": "k"},
        experiments=[
            Experiment("a", data),
            Experiment("b", data, t0=-1.0),
            Experiment("c", data, events=[Event((1.5,), {"w": "w*m"})]),
        ],
    )
    vector = np.linspace(0.5, 1.2, len(problem.keys))
    node_times = [np.array([0.0]), np.array([-1.0, 1.0]), np.array([0.0, 0.2, 0.5, 1.0, 1.7, 2.5])]
    return problem, vector, node_times


def two_states() -> tuple[Problem, Array, list[Array]]:
    return exchange(), np.array([0.6, 0.4, 1.0, 0.1]), [np.linspace(0.0, 9.0, 10)]


CASES: dict[str, Callable[[], tuple[Problem, Array, list[Array]]]] = {
    "everything": everything,
    "two states": two_states,
}


def dense(shooting: ShootingProblem, at: Linearisation) -> tuple[Array, Array, Array]:
    """J1, J2, and the map from (unknowns, all nodes but the first) to (unknowns, all nodes)."""
    chains = shooting.chains
    n, size, nodes = chains.unknowns, chains.size, chains.nodes
    width = n + nodes * size

    def at_node(k: int) -> slice:
        return slice(n + k * size, n + (k + 1) * size)

    rows = np.zeros((len(at.residuals), width))
    rows[:, :n] = at.rows_by_unknown
    for r, node in enumerate(chains.row_nodes):
        rows[r, at_node(int(node))] = at.rows_by_node[r]
    equations = np.zeros((len(chains.left), size, width))
    for i, left in enumerate(chains.left):
        equations[i, :, :n] = at.by_unknown[i]
        equations[i, :, at_node(int(left))] = at.by_node[i]
        equations[i, :, at_node(int(left) + 1)] = -np.eye(size)
    free = [k for k in range(nodes) if k not in chains.firsts]
    expand = np.zeros((width, n + len(free) * size))
    expand[:n, :n] = np.eye(n)
    for i, k in enumerate(free):
        expand[at_node(k), n + i * size : n + (i + 1) * size] = np.eye(size)
    for k, slope in zip(chains.firsts, at.first_by_unknown, strict=True):
        expand[at_node(int(k)), :n] = slope
    return rows @ expand, equations.reshape(-1, width) @ expand, expand


def flat(point: Point) -> Array:
    return np.concatenate([point.coordinates, point.nodes.ravel()])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_step_solves_the_whole_problem(name: str) -> None:
    problem, vector, node_times = CASES[name]()
    shooting, point = on_trajectory(problem, vector, node_times)
    at = linearised(shooting, shaken(point, 0.1))
    linear = linear_problem(shooting, at)
    none = LinearisedConstraints.none(len(vector))
    J1, J2, expand = dense(shooting, at)
    particular = np.linalg.lstsq(J2, -at.gaps.ravel(), rcond=None)[0]
    free = null_space(J2)
    rest = np.linalg.lstsq(J1 @ free, -at.residuals - J1 @ particular, rcond=None)[0]
    expected = expand @ (particular + free @ rest)
    step = linear.step(at, UserConstraints(none, none))
    assert flat(step) == pytest.approx(expected, rel=1e-7, abs=1e-8)
    # So is a correction, for F at another point.
    other = linearised(shooting, shaken(point, 0.05, seed=3))
    particular = np.linalg.lstsq(J2, -other.gaps.ravel(), rcond=None)[0]
    rest = np.linalg.lstsq(J1 @ free, -other.residuals - J1 @ particular, rcond=None)[0]
    found = linear.correction(other, UserConstraints(none, none))
    assert flat(found) == pytest.approx(expand @ (particular + free @ rest), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_scaling_unknowns_and_states_does_not_change_the_step(name: str) -> None:
    problem, vector, node_times = CASES[name]()
    shooting, point = on_trajectory(problem, vector, node_times)
    at = linearised(shooting, shaken(point, 0.1))
    none = LinearisedConstraints.none(len(vector))
    user = UserConstraints(none, none)
    first = linear_problem(shooting, at).step(at, user)
    sizes = np.geomspace(1e-4, 1e4, len(vector))
    again = LinearProblem(shooting, at, sizes, UserConstraints(none, none)).step(
        at, UserConstraints(none, none)
    )
    assert flat(again) == pytest.approx(flat(first), rel=1e-6, abs=1e-8)


def test_the_step_within_conditions_and_bounds_solves_a_quadratic_program() -> None:
    """One equation and one inequality on unknowns and nodes, a bound that is reached."""
    problem, vector, _ = two_states()
    problem = exchange(
        parameters={"k1": {"lower": 0.58, "upper": 5.0}, "k2": {"lower": 0.0, "upper": 0.41}}
    )
    node_times = [np.linspace(0.0, 8.0, 5)]
    _, point = on_trajectory(problem, vector, node_times)
    from odefit import ForwardMap

    sizes = np.array([1.0, 0.7])
    shooting = ShootingProblem(ForwardMap(problem), node_times, sizes, [(0, 2), (0, 3)])
    at = linearised(shooting, shaken(point, 0.05, seed=4))
    n = len(vector)
    equation = LinearisedConstraints(
        np.array([0.1]), np.array([[1.0, 0.0, 0.5, 0.0]]), {2: np.array([[1.0, -2.0]])}
    )
    inequality = LinearisedConstraints(
        np.array([-0.02]), np.zeros((1, n)), {3: np.array([[0.0, 1.0]])}
    )
    z = at.point.coordinates
    linear = LinearProblem(
        shooting, at, typical_sizes(shooting, z, z, 0.01), UserConstraints(equation, inequality)
    )
    step = linear.step(at, UserConstraints(equation, inequality))
    assert linear.feasible
    J1, J2, expand = dense(shooting, at)

    def wide(conditions: LinearisedConstraints) -> Array:
        out = np.zeros((1, expand.shape[0]))
        out[:, :n] = conditions.by_unknown
        for k, block in conditions.by_node.items():
            out[:, n + 2 * k : n + 2 * k + 2] += block
        return out @ expand

    E, G = wide(equation), wide(inequality)
    low, high = shooting.scaling.lower - z, shooting.scaling.upper - z
    solve: Any = optimize.minimize
    found = solve(
        lambda y: 0.5 * float(np.sum((J1 @ y + at.residuals) ** 2)),
        np.zeros(J1.shape[1]),
        jac=lambda y: J1.T @ (J1 @ y + at.residuals),
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda y: J2 @ y + at.gaps.ravel(), "jac": lambda y: J2},
            {"type": "eq", "fun": lambda y: E @ y + equation.values, "jac": lambda y: E},
            {"type": "ineq", "fun": lambda y: G @ y + inequality.values, "jac": lambda y: G},
            {
                "type": "ineq",
                "fun": lambda y: (y[:n] - low)[:2],
                "jac": lambda y: np.eye(len(y))[:2],
            },
            {
                "type": "ineq",
                "fun": lambda y: (high - y[:n])[:2],
                "jac": lambda y: -np.eye(len(y))[:2],
            },
        ],
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert found.success
    assert flat(step) == pytest.approx(expand @ found.x, abs=2e-5)


def test_bounds_that_the_conditions_exclude_are_not_feasible() -> None:
    problem, vector, node_times = two_states()
    shooting, point = on_trajectory(problem, vector, node_times)
    at = linearised(shooting, point)
    n = len(vector)
    # k1 + k2 = 20, and neither may be above 5.
    equation = LinearisedConstraints(np.array([-19.0]), np.array([[1.0, 1.0, 0.0, 0.0]]), {})
    linear = LinearProblem(
        shooting, at, np.ones(n), UserConstraints(equation, LinearisedConstraints.none(n))
    )
    linear.step(at, UserConstraints(equation, LinearisedConstraints.none(n)))
    assert not linear.feasible


def test_equations_between_bounds_that_hold_all_at_once_do_not_contradict() -> None:
    """k1 + k2 = 1, both at least 1/2: one point, three conditions, no contradiction."""
    problem = exchange(parameters={"k1": {"lower": 0.5}, "k2": {"lower": 0.5}})
    node_times = [np.linspace(0.0, 9.0, 10)]
    shooting, point = on_trajectory(problem, np.array([0.6, 0.7, 1.0, 0.1]), node_times)
    at = linearised(shooting, point)
    equation = LinearisedConstraints(np.array([0.3]), np.array([[1.0, 1.0, 0.0, 0.0]]), {})
    none = LinearisedConstraints.none(4)
    linear = LinearProblem(shooting, at, np.ones(4), UserConstraints(equation, none))
    step = linear.step(at, UserConstraints(equation, none))
    assert linear.feasible
    assert at.point.coordinates[:2] + step.coordinates[:2] == pytest.approx([0.5, 0.5])
    assert linear.contradiction(at, UserConstraints(equation, none)) < 1e-9
