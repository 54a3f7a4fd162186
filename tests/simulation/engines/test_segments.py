"""Segments: what cuts them, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from odefit import Experiment, Model, Problem
from odefit.common.arrays import Array
from odefit.problem.experiment import Input
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.segments import segment_between


def step_response(rows: int) -> Problem:
    """Return ``x' = u - k x`` with an input in every row that changes at 1 and at 3 alone."""
    times = np.linspace(0.0, 5.0, rows)
    u = np.where(times < 1.0, 0.0, np.where(times < 3.0, 2.0, 1.0))
    data = Experiment("run", {"t": times, "u": u, "x": np.zeros(rows)})
    return Problem(
        Model(ode={"x": "u - k*x"}, inputs={"u": "constant"}),
        parameters={"k": {"guess": 2.0}},
        initial={"x": 0.0},
        experiments=[data],
    )


def test_rows_at_which_a_constant_input_stays_the_same_do_not_cut_a_segment() -> None:
    problem = step_response(5001)
    (condition,) = problem.conditions
    segment = segment_between(condition, ("u",), 0.0, condition.times[1:])
    assert segment.breakpoints == pytest.approx([1.0, 3.0])
    found = ForwardMap(problem).trajectory(np.array([2.0]))
    assert not isinstance(found, Failure)

    def rise(since: float) -> Array:
        return np.maximum(0.0, 1.0 - np.exp(-2.0 * np.maximum(found.times - since, 0.0))) / 2.0

    assert found.states[:, 0] == pytest.approx(2.0 * rise(1.0) - rise(3.0), abs=1e-9)


@pytest.mark.parametrize(
    ("interpolation", "corners"),
    [("constant", [2.0, 5.0]), ("linear", [1.0, 2.0, 4.0, 5.0]), ("cubic", range(7))],
)
def test_an_input_has_corners_where_it_changes(interpolation: str, corners: list[float]) -> None:
    values = np.array([1.0, 1.0, 3.0, 3.0, 3.0, 0.0, 0.0])
    assert Input(np.arange(7.0), values, interpolation).corners.tolist() == list(corners)
