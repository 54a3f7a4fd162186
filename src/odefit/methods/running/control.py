"""The control of a run: seed, time limit, workers, progress reports, and causes of an early end.

A search checks from time to time whether to stop. The work between two checks may take long: one
trajectory, or many evaluations of a part without checks. So a thread watches the run: it ends the
run if memory is short, and sets the flag that integrators check
(:mod:`odefit.simulation.engines.cut_off`) once the run should have ended.
"""

from __future__ import annotations

import math
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from odefit.common.cores import using_cores
from odefit.common.processes import this_boot
from odefit.common.signals import DEFAULTS, ENDING
from odefit.methods.estimate import Cause, Status
from odefit.methods.running.memory import MemoryWatch, memory_limit
from odefit.simulation.engines.cut_off import CutOff, cutting_off

GRACE_SECONDS = 0.5
"""Seconds after the deadline or interruption of a run before integrations are cut off."""

LATE_SECONDS = 5.0
"""Seconds after a deadline that a worker has to send its results; one that hangs is ended."""

LOOK_SECONDS = 0.1  # seconds between two checks by the watch
LOOKS_PER_MEMORY = 3  # checks by the watch for each check of the memory


@dataclass(frozen=True)
class Progress:
    """The state of a running estimation.

    Attributes
    ----------
    done, failed
        Number of finished starts (or units named by `unit`), and of failed ones.
    best
        Lowest objective (or -2 log L) so far; infinite without one.
    hits
        Number of starts that reached it; 0 if that is not counted.
    message
        The present work of the method, in words.
    measure
        The meaning of `best`: "objective" or "-2 log L".
    """

    done: int
    failed: int
    best: float
    hits: int
    message: str
    unit: str = "start"
    measure: str = "objective"


class Interruption(threading.Event):
    """An event that ends a run early, and keeps the cause; a wrapped event also ends the run.

    `details` describe the cause further, in words.
    """

    def __init__(self, also: threading.Event | None = None) -> None:
        super().__init__()
        self._also = also
        self._cause: Cause | None = None
        self.details = ""

    def end(self, cause: Cause, details: str = "") -> None:
        """End the run; only the first cause counts."""
        if not self.is_set():
            self._cause, self.details = cause, details
        self.set()

    def is_set(self) -> bool:
        """True if the run should end."""
        return super().is_set() or (self._also is not None and self._also.is_set())

    @property
    def cause(self) -> Cause | None:
        """The cause of the end: the caller if the event was set by other code."""
        return (self._cause or Cause.CALLER) if self.is_set() else None


@dataclass(frozen=True)
class Control:
    """The settings of one run of a method.

    Attributes
    ----------
    seed
        The seed of every random choice.
    deadline
        The time limit, in seconds of :func:`time.monotonic`, a clock that is never adjusted; None
        for no limit.
    executor
        The executor of independent work; None for local processes if they save time.
    jobs
        Largest number of local processes; None for one per core.
    report
        A function that is called with the :class:`Progress` from time to time.
    checkpoint
        The file that stores finished work for later runs.
    part
        The run's own part of that file, if it is one of several in a larger run.
    interrupted
        An event that is set to end early with the best so far.
    within
        The executor of independent work inside a single start; None for this process.
    remarks
        Sentences about the workers for users to read afterwards, added during the run.
    memory
        Number of bytes that this run and its processes may use; None for no limit of its own.
    cut_off
        The flag that stops integrations some time after the run should have ended.
    """

    seed: int = 0
    deadline: float | None = None
    executor: Executor | None = None
    jobs: int | None = None
    report: Callable[[Progress], None] | None = None
    checkpoint: Path | None = None
    interrupted: threading.Event = field(default_factory=Interruption)
    within: Executor | None = None
    part: str = ""
    remarks: list[str] = field(default_factory=list)
    memory: int | None = None
    cut_off: CutOff = field(default_factory=CutOff)

    def for_part(self, part: str) -> Control:
        """Return the control of one of several runs in a larger one, with its part of the file."""
        return replace(self, part=f"{self.part}, {part}" if self.part else part)

    @property
    def out_of_time(self) -> bool:
        """True if the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def is_late(self, _: object = None) -> bool:
        """Return whether the deadline is so long ago that workers are no longer awaited."""
        return self.deadline is not None and time.monotonic() >= self.deadline + LATE_SECONDS

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, never negative; infinite without one."""
        return math.inf if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

    def ending_in(self, seconds: float) -> Control:
        """Return the control of a part that may take `seconds` from now."""
        return replace(self, deadline=time.monotonic() + seconds)

    def with_share(self, share: float) -> Control:
        """Return the control of a part that may take this share of the remaining time."""
        return self if self.deadline is None else self.ending_in(share * self.seconds_left)

    def for_workers(self, cores: int = 1) -> RemoteControl:
        """Return the part of this control that goes to a worker, which may use so many cores."""
        return RemoteControl(self.seed, self.deadline, cores)

    def should_stop(self) -> bool:
        """True if it is time to end: the deadline has passed, or the run was interrupted."""
        return self.interrupted.is_set() or self.out_of_time

    @property
    def cause(self) -> Cause | None:
        """Return the cause of an early end of this run, or None."""
        if isinstance(self.interrupted, Interruption) and self.interrupted.is_set():
            return self.interrupted.cause
        if self.interrupted.is_set():
            return Cause.CALLER
        return Cause.TIME_LIMIT if self.out_of_time else None

    @property
    def early(self) -> Status:
        """The status of work that ends now, before it has finished."""
        if not self.interrupted.is_set():
            return Status.TIME_LIMIT if self.out_of_time else Status.NOT_CONVERGED
        cause = self.cause
        short = cause is not None and cause.memory
        return Status.MEMORY_LIMIT if short else Status.INTERRUPTED


def control_of(
    seed: int,
    time_limit: float | None,
    executor: Executor | None,
    jobs: int | None,
    progress: Callable[[Progress], None] | None,
    checkpoint: str | Path | None,
    stop: threading.Event | None,
    memory: int | str | None,
) -> Control:
    """Return the control of a run that begins now, from arguments given by users."""
    return Control(
        seed=seed,
        deadline=None if time_limit is None else time.monotonic() + time_limit,
        executor=executor,
        jobs=jobs,
        report=progress,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        interrupted=stop if isinstance(stop, Interruption) else Interruption(stop),
        memory=memory_limit(memory),
    )


@dataclass(frozen=True)
class RemoteControl:
    """The control of a task sent to a worker: its seed, remaining seconds, and number of cores.

    A deadline is sent as the remaining time, because each computer has its own clock. If it arrives
    on the computer that sent it, the time of transfer counts too.
    """

    seed: int
    deadline: float | None
    cores: int = 1

    def __reduce__(self) -> tuple[Any, ...]:
        left = None if self.deadline is None else self.deadline - time.monotonic()
        return _arrived, (self.seed, this_clock(), self.deadline, left, self.cores)

    @contextmanager
    def running(self) -> Iterator[Control]:
        """Give the control of this task, whose integrations are cut off after its deadline."""
        control = Control(seed=self.seed, deadline=self.deadline, jobs=self.cores)
        with watched(control):
            yield control


def _arrived(
    seed: int, clock: str, deadline: float | None, left: float | None, cores: int
) -> RemoteControl:
    """Return a received control, with its deadline on the local clock."""
    elsewhere = left is not None and clock != this_clock()
    if elsewhere:
        deadline = time.monotonic() + (left or 0.0)
    return RemoteControl(seed, deadline, cores)


@cache
def this_clock() -> str:
    """Return an identifier of the clock :func:`time.monotonic`: of this computer since its boot."""
    return f"{platform.node()} {this_boot()}"


SIGNALS = dict(zip(ENDING, (Cause.CTRL_C, Cause.TERMINATED, Cause.HUNG_UP), strict=False))
"""The signals that end a run early with the best so far; Windows has no SIGHUP."""


@contextmanager
def interruptible(control: Control) -> Iterator[None]:
    """Let a signal of ``SIGNALS`` set ``control.interrupted``; a second one acts as usual, at once.

    Within another such block for the same event, and after an interruption, nothing changes.
    All but Ctrl-C are also unchanged if other code handles or ignores them, as ``nohup`` does. A
    signal also reaches an enclosing block for another event, such as that of the command line.
    """
    interrupted = control.interrupted
    present = signal.getsignal(signal.SIGINT)
    handled = isinstance(present, _Handler) and present.interrupted is interrupted
    elsewhere = threading.current_thread() is not threading.main_thread()
    if handled or elsewhere or interrupted.is_set():
        yield
        return
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    for number, before in list(previous.items()):
        ours = before in DEFAULTS or isinstance(before, _Handler)
        if number != signal.SIGINT and not ours:
            del previous[number]
    handler = _Handler(interrupted, previous)
    for number in previous:
        signal.signal(number, handler)
    try:
        yield
    finally:
        handler.restore()


@dataclass(eq=False)
class _Handler:
    """A handler of signals that sets an event and restores the previous handlers."""

    interrupted: threading.Event
    previous: dict[signal.Signals, Any]

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if isinstance(self.interrupted, Interruption):
            self.interrupted.end(SIGNALS[signal.Signals(number)])
        else:
            self.interrupted.set()
        self.restore()
        around = self.previous[signal.Signals(number)]
        if isinstance(around, _Handler):
            around(number, frame)

    def restore(self) -> None:
        """Restore the previous handlers."""
        for number, before in self.previous.items():
            signal.signal(number, before)


@dataclass(eq=False)
class Watch:
    """The checks of a run by :func:`watched`; without `memory`, memory is not checked."""

    control: Control
    memory: MemoryWatch | None = None
    clock: Callable[[], float] = time.monotonic
    _looks: int = 0
    _interrupted: float | None = None

    def look(self) -> None:
        """Check once."""
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


def _cores(control: Control) -> int:
    """Return the number of cores of this computer that a run may use in this process."""
    return 1 if control.executor is not None else control.jobs or os.cpu_count() or 1


@contextmanager
def watched(control: Control, memory: MemoryWatch | None = None) -> Iterator[None]:
    """Watch a run within the block; its integrations fail once they are cut off."""
    watch = Watch(control, memory=memory)
    done = threading.Event()

    def keep_looking() -> None:
        while not done.wait(LOOK_SECONDS):
            watch.look()

    thread = threading.Thread(target=keep_looking, name="odefit-watch", daemon=True)
    thread.start()
    try:
        with cutting_off(control.cut_off), using_cores(_cores(control)):
            yield
    finally:
        done.set()
        thread.join()


@contextmanager
def running(control: Control) -> Iterator[None]:
    """Run long work in the block: signals end it, memory is watched, and its results remain.

    A lack of memory ends the block and raises nothing.
    """
    with interruptible(control), watched(control, MemoryWatch(control.memory)):
        try:
            yield
        except MemoryError as error:
            if not isinstance(control.interrupted, Interruption):
                raise
            control.interrupted.end(Cause.OUT_OF_MEMORY, str(error))
