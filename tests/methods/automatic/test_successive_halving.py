"""Tests of successive halving as a route of the automatic method."""

import math
from dataclasses import replace

import numpy as np
import pytest

from odefit import Automatic, Control, ForwardMap, Model, Problem, Start, Status
from odefit.methods.automatic.route_table import HALVING, SHOOTING, search_routes
from odefit.methods.automatic.routes import COMPARED, RouteRow, Seen
from odefit.methods.automatic.successive_halving import (
    LAST,
    MANY_UNKNOWNS,
    PARTS,
    PARTS_OF_MANY,
    PROMOTED,
    RUNGS,
    ContinuedSearch,
    Ladder,
    ShortSearch,
    has_many_unknowns,
)
from odefit.methods.estimate import Estimate
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.problem.variants.start_ranges import ranges
from odefit.simulation.nodes import Nodes
from tests.methods.automatic.test_iterated_search import end as end_at
from tests.methods.automatic.test_iterated_search import route, rugged

TOLERANCE = CostTolerance(None, 1e-4, 0.0)


def end(index: int, cost: float, status: Status = Status.NOT_CONVERGED) -> Start:
    return end_at(index, cost, 1.0 + index, status)  # at values of its own


@pytest.fixture(scope="module")
def eight() -> Problem:
    return rugged(8)


@pytest.fixture(scope="module")
def found(eight: Problem) -> Estimate:
    return Automatic(starts=60).solve(eight, Control(jobs=1, seed=1))


def test_a_start_takes_few_evaluations(eight: Problem) -> None:
    forward = ForwardMap(eight)
    starts = [ShortSearch().run(forward, k, Control(seed=3)) for k in range(4)]
    # One more takes the cost at the end with the accuracy of the other searches.
    assert all(s.evaluations <= RUNGS[0].evaluations + 1 for s in starts)
    assert len({s.start.tobytes() for s in starts}) == 4
    again = ShortSearch().run(forward, 2, Control(seed=3))
    np.testing.assert_array_equal(again.vector, starts[2].vector)
    other = ShortSearch().run(forward, 2, Control(seed=4))
    assert (other.start != starts[2].start).any()
    begun = np.array([s.start for s in starts[:: len(PARTS)]])
    low, high = np.array([r.at(np.array([0.25, 0.75])) for r in ranges(eight)]).T
    assert (begun >= low).all()
    assert (begun <= high).all()


def in_logarithms(unknowns: int, guessed: float | None = None) -> Problem:
    """Return the rugged problem with logarithms between bounds."""
    given = {} if guessed is None else {"guess": guessed}
    bounds = {"lower": 1e-3, "upper": 1e3, "scale": "log10", **given}
    plain = rugged(unknowns)
    data = {"t": [0.0, 1.0, 2.0], **{f"q{i}": [0.01, -0.01, 0.02] for i in range(unknowns)}}
    return Problem(plain.model, data, dict.fromkeys(plain.keys, bounds), {"x": 1.0})


def test_many_logarithms_between_bounds_count_as_many_unknowns() -> None:
    assert has_many_unknowns(ForwardMap(in_logarithms(MANY_UNKNOWNS)))
    assert not has_many_unknowns(ForwardMap(in_logarithms(MANY_UNKNOWNS - 1)))
    assert not has_many_unknowns(ForwardMap(rugged(MANY_UNKNOWNS)))


def test_most_short_searches_of_many_unknowns_begin_in_the_middle_half() -> None:
    forward = ForwardMap(in_logarithms(MANY_UNKNOWNS))
    count = len(PARTS_OF_MANY)
    begun = np.array([ShortSearch().run(forward, k, Control(seed=3)).start for k in range(count)])
    low, high = np.array([r.at(np.array([0.25, 0.75])) for r in ranges(forward.problem)]).T
    inside = ((begun >= low) & (begun <= high)).all(axis=1)
    assert list(inside) == [part == 0.5 for part in PARTS_OF_MANY]


@pytest.mark.parametrize(("guessed", "first"), [(None, HALVING), (2.0, SHOOTING)])
def test_short_searches_of_many_unknowns_come_first_without_a_guess(
    guessed: float | None, first: RouteRow
) -> None:
    problem = in_logarithms(MANY_UNKNOWNS, guessed)
    found = Automatic(starts=COMPARED).solve(problem, Control(jobs=1, seed=1))
    assert (route(found, SHOOTING.name).starts == 0) == (first is HALVING)
    assert (route(found, HALVING.name).starts == COMPARED) == (first is HALVING)


def test_rungs_have_more_evaluations_and_more_patience() -> None:
    assert [r.evaluations for r in RUNGS] == sorted({r.evaluations for r in RUNGS})
    assert [r.patience for r in RUNGS] == sorted({r.patience for r in RUNGS})


class TestLadder:
    def test_each_best_search_of_a_rung_continues_once(self) -> None:
        ends = [end(k, 10.0 - k) for k in range(6)]
        ladder = Ladder()
        assert math.ceil(PROMOTED * len(ends)) == 2
        assert ladder.next_of([], ends, TOLERANCE) == (ends[5], 1)
        assert ladder.next_of([], ends, TOLERANCE) == (ends[4], 1)
        assert ladder.next_of([], ends, TOLERANCE) is None

    def test_ends_are_compared_with_those_of_their_rung(self) -> None:
        ladder = Ladder()
        first, second = (
            [end(k, 1.0 + k) for k in range(3)],
            [end(3 + k, 11.0 + k) for k in range(3)],
        )
        for e in second:
            ladder.put(e, 1)
        assert ladder.next_of([], [*first, *second], TOLERANCE) == (second[0], 2)
        assert ladder.next_of([], [*first, *second], TOLERANCE) == (first[0], 1)
        assert ladder.next_of([], [*first, *second], TOLERANCE) is None

    def test_a_search_on_the_last_rung_continues_until_it_leaves_its_valley(self) -> None:
        ladder, first = Ladder(), end(0, 2.0)
        ladder.put(first, LAST - 1)
        assert ladder.next_of([first], [], TOLERANCE) == (first, LAST)
        far, near, settled = end(1, 1.0), end(2, 1.0 - 1e-5), end(3, 0.5, Status.CONVERGED)
        for e in (far, near, settled):
            ladder.put(e, LAST)
        assert ladder.next_of([far], [], TOLERANCE) == (far, LAST)
        assert ladder.next_of([near], [], TOLERANCE) is None
        assert ladder.next_of([settled], [], TOLERANCE) is None
        assert ladder.next_of([], [end(4, 9.0)], TOLERANCE) is not None, "of other rungs"
        assert ladder.next_of([], [far], TOLERANCE) is None, "only if it is among the best of all"

    def test_the_best_ends_of_all_come_first(self) -> None:
        ends = [end(k, 1.0 + k) for k in range(4)]
        assert Ladder().next_of([ends[3]], ends, TOLERANCE) == (ends[3], 1)

    def test_a_converged_start_continues_only_among_the_best_and_on_the_last_rung(
        self,
    ) -> None:
        settled = [end(k, 1.0 + k, Status.CONVERGED) for k in range(4)]
        assert Ladder().next_of([], settled, TOLERANCE) is None
        assert Ladder().next_of(settled[:1], settled, TOLERANCE) == (settled[0], LAST)

    def test_only_one_search_from_a_valley_continues(self) -> None:
        ladder = Ladder()
        first, near, apart = end(0, 1.0), end(1, 1.0 + 1e-5), end(2, 2.0)
        assert ladder.next_of([first], [], TOLERANCE) == (first, 1)
        assert ladder.next_of([near], [], TOLERANCE) is None
        assert ladder.next_of([apart], [], TOLERANCE) == (apart, 1)
        ladder.put(near, 1)
        assert ladder.next_of([near], [], TOLERANCE) == (near, 2), "to a rung where nobody was"

    def test_searches_begin_neither_at_failures_nor_where_trajectories_restart(self) -> None:
        nodes = Nodes((np.zeros(1),), (np.zeros((1, 1)),))
        assert Ladder().next_of([end(0, np.inf)], [end(0, np.inf)], TOLERANCE) is None
        assert Ladder().next_of([replace(end(0, 1.0), nodes=nodes)], [], TOLERANCE) is None


def test_a_search_continues_where_the_other_stopped(eight: Problem) -> None:
    base = np.full(8, 1.05)
    for rung in range(1, len(RUNGS)):
        there = ContinuedSearch(base, rung).run(ForwardMap(eight), 7, Control(seed=0))
        assert there.index == 7
        np.testing.assert_array_equal(there.start, base)
        np.testing.assert_allclose(there.vector, 1.0, atol=0.02)


def test_the_last_rung_integrates_more_accurately() -> None:
    times = np.linspace(0.5, 8.0, 12)
    data = {"t": times, "x": np.exp(-0.3 * times) + 0.1}
    bounds = {"k": {"lower": 1e-3, "upper": 10.0}}
    problem = Problem(Model(ode={"x": "-k*x"}), data, bounds, {"x": 1.0})
    coarse, exact = ForwardMap(problem, "bdf", 1e-3), ForwardMap(problem, "bdf", 1e-11)

    def error(rung: int) -> float:
        there = ContinuedSearch(np.ones(1), rung).run(coarse, 0, Control(seed=0))
        return abs(there.cost - exact.cost(there.vector))

    assert error(LAST) < 1e-2 * error(1)


def test_a_plan_begins_new_searches_until_one_goes_on(eight: Problem) -> None:
    halving = next(r for r in search_routes(ForwardMap(eight)) if r.name == HALVING.name)
    planned = halving.plan(Seen([], [], TOLERANCE))
    assert isinstance(planned.search, ShortSearch)
    assert planned.base is None
    stopped = end(0, 1.0)
    halving.add(stopped, planned)
    more = halving.plan(Seen([stopped], [stopped], TOLERANCE))
    assert isinstance(more.search, ContinuedSearch)
    assert (more.base, more.rung) == (stopped, 1)
    settled = end(1, 0.5, Status.CONVERGED)
    halving.add(settled, more)
    after = halving.plan(Seen([stopped, settled], [stopped], TOLERANCE))
    assert (after.base, after.rung) == (settled, LAST)


def test_continued_searches_do_not_count_as_starts(found: Estimate) -> None:
    """Each start counts once, however many rungs it has climbed."""
    begun = sum(r.starts for r in found.routes)
    assert begun < len(found.starts)
    assert route(found, HALVING.name).starts > 0
    for r in found.routes:
        assert 0 <= r.hits <= r.starts


def test_successive_halving_leads_to_the_best_optimum(found: Estimate) -> None:
    assert found.best is not None
    np.testing.assert_allclose(found.best.vector, 1.0, atol=0.02)


def test_successive_halving_is_skipped_with_few_unknowns() -> None:
    routes = search_routes(ForwardMap(rugged(3)))
    halving = next(r for r in routes if r.name == HALVING.name)
    assert halving.closed
    assert "so few unknowns" in halving.reason
    assert not next(r for r in routes if r.name == SHOOTING.name).closed


def test_first_short_searches_are_planned_together() -> None:
    forward = ForwardMap(in_logarithms(MANY_UNKNOWNS))
    halving = next(r for r in search_routes(forward) if r.row is HALVING)
    seen = Seen([], [], TOLERANCE)
    for _ in range(COMPARED):
        assert not halving.unknown
        assert isinstance(halving.plan(seen).search, ShortSearch)
    assert halving.unknown
