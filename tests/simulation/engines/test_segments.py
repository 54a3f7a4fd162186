"""Segments: what cuts them, and what does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odefit import Experiment, Model, Problem
from odefit.common.arrays import Array
from odefit.expressions.expressions import parse
from odefit.problem.experiment import Input
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.segments import segment_between, timeline


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


class Counted(float):
    """A time that counts how often it is compared with another."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return float(self) == other

    __hash__ = float.__hash__


def test_the_work_on_events_is_proportional_to_their_number() -> None:
    """A hundred thousand events in a file of 800 kB took minutes."""
    (condition,) = step_response(11).conditions
    assign = {"x": parse("x + 1")}
    counts = []
    for number in (200, 400):
        Counted.compared = 0
        events = tuple((Counted(0.01 * (i + 1)), assign) for i in range(number))
        _, entries = timeline(replace(condition, events=events), ("u",), condition.times)
        assert [len(entry.events) for entry in entries] == [0] + [1] * number
        assert sorted(row for entry in entries for row in entry.rows if row >= 0) == list(
            range(1, 11)
        )
        counts.append(Counted.compared)
    assert counts[1] <= 2 * counts[0] + 10


def test_events_at_one_time_happen_in_their_order() -> None:
    (condition,) = step_response(6).conditions
    first, second = {"x": parse("x + 1")}, {"x": parse("2*x")}
    events = ((1.5, first), (1.5, second), (3.0, first))
    _, entries = timeline(replace(condition, events=events), ("u",), condition.times)
    assert [entry.events for entry in entries] == [(), (first, second), (first,)]
    assert [entry.rows for entry in entries] == [(1, -1), (2, 3), (4, 5)]
