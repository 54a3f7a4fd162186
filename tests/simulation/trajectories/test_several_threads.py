"""Conditions that several threads integrate: the same values, whoever integrates them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import odefit
from odefit import Control, ForwardMap, SingleShooting
from odefit.common.arrays import Array
from odefit.common.cores import cores, using_cores
from odefit.methods.running.control import RemoteControl, watched
from odefit.simulation import Evaluation, Failure
from odefit.simulation.engines.cut_off import WorkLimit, counting
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.trajectories import several_threads
from odefit.simulation.trajectories.several_threads import SeveralThreads
from odefit.simulation.trajectories.unit_outcome import UnitOutcome
from tests.methods.running.test_remote_conditions import doses
from tests.simulation.trajectories.test_conditions import UNITS

NO_VECTOR = np.zeros(0)


@pytest.fixture
def any_evaluation_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_threads, "SHORTEST_EVALUATION", 0.0)
    monkeypatch.setattr(several_threads, "LEAST_SECONDS", 0.0)


@pytest.mark.usefixtures("any_evaluation_pays")
@pytest.mark.parametrize("name", UNITS)
def test_threads_give_the_same_to_the_last_digit(name: str) -> None:
    whole = UNITS[name]()
    first = np.linspace(0.4, 1.2, len(whole.keys))
    alone, shared = ForwardMap(whole), ForwardMap(whole)
    for vector in (first, 1.1 * first, 0.9 * first):
        expected = alone.evaluate(vector)
        with using_cores(3):
            found = shared.evaluate(vector)
        assert isinstance(expected, Evaluation)
        assert isinstance(found, Evaluation)
        assert np.array_equal(found.residuals, expected.residuals)
        assert np.array_equal(found.jacobian, expected.jacobian)
        assert found.choice == expected.choice
        with using_cores(3):
            cost = shared.cost(vector)
        assert cost == alone.cost(vector)


class Units:
    """Units that are noted, and of which some fail; the first two threads wait for each other."""

    def __init__(self, failing: Sequence[int] = ()) -> None:
        self.failing = failing
        self.threads: set[int] = set()
        self.numbers: list[int] = []
        self.meeting = threading.Barrier(2, timeout=10.0)

    def __call__(
        self, numbers: Sequence[int], _: Array, choices: Sequence[EngineChoice]
    ) -> dict[int, UnitOutcome]:
        assert cores() == 1
        if threading.get_ident() not in self.threads:
            self.threads.add(threading.get_ident())
            self.meeting.wait()
        outcomes: dict[int, UnitOutcome] = {}
        for number in numbers:
            self.numbers.append(number)
            failed = Failure("", float(number), "", UNDECIDED)
            end: Any = failed if number in self.failing else {}
            outcomes[number] = UnitOutcome(end, UNDECIDED, UNDECIDED)
            if number in self.failing:
                break
        return outcomes


def test_each_unit_is_integrated_once_by_one_of_the_threads() -> None:
    units = Units()
    with using_cores(2):
        found = SeveralThreads(units, lambda: units)(range(40), NO_VECTOR, ())
    assert sorted(units.numbers) == sorted(found) == list(range(40))
    assert len(units.threads) == 2


def test_all_units_before_the_first_failure_are_integrated_and_few_after_it() -> None:
    units = Units(failing=(11, 23))
    with using_cores(2):
        found = SeveralThreads(units, lambda: units)(range(400), NO_VECTOR, ())
    assert set(range(12)) <= set(found)
    assert len(found) < 400


def test_an_error_in_another_thread_is_raised_here() -> None:
    called = threading.Event()

    def broken(*_: Any) -> dict[int, UnitOutcome]:
        called.set()
        raise ArithmeticError("broken")

    def waiting(*_: Any) -> dict[int, UnitOutcome]:
        assert called.wait(10.0)
        return {}

    several = SeveralThreads(waiting, lambda: broken)
    with using_cores(2), pytest.raises(ArithmeticError, match="broken"):
        several(range(40), NO_VECTOR, ())


@pytest.mark.parametrize(
    ("count", "seconds", "limit", "pays"),
    [(2, 2.0, False, True), (1, 2.0, False, False), (2, 1e-3, False, False), (2, 2.0, True, False)],
)
def test_threads_need_cores_and_long_evaluations(
    count: int, seconds: float, limit: bool, pays: bool
) -> None:
    """A limit of work counts that of this thread alone."""
    units = Units()
    several = SeveralThreads(units, lambda: units)
    several.count(seconds)
    with using_cores(count):
        if limit:
            with counting(WorkLimit(1e9)):
                assert several.pays is pays
        else:
            assert several.pays is pays


def test_a_run_uses_the_cores_of_its_jobs_and_a_worker_one() -> None:
    with watched(Control(jobs=3)):
        assert cores() == 3
    with RemoteControl(0, None).running():
        assert cores() == 1
    assert cores() == 1


@pytest.mark.usefixtures("any_evaluation_pays")
@pytest.mark.parametrize("make", [lambda: SingleShooting(), lambda: odefit.Automatic(starts=2)])
def test_fits_by_threads_are_those_of_one(make: Callable[[], Any]) -> None:
    problem = doses(6)
    alone = odefit.fit(problem, make(), jobs=1)
    shared = odefit.fit(problem, make(), jobs=3)
    assert np.array_equal(shared.best.vector, alone.best.vector)
    assert shared.objective == alone.objective
    assert shared.parameters.equals(alone.parameters)
