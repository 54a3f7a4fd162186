"""How a method is run: seed, time limit, workers, progress reports and interruption."""

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
    """The state of an estimation that is under way.

    Attributes
    ----------
    done, failed
        Number of starts (or whatever `unit` says) finished, and of those that failed.
    best
        Lowest objective (or -2 log L) so far; infinite if there is none.
    hits
        Number of starts that reached it; 0 where that is not counted.
    message
        What the method is doing, in words.
    measure
        What `best` is: "objective" or "-2 log L".
    """

    done: int
    failed: int
    best: float
    hits: int
    message: str
    unit: str = "start"
    measure: str = "objective"


@dataclass(frozen=True)
class Control:
    """The settings of one run of a method.

    Attributes
    ----------
    seed
        The seed of every random choice.
    deadline
        The time limit, in seconds of :func:`time.time`; None for no limit.
    executor
        The executor of independent work; None for local processes where they save time.
    jobs
        Largest number of local processes; None for one a core.
    report
        A function that is called with the :class:`Progress` now and then.
    checkpoint
        The file in which finished work is kept, and found again.
    interrupted
        An event that is set to end early with the best so far.
    within
        The executor of independent work inside a single start; None for this process.
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
        """Whether the deadline has passed."""
        return self.deadline is not None and time.time() >= self.deadline

    def should_stop(self) -> bool:
        """Whether to end now: the deadline has passed, or the run was interrupted."""
        return self.interrupted.is_set() or self.out_of_time


class Method(Protocol):
    """The interface of methods: a frozen object of options with one verb, :meth:`solve`."""

    @property
    def name(self) -> str:
        """The method's name in results."""

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns of `problem`."""


@contextmanager
def interruptible(control: Control) -> Iterator[None]:
    """Let Ctrl-C set ``control.interrupted``; a second one raises KeyboardInterrupt as usual.

    Within another such block for the same event, and after an interruption, nothing changes.
    """
    previous = signal.getsignal(signal.SIGINT)
    ours = getattr(previous, "interrupts", None) is control.interrupted
    elsewhere = threading.current_thread() is not threading.main_thread()
    if ours or elsewhere or control.interrupted.is_set():
        yield
        return

    def handler(number: int, frame: FrameType | None) -> None:
        control.interrupted.set()
        signal.signal(signal.SIGINT, previous)

    handler.interrupts = control.interrupted  # type: ignore[attr-defined]
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
