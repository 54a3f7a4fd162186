"""The iterations of one start: broken trajectories that grow together."""

from __future__ import annotations

import numpy as np
import pytest

import odefit
from odefit import Experiment, Failure, Model, MultipleShooting, Problem, library
from odefit.methods.multiple_shooting import History
from odefit.simulation.trajectories.intervals import IntervalMap
from tests.methods.problems import explosive
from tests.methods.shooting.instances import exchange


@pytest.fixture(scope="module")
def voltage() -> History:
    """FitzHugh-Nagumo, the voltage alone measured, nodes from the data."""
    return MultipleShooting(nodes=8, states="data").follow(library.load("fitzhugh-nagumo-v"))


def test_the_table_has_a_row_for_each_iteration_and_a_column_for_each_unknown(
    voltage: History,
) -> None:
    table = voltage.table()
    assert list(table.columns) == [
        "objective", "gap", "level", "damping", "undetermined", *voltage.problem.keys,
    ]  # fmt: skip
    assert table.index.name == "iteration"
    assert len(table) == len(voltage.iterations) > 3
    assert voltage.converged
    assert (table["damping"].iloc[:-1] > 0).all()
    assert table["damping"].iloc[-1] == 0
    assert table["level"].iloc[-1] < 1e-6
    assert (table["undetermined"] == 0).all()
    assert table[list(voltage.problem.keys)].iloc[-1].to_numpy() == pytest.approx(voltage.vector)
    assert table["objective"].iloc[-1] == voltage.objective


def jumps(history: History, iteration: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of V, over its breaks."""
    path = history.trajectory(iteration)
    v = path.states["V"]
    (breaks,) = np.nonzero(np.isnan(v))
    assert path.times[breaks].tolist() == history.nodes(iteration).times[0][1:].tolist()
    return np.asarray(v[breaks + 1] - v[breaks - 1])


def test_trajectories_are_broken_at_first_and_continuous_in_the_end(voltage: History) -> None:
    first, last = jumps(voltage, 0), jumps(voltage, -1)
    assert np.abs(first).max() > 0.1
    assert np.abs(last).max() < 1e-7
    sizes = voltage.shooting.sizes
    gap = voltage.table()["gap"].iloc[0]
    assert np.abs(first).max() / sizes[0] <= gap * (1 + 1e-6)


def test_breaks_are_in_all_states_and_observables_and_nowhere_else(voltage: History) -> None:
    path = voltage.trajectory(0, points=5)
    count = len(voltage.nodes().times[0])
    for values in (*path.states.values(), *path.observables.values()):
        assert len(values) == len(path.times)
        assert np.isnan(values).sum() == count - 1
    assert (np.diff(path.times) >= 0).all()
    assert path.times[0] == 0.0
    last = voltage.problem.conditions[0].times[-1]
    assert path.times[-1] == pytest.approx(last, abs=1e-12)


def test_after_a_break_the_trajectory_is_at_the_node(voltage: History) -> None:
    path, nodes = voltage.trajectory(0), voltage.nodes(0)
    (breaks,) = np.nonzero(np.isnan(path.states["R"]))
    found = np.column_stack([path.states["V"], path.states["R"]])[breaks + 1]
    assert found == pytest.approx(nodes.values[0][1:], abs=1e-9)


def test_the_first_node_follows_from_the_unknowns(voltage: History) -> None:
    for k in range(len(voltage.iterations)):
        row = voltage.table().iloc[k]
        assert voltage.nodes(k).values[0][0].tolist() == [row["V"], row["R"]]


def test_the_end_is_that_of_a_fit(voltage: History) -> None:
    fitted = odefit.fit(voltage.problem, jobs=1)
    assert voltage.vector == pytest.approx(fitted.best.vector, rel=1e-6)


def test_every_experiment_has_its_own_trajectory() -> None:
    data = {"t": [0.0, 1.0, 2.0, 3.0], "x": [2.0, 1.2, 0.7, 0.5]}
    problem = Problem(
        Model(ode={"x": "-k*x"}),
        parameters={"k": {}},
        initial={"x": {"per_experiment": True}},
        experiments=[Experiment("a", data), Experiment("b", data, t0=-1.0)],
    )
    history = MultipleShooting(nodes={"b": [0.5, 1.5]}).follow(problem)
    assert not np.isnan(history.trajectory(experiment="a").states["x"]).any()
    b = history.trajectory(-1, "b")
    assert b.times[0] == -1.0
    assert np.isnan(b.states["x"]).sum() == 2
    with pytest.raises(odefit.InputError, match="'c'"):
        history.trajectory(experiment="c")


def test_a_node_at_the_last_measurement_is_allowed() -> None:
    history = MultipleShooting(nodes=3, constraints=["x@10 = 0.4"]).follow(exchange())
    path = history.trajectory()
    assert path.times[-1] == pytest.approx(10.0)
    assert history.nodes().times[0][-1] == 10.0
    finite = path.states["x"][np.isfinite(path.states["x"])]
    assert finite[-1] == pytest.approx(0.4, abs=1e-6)


def test_relaxation_does_not_count_as_an_iteration_and_leaves_few() -> None:
    problem = library.load("fitzhugh-nagumo-v")
    relaxed = MultipleShooting(nodes=8).follow(problem)
    assert relaxed.converged
    assert len(relaxed.iterations) <= 5
    assert relaxed.table()["gap"].iloc[0] < 0.01


def test_a_start_that_cannot_be_integrated_is_an_error_with_its_reason() -> None:
    with pytest.raises(RuntimeError, match=r"cannot be integrated: .*t = .*grows? without bound"):
        MultipleShooting(start={"k": 30.0}).follow(explosive(50.0))


def test_a_trajectory_that_cannot_be_integrated_any_more_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = MultipleShooting(nodes=3).follow(exchange())
    failure = Failure("data", 1.0, "why not")
    monkeypatch.setattr(IntervalMap, "__call__", lambda *arguments: failure)
    with pytest.raises(RuntimeError, match="why not"):
        history.trajectory()
