"""What ends a run early, and what is said of it."""

from __future__ import annotations

import signal
import threading

import pytest

from odefit.methods.estimate import Cause, Status
from odefit.methods.running.control import Control, Interruption, interruptible


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


def test_a_handler_of_somebody_else_stays() -> None:
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


def test_a_block_around_another_is_told_of_the_signal() -> None:
    outer, inner = Control(), Control()
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(outer):
        with interruptible(inner):
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) is before
        assert (inner.cause, outer.cause) == (Cause.TERMINATED, Cause.TERMINATED)
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_event_of_a_caller_ends_a_run_too() -> None:
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
