"""Tests of when a route of the automatic method may have starts, and how long these may take."""

from collections.abc import Sequence

import numpy as np
import pytest

from odefit import Event, Experiment, ForwardMap, Model, Problem, Start, Status, library
from odefit.methods.automatic.evidence import Evidence
from odefit.methods.automatic.route_table import (
    HALVING,
    ITERATED,
    MATCHING,
    MULTIPLE,
    POPULATIONS,
    SHOOTING,
    TRANSCRIPTION,
    search_routes,
)
from odefit.methods.automatic.routes import (
    AFTER_IF_SLOW,
    OFTEN,
    SELDOM,
    SLOW_SHARE,
    TIME_SHARE,
    RouteRow,
    SearchRoute,
)
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.simulation.nodes import Nodes

UNKNOWN, WRONG = NoiseFit(None), NoiseFit(False, freedom=100.0)
EXPLAINED = NoiseFit(True, freedom=100.0)


@pytest.fixture(scope="module")
def routes() -> dict[RouteRow, SearchRoute]:
    return {r.row: r for r in search_routes(ForwardMap(library.load("harmonic")))}


def end(index: int, nodes: Nodes | None = None) -> Start:
    vector = np.ones(2)
    ended = (2.0, Status.CONVERGED, "", 1, 0.0, 1.0)
    return Start(index, vector, vector, *ended, nodes=nodes)


def evidence(count: int, hits: int = 1, fit: NoiseFit = UNKNOWN) -> Evidence:
    return Evidence(end(0), hits, fit, False, count, True)


def opens_after(route: SearchRoute, fit: NoiseFit) -> int:
    """Return the number of independent starts from which on a route is open."""
    ends = [end(k) for k in range(200)]
    return next(k for k in range(200) if route.is_open(evidence(k, fit=fit), ends[:k]))


@pytest.mark.parametrize("row", [MATCHING, SHOOTING])
def test_cheap_routes_are_open_from_the_beginning(
    routes: dict[RouteRow, SearchRoute], row: RouteRow
) -> None:
    assert opens_after(routes[row], UNKNOWN) == opens_after(routes[row], WRONG) == 0


@pytest.mark.parametrize("row", [MULTIPLE, TRANSCRIPTION])
def test_expensive_routes_open_sooner_if_the_data_are_unexplained(
    routes: dict[RouteRow, SearchRoute], row: RouteRow
) -> None:
    found = opens_after(routes[row], WRONG), opens_after(routes[row], UNKNOWN)
    assert found == row.after
    assert found[0] < found[1]


def test_multiple_shooting_waits_where_the_equations_are_stiff(
    routes: dict[RouteRow, SearchRoute],
) -> None:
    fits = [NoiseFit(explained, freedom=100.0, stiff=True) for explained in (False, None)]
    found = tuple(opens_after(routes[MULTIPLE], fit) for fit in fits)
    assert found == AFTER_IF_SLOW


@pytest.mark.parametrize(("row", "share"), [(HALVING, SELDOM), (ITERATED, OFTEN)])
def test_other_searches_are_for_answers_that_few_starts_reach(
    routes: dict[RouteRow, SearchRoute], row: RouteRow, share: float
) -> None:
    count = 50
    ends: Sequence[Start] = [end(k) for k in range(count)]
    reached = round(share * count)
    assert routes[row].is_open(evidence(count, reached - 1), ends)
    assert not routes[row].is_open(evidence(count, reached), ends)
    assert not routes[row].is_open(evidence(count, 1, EXPLAINED), ends)


def test_iterated_local_search_waits_for_ends_at_which_it_can_begin(
    routes: dict[RouteRow, SearchRoute],
) -> None:
    """It does not begin at ends on nodes."""
    needed = ITERATED.after[1]
    nodes = Nodes((), ())
    ends = [end(k, nodes if k % 2 else None) for k in range(2 * needed)]
    assert not routes[ITERATED].is_open(evidence(2 * needed - 2), ends[:-2])
    assert routes[ITERATED].is_open(evidence(2 * needed), ends)


@pytest.mark.parametrize("unexplained", [False, True])
def test_a_start_leaves_time_for_others(
    routes: dict[RouteRow, SearchRoute], unexplained: bool
) -> None:
    shares = {row: route.share_of_time(unexplained) for row, route in routes.items()}
    assert shares.pop(TRANSCRIPTION) == SLOW_SHARE
    assert shares.pop(MULTIPLE) == (TIME_SHARE if unexplained else SLOW_SHARE)
    assert set(shares.values()) == {TIME_SHARE}


def test_populations_begin_where_a_condition_triggers_an_event(
    routes: dict[RouteRow, SearchRoute],
) -> None:
    assert routes[POPULATIONS].closed
    event = Event((), {"x": "x + 1"}, when="x <= low")
    data = {"t": [0.0, 1.0, 2.0], "x": [2.0, 1.0, 1.5]}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        experiments=[Experiment("a", data, events=[event])],
        parameters={"k": {"lower": 0.0}, "low": {"lower": 0.0, "upper": 2.0}},
        initial={"x": 2.0},
    )
    found = {r.row: r for r in search_routes(ForwardMap(problem))}
    assert not found[POPULATIONS].closed
    assert found[POPULATIONS].is_open(evidence(0), [])
