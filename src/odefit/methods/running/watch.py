"""A watch beside a run: it ends the run where memory is short, and cuts integrations off.

A search looks now and then whether to stop. What it does between two looks may take long: one
trajectory, or many evaluations of a part that does not look. So a thread of its own sets the flag
that integrators look at (:mod:`odefit.simulation.engines.cut_off`) once the run should have ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from odefit.methods.estimate import Cause
from odefit.methods.running.control import (
    Control,
    Interruption,
    interruptible,
)
from odefit.methods.running.memory import MemoryWatch
from odefit.simulation.engines.cut_off import cutting_off

GRACE_SECONDS = 1.0
"""Seconds that a run has after its deadline or its interruption before integrations are cut off."""

LOOK_SECONDS = 0.1
"""Seconds between two looks of the watch."""

LOOKS_PER_MEMORY = 3
"""Looks of the watch for each look at the memory."""


@dataclass(eq=False)
class Watch:
    """What the thread does at each look.

    Attributes
    ----------
    control
        The run.
    memory
        What tells whether memory is short; None where nobody looks at it.
    clock
        A clock with the meaning of :func:`time.time`.
    """

    control: Control
    memory: MemoryWatch | None = None
    clock: Callable[[], float] = time.time
    _looks: int = 0
    _interrupted: float | None = None

    def look(self) -> None:
        """Look once."""
        now = self.clock()
        interrupted = self.control.interrupted
        if interrupted.is_set():
            self._interrupted = now if self._interrupted is None else self._interrupted
            if now >= self._interrupted + GRACE_SECONDS:
                self.control.cut_off.now()
        elif self.memory is not None and self._looks % LOOKS_PER_MEMORY == 0:
            short = self.memory.short()
            if short and isinstance(interrupted, Interruption):
                interrupted.end(Cause.MEMORY_LIMIT, short)
        self._looks += 1
        deadline = self.control.deadline
        if deadline is not None and now >= deadline + GRACE_SECONDS:
            self.control.cut_off.now()


@contextmanager
def watched(control: Control, memory: MemoryWatch | None = None) -> Iterator[None]:
    """Watch a run within the block; its integrations are failures once they are cut off."""
    watch = Watch(control, memory=memory)
    done = threading.Event()

    def keep_looking() -> None:
        while not done.wait(LOOK_SECONDS):
            watch.look()

    thread = threading.Thread(target=keep_looking, name="odefit-watch", daemon=True)
    thread.start()
    try:
        with cutting_off(control.cut_off):
            yield
    finally:
        done.set()
        thread.join()


@contextmanager
def running(control: Control) -> Iterator[None]:
    """Run long work in the block: signals end it, memory is watched, and what is there remains.

    A lack of memory ends the block and raises nothing.
    """
    with interruptible(control), watched(control, MemoryWatch(control.memory)):
        try:
            yield
        except MemoryError as error:
            if not isinstance(control.interrupted, Interruption):
                raise
            control.interrupted.end(Cause.OUT_OF_MEMORY, str(error))
