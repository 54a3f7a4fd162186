"""Tasks over executors that lose some, forget parcels, break, or have other versions."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from typing import Any

import pytest

from odefit.common.errors import InputError
from odefit.methods.running import worker
from odefit.methods.running import workers as workers_module
from odefit.methods.running.child import Child
from odefit.methods.running.control import Control
from odefit.methods.running.dispatch import WorkerLostError, batch_size, dispatched
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers


def base(number: int) -> int:
    return number


def squared(begun: int, task: int) -> int:
    if task == 13:
        raise ArithmeticError("thirteen")
    return begun + task**2


def killing(begun: int, task: int) -> int:
    if task == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return begun + task**2


class Fake(Executor):
    """Does everything at once; what is to go wrong is told by a function of the batch's number."""

    def __init__(self, wrong: Callable[[int], BaseException | None] = lambda _: None) -> None:
        self._max_workers = 3
        self._wrong = wrong
        self.batches = 0

    def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        error = self._wrong(self.batches)
        self.batches += 1
        if error is None:
            future.set_result(self.reply(function, arguments))
        elif isinstance(error, InterruptedError):
            future.cancel()
        else:
            future.set_exception(error)
        return future

    def reply(self, function: Any, arguments: Any) -> Any:
        return function(*arguments)


def done(
    executor: Executor | None,
    count: int,
    run: Any = squared,
    control: Control | None = None,
    offset: int = 100,
) -> tuple[dict[int, Any], Workers]:
    """Return outcomes by position, each of which has to come once, and the workers."""
    control = control or Control(executor=executor, jobs=1)
    work = Work(partial(base, offset), run)
    found: dict[int, Any] = {}
    with Workers(control) as workers:
        for position, outcome in dispatched(
            range(count),
            lambda task: (work, task),
            lambda task: run(offset, task),
            workers,
            control,
            total=count,
        ):
            assert position not in found, "a task was counted twice"
            found[position] = outcome["error"] or outcome["value"]
    return found, workers


EXPECTED = {i: 100 + i**2 for i in range(12)}


def test_every_task_is_done_once_and_few_batches_are_sent() -> None:
    executor = Fake()
    found, _ = done(executor, 12)
    assert found == EXPECTED
    many, workers = done(executor, 3000, lambda begun, task: begun + task)
    assert many == {i: 100 + i for i in range(3000)}
    assert workers.batches < 300


def test_an_exception_of_a_task_is_its_outcome() -> None:
    found, _ = done(Fake(), 20)
    assert isinstance(found.pop(13), ArithmeticError)
    assert found == {i: 100 + i**2 for i in range(20) if i != 13}


def test_batches_have_less_work_towards_the_end() -> None:
    assert batch_size(None, 1000, 2) == 1
    every = [batch_size(0.002, left, 4) for left in (10**6, 1200, 120, 12, 1)]
    assert every == [250, 100, 10, 1, 1]
    assert batch_size(3.0, None, 4) == 1


class Growing:
    """Tasks of which another is known once the one before it is done."""

    def __init__(self, count: int) -> None:
        self.left, self.known = count, 1

    def __iter__(self) -> Growing:
        return self

    def __next__(self) -> int:
        if not self.known or not self.left:
            raise StopIteration
        self.known, self.left = self.known - 1, self.left - 1
        return self.left


@pytest.mark.parametrize("executor", [None, Fake()])
def test_tasks_may_follow_from_outcomes(executor: Executor | None) -> None:
    tasks, found = Growing(5), []
    control = Control(executor=executor, jobs=1)
    work = Work(partial(base, 100), squared)
    with Workers(control) as own:
        done_so_far = dispatched(
            tasks, lambda task: (work, task), lambda task: squared(100, task), own, control
        )
        while (end := next(done_so_far, None)) is not None:
            found.append((end[0], end[1]["value"]))
            tasks.known += 1
            if not tasks.left:
                break
    assert found == [(i, 100 + (4 - i) ** 2) for i in range(5)]


def test_lost_tasks_are_sent_again() -> None:
    """One that vanishes without a word, as when a cluster has forgotten it, is like another."""
    executor = Fake(lambda n: InterruptedError() if n in (3, 5, 9) else None)
    found, workers = done(executor, 12)
    assert found == EXPECTED
    assert workers.executor() is executor


def test_a_task_that_is_always_lost_is_given_up_and_no_other() -> None:
    class Unlucky(Fake):
        def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
            failed: Future[Any] = Future()
            failed.set_exception(OSError("its worker died"))
            poison = 4 in pickle.loads(arguments[3])
            return failed if poison else super().submit(function, *arguments)

    found, _ = done(Unlucky(), 12)
    lost = found.pop(4)
    assert isinstance(lost, WorkerLostError)
    assert str(lost) == "OSError: its worker died (3 times)"
    assert found == {i: v for i, v in EXPECTED.items() if i != 4}


def test_a_worker_without_a_parcel_gets_it_and_each_is_sent_once_to_each() -> None:
    class Forgetful(Fake):
        def reply(self, function: Any, arguments: Any) -> Any:
            if self.batches % 4 == 0:
                worker._parcels.clear()
            return function(*arguments)

    found, _ = done(Forgetful(), 12)
    assert found == EXPECTED
    worker._parcels.clear()
    _, workers = done(Fake(), 300, offset=101)
    parcels = worker.Parcel.of(partial(base, 101)), worker.Parcel.of(squared)
    assert workers.carried == 3 * sum(len(p.content) for p in parcels)


def test_a_broken_executor_is_replaced_and_reported_without_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers_module, "installed", lambda _: False)
    executor = Fake(lambda n: BrokenProcessPool("a child died") if n >= 4 else None)
    control = Control(executor=executor, jobs=1)
    found, _ = done(executor, 12, control=control)
    assert found == EXPECTED
    (said,) = control.remarks
    assert said == (
        "the executor was abandoned, and the work continued in this process: "
        "BrokenProcessPool: a child died"
    )


def test_the_work_is_done_here_where_no_process_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Semaphores are files in memory: some containers have none, and a limit may forbid them."""

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("loky.ProcessPoolExecutor", refused)
    monkeypatch.setattr(workers_module, "POOL_AFTER_SECONDS", -1.0)
    control = Control(jobs=2)
    found, _ = done(None, 12, control=control)
    assert found == EXPECTED
    (said,) = control.remarks
    assert said.startswith("no worker process can be started, and the work went on here: ")
    assert "Function not implemented" in said


def test_an_executor_that_was_shut_down_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "installed", lambda _: False)
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    found, _ = done(executor, 12)
    assert found == EXPECTED


@pytest.mark.parametrize("theirs", ["0.0.1", "none"])
def test_another_version_of_odefit_is_reported_in_one_sentence(theirs: str) -> None:
    class Other(Fake):
        def reply(self, function: Any, arguments: Any) -> Any:
            reply = function("another", *arguments[1:])
            return {**reply, "versions": {**reply["versions"], "odefit": theirs}}

    with pytest.raises(
        InputError, match=r"^the worker \S+ has .*odefit.*: install odefit .* there"
    ):
        done(Other(), 12)


def test_a_worker_that_cannot_load_odefit_is_reported() -> None:
    executor = Fake(lambda _: ModuleNotFoundError("No module named 'odefit'"))
    with pytest.raises(InputError, match="the workers cannot load odefit"):
        done(executor, 12)


def test_other_versions_of_other_packages_are_a_remark() -> None:
    class Other(Fake):
        def reply(self, function: Any, arguments: Any) -> Any:
            reply = function(*arguments)
            return {**reply, "versions": {**reply["versions"], "numpy": "1.0"}}

    control = Control(executor=Other(), jobs=1)
    found, _ = done(None, 12, control=control)
    assert found == EXPECTED
    assert [s for s in control.remarks if "numpy 1.0" in s] == control.remarks != []


def test_an_exception_that_cannot_be_pickled_is_sent_as_text() -> None:
    class OddError(Exception):
        def __reduce__(self) -> Any:
            raise TypeError("no")

    def odd(begun: int, task: int) -> int:
        raise OddError(f"odd {begun + task}")

    found, _ = done(Fake(), 2, odd)
    assert [str(found[i]) for i in range(2)] == ["OddError: odd 100", "OddError: odd 101"]


def test_an_interruption_ends_the_wait() -> None:
    class Silent(Fake):
        def submit(self, function: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
            control.interrupted.set()
            return Future()

    control = Control(executor=Silent(), jobs=1)
    assert done(None, 12, control=control)[0] == {}


def in_worker(begun: int, task: int) -> bool:
    return worker.in_worker()


@pytest.mark.slow
def test_a_task_detects_whether_a_crash_would_end_the_sender() -> None:
    """The threads of an executor are in the sender's process, and so is what is done without."""
    child = Child()

    class Elsewhere(Fake):
        def reply(self, function: Any, arguments: Any) -> Any:
            child.call(function, *arguments)
            return child.wait(time.monotonic() + 60.0, lambda: False).content

    assert set(done(Elsewhere(), 3, in_worker)[0].values()) == {True}
    child.kill()
    with ThreadPoolExecutor(1) as threads:
        assert set(done(threads, 3, in_worker)[0].values()) == {False}
    assert set(done(None, 3, in_worker)[0].values()) == {False}


@pytest.mark.slow
def test_a_task_that_kills_its_process_is_given_up_and_costs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With processes of our own, and with a pool of the user, which the first death breaks."""
    monkeypatch.setattr(workers_module, "POOL_AFTER_SECONDS", -1.0)
    expected = {i: 100 + i**2 for i in range(30) if i != 7}
    for own in (True, False):
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            control = Control(executor=None if own else pool, jobs=2)
            found, _ = done(None, 30, killing, control)
        lost = found.pop(7)
        assert isinstance(lost, WorkerLostError)
        assert str(lost).endswith("(3 times)")
        assert found == expected
        assert len(control.remarks) == (0 if own else 1)
