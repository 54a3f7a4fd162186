"""Bounds shrink, and never past a solution that is under the cutoff."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.outer_approximation.bound_tightening import BoundTightening
from odefit.methods.outer_approximation.fbbt import FBBT, Infeasible
from odefit.methods.outer_approximation.relaxation import HyperPlanes
from tests.methods.outer_approximation.problems import CHOICES, Planted, planted

SLACK = 1e-7
"""What the local solver leaves of equations."""


def tightening(p: Planted) -> BoundTightening:
    planes = HyperPlanes.uniform(len(p.form.residuals), 5)
    return BoundTightening(p.form, FBBT(p.form), planes, lambda: False)


def holds(p: Planted, low: np.ndarray, high: np.ndarray) -> bool:
    width = SLACK * np.maximum(1.0, np.abs(p.w))
    return bool((p.w >= low - width).all() and (p.w <= high + width).all())


@pytest.mark.parametrize("name", CHOICES)
def test_fbbt_keeps_the_solution(name: str) -> None:
    p = planted(name)
    low, high = FBBT(p.form).tighten(p.form.lower, p.form.upper, p.objective * (1 + 1e-6))
    assert holds(p, low, high)
    own = p.form.parameters
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (high - low)[own].sum() <= (p.high - p.low)[own].sum()


@pytest.mark.parametrize("name", CHOICES)
def test_obbt_and_probing_keep_the_solution_and_raise_the_bound(name: str) -> None:
    p = planted(name)
    tools = tightening(p)
    cut = 1.1 * p.objective + 1e-6
    low, high = tools.fbbt.tighten(p.low, p.high, cut)
    first, _ = tools.relaxation_bound(low, high, cut)
    low, high = tools.obbt(low, high, cut)
    low, high = tools.probe(low, high, cut)
    assert holds(p, low, high)
    second, _ = tools.relaxation_bound(low, high, cut)
    assert first - 1e-12 <= second <= p.objective + 1e-9
    own = p.form.parameters
    assert ((high - low)[own] < 0.8 * (p.high - p.low)[own]).all()


def test_nothing_is_left_far_below_the_optimum() -> None:
    p = planted("decay", noise=0.1)
    tools = tightening(p)
    with pytest.raises(Infeasible):  # noqa: PT012 - any of the steps may find it
        low, high = tools.fbbt.tighten(p.low, p.high, 0.5 * p.objective)
        for _ in range(5):
            low, high = tools.obbt(low, high, 0.5 * p.objective)
            low, high = tools.probe(low, high, 0.5 * p.objective)
            tools.relaxation_bound(low, high, 0.5 * p.objective)


def test_a_round_stops_when_it_is_told() -> None:
    p = planted("predator")
    tools = tightening(p)
    tools.stop = lambda: True
    low, high = tools.obbt(p.low, p.high, np.inf)
    assert holds(p, low, high)
    assert ((high - low) <= (p.high - p.low)).all()


def test_random_boxes_with_the_solution_keep_it() -> None:
    random = np.random.default_rng(0)
    p = planted("saturated")
    for _ in range(10):
        low = p.low + random.random(len(p.low)) * (p.w - p.low).clip(0)
        high = p.high - random.random(len(p.low)) * (p.high - p.w).clip(0)
        low, high = np.minimum(low, p.w - SLACK), np.maximum(high, p.w + SLACK)
        low, high = np.maximum(low, p.low), np.minimum(high, p.high)
        assert holds(p, *FBBT(p.form).tighten(low, high))
