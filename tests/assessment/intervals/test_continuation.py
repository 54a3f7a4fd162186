"""Refits lead along ridges of the likelihood, and not from one optimum to another."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from odefit.assessment.intervals.continuation import FEW, LEAST, Continuation, between
from odefit.methods.running.control import Control
from tests.assessment.ridges import TIMES, bent, circle, product, turns


def test_refits_lead_along_a_ridge_whichever_end_is_first() -> None:
    forward, one, other = product()
    highest = forward.cost(one) + 1.92
    middle = 0.5 * (one + other)
    assert forward.cost(middle) > highest  # the straight way in natural units leads over a valley
    for first, last in ((one, other), (other, one)):
        refits = Continuation(forward, Control(jobs=1), 0)
        for extrapolated in (False, True):
            places = refits._refits(first, last, highest, extrapolated)
            assert places
            costs = [forward.cost(x) for _, x in places]
            assert [cost for cost, _ in places] == pytest.approx(costs)
            assert max(costs) <= highest
        assert refits.way(first, last, highest) is not None


def test_a_bent_ridge_needs_refits() -> None:
    forward, one, other = bent()
    highest = forward.cost(one) + 1.92
    refits = Continuation(forward, Control(jobs=1), 0)
    assert not refits._straight(one, other, highest)
    assert refits.way(one, other, highest)
    spent = Continuation(forward, Control(jobs=1), 0)
    spent._left = 0.0
    assert spent.way(one, other, highest) is None


def test_turns_of_an_oscillation_are_apart() -> None:
    forward, one, other = turns()
    highest = forward.cost(one) + 1.92
    refits = Continuation(forward, Control(jobs=1), 0)
    assert refits.way(one, other, highest) is None
    assert refits.rise(one, other) > 1e3 * 3.84


def test_the_path_is_geometric_for_positive_unknowns() -> None:
    forward, one, other = product()
    assert between(forward.problem, one, other, 0.5) == pytest.approx(np.sqrt(one * other))
    signed = Problem(
        Model(ode={"x": "-k*x"}),
        {"t": TIMES, "x": np.exp(-TIMES)},
        {"k": {"lower": -3.0, "upper": 3.0}},
        {"x": 1.0},
    )
    assert between(signed, np.array([1.0]), np.array([2.0]), 0.5)[0] == 1.5


def test_a_ridge_that_turns_back_in_every_unknown_is_followed() -> None:
    forward, one, other = circle()
    refits = Continuation(forward, Control(jobs=1), 10_000)
    cost = forward.cost(one)
    ridge = refits.ridges(one, cost + 0.1)
    places = np.array([x for _, x in ridge])
    assert np.hypot(*places[:, :2].T) == pytest.approx(1.0, abs=1e-3)
    turns = np.sort(np.arctan2(places[:, 1], places[:, 0]))
    assert np.diff(turns).max() < 0.7
    assert turns[0] + 2 * np.pi - turns[-1] < 0.7
    few = Continuation(forward, Control(jobs=1), 0)
    assert 10 < len(few.ridges(one, cost + 0.1)) < len(ridge)
    assert few._left >= 0.5 * LEAST - 2 * FEW
    # Refits that hold one unknown do not lead to the other side.
    alone = Continuation(forward, Control(jobs=1), 0)
    assert alone.way(one, other, cost + 0.1) is None


def test_determined_unknowns_have_no_ridge() -> None:
    forward, one, _ = turns()
    assert Continuation(forward, Control(jobs=1), 0).ridges(one, forward.cost(one) + 0.1) == []
