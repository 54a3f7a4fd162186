"""Tests of searches that begin with a coarse integration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from odefit import Control, ForwardMap, Model, Problem, Status
from odefit.methods.automatic.coarse_beginning import COARSER, coarse, run_from_coarse
from odefit.methods.single_shooting import SingleShooting
from tests.simulation.numerics import evaluated

TOLERANCE = 1e-6
START = np.array([0.3, 2.0e3])
SEARCH = SingleShooting(evaluations=100, tolerance=1e-10, step=1e-10, patience=50)


@pytest.fixture(scope="module")
def stiff() -> Problem:
    """A slow reaction beside a fast one, measured with some noise."""
    model = Model(ode={"a": "-k*a", "b": "f*(a - b)"})
    times = np.linspace(0.1, 3.0, 12)
    unknowns = {"k": {"guess": 0.3}, "f": {"guess": 2e3}}
    a, fast = np.exp(-times), 1e3
    b = fast / (fast - 1.0) * (a - np.exp(-fast * times))
    noise = np.random.default_rng(0).normal(0.0, 1e-2, (2, len(times)))
    data = {"t": times, "a": a + noise[0], "b": b + noise[1]}
    return Problem(model, data, unknowns, {"a": 1.0, "b": 0.0}, t0=0.0)


def test_the_coarse_forward_map_is_that_of_all_searches(stiff: Problem) -> None:
    forward = ForwardMap(stiff, "bdf", TOLERANCE)
    assert coarse(forward) is coarse(forward)
    assert coarse(forward).engines.tolerance == COARSER * TOLERANCE
    assert not coarse(forward).engines.controlled


def test_a_search_that_has_converged_ends_with_the_accuracy_of_the_others(stiff: Problem) -> None:
    forward = ForwardMap(stiff, "bdf", TOLERANCE)
    found = run_from_coarse(SEARCH, forward, 3, START, Control())
    alone = SEARCH.run(forward, 3, START, Control())
    assert found.status is alone.status is Status.CONVERGED
    assert found.cost == pytest.approx(alone.cost, rel=1e-4)
    assert found.cost == evaluated(forward, found.vector).cost
    assert found.index == 3
    np.testing.assert_array_equal(found.start, START)


def test_the_end_of_a_search_that_is_cut_off_has_the_cost_of_the_others(stiff: Problem) -> None:
    forward = ForwardMap(stiff, "bdf", TOLERANCE)
    few = replace(SEARCH, evaluations=3)
    found = run_from_coarse(few, forward, 0, START, Control())
    assert found.status is Status.NOT_CONVERGED
    assert "3 evaluations" in found.message
    assert found.evaluations == 4
    assert found.cost == evaluated(forward, found.vector).cost
    assert found.cost < forward.cost(START)


def test_a_stopped_search_keeps_its_end_without_further_integration(
    stiff: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = ForwardMap(stiff, "bdf", TOLERANCE)
    begun = replace(SEARCH.run(forward, 0, START, Control()), status=Status.TIME_LIMIT)
    lost = replace(begun, status=Status.FAILED, cost=math.inf)
    ends = iter([begun, lost])
    monkeypatch.setattr(SingleShooting, "run", lambda *_: next(ends))
    assert run_from_coarse(SEARCH, forward, 0, START, Control()) is begun


def test_a_start_that_cannot_be_integrated_has_failed(stiff: Problem) -> None:
    forward = ForwardMap(stiff, "bdf", TOLERANCE, steps=1)
    start = np.array([-1e6, 1e3])
    assert run_from_coarse(SEARCH, forward, 0, start, Control()).status is Status.FAILED
