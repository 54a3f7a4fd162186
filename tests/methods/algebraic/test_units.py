"""Units are the user's choice: the answer is the same in all of them."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Model, Problem
from tests.methods.algebraic.models import PREY_TRUTH, TIMES, best, integrated, prey_rhs, solved

HOUR, MICRO = 3600.0, 1e-6


@pytest.mark.parametrize(
    ("time", "value"),
    [
        pytest.param(HOUR, MICRO, marks=pytest.mark.slow),
        pytest.param(1 / HOUR, 1 / MICRO, marks=pytest.mark.slow),
        (1e6, 1e9),
    ],
)
def test_the_answer_scales_with_time_and_values(time: float, value: float) -> None:
    """Rates per second in place of per hour, amounts in another unit."""
    series = value * integrated(prey_rhs, [1.2, 0.4])[0]
    model = Model(ode={"r": "a*r - b*r*w", "w": "b*r*w - c*w"}, observables={"y": "r"})
    problem = Problem(
        model,
        {"t": time * TIMES, "y": series},
        {"a": {}, "b": {}, "c": {}},
        {"r": {}, "w": {}},
    )
    units = {"a": 1 / time, "b": 1 / time / value, "c": 1 / time, "r": value, "w": value}
    scale = np.array([units[k] * PREY_TRUTH[k] for k in problem.keys])
    for polish in (False, True):
        estimate = solved(problem, polish=polish)
        assert best(estimate).vector / scale == pytest.approx(np.ones(5), rel=1e-6)
        assert estimate.completeness is not None
        assert estimate.completeness.found == 1


@pytest.mark.slow
def test_an_interval_may_begin_anywhere() -> None:
    series = integrated(prey_rhs, [1.2, 0.4])[0]
    model = Model(ode={"r": "a*r - b*r*w", "w": "b*r*w - c*w"}, observables={"y": "r"})
    for shift in (-2.0, 1e4):
        problem = Problem(
            model,
            {"t": TIMES + shift, "y": series},
            {"a": {}, "b": {}, "c": {}},
            {"r": {}, "w": {}},
        )
        found = best(solved(problem)).vector
        truth = np.array([PREY_TRUTH[k] for k in problem.keys])
        assert found == pytest.approx(truth, rel=1e-6)
