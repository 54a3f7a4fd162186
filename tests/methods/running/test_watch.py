"""A run is ended where memory is short, and its integrations some time after its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odefit.methods.estimate import Cause, Status
from odefit.methods.running.control import Control, Interruption
from odefit.methods.running.memory import MemoryWatch
from odefit.methods.running.watch import GRACE_SECONDS, Watch, running, watched
from odefit.simulation.engines.cut_off import NEVER, cut_off


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
    for now, reached in ((109.0, False), (110.5, False), (110.0 + GRACE_SECONDS, True)):
        clock.now = now
        watch.look()
        assert control.cut_off.reached is reached


def test_and_some_time_after_an_interruption() -> None:
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


def test_a_lack_of_memory_ends_long_work_and_raises_nothing() -> None:
    control = Control()
    with running(control):
        raise MemoryError("Unable to allocate 1 TiB")
    assert control.early is Status.MEMORY_LIMIT
    assert control.cause is Cause.OUT_OF_MEMORY


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match="something"), running(Control()):
        raise ValueError("something")
