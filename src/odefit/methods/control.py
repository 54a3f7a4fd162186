"""What every method is told beside the problem: seed, time, workers, and how to report."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

from odefit.methods.estimate import Estimate
from odefit.problem.problem import Problem


@dataclass(frozen=True)
class Progress:
    """Where an estimation stands.

    Attributes
    ----------
    done, failed
        Starts finished, and those of them that failed.
    best
        Lowest objective so far; infinite if there is none.
    hits
        How many starts reached it.
    message
        What is going on.
    """

    done: int
    failed: int
    best: float
    hits: int
    message: str


@dataclass(frozen=True)
class Control:
    """How a method is run.

    Attributes
    ----------
    seed
        Every random choice hangs on it.
    deadline
        In seconds of :func:`time.time`; None for no limit.
    executor
        Where independent work goes; None for local processes if they pay.
    jobs
        How many local processes at most; None for one a core.
    report
        Called with the :class:`Progress` now and then.
    checkpoint
        File in which finished work is kept, and found again.
    interrupted
        Set to end early with the best so far.
    within
        Where independent work inside a single start goes; None for this process.
    """

    seed: int = 0
    deadline: float | None = None
    executor: Executor | None = None
    jobs: int | None = None
    report: Callable[[Progress], None] | None = None
    checkpoint: Path | None = None
    interrupted: threading.Event = field(default_factory=threading.Event)
    within: Executor | None = None

    @property
    def out_of_time(self) -> bool:
        """The deadline has passed."""
        return self.deadline is not None and time.time() >= self.deadline

    def should_stop(self) -> bool:
        """Out of time, or interrupted."""
        return self.interrupted.is_set() or self.out_of_time


class Method(Protocol):
    """A small frozen object with options, and one verb."""

    @property
    def name(self) -> str:
        """For results."""

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns of `problem`."""


@contextmanager
def interruptible(control: Control) -> Iterator[None]:
    """Ctrl-C sets ``control.interrupted``; a second one is a KeyboardInterrupt as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)

    def handler(number: int, frame: FrameType | None) -> None:
        control.interrupted.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
