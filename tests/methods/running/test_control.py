"""Signals, events, deadlines and lack of memory end a run, and later its integrations."""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections.abc import Callable

import pytest

from odefit.methods.estimate import Cause, Status
from odefit.methods.running import control as control_module
from odefit.methods.running.control import (
    GRACE_SECONDS,
    Control,
    Interruption,
    Watch,
    interruptible,
    running,
    watched,
)
from odefit.methods.running.memory import MemoryWatch
from odefit.simulation.engines.cut_off import NEVER, cut_off


@pytest.mark.parametrize(
    ("number", "cause"), [("SIGINT", Cause.CTRL_C), ("SIGTERM", Cause.TERMINATED)]
)
def test_a_signal_ends_a_run_and_a_second_one_acts_as_usual(number: str, cause: Cause) -> None:
    one = getattr(signal, number)
    before = signal.getsignal(one)
    control = Control()
    with interruptible(control):
        assert signal.getsignal(one) is not before
        signal.raise_signal(one)
        assert control.should_stop()
        assert (control.cause, control.early) == (cause, Status.INTERRUPTED)
        assert signal.getsignal(one) is before
    assert signal.getsignal(one) is before


def test_a_foreign_signal_handler_stays() -> None:
    heard = []
    previous = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        control = Control()
        with interruptible(control):
            signal.raise_signal(signal.SIGTERM)
        assert heard == [1]
        assert not control.should_stop()
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_an_outer_block_is_notified_of_the_signal() -> None:
    outer, inner = Control(), Control()
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(outer):
        with interruptible(inner):
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) is before
        assert (inner.cause, outer.cause) == (Cause.TERMINATED, Cause.TERMINATED)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_stop_event_of_the_caller_ends_a_run_too() -> None:
    stop = threading.Event()
    control = Control(interrupted=Interruption(stop))
    assert not control.should_stop()
    assert not control.cause
    stop.set()
    assert control.should_stop()
    assert str(control.cause) == "the caller"
    assert control.early is Status.INTERRUPTED


def test_the_first_cause_counts() -> None:
    interruption = Interruption()
    interruption.end(Cause.TERMINATED)
    interruption.end(Cause.CTRL_C)
    assert interruption.cause is Cause.TERMINATED


def test_a_deadline_is_the_time_limit() -> None:
    control = Control(deadline=0.0)
    assert (control.cause, control.early) == (Cause.TIME_LIMIT, Status.TIME_LIMIT)
    assert Control().early is Status.NOT_CONVERGED
    assert [s.cut_short for s in Status] == [False, False, True, True, True, False]


def test_a_deadline_goes_to_a_worker_as_the_seconds_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock of another computer shows something else; on this one the way counts too."""
    deadline = time.monotonic() + 50.0
    sent = pickle.dumps(Control(seed=3, deadline=deadline).for_workers())
    here = pickle.loads(sent)
    assert (here.seed, here.deadline) == (3, deadline)
    monkeypatch.setattr(control_module, "this_clock", lambda: "that of another computer")
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    assert 7.0 < pickle.loads(sent).deadline <= 57.0
    assert pickle.loads(pickle.dumps(Control().for_workers())).deadline is None


def test_a_part_has_a_share_of_the_time_that_is_left() -> None:
    limited = Control(deadline=time.monotonic() + 1000.0)
    assert 490.0 < limited.with_share(0.5).seconds_left <= 500.0
    assert Control().with_share(0.5).deadline is None
    assert Control(deadline=1.0).seconds_left == 0.0
    assert Control(deadline=1.0).is_late()
    assert not Control(deadline=time.monotonic()).is_late()


class Clock:
    """A clock that shows what it is set to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_integrations_are_cut_off_some_time_after_the_deadline() -> None:
    clock = Clock()
    control = Control(deadline=110.0)
    watch = Watch(control, clock=clock)
    for now, reached in (
        (109.0, False),
        (110.0 + 0.5 * GRACE_SECONDS, False),
        (110.0 + GRACE_SECONDS, True),
    ):
        clock.now = now
        watch.look()
        assert control.cut_off.reached is reached


def test_integrations_are_cut_off_some_time_after_an_interruption() -> None:
    clock = Clock()
    control = Control()
    watch = Watch(control, clock=clock)
    watch.look()
    control.interrupted.set()
    watch.look()
    clock.now += 0.9 * GRACE_SECONDS
    watch.look()
    assert not control.cut_off.reached
    clock.now += 0.1 * GRACE_SECONDS
    watch.look()
    assert control.cut_off.reached


def short(words: str) -> Callable[[], str]:
    return lambda: words


def test_a_run_that_uses_too_much_memory_is_ended_with_the_reason() -> None:
    control = Control()
    memory = MemoryWatch(1000, used=lambda: 3000, machine=lambda: None)
    Watch(control, memory=memory).look()
    assert control.should_stop()
    assert control.early is Status.MEMORY_LIMIT
    assert control.cause is Cause.MEMORY_LIMIT
    assert isinstance(control.interrupted, Interruption)
    assert control.interrupted.details == "3 kB were in use, of 1 kB allowed"


def test_the_cut_off_of_a_run_holds_within_its_block() -> None:
    control = Control()
    with watched(control):
        assert cut_off() is control.cut_off
    assert cut_off() is NEVER


def test_a_lack_of_memory_ends_long_work_without_an_exception() -> None:
    control = Control()
    with running(control):
        raise MemoryError("Unable to allocate 1 TiB")
    assert control.early is Status.MEMORY_LIMIT
    assert control.cause is Cause.OUT_OF_MEMORY


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match="something"), running(Control()):
        raise ValueError("something")
