"""Tests of iterated local search as a route of the automatic method."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from odefit import Automatic, Control, ForwardMap, Model, Problem, Start, Status
from odefit.methods.automatic.iterated_search import (
    HEAD_START,
    MAX_BASES,
    IteratedSearch,
    base_of,
    bases_of,
    can_begin_at,
)
from odefit.methods.automatic.route_table import HALVING, ITERATED, SHOOTING, search_routes
from odefit.methods.automatic.routes import VAIN_STARTS, Seen
from odefit.methods.estimate import Estimate, Route
from odefit.methods.incremental_shooting import FINAL
from odefit.methods.local.cost_tolerance import CostTolerance, reaches
from odefit.methods.local.variable_projection import VariableProjection
from odefit.simulation.nodes import Nodes
from tests.methods.checkpoints import execute, records

TOLERANCE = CostTolerance(None, 1e-4, 0.0)


def rugged(unknowns: int) -> Problem:
    """Return a problem with two optima of each unknown, at 1 and near 3, of which 1 is better.

    The best optimum is at 1 for all of them: one of 2^n.
    """
    times = np.array([0.0, 1.0, 2.0])
    noise = 0.02 * np.random.default_rng(3).standard_normal((unknowns, 3))
    numbers = range(unknowns)
    observables = {f"q{i}": f"(p{i} - 1)*((p{i} - 3)^2 + 0.3)" for i in numbers}
    data = {"t": times, **{f"q{i}": noise[i] for i in numbers}}
    bounds = {f"p{i}": {"lower": 0.0, "upper": 10.0} for i in numbers}
    return Problem(Model(ode={"x": "-x"}, observables=observables), data, bounds, {"x": 1.0})


def route(estimate: Estimate, name: str = ITERATED.name) -> Route:
    return next(r for r in estimate.routes if r.name == name)


def end(index: int, cost: float, value: float = 0.0, status: Status = Status.CONVERGED) -> Start:
    vector = np.full(8, value)
    return Start(index, vector, vector, 2 * cost, status, "", 1, 0.0, cost)


@pytest.fixture(scope="module")
def eight() -> Problem:
    return rugged(8)


@pytest.fixture(scope="module")
def found(eight: Problem) -> Estimate:
    return Automatic(starts=40).solve(eight, Control(jobs=1, seed=1))


def test_an_optimum_that_random_starts_seldom_reach_is_found(found: Estimate) -> None:
    assert found.best is not None
    np.testing.assert_allclose(found.best.vector, 1.0, atol=0.02)
    assert route(found).starts > 0
    # Of 2^8 optima, a random start reaches the best with a probability well below one half.
    assert route(found, SHOOTING.name).hits <= route(found, SHOOTING.name).starts / 2


@pytest.mark.slow
def test_ends_that_return_are_not_evidence(eight: Problem) -> None:
    """A start counts once, with all searches from its end."""
    found = Automatic(starts=60).solve(eight, Control(jobs=1, seed=1))
    assert found.best is not None
    tolerance = CostTolerance.of(ForwardMap(eight))
    arrived = sum(reaches(s, found.best, tolerance) for s in found.starts)
    counted = sum(r.hits for r in found.routes)
    assert 1 <= counted < arrived
    independent = len(found.starts) - route(found).starts
    assert counted <= independent


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter(eight: Problem, found: Estimate) -> None:
    with ProcessPoolExecutor(2) as executor:
        control = Control(seed=1, executor=executor)
        with_two = Automatic(starts=40).solve(eight, control)
    assert [s.cost for s in with_two.starts] == [s.cost for s in found.starts]
    assert [r.hits for r in with_two.routes] == [r.hits for r in found.routes]


@pytest.mark.slow
def test_a_resumed_search_gives_the_same_answer(
    eight: Problem, found: Estimate, tmp_path: Path
) -> None:
    """Of an unfinished batch the later starts may be there, and the earlier ones not."""
    path = tmp_path / "c"
    control = Control(jobs=1, seed=1, checkpoint=path)
    Automatic(starts=40).solve(eight, control)
    numbers = sorted(int(key) for key in records(path, "starts") if key.isdigit())
    lost = [n for n in numbers if n > 25 or n in (18, 20)]
    assert lost
    execute(path, f"DELETE FROM records WHERE key IN ({', '.join(repr(str(n)) for n in lost)})")
    again = Automatic(starts=40).solve(eight, control)
    assert [s.cost for s in again.starts] == [s.cost for s in found.starts]
    assert [r.hits for r in again.routes] == [r.hits for r in found.routes]


@pytest.mark.slow
def test_iterated_search_is_skipped_if_random_starts_reach_the_best(tmp_path: Path) -> None:
    times = np.linspace(0.0, 4.0, 5)
    numbers = range(4)
    problem = Problem(
        Model(ode={f"x{i}": f"-k{i}*x{i}" for i in numbers}),
        {"t": times, **{f"x{i}": np.exp(-(0.3 + i) * times) + 0.01 for i in numbers}},
        {f"k{i}": {"lower": 1e-2, "upper": 1e2} for i in numbers},
        {f"x{i}": 1.0 for i in numbers},
    )
    found = Automatic(starts=20).solve(problem, Control(jobs=1, seed=1))
    assert route(found).starts == 0
    assert route(found).message == "not needed"


def test_iterated_search_is_skipped_with_few_unknowns() -> None:
    routes = search_routes(ForwardMap(rugged(3)))
    found = next(r for r in routes if r.name == ITERATED.name)
    assert found.closed
    assert "so few unknowns" in found.reason


def test_every_second_start_draws_some_unknowns_again_and_keeps_the_others(eight: Problem) -> None:
    forward, base = ForwardMap(eight), np.full(8, 5.0)
    search, projection = IteratedSearch(FINAL, base), VariableProjection(forward)
    counts = set()
    for index in range(1, 60, 2):
        points = search.points(projection, index, 1)
        moved = (points != base).any(axis=0)
        counts.add(int(moved.sum()))
        assert ((points >= eight.lower) & (points <= eight.upper)).all()
        np.testing.assert_array_equal(points, search.points(projection, index, 1))
    assert counts == {1, 2, 3, 4}
    assert (search.points(projection, 1, 1) != search.points(projection, 1, 2)).any()


def test_only_unknowns_that_act_on_the_residuals_are_drawn_again(eight: Problem) -> None:
    """The residuals do not change with the first unknown where its cubic is level."""
    base = np.full(8, 5.0)
    base[0] = (14 + np.sqrt(12.4)) / 6
    search, projection = IteratedSearch(FINAL, base), VariableProjection(ForwardMap(eight))
    moved = [(search.points(projection, k, 1) != base).any(axis=0) for k in range(1, 80, 2)]
    assert not any(m[0] for m in moved)
    assert all(any(m[k] for m in moved) for k in range(1, 8))


def test_other_starts_follow_directions_that_the_data_determine_poorly() -> None:
    """The data determine products of neighbours alone: single unknowns may go far."""
    times, numbers = np.array([0.0, 1.0]), range(4)
    observables = {f"q{i}": f"a{i}*b{i}" for i in numbers}
    data = {"t": times, **{f"q{i}": np.ones(2) for i in numbers}}
    bounds: dict[str, dict[str, float | str]] = {
        f"{n}{i}": {"lower": 1e-4, "upper": 1e4, "scale": "log10"} for n in "ab" for i in numbers
    }
    problem = Problem(Model(ode={"x": "-x"}, observables=observables), data, bounds, {"x": 1.0})
    projection = VariableProjection(ForwardMap(problem), eliminate=False)
    search = IteratedSearch(FINAL, np.ones(8))
    points = np.concatenate([search.points(projection, k, 1) for k in range(0, 20, 2)])
    logarithms = np.log10(points)
    a, b = logarithms[:, :4], logarithms[:, 4:]
    assert np.abs(a).max() > 2.0, "far along what is not determined"
    # What is determined moves by what the rise of the cost allows, 300 at most on a linear scale.
    assert np.abs(a + b).max() < np.sqrt(2 * 300) / np.log(10) * 4
    assert np.median(np.abs(a + b)) < 0.5 * np.median(np.abs(a - b))
    assert ((points >= problem.lower) & (points <= problem.upper)).all()


def test_better_ends_have_a_head_start_and_all_have_their_turn() -> None:
    costs = [5.0, 3.0, 3.0, 1.0, 4.0, np.inf]
    ends = [end(k, cost, value=k) for k, cost in enumerate(costs)]
    distinct = bases_of(ends, TOLERANCE)
    begun: list[Start] = []
    for _ in range(14 * HEAD_START):
        begun.append(base_of(distinct, begun, TOLERANCE))
    numbers = [base.index for base in begun]
    assert numbers[: HEAD_START + 1] == [3] * (HEAD_START + 1), "the lowest cost first"
    assert set(numbers) == {3, 1, 4, 0}, "one end of each optimum"
    counts = [numbers.count(k) for k in (3, 1, 4, 0)]
    assert np.diff(counts).tolist() == pytest.approx([-HEAD_START] * 3, abs=1)


def test_an_attempt_counts_for_all_ends_of_one_valley() -> None:
    first, better = end(0, 1.0), end(1, 0.995, value=1.0)
    other = end(2, 2.0, value=2.0)
    begun = [first] * (HEAD_START + 1)
    assert base_of(bases_of([first, better, other], TOLERANCE), begun, TOLERANCE) is other


def test_the_number_of_bases_is_limited() -> None:
    ends = [end(k, 1.0 + k, value=k) for k in range(2 * MAX_BASES)]
    assert [base.index for base in bases_of(ends, TOLERANCE)] == list(range(MAX_BASES))


def test_iterated_search_gets_less_work_the_longer_it_finds_nothing(eight: Problem) -> None:
    iterated, halving = (
        next(r for r in search_routes(ForwardMap(eight)) if r.name == name)
        for name in (ITERATED.name, HALVING.name)
    )
    ends = [end(0, 5.0)]
    works = []
    for number in range(1, 21):
        planned = iterated.plan(Seen(ends, ends, TOLERANCE))
        iterated.add(end(number, 6.0), planned)
        works.append(iterated.work / number)
    assert works == sorted(works)
    assert works[-1] / works[0] == pytest.approx((1 + 20 / VAIN_STARTS) / (1 + 1 / VAIN_STARTS))
    better = [*ends, end(21, 4.0)]
    iterated.add(better[-1], iterated.plan(Seen(better, better, TOLERANCE)))
    assert iterated.work / 21 == pytest.approx(works[0])
    assert halving.work == 0.0


def test_costs_of_one_flat_valley_are_one_place_to_begin_at() -> None:
    costs = [1.0, 1.009, 1.005, 1.5, 2.0]
    ends = [end(k, cost, value=k) for k, cost in enumerate(costs)]
    assert [base.index for base in bases_of(ends, TOLERANCE)] == [0, 3, 4]


def test_no_local_search_begins_at_failures_or_where_trajectories_restart() -> None:
    nodes = Nodes((np.zeros(1),), (np.zeros((1, 1)),))
    assert not can_begin_at(end(0, np.inf))
    assert not can_begin_at(replace(end(0, 1.0), nodes=nodes))
    assert can_begin_at(end(0, 1.0))


def test_unknowns_without_bounds_are_drawn_again_like_all_others() -> None:
    times = np.array([0.0, 1.0, 2.0])
    ode = {"x": "-a*x + b", "y": "-c*y + d*x"}
    data = {"t": times, "x": np.exp(-times), "y": times}
    free: dict[str, dict[str, float]] = {name: {} for name in "abcd"}
    problem = Problem(Model(ode=ode), data, free, {"x": 1.0, "y": 0.0})
    forward = ForwardMap(problem)
    base = np.array([0.5, 0.1, 0.3, 0.8])
    points = IteratedSearch(FINAL, base).points(VariableProjection(forward), 1, 0)
    assert np.isfinite(points).all()
    assert ((points != base).any(axis=0)).sum() <= 2
