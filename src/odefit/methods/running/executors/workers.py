"""Who does independent work: an executor of the user, or local processes once they pay."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from odefit.common.packages import installed, require
from odefit.methods.running.control import Control
from odefit.methods.running.executors.delivery import Delivery
from odefit.methods.running.executors.health import Health
from odefit.methods.running.run_log import LOGGER

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
        How the method is run. An executor of the user is used from the start and left open, and
        given up where it breaks; otherwise, and then, processes are started once the work in this
        process has taken :data:`POOL_AFTER_SECONDS` seconds.

    Attributes
    ----------
    delivery
        What was sent to the workers, and what they have done.
    fruitless
        Number of batches that the executor has failed since it began; -1 once it has done one.
    """

    def __init__(self, control: Control) -> None:
        self._given = control.executor
        self._control = control
        self._processes = installed("loky")
        self._jobs = control.jobs or (self._processes and os.cpu_count()) or 1
        if self._jobs > 1 and self._given is None and not self._processes:
            require("loky")
        self._own: ProcessPoolExecutor | None = None
        self._spent = 0.0
        self._lost = False
        self._health: tuple[Executor, Health] | None = None
        self._kept: dict[tuple[int, ...], tuple[tuple[object, ...], Any]] = {}
        self.delivery = Delivery(control.remarks)
        self.fruitless = 0

    @property
    def slots(self) -> int:
        """Number of batches to keep under way."""
        return 2 * self.number

    @property
    def number(self) -> int:
        """Number of tasks that are done at the same time."""
        if self._given is None:
            return self._jobs
        return self.health(self._given).workers() or self._jobs

    def health(self, executor: Executor) -> Health:
        """Return the state of an executor."""
        if self._health is None or self._health[0] is not executor:
            self._health = executor, Health(executor)
        return self._health[1]

    def executor(self) -> Executor | None:
        """Return where the next task should go; None for this process."""
        if self._given is not None:
            return self._given
        # What broke an executor may be a task that ends its process: not this one, then.
        pays = self._jobs > 1 and self._spent > POOL_AFTER_SECONDS
        if self._own is None and self._processes and (pays or self._lost):
            from loky import ProcessPoolExecutor

            # Idle workers end by themselves, so that none outlives a parent that was killed.
            self._own = ProcessPoolExecutor(
                max_workers=self._jobs, timeout=IDLE_SECONDS, initializer=_leave_interrupts
            )
        return self._own

    def lose(self, executor: Executor, reason: str) -> None:
        """Give up an executor; processes of our own take its place.

        Parameters
        ----------
        executor
            The executor; one that was given up before is ignored.
        reason
            Why, in words.
        """
        ours = executor is self._own
        if ours and self._own is not None:
            LOGGER.warning("a worker process has died: %s; the others are replaced", reason)
            self._own.shutdown(wait=False, kill_workers=True)
            self._own = None
        elif executor is self._given:
            said = f"the executor was given up, and the work went on here: {reason}"
            LOGGER.warning(said)
            self._control.remarks.append(said)
            self._given = None
        else:
            return
        self._lost = True
        self.fruitless = 0

    def kept(self, make: Callable[[], T], *of: object) -> T:
        """Return what `make` makes of these objects, once: what is the same object is sent once."""
        key = tuple(map(id, of))
        if key not in self._kept:
            self._kept[key] = of, make()  # which holds them, so that their numbers stay theirs
        found: T = self._kept[key][1]
        return found

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
        for worker, share in sorted(self.delivery.shares.items()):
            LOGGER.info(
                "worker %s: %d tasks, %.4g s, processor %.4g s",
                worker,
                share.tasks,
                share.seconds,
                share.cpu_seconds,
            )
        if self._own is not None:
            # Starts still under way are of no use any more.
            self._own.shutdown(wait=True, kill_workers=True)


def _leave_interrupts() -> None:
    """Ignore Ctrl-C, which goes to every process of the terminal: the parent acts on it."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
