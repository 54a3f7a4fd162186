"""Conditions of one evaluation over several workers: the same answers, whoever integrates them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Event, Experiment, ForwardMap, Model, Problem
from odefit.methods.multi_start import MultiStart
from odefit.methods.running import remote_conditions, workers
from odefit.methods.running.control import Control
from odefit.methods.running.remote_conditions import RemoteConditions, conditions_over_workers
from odefit.methods.running.workers import Workers
from odefit.methods.single_shooting import SingleShooting
from odefit.simulation import Evaluation
from odefit.simulation.engines.engine_choice import UNDECIDED


def doses(count: int) -> Problem:
    """A compartment with a dose of its own in each condition, from one long run before."""
    times = np.array([0.5, 1.0, 3.0])
    experiments = []
    for i in range(count):
        after = (1.0 + i) * np.exp(-0.7 * times)
        experiments.append(
            Experiment(
                f"dose {i}",
                {"t": times, "x": 0.5 + after},
                t0=-20.0,
                events=[Event((0.0,), {"x": f"x + {1.0 + i}"})],
            )
        )
    return Problem(
        Model(ode={"x": "a - k*x"}),
        parameters={"a": {"guess": 0.3, "lower": 0.0, "upper": 5.0}, "k": {"guess": 0.5}},
        initial={"x": {"guess": 1.0, "lower": 0.0, "upper": 5.0}},
        experiments=experiments,
    )


class Here(Executor):
    """An executor that does everything at once, and counts."""

    _max_workers = 3

    def __init__(self) -> None:
        self.tasks = 0

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        self.tasks += 1
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **more))
        return future


class Broken(Here):
    """An executor whose workers die."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **more: Any) -> Future[Any]:
        self.tasks += 1
        future: Future[Any] = Future()
        future.set_exception(OSError("killed"))
        return future


@pytest.fixture(autouse=True)
def any_evaluation_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_conditions, "SHORTEST_EVALUATION", 0.0)


@pytest.mark.parametrize("kind", [Here, Broken])
def test_evaluations_over_workers_are_those_of_one_process(
    kind: type[Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "installed", lambda _: False)  # what fails is done right here
    problem, vector = doses(5), np.array([0.4, 0.6, 1.1])
    here, there, executor = ForwardMap(problem), ForwardMap(problem), kind()
    with conditions_over_workers(there, Control(executor=executor)):
        for v in (vector, 1.1 * vector):
            expected, found = here.evaluate(v, UNDECIDED), there.evaluate(v, UNDECIDED)
            assert isinstance(expected, Evaluation)
            assert isinstance(found, Evaluation)
            assert np.array_equal(found.residuals, expected.residuals)
            assert np.array_equal(found.jacobian, expected.jacobian)
    # Four units, as the first is integrated here to choose an engine; three that fail are enough.
    sent = 4 if kind is Here else 6
    assert executor.tasks == sent
    there.evaluate(vector, UNDECIDED)
    assert executor.tasks == sent


def test_workers_integrate_everything_where_that_pays() -> None:
    forward, vector = ForwardMap(doses(5)), np.array([0.4, 0.6, 1.1])
    with Workers(Control(executor=Here())) as workers:
        remote = RemoteConditions(forward, workers)
        numbers, undecided = range(forward.units), [UNDECIDED] * (forward.units + 1)
        assert remote(numbers, vector, undecided, False) == {}
        found = remote(numbers, vector, undecided, False)
    assert set(found) == set(numbers)


@pytest.mark.parametrize(("conditions", "jobs"), [(1, 3), (5, 1)])
def test_one_condition_or_one_worker_stay_here(conditions: int, jobs: int) -> None:
    forward = ForwardMap(doses(conditions))
    executor = Here()
    executor._max_workers = jobs
    with conditions_over_workers(forward, Control(executor=executor)):
        forward.evaluate(np.array([0.4, 0.6, 1.1]))
        forward.evaluate(np.array([0.4, 0.6, 1.1]))
    assert executor.tasks == 0


@pytest.mark.parametrize("method", [SingleShooting(), MultiStart(starts=1), MultiStart(starts=2)])
def test_fits_over_workers_are_those_of_one_process(method: Any) -> None:
    problem, executor = doses(6), Here()
    alone = method.solve(problem, Control(jobs=1))
    shared = method.solve(problem, Control(executor=executor))
    assert executor.tasks > 6
    assert np.array_equal(shared.best.vector, alone.best.vector)
    assert shared.best.objective == alone.best.objective


def test_whole_starts_are_sent_to_the_workers() -> None:
    executor = Here()
    MultiStart(starts=3).solve(doses(6), Control(executor=executor))
    assert executor.tasks == 3


@pytest.mark.slow
def test_processes_give_the_same_digits() -> None:
    from loky import ProcessPoolExecutor

    problem = doses(6)
    alone = odefit.fit(problem, SingleShooting(), jobs=1)
    with ProcessPoolExecutor(2) as executor:
        shared = odefit.fit(problem, SingleShooting(), executor=executor)
    assert np.array_equal(shared.best.vector, alone.best.vector)
