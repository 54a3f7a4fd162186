"""Work in a thread that is not awaited once it should have ended, such as a compilation."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import TypeVar

T = TypeVar("T")

NAME = "odefit-background"  # of the threads

LOOK_SECONDS = 0.1  # seconds between two checks of whether to stop


def unless_stopped(work: Callable[[], T], stop: Callable[[], bool]) -> T | None:
    """Return the value of `work`, or None as soon as `stop` is true.

    The work then continues, and its value is lost. Its exceptions are raised here. Python waits for
    it at its end, since compilers may crash while Python is taken down;
    :func:`odefit.cli.main.main` does not wait.
    """
    outcome: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            outcome.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            outcome.set_exception(error)

    threading.Thread(target=run, name=NAME).start()
    while True:
        try:
            return outcome.result(timeout=LOOK_SECONDS)
        except TimeoutError:
            if outcome.done():
                raise  # the work itself has raised it
            if stop():
                return None


def still_running() -> bool:
    """Return whether abandoned work is still running."""
    return any(thread.name == NAME for thread in threading.enumerate())
