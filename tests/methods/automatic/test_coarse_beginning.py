"""Tests of searches that begin with a coarse integration."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from odefit import Control, ForwardMap, Model, Problem, Status
from odefit.common.arrays import Array
from odefit.methods.automatic.coarse_beginning import (
    COARSER,
    FINER,
    Sharpening,
    coarse,
    is_inaccurate,
    run_from_coarse,
)
from odefit.methods.estimate import Start
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.single_shooting import SingleShooting
from tests.simulation.numerics import evaluated

TOLERANCE = 1e-6
START = np.array([0.3, 2.0e3])
COSTS = CostTolerance(1.0, 1e-4, 0.0)
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
    monkeypatch.setattr(SingleShooting, "run", lambda *_, **__: next(ends))
    assert run_from_coarse(SEARCH, forward, 0, START, Control()) is begun


def test_a_start_that_cannot_be_integrated_has_failed(stiff: Problem) -> None:
    forward = ForwardMap(stiff, "bdf", TOLERANCE, steps=1)
    start = np.array([-1e6, 1e3])
    assert run_from_coarse(SEARCH, forward, 0, start, Control()).status is Status.FAILED


class Accurate:
    """A forward map with the same cost everywhere."""

    def __init__(self, cost: float) -> None:
        self._cost = cost

    def cost(self, vector: Array, choice: object) -> float:
        return self._cost


def ends_at(*costs: float) -> list[Start]:
    at = np.zeros(1)
    return [
        Start(i, at, at, 2 * cost, Status.CONVERGED, "", 5, 0.0, cost)
        for i, cost in enumerate(costs)
    ]


def sharpening(cost: float) -> Sharpening:
    forward: Any = Accurate(cost)
    return Sharpening(forward, COSTS)


def judge(end: Start, hits: int) -> NoiseFit:
    return NoiseFit(None)


def test_ends_whose_costs_are_blurred_take_their_costs_at_full_accuracy() -> None:
    some = ends_at(1.001, 1.002, 0.999, 1.0035, 8.0)
    one = sharpening(1.003)
    improved = []
    while (dull := one.next(some, judge)) is not None:
        assert dull.blurred
        improved.append(dull.end.index)
        sharper = one.improved(dull, ends_at(1.0029)[0])
        assert sharper is not None
        assert sharper.evaluations == 10
        some[some.index(dull.end)] = sharper
    assert improved == [2, 0, 1]
    assert [s.cost for s in some[:3]] == [1.0029] * 3
    assert one.share == FINER  # once, as no later start is less accurate


@pytest.mark.parametrize(
    ("costs", "accurate"),
    [
        ((0.999, 1.001, 1.002), 1.003),  # too few ends
        ((0.999, 1.001, 1.002, 1.003), 0.999),  # no errors
        ((0.999, 1.02, 1.03, 1.04), 1.003),  # other optima
        ((0.999, 0.999, 0.999, 0.999), 1.003),  # the ends agree
        ((0.999, 1.001, 1.002, 1.003), math.inf),
    ],
)
def test_others_stay_as_they_are(costs: tuple[float, ...], accurate: float) -> None:
    one = sharpening(accurate)
    assert one.next(ends_at(*costs), judge) is None
    assert one.share == 1.0


def test_an_end_that_cannot_be_improved_takes_its_cost_at_full_accuracy() -> None:
    some = ends_at(0.999, 1.001, 1.002, 1.0035)
    one = sharpening(1.003)
    dull = one.next(some, judge)
    assert dull is not None
    sharper = one.improved(dull, ends_at(math.inf)[0])
    assert sharper is not None
    assert sharper.cost == 1.003
    assert sharper.index == 0


def test_negative_costs_are_compared_by_their_sums_of_squares() -> None:
    forward: Any = Accurate(-1000.0)
    like = replace(ends_at(-1000.2)[0], objective=100.0)
    assert not is_inaccurate(forward, like)
    assert is_inaccurate(forward, replace(like, cost=-1001.0))


def test_a_negative_cost_that_hardly_falls_is_no_better() -> None:
    one = sharpening(-1000.0)
    end = replace(ends_at(-1000.0)[0], objective=100.0)
    wrong = NoiseFit(False, relative=1e-6)
    dull = one.next([end], lambda *_: wrong)
    assert dull is not None
    assert one.improved(dull, replace(end, cost=-1000.1)) is None
    assert one.improved(dull, replace(end, cost=-1002.0)) is not None
