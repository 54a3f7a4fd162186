"""Pools of local worker processes, started only when the work is long enough to pay for them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from odefit.methods.control import Control
from odefit.problem.packages import installed, require

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

T = TypeVar("T")

IDLE_SECONDS = 30.0
"""Seconds without work after which a worker process ends."""

WAIT_SECONDS = 0.2
"""Seconds between two looks at whether the work was interrupted."""

POOL_AFTER_SECONDS = 3.0
"""Seconds of work in this process after which more are started; each start takes about a second."""


class Workers:
    """A context in which independent work may go to an executor.

    Parameters
    ----------
    control
        How the method is run. An executor of the user is used from the start and left open;
        otherwise processes are started once the work in this process has taken
        :data:`POOL_AFTER_SECONDS` seconds.
    """

    def __init__(self, control: Control) -> None:
        self._given = control.executor
        self._control = control
        own_processes = installed("loky")
        self._jobs = control.jobs or (own_processes and os.cpu_count()) or 1
        if self._jobs > 1 and self._given is None and not own_processes:
            require("loky")
        self._own: ProcessPoolExecutor | None = None
        self._spent = 0.0

    @property
    def slots(self) -> int:
        """Number of tasks to keep under way."""
        return 2 * self.number

    @property
    def number(self) -> int:
        """Number of tasks that are done at the same time."""
        workers = getattr(self._given, "_max_workers", None) if self._given else self._jobs
        return int(workers or self._jobs)

    def executor(self) -> Executor | None:
        """Return where the next task should go; None for this process."""
        if self._given is not None:
            return self._given
        if self._own is None and self._jobs > 1 and self._spent > POOL_AFTER_SECONDS:
            from loky import ProcessPoolExecutor

            # Idle workers end by themselves, so that none outlives a parent that was killed.
            self._own = ProcessPoolExecutor(
                max_workers=self._jobs, timeout=IDLE_SECONDS, initializer=_leave_interrupts
            )
        return self._own

    def timed(self, work: Callable[[], T]) -> T:
        """Do a task in this process, and add up how long tasks have taken."""
        began = time.perf_counter()
        result = work()
        self.count(time.perf_counter() - began)
        return result

    def count(self, seconds: float) -> None:
        """Add up work that was done in this process."""
        self._spent += seconds

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            # Starts still under way are of no use any more.
            self._own.shutdown(wait=True, kill_workers=True)


def collected(future: Future[T], control: Control) -> T | None:
    """Return what a worker process has found; None after an interruption, which cancels it.

    What the work raises is raised here.
    """
    while not control.interrupted.is_set():
        try:
            return future.result(timeout=WAIT_SECONDS)
        except TimeoutError:
            continue
    future.cancel()
    return None


def _leave_interrupts() -> None:
    """Ignore Ctrl-C, which goes to every process of the terminal: the parent acts on it."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Memory(threading.local):
    """The object that a thread made last, and its key."""

    key: bytes | None = None
    made: Any = None


_memory = _Memory()


def remembered(key: bytes, make: Callable[[], T]) -> T:
    """Return what `make` makes, or made last in this thread for the same `key`.

    Worker processes keep compiled models with this from one task to the next, one for each thread
    because an integrator serves one thread at a time.
    """
    if _memory.key != key:
        _memory.made, _memory.key = make(), key
    found: T = _memory.made
    return found
