"""Linear equations at many values of the unknowns at once, beside one evaluation for each."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from odefit import ForwardMap, Model
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.running.control import Control
from odefit.methods.starts import lowest, sample
from odefit.simulation import Evaluation
from odefit.simulation.engines.engines import Engines
from odefit.simulation.trajectories import linear_points
from tests.simulation.numerics import Array
from tests.simulation.trajectories.test_linear_batch import CASES, subjects, values


def points_near(vector: Array, count: int) -> Array:
    return vector * np.linspace(0.8, 1.2, count)[:, None]


@pytest.mark.parametrize("subjects_", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_many_points_have_the_costs_of_one_evaluation_each(case: str, subjects_: int) -> None:
    problem = subjects(*CASES[case], count=subjects_)
    points = points_near(values(problem), 6)
    forward, alone = ForwardMap(problem), ForwardMap(problem)
    for vector, known in zip(points, forward.trajectories_at(points), strict=True):
        assert known is not None
        along = forward.evaluate_along(vector, known, derivatives=False)
        assert isinstance(along, Evaluation)
        assert along.cost == pytest.approx(alone.cost(vector), rel=1e-9)


def test_expressions_of_unknowns_have_the_values_of_each_point() -> None:
    model = Model(ode={"gut": "-ka*gut/F", "blood": "ka*gut/F - ke/F*blood + leak"})
    problem = subjects(model, CASES["lag"][1], count=2)
    points = points_near(values(problem), 5)
    forward = ForwardMap(problem)
    for vector, known in zip(points, forward.trajectories_at(points), strict=True):
        assert known is not None
        along = forward.evaluate_along(vector, known, derivatives=False)
        assert isinstance(along, Evaluation)
        assert along.cost == pytest.approx(ForwardMap(problem).cost(vector), rel=1e-9)


def test_points_do_not_depend_on_those_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = subjects(*CASES["lag"], count=3)
    points = points_near(values(problem), 12)
    together = ForwardMap(problem).trajectories_at(points)
    monkeypatch.setattr(linear_points, "MOST_TOGETHER", 15)
    fewer = ForwardMap(problem).trajectories_at(points)
    assert [one is None for one in fewer] == [False] * 10 + [True] * 2
    for one, other in zip(together, fewer, strict=True):
        assert one is not None
        for mine, its in zip(one, other or one, strict=True):
            assert np.array_equal(mine.states, its.states)


def test_a_point_with_equal_rates_is_left_to_the_engines() -> None:
    problem = subjects(*CASES["bolus"], count=1)
    points = points_near(values(problem), 5)
    points[2, problem.keys.index("ka")] = points[2, problem.keys.index("ke")]
    found = ForwardMap(problem).trajectories_at(points)
    assert [one is None for one in found] == [False, False, True, False, False]


def test_the_best_of_many_points_takes_no_integrations() -> None:
    problem = subjects(*CASES["bolus"], count=1)
    points = sample(problem, 0, 64, 0)
    calls: Counter[str] = Counter()
    original = Engines.integrate

    def counted(self: Engines, *arguments: Any, **more: Any) -> Any:
        calls["integrate"] += 1
        return original(self, *arguments, **more)

    with patch.object(Engines, "integrate", counted):
        best, cost = lowest(VariableProjection(ForwardMap(problem)), points, Control())
    assert calls["integrate"] < 8
    costs = [ForwardMap(problem).cost(point) for point in points]
    assert np.array_equal(best, points[int(np.argmin(costs))])
    assert cost == pytest.approx(min(costs), rel=1e-9)


def test_nonlinear_equations_have_no_map_of_points() -> None:
    model = Model(ode={"gut": "-ka*gut", "blood": "ka*gut - ke*blood^2 + leak"})
    problem = subjects(model, CASES["bolus"][1])
    points = points_near(values(problem), 5)
    assert ForwardMap(problem).trajectories_at(points) == [None] * 5
