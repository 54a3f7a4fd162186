"""Where nodes are: at the data, as many as these carry, or where they are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit import Experiment, InputError, Model, MultipleShooting, Problem
from odefit.methods.shooting.node_placing import check, node_sizes, place_nodes
from tests.methods.shooting.instances import exchange


def decay(times: Sequence[float], **more: Any) -> Problem:
    data = {"t": times, "x": np.ones(len(times))}
    return Problem(Model(ode={"x": "-k*x"}), data, {"k": {}}, {"x": {}}, **more)


def placed(problem: Problem, nodes: Any, size: int = 1, experiment: int = 0) -> list[float]:
    check(nodes)
    return [float(t) for t in place_nodes(problem, problem.conditions[experiment], nodes, size)]


TIMES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_a_number_of_nodes_is_that_many_spread_over_the_data(count: int) -> None:
    found = placed(decay(TIMES), count)
    assert len(found) == count
    assert found[0] == 0.0
    assert set(found) <= set(TIMES[:-1])
    gaps = np.diff([*found, 8.0])
    assert gaps.max() - gaps.min() <= 1.0


def test_there_are_no_more_nodes_than_data_times() -> None:
    assert placed(decay(TIMES), 1000) == TIMES[:-1]


def test_nodes_without_a_number_are_as_many_as_the_data_carry() -> None:
    """Two measured values to a value of a node, and ten intervals if there are so many data."""
    times = np.linspace(0.0, 100.0, 101)
    assert np.diff(placed(decay(times.tolist()), None)).max() == pytest.approx(2.0)
    assert np.diff(placed(decay(times.tolist()), None, size=3)).max() == pytest.approx(6.0)
    assert len(placed(decay(times.tolist()), None, size=50)) == 12
    assert placed(decay(TIMES), None, size=50) == TIMES[:-1]


@pytest.mark.parametrize("times", [[1.0, 5.0], [0.0, 5.0], [5.0], [0.0]])
def test_few_data_have_one_node_or_two(times: list[float]) -> None:
    problem = Problem(
        Model(ode={"x": "-k*x"}), {"t": times, "x": np.ones(len(times))}, {"k": {}}, {"x": 1.0},
        t0=0.0,
    )  # fmt: skip
    found = placed(problem, None)
    assert found[0] == 0.0
    assert found == sorted(set(found))
    assert len(found) <= 2


@pytest.mark.parametrize(
    "times",
    [[2.5, 3.0], (2.5, 3.0), np.array([2.5, 3.0]), pd.Series([2.5, 3.0]), [0.0, 2.5, 3.0]],
)
def test_given_times_are_kept_and_t0_is_always_there(times: Any) -> None:
    assert placed(decay(TIMES), times) == [0.0, 2.5, 3.0]
    MultipleShooting(nodes=times).follow(exchange())


def test_times_by_experiment_leave_others_with_one_node() -> None:
    data = {"t": TIMES, "x": np.ones(9)}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}},
        initial={"x": {}},
        experiments=[Experiment("a", data), Experiment("b", data, t0=-1.0)],
    )
    given: Mapping[str, Sequence[float]] = {"b": [2.0]}
    assert placed(problem, given, experiment=0) == [0.0]
    assert placed(problem, given, experiment=1) == [-1.0, 2.0]
    with pytest.raises(InputError, match="give times by name of the experiment"):
        placed(problem, [2.0])
    with pytest.raises(InputError, match='no experiment "c"; there are a, b'):
        placed(problem, {"c": [1.0]})
    with pytest.raises(InputError, match='t = -2 is outside the data of "b"'):
        placed(problem, {"b": [-2.0]}, experiment=1)


@pytest.mark.parametrize(
    "nodes",
    [0, -3, True, 2.5, "abc", "5", [3, 2], [1, 1], [np.nan], [np.inf], [[1, 2]], iter([1.0]),
     {"a": 3}, {"a": [2.0, 1.0]}, object()],
)  # fmt: skip
def test_unusable_nodes_are_refused_at_once(nodes: Any) -> None:
    with pytest.raises(InputError, match="MultipleShooting, nodes: expected"):
        MultipleShooting(nodes=nodes)


@pytest.mark.parametrize("time", [-0.5, 8.0, 9.0])
def test_times_outside_the_data_are_refused_with_the_time(time: float) -> None:
    with pytest.raises(InputError, match=f"t = {time:g} is outside the data of"):
        placed(decay(TIMES), [time])


def test_sizes_are_those_of_the_data_and_never_zero() -> None:
    problem = Problem(
        Model(ode={"x": "-k*x", "y": "x", "w": "x"}, observables={"x": "x"}),
        {"t": TIMES, "x": np.linspace(-40.0, 3.0, 9)},
        {"k": {}},
        {"x": {}, "y": 0.0, "w": 7.0},
    )
    found = node_sizes(problem, ("x", "y", "w"), np.array([1.0, 2.0]))
    # Of y' = x, the size is that of x times the time.
    assert found.tolist() == [40.0, pytest.approx(40.0 * TIMES[-1], rel=0.7), 7.0]
