"""Profiles on shooting nodes, where the valley of the best fits is narrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import odefit
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles.continuity import Joint, JointProblem, Straightened, Tangents
from odefit.assessment.profiles.families import Final
from odefit.assessment.profiles.joined import Minimiser
from odefit.assessment.profiles.on_nodes import (
    STOPPED,
    HeldOnNodes,
    NodePoint,
    is_narrow,
    suits_nodes,
)
from odefit.assessment.profiles.profiling import profile_all
from odefit.assessment.profiles.tracing import trace
from odefit.common.arrays import Array
from odefit.methods.polish import POLISH
from odefit.methods.running.control import Control
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from tests.assessment.profiles.narrow import (
    LIMIT,
    exact_interval,
    exact_optimum,
    regression,
    threshold_problem,
)

LONG = 8.0


def optimum(end: float) -> tuple[ForwardMap, Array]:
    problem = threshold_problem(end)
    values = dict(zip(("r", "c", "x"), exact_optimum(end), strict=True))
    forward = ForwardMap(problem)
    exact = np.array([values[key] for key in problem.keys])
    return forward, POLISH.run(forward, 0, exact, Control()).vector


def on_nodes(forward: ForwardMap, vector: Array) -> tuple[JointProblem, Straightened, Array, Array]:
    """The trajectory of a vector on four nodes, with its coordinates."""
    times = [np.array([0.0, 2.0, 4.0, 6.0])]
    problem = JointProblem(forward, times, vector)
    trajectory = forward.trajectory(vector, forward.problem.conditions[0].name, times[0])
    coordinates = Straightened.of(forward.problem, np.abs(vector))
    assert not isinstance(trajectory, Failure)
    nodes = problem.of_nodes(trajectory.states)
    return problem, coordinates, coordinates.of_vector(vector), nodes


def never() -> bool:
    return False


def fits_of_c(stop: Callable[[], bool] = never) -> tuple[HeldOnNodes, NodePoint, Deviance]:
    """The best fits for all values of c, that at the optimum, and the deviance."""
    forward, vector = optimum(LONG)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    deviance = Deviance.of(forward, vector, evaluation)
    index = forward.problem.keys.index("c")
    family = HeldOnNodes(forward, index, vector, UNDECIDED, 1.0, stop)
    first = family.first()
    assert isinstance(first, NodePoint)
    return family, first, deviance


@pytest.mark.slow
def test_an_interval_at_a_threshold_is_that_of_the_exact_solution() -> None:
    forward, vector = optimum(LONG)
    found = profile_all(forward.problem, vector, 0.95, Control(jobs=1), keys=["c"])
    profile = found.profiles[0]
    low, high = exact_interval(LONG)
    width = high - low
    assert profile.ends == ("limit", "limit")
    assert profile.lower == pytest.approx(low, abs=0.002 * width)
    assert profile.upper == pytest.approx(high, abs=0.002 * width)


def test_every_point_on_nodes_is_the_best_fit_for_its_value() -> None:
    family, first, deviance = fits_of_c()
    side = trace(family, first, 1, deviance, LIMIT, True, never)
    least = regression(exact_optimum(LONG)[1], LONG)[0]
    exact = [regression(10**at, LONG)[0] - least for at in side.at]
    assert len(exact) >= 3
    assert side.deviances == pytest.approx(exact, abs=2e-3)
    h = 1e-5
    slopes = [
        (regression(10 ** (at + h), LONG)[0] - regression(10 ** (at - h), LONG)[0]) / (2 * h)
        for at in side.at
    ]
    assert side.slopes == pytest.approx(slopes, rel=1e-2)


def test_a_side_ends_with_a_reason_if_rounding_moves_the_trajectory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family, first, deviance = fits_of_c()
    # Deviations grow by exp(c T): as if numbers had few digits, a larger c is too much.
    monkeypatch.setattr("odefit.assessment.profiles.on_nodes.UNSTABLE", 1.5 * first.stiffness)
    side = trace(family, first, 1, deviance, LIMIT, True, never)
    assert side.end == "failed"
    assert "follow an unstable solution" in side.reason
    assert len(side.at) > 0
    assert family.evaluations < 500


def test_derivatives_on_nodes_are_those_of_differences() -> None:
    problem, coordinates, unknowns, nodes = on_nodes(*optimum(LONG))
    # Away from a solution, below the threshold, so that no gap is zero.
    nodes = nodes - 0.1 * np.abs(np.sin(np.arange(nodes.size))).reshape(nodes.shape)
    at = problem.evaluate(coordinates, unknowns, nodes, UNDECIDED)
    assert not isinstance(at, str)
    n, h = len(unknowns), 1e-5
    for k in range(at.by_coordinate.shape[1]):
        ends = []
        for sign in (1, -1):
            u, y = unknowns.copy(), nodes.copy()
            if k < n:
                u[k] += sign * h
            else:
                y[problem.inner[k - n]] += sign * h  # there is one state
            beside = problem.evaluate(coordinates, u, y, UNDECIDED)
            assert not isinstance(beside, str)
            ends.append(beside)
        rows = (ends[0].residuals - ends[1].residuals) / (2 * h)
        gaps = (ends[0].gaps - ends[1].gaps) / (2 * h)
        assert at.by_coordinate[:, k] == pytest.approx(rows, rel=1e-4, abs=1e-3)
        assert at.gaps_by_coordinate[:, k] == pytest.approx(gaps, rel=1e-4, abs=1e-4)


def test_nodes_that_are_eliminated_leave_the_jacobian_of_one_integration() -> None:
    forward, vector = optimum(LONG)
    problem, coordinates, unknowns, nodes = on_nodes(forward, vector)
    at = problem.evaluate(coordinates, unknowns, nodes, UNDECIDED)
    evaluation = forward.evaluate(vector)
    assert not isinstance(at, str)
    assert isinstance(evaluation, Evaluation)
    whole = evaluation.jacobian * coordinates.derivative(vector)
    assert problem.stiffness(at) == pytest.approx(np.linalg.norm(whole, 2), rel=1e-3)


def test_steps_of_the_null_space_keep_the_linearised_conditions() -> None:
    problem, coordinates, unknowns, nodes = on_nodes(*optimum(LONG))
    at = problem.evaluate(coordinates, unknowns, nodes + 0.01, UNDECIDED)
    assert not isinstance(at, str)
    tangents = Tangents(at, np.array([0, 2]))
    assert tangents.null.T @ tangents.null == pytest.approx(np.eye(tangents.null.shape[1]))
    assert tangents.conditions @ tangents.null == pytest.approx(0.0, abs=1e-10)
    closed = at.gaps + tangents.conditions @ tangents.correction(at.gaps)
    assert closed == pytest.approx(0.0, abs=1e-10)


def test_the_minimum_on_nodes_from_afar_is_the_best_fit() -> None:
    forward, vector = optimum(LONG)
    problem, coordinates, unknowns, nodes = on_nodes(forward, vector)

    def evaluate(u: Array, y: Array) -> Joint | str:
        return problem.evaluate(coordinates, u, y, UNDECIDED)

    minimiser = Minimiser(problem, coordinates, np.arange(3), evaluate, never)
    # A start below the threshold, where the trajectory does not run to infinity.
    away = np.where([key == "x" for key in forward.problem.keys], -0.02, 0.01)
    found = minimiser.minimise(unknowns + away, nodes - 0.02, 1e-5, None)
    assert not isinstance(found, str)
    least = regression(exact_optimum(LONG)[1], LONG)[0]
    assert 2 * found.at.cost == pytest.approx(least, abs=1e-4)


def test_a_minimisation_that_is_stopped_returns_its_best_point_and_says_so() -> None:
    forward, vector = optimum(LONG)
    problem, coordinates, unknowns, nodes = on_nodes(forward, vector)
    points: list[Joint] = []
    asked = []

    def evaluate(u: Array, y: Array) -> Joint | str:
        found = problem.evaluate(coordinates, u, y, UNDECIDED)
        if not isinstance(found, str):
            points.append(found)
        return found

    def after_two_steps() -> bool:
        asked.append(True)
        return len(asked) > 2

    away = np.where([key == "x" for key in forward.problem.keys], -0.02, 0.01)
    start = unknowns + away, nodes - 0.02, 1e-5, None
    whole = Minimiser(problem, coordinates, np.arange(3), evaluate, never).minimise(*start)
    assert not isinstance(whole, str)
    assert not whole.stopped
    assert whole.steps > 2
    points.clear()
    minimiser = Minimiser(problem, coordinates, np.arange(3), evaluate, after_two_steps)
    found = minimiser.minimise(*start)
    assert not isinstance(found, str)
    assert found.stopped
    assert found.steps <= 2
    first = points[0]
    assert found.at.cost < first.cost
    assert np.abs(found.at.gaps).max() < np.abs(first.gaps).max()


def test_a_stopped_refit_on_nodes_is_not_a_point_of_the_profile() -> None:
    stopped = False
    family, first, deviance = fits_of_c(lambda: stopped)
    reached = family.point([first], first.at + 0.01, 1e-5)
    assert isinstance(reached, NodePoint)
    stopped = True
    before = family.evaluations
    assert family.point([first], first.at + 0.01, 1e-5) == STOPPED
    assert family.evaluations == before + 1
    # Asked between two points, a side has nothing to stop: here it is told so within a refit.
    asked = iter([False])
    side = trace(family, first, 1, deviance, LIMIT, True, lambda: next(asked, True))
    assert side.end == "stopped"
    assert len(side.at) == 0


def test_a_time_limit_before_the_first_point_on_nodes_is_not_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control = Control(jobs=1)
    begun = HeldOnNodes.first

    def first(family: HeldOnNodes) -> NodePoint | str:
        control.interrupted.set()
        return begun(family)

    monkeypatch.setattr(HeldOnNodes, "first", first)
    forward, vector = optimum(LONG)
    found = profile_all(forward.problem, vector, 0.95, control, keys=["c"])
    assert found.status is control.early
    assert [p.ends[0] for p in found.profiles] == ["stopped"]


def test_a_side_without_a_search_for_other_optima_is_incomplete(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forward, vector = optimum(LONG)
    path = tmp_path / "sides"
    control = Control(jobs=1, checkpoint=path)
    released = HeldOnNodes.optima

    def optima(family: HeldOnNodes, highest: float, gain: float) -> Array:
        control.interrupted.set()
        return released(family, highest, gain)

    with monkeypatch.context() as patched:
        patched.setattr(HeldOnNodes, "optima", optima)
        found = profile_all(forward.problem, vector, 0.95, control, keys=["c"])
    assert found.status is control.early
    profile = found.profiles[0]
    assert profile.ends[0] == "stopped"
    assert np.isnan(profile.lower)
    assert len(profile.values) > 3  # the points before are there
    again = Control(jobs=1, checkpoint=path)
    whole = profile_all(forward.problem, vector, 0.95, again, keys=["c"])
    assert whole.profiles[0].ends == ("limit", "limit")


def test_finer_nodes_lie_on_the_trajectory_of_coarser_ones() -> None:
    forward, vector = optimum(LONG)
    coarse, coordinates, unknowns, nodes = on_nodes(forward, vector)
    at = coarse.evaluate(coordinates, unknowns, nodes, UNDECIDED)
    assert not isinstance(at, str)
    times = coarse.finer(at)
    assert times is not None  # deviations grow by exp(4) between nodes
    fine = JointProblem(forward, times, vector)
    carried = fine.carried(coarse, at, coordinates)
    assert not isinstance(carried, str)
    joined = fine.evaluate(coordinates, unknowns, carried, UNDECIDED)
    assert not isinstance(joined, str)
    assert joined.gaps == pytest.approx(0.0, abs=1e-5)
    assert joined.growth.max() < at.growth.max()


def test_straightened_coordinates_are_logarithms_where_unknowns_act_and_linear_where_not() -> None:
    problem = threshold_problem(LONG)
    coordinates = Straightened.of(problem, np.full(3, 1e-2))
    x = np.array([1.0, 1e-4, 0.3])
    u = coordinates.of_vector(x)
    assert coordinates.natural(u) == pytest.approx(x)
    assert coordinates.derivative(x)[0] == pytest.approx(1.0, rel=1e-3)  # dx/d ln x
    assert coordinates.derivative(x)[1] == pytest.approx(2e-2, rel=1e-3)


def test_narrow_and_wide_valleys_are_distinguished() -> None:
    forward, vector = optimum(LONG)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    assert is_narrow(evaluation, vector, 1.0)
    easy = odefit.library.load("alpha-pinene")
    best = odefit.fit(easy).starts[0].vector
    evaluation = ForwardMap(easy).evaluate(best)
    assert isinstance(evaluation, Evaluation)
    assert not is_narrow(evaluation, best, evaluation.objective)
    assert suits_nodes(easy)


def test_a_final_reason_is_not_asked_for_again_with_a_shorter_step() -> None:
    forward, vector = optimum(LONG)
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    family = HeldOnNodes(forward, 1, vector, UNDECIDED, 1.0, never)
    first = family.first()
    assert isinstance(first, NodePoint)
    asked = []

    class Wall:
        evaluations = minimisations = 0
        lower, upper, exact = -3.0, 3.0, True

        def first(self) -> NodePoint | str:
            return first

        def point(self, near: object, at: float, gain: float) -> NodePoint | str:
            asked.append(at)
            return Final("no further")

    deviance = Deviance.of(forward, vector, evaluation)
    side = trace(Wall(), first, 1, deviance, LIMIT, True, never)
    assert (side.end, side.reason) == ("failed", "no further")
    assert len(asked) == 1


def test_a_step_that_closes_gaps_keeps_to_the_bounds() -> None:
    forward, vector = optimum(LONG)
    problem, coordinates, unknowns, nodes = on_nodes(forward, vector)

    def evaluate(u: Array, y: Array) -> Joint | str:
        return problem.evaluate(coordinates, u, y, UNDECIDED)

    at = evaluate(unknowns, nodes - 0.01)
    assert not isinstance(at, str)
    tangents = Tangents(at, np.arange(3))
    shortest = tangents.correction(at.gaps)
    # Bounds at the point itself forbid what the shortest step would do.
    tight = replace(
        coordinates,
        lower=np.where(shortest[:3] < 0, unknowns, coordinates.lower),
        upper=np.where(shortest[:3] > 0, unknowns, coordinates.upper),
    )
    minimiser = Minimiser(problem, tight, np.arange(3), evaluate, never)
    step = minimiser.closing(tangents, at, np.zeros(3, dtype=bool))
    assert np.abs(shortest[:3]).min() > 1e-5
    assert step[:3] == pytest.approx(0.0, abs=1e-12)
    assert at.gaps + tangents.conditions @ step == pytest.approx(0.0, abs=1e-10)
