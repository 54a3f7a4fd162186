"""Bounds shrink, and never past a solution that is under the cutoff."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.outer_approximation.bound_tightening import FBBT, BoundTightening, Infeasible
from odefit.methods.outer_approximation.relaxation import HyperPlanes
from tests.methods.outer_approximation.problems import CHOICES, Planted, holds, planted


def tightening(p: Planted) -> BoundTightening:
    planes = HyperPlanes.uniform(len(p.form.residuals), 5)
    return BoundTightening(p.form, FBBT(p.form), planes, lambda: False)


@pytest.mark.slow
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


def test_far_below_the_optimum_no_box_is_left() -> None:
    p = planted("decay", noise=0.1)
    tools = tightening(p)
    with pytest.raises(Infeasible):  # noqa: PT012 - any of the steps may find it
        low, high = tools.fbbt.tighten(p.low, p.high, 0.5 * p.objective)
        for _ in range(5):
            low, high = tools.obbt(low, high, 0.5 * p.objective)
            low, high = tools.probe(low, high, 0.5 * p.objective)
            tools.relaxation_bound(low, high, 0.5 * p.objective)


def test_a_round_stops_on_request() -> None:
    p = planted("predator")
    tools = tightening(p)
    tools.stop = lambda: True
    low, high = tools.obbt(p.low, p.high, np.inf)
    assert holds(p, low, high)
    assert ((high - low) <= (p.high - p.low)).all()
