"""Windows of trajectories with thousands of knots, by engines of another family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odefit import ForwardMap, Model, Problem
from odefit.common.arrays import IntArray
from odefit.simulation.second_opinion import second_opinion
from odefit.simulation.trajectories.trajectory import Trajectory
from odefit.simulation.windows import MANY_PARTS, PARTS, WINDOWS, through_windows
from tests.simulation.numerics import integrated

HERE = np.array([0.7, 0.4])


def lag(rows: int) -> ForwardMap:
    """Return a first-order lag that an input in every row drives."""
    times = np.linspace(0.0, 0.01 * rows, rows)
    columns = {"t": times, "u": np.sin(times), "x": np.zeros(rows)}
    model = Model(ode={"x": "u - k*x"}, inputs={"u": "linear"})
    return ForwardMap(Problem(model, columns, {"k": {}}, {"x": {}}, noise={"x": {"sd": 0.01}}))


@pytest.fixture(scope="module")
def forward() -> ForwardMap:
    return lag(MANY_PARTS + 10)


@pytest.fixture(scope="module")
def used(forward: ForwardMap) -> Trajectory:
    return integrated(forward, HERE)


def changed(one: Trajectory, other: Trajectory) -> IntArray:
    return np.flatnonzero((one.states != other.states).any(axis=1))


def test_windows_lie_at_the_beginning_and_all_over(forward: ForwardMap, used: Trajectory) -> None:
    other = through_windows(forward.by("bdf", 1e-6), HERE, 0, used)
    assert other is not None
    assert other.states == pytest.approx(used.states, abs=1e-4)
    rows = changed(used, other)
    assert 0.8 * WINDOWS * PARTS <= len(rows) <= WINDOWS * (PARTS + 1)
    begins = rows[np.append(True, np.diff(rows) > PARTS / 2)]
    assert begins == pytest.approx(np.linspace(0, len(used.times), WINDOWS, endpoint=False), abs=4)


def test_few_knots_are_integrated_as_a_whole() -> None:
    few = lag(MANY_PARTS - 10)
    assert through_windows(few.by("bdf"), HERE, 0, integrated(few, HERE)) is None


def test_an_error_that_arises_late_is_seen(forward: ForwardMap, used: Trajectory) -> None:
    assert second_opinion(forward, HERE, used=[used]).agrees
    late = int(0.89 * len(used.times))  # within the last window
    wrong = used.states.copy()
    wrong[late:] += 0.5 * (used.times[late:, None] - used.times[late])
    opinion = second_opinion(forward, HERE, used=[replace(used, states=wrong)])
    assert opinion.difference is not None
    assert opinion.difference.ratio > 1.0
    assert opinion.difference.time > used.times[late]
