"""Searches along profiles: minima behind a ridge within the noise, and their ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evidence.zoo.near_equal import data_set
from odefit import Control, ForwardMap, Model, Problem
from odefit.methods.automatic.profile_search import FACTOR, MOST_VALUES, ProfileSearch, _minima
from odefit.methods.estimate import Start
from odefit.methods.incremental_shooting import FINAL
from odefit.problem import problem_from_mapping


def test_a_lower_optimum_behind_a_ridge_within_the_noise_is_reached() -> None:
    """Three of six unknowns are at bounds; random starts reach the lower optimum once in fifty."""
    forward = ForwardMap(problem_from_mapping(data_set("toggle", 86).mapping))
    begin = np.array([7.2786, 100.0, 1.0215, 10.0, 0.8373, 0.01])
    end = FINAL.run(forward, 0, begin, Control())
    assert 2 * end.cost == pytest.approx(23.4220, abs=1e-3)
    found = ProfileSearch(FINAL, end).run(forward, 0, Control())
    assert 2 * found.cost < 22.94
    assert found.evaluations > end.evaluations


def decay(lower: float) -> ForwardMap:
    times = np.linspace(0.0, 3.0, 9)
    data = {"t": times, "x": 2.0 * np.exp(-times) + 0.01 * np.cos(9.0 * times)}
    parameters = {"k": {"lower": 0.01, "upper": 9.0}, "a": {"lower": lower, "upper": 9.0}}
    return ForwardMap(Problem(Model(ode={"x": "-k*x"}), data, parameters, {"x": "a"}))


def test_without_another_optimum_the_end_stays() -> None:
    forward = decay(0.1)
    end = FINAL.run(forward, 0, np.array([1.0, 2.0]), Control())
    found = ProfileSearch(FINAL, end).run(forward, 0, Control())
    assert found.cost == pytest.approx(end.cost)
    assert found.vector == pytest.approx(end.vector)


def test_a_side_ends_at_a_rise_above_the_noise_and_no_side_begins_at_a_bound() -> None:
    forward = decay(2.5)
    end = FINAL.run(forward, 0, np.array([1.0, 2.6]), Control())
    assert end.vector[1] == pytest.approx(2.5)
    sides = list(ProfileSearch(FINAL, end)._sides(forward, end, Control()))
    assert len(sides) == 2
    for side, factor in zip(sides, (FACTOR, 1 / FACTOR), strict=True):
        assert 1 <= len(side) < MOST_VALUES
        assert side[0].vector[0] == pytest.approx(end.vector[0] * factor)
        assert all(isinstance(s, Start) and s.cost >= end.cost for s in side)


def test_minima_are_within_a_path_or_at_its_far_end() -> None:
    end = FINAL.run(decay(0.1), 0, np.array([1.0, 2.0]), Control())

    def minima(*costs: float) -> list[float]:
        return [s.cost for s in _minima([replace(end, cost=cost) for cost in costs])]

    assert minima(2.0, 3.0, 1.0, 4.0) == [1.0]
    assert minima(2.0, 3.0, 2.5) == [2.5]
    assert minima(2.0, 3.0, 4.0) == []
    assert minima(2.0) == []
