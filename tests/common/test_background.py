"""Work that is not awaited: its value arrives, its exceptions too, and a stop does not wait."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from odefit.common.background import still_running, unless_stopped

WORD = ContextVar("WORD", default="none")


def test_the_value_of_work_that_ends_is_returned() -> None:
    assert unless_stopped(lambda: 42, lambda: False) == 42


@pytest.mark.parametrize("kind", [ValueError, TimeoutError, KeyboardInterrupt])
def test_an_exception_of_the_work_is_raised_here(kind: type[BaseException]) -> None:
    def work() -> None:
        raise kind("no")

    with pytest.raises(kind, match="no"):
        unless_stopped(work, lambda: False)


def test_the_work_sees_the_context_of_the_thread_that_waits() -> None:
    token = WORD.set("here")
    try:
        assert unless_stopped(WORD.get, lambda: False) == "here"
    finally:
        WORD.reset(token)


def test_a_stop_does_not_wait_for_work_that_hangs() -> None:
    release = threading.Event()
    try:
        assert unless_stopped(release.wait, lambda: True) is None
        assert still_running()
    finally:
        release.set()
