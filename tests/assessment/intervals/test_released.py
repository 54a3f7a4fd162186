"""How far unknowns can leave their bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import odefit
from odefit.assessment.intervals.released import released
from odefit.simulation import Evaluation, ForwardMap


def at_the_bound() -> tuple[ForwardMap, np.ndarray, Evaluation]:
    times = np.linspace(0.0, 4.0, 9)
    problem = odefit.Problem(
        odefit.Model({"x": "b"}),
        {"t": times, "x": np.ones(9)},
        {"b": {"lower": 0.0, "upper": 5.0}},
        {"x": {"lower": -9.0, "upper": 9.0}},
        noise={"x": {"sd": 0.2}},
    )
    forward, vector = ForwardMap(problem), np.zeros(2)
    vector[problem.keys.index("x")] = 1.0
    evaluation = forward.evaluate(vector)
    assert isinstance(evaluation, Evaluation)
    return forward, vector, evaluation


def test_an_unknown_goes_as_far_as_a_regression_allows() -> None:
    forward, vector, evaluation = at_the_bound()
    place = forward.problem.keys.index("b")
    (one,) = released(forward, vector, evaluation, np.array([1 - place]), 4.0)
    times = np.linspace(0.0, 4.0, 9)
    error = 0.2 / np.sqrt(np.sum((times - 2.0) ** 2))
    assert one.distance == pytest.approx(2.0 * error, rel=1e-6)
    assert one.direction[1 - place] == pytest.approx(-2.0, rel=1e-6)
    assert (one.index, one.inward) == (place, 1)


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_a_slope_whose_square_overflows_leaves_no_room(size: float) -> None:
    forward, vector, evaluation = at_the_bound()
    place = forward.problem.keys.index("b")
    steep = replace(evaluation, residuals=size * np.ones(len(evaluation.residuals)))
    (one,) = released(forward, vector, steep, np.array([1 - place]), 4.0)
    assert 0.0 <= one.distance < 1e-150
