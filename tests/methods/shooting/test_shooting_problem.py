"""Residuals, gaps and their derivatives on nodes, whatever the problem has in it."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Problem
from odefit.methods.shooting.shooting_problem import Linearisation, Point
from tests.methods.shooting.instances import exchange, linearised, on_trajectory, shaken
from tests.simulation.numerics import Array, evaluated
from tests.simulation.sampling import inner_node_times
from tests.simulation.trajectories.test_intervals import CASES
from tests.simulation.zoo import NOISE, Case

ALL = {**CASES, **NOISE}


def with_scales() -> Case:
    """Unknowns in log10, bounds on both sides, a prior."""
    problem = exchange(
        parameters={
            "k1": {"scale": "log10", "lower": 0.01, "upper": 5.0},
            "k2": {"scale": "log10", "prior": {"mean": 0.5, "sd": 0.1}},
        },
        initial={"x": {"lower": 0.0, "upper": 3.0}, "y": {}},
        noise={"x": {"sd": "estimate"}, "y": {"relative": 0.1}},
    )
    return problem, problem.vector({"k1": 0.6, "k2": 0.4, "x": 1.0, "y": 0.1, "x_sd": 0.03})


ALL["scales, bounds, a prior"] = with_scales


def cuts_of(problem: Problem) -> list[Array]:
    from odefit import ForwardMap

    return inner_node_times(ForwardMap(problem))


@pytest.mark.parametrize("name", ALL)
def test_on_a_trajectory_nothing_differs_from_the_single_integration(name: str) -> None:
    """Cost and objective, no gaps, and the gradient of the cost by the chain rule."""
    problem, vector = ALL[name]()
    shooting, point = on_trajectory(problem, vector, cuts_of(problem))
    at = linearised(shooting, point)
    whole = evaluated(shooting.forward, vector)
    tolerance = 1e-4 if name in ("kinks", "linear algebra", "nonlinear algebra") else 1e-7
    assert np.abs(at.gaps / shooting.sizes).max(initial=0.0) < tolerance
    assert at.evaluation.objective == pytest.approx(whole.objective, rel=tolerance)
    assert at.evaluation.cost == pytest.approx(whole.cost, rel=tolerance)
    # Sensitivities of the nodes by the coordinates, interval by interval.
    chains = shooting.chains
    derivatives = np.zeros((chains.nodes, chains.size, chains.unknowns))
    derivatives[chains.firsts] = at.first_by_unknown
    for i, left in enumerate(chains.left):
        derivatives[left + 1] = at.by_node[i] @ derivatives[left] + at.by_unknown[i]
    jacobian = at.rows_by_unknown + np.einsum(
        "ri,rij->rj", at.rows_by_node, derivatives[chains.row_nodes]
    )
    slope = shooting.scaling.derivative(vector)
    expected = whole.residuals @ whole.jacobian * slope
    scale = np.abs(expected).max() + 1e-9
    assert at.residuals @ jacobian == pytest.approx(expected, rel=10 * tolerance, abs=1e-5 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_derivatives_along_any_direction_are_those_of_finite_differences(name: str) -> None:
    """Of the cost and of the gaps, by unknowns and nodes together, off the trajectory."""
    problem, vector = ALL[name]()
    shooting, point = on_trajectory(problem, vector, cuts_of(problem))
    point = shaken(point, 0.02)
    at = linearised(shooting, point)
    random = np.random.default_rng(1)
    direction = Point(
        0.3 * np.maximum(np.abs(point.coordinates), 0.1) * random.normal(size=len(vector)),
        0.3 * shooting.sizes * random.normal(size=point.nodes.shape),
    )

    def moved(fraction: float) -> Linearisation:
        return linearised(shooting, at.point.moved(direction, fraction))

    h = 1e-3
    points = {k: moved(k * h) for k in (-2, -1, 1, 2)}
    weights = {-2: 1.0, -1: -8.0, 1: 8.0, 2: -1.0}
    gaps = sum(w * points[k].gaps for k, w in weights.items()) / (12 * h)
    cost = sum(w * points[k].evaluation.cost for k, w in weights.items()) / (12 * h)
    chains, dz = shooting.chains, direction.coordinates
    ds = direction.nodes.copy()
    ds[chains.firsts] = at.first_by_unknown @ dz
    rate = at.rows_by_unknown @ dz + np.sum(at.rows_by_node * ds[chains.row_nodes], axis=1)
    exact_gaps = np.einsum("kij,kj->ki", at.by_node, ds[chains.left]) + at.by_unknown @ dz
    exact_gaps -= ds[chains.left + 1]
    rough = 3e-3 if name == "kinks" else 1e-5
    scale = float(np.abs(exact_gaps).max(initial=1e-9))
    assert exact_gaps == pytest.approx(gaps, rel=rough, abs=rough * scale)
    size = float(np.linalg.norm(at.residuals) * np.linalg.norm(rate))
    assert at.residuals @ rate == pytest.approx(cost, rel=10 * rough, abs=rough * size)


def test_a_point_that_misses_a_bound_by_rounding_is_at_the_bound() -> None:
    problem = exchange()
    vector = np.array([0.6, 0.4, 1.0, 0.1])
    shooting, point = on_trajectory(problem, vector, [np.array([0.0, 5.0])])
    below = Point(point.coordinates - [0.6 + 1e-18, 0, 0, 0], point.nodes)
    assert linearised(shooting, below).point.coordinates[0] == 0.0


def test_first_nodes_are_filled_in() -> None:
    problem = exchange()
    vector = np.array([0.6, 0.4, 1.0, 0.1])
    shooting, point = on_trajectory(problem, vector, [np.array([0.0, 5.0])])
    nodes = point.nodes.copy()
    nodes[0] = np.nan
    at = linearised(shooting, Point(point.coordinates, nodes))
    assert at.point.nodes[0] == pytest.approx([1.0, 0.1])
    assert shooting.nodes_of(at.point).count == 2


def test_the_total_sum_of_squares_is_what_constant_predictions_leave() -> None:
    problem = exchange()
    shooting, point = on_trajectory(problem, np.array([0.6, 0.4, 1.0, 0.1]), [np.array([0.0, 5.0])])
    data = problem.data()
    expected = sum(float(np.sum((data[k] - data[k].mean()) ** 2)) for k in "xy")
    total = shooting.total_sum_of_squares(linearised(shooting, point))
    assert total == pytest.approx(expected)
