"""Interval arithmetic tightens bounds, and never past a solution that is under the cutoff."""

from __future__ import annotations

import numpy as np
import pytest

from odefit.methods.outer_approximation.bound_tightening import FBBT
from tests.methods.outer_approximation.problems import CHOICES, SLACK, holds, planted


@pytest.mark.parametrize("name", CHOICES)
def test_fbbt_keeps_the_solution(name: str) -> None:
    p = planted(name)
    low, high = FBBT(p.form).tighten(p.form.lower, p.form.upper, p.objective * (1 + 1e-6))
    assert holds(p, low, high)
    own = p.form.parameters
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (high - low)[own].sum() <= (p.high - p.low)[own].sum()


def test_random_boxes_with_the_solution_keep_it() -> None:
    random = np.random.default_rng(0)
    p = planted("saturated")
    for _ in range(10):
        low = p.low + random.random(len(p.low)) * (p.w - p.low).clip(0)
        high = p.high - random.random(len(p.low)) * (p.high - p.w).clip(0)
        low, high = np.minimum(low, p.w - SLACK), np.maximum(high, p.w + SLACK)
        low, high = np.maximum(low, p.low), np.minimum(high, p.high)
        assert holds(p, *FBBT(p.form).tighten(low, high))
