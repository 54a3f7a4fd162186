"""The control of a run: seed, time limit, workers, progress reports, and all that ends it early.

A search looks now and then whether to stop. What it does between two looks may take long: one
trajectory, or many evaluations of a part that does not look. So a thread watches the run: it ends
the run where memory is short, and sets the flag that integrators look at
(:mod:`odefit.simulation.engines.cut_off`) once the run should have ended.
"""

from __future__ import annotations

import math
import signal
import socket
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

from odefit.common.signals import DEFAULTS
from odefit.methods.estimate import Cause, Status
from odefit.methods.running.memory import MemoryWatch, memory_limit
from odefit.simulation.engines.cut_off import CutOff, cutting_off

GRACE_SECONDS = 1.0
"""Seconds that a run has after its deadline or its interruption before integrations are cut off."""

LATE_SECONDS = 5.0
"""Seconds that a worker has after a deadline to send what it has found; one that hangs is ended."""

LOOK_SECONDS = 0.1  # seconds between two looks of the watch
LOOKS_PER_MEMORY = 3  # looks of the watch for each look at the memory


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


class Interruption(threading.Event):
    """An event that ends a run early, and keeps the cause; so does another event, if there is one.

    `details` are more on the cause, in words.
    """

    def __init__(self, also: threading.Event | None = None) -> None:
        super().__init__()
        self._also = also
        self._cause: Cause | None = None
        self.details = ""

    def end(self, cause: Cause, details: str = "") -> None:
        """End the run; the first cause counts."""
        if not self.is_set():
            self._cause, self.details = cause, details
        self.set()

    def is_set(self) -> bool:
        """True if the run is to end."""
        return super().is_set() or (self._also is not None and self._also.is_set())

    @property
    def cause(self) -> Cause | None:
        """The cause of the end: the caller where somebody else set the event."""
        return (self._cause or Cause.CALLER) if self.is_set() else None


@dataclass(frozen=True)
class Control:
    """The settings of one run of a method.

    Attributes
    ----------
    seed
        The seed of every random choice.
    deadline
        The time limit, in seconds of :func:`time.monotonic`, which nobody sets; None for no limit.
    executor
        The executor of independent work; None for local processes where they save time.
    jobs
        Largest number of local processes; None for one a core.
    report
        A function that is called with the :class:`Progress` now and then.
    checkpoint
        The file in which finished work is kept, and found again.
    part
        The part of that file which is the run's own, where it is one of several in a larger one.
    interrupted
        An event that is set to end early with the best so far.
    within
        The executor of independent work inside a single start; None for this process.
    remarks
        What users have to know of the workers afterwards, as sentences that are added on the way.
    memory
        Bytes that this run may use, those of its processes included; None for no limit of its own.
    cut_off
        What ends integrations some time after the run should have ended.
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
        """Return whether the deadline is so long ago that workers are not waited for any more."""
        return self.deadline is not None and time.monotonic() >= self.deadline + LATE_SECONDS

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, never negative; infinite without one."""
        return math.inf if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)

    def ending_in(self, seconds: float) -> Control:
        """Return the control of a part that has so many seconds from now."""
        return replace(self, deadline=time.monotonic() + seconds)

    def with_share(self, share: float) -> Control:
        """Return the control of a part that may take this share of the time that is left."""
        return self if self.deadline is None else self.ending_in(share * self.seconds_left)

    def for_workers(self) -> RemoteControl:
        """Return the part of this control that goes to a worker."""
        return RemoteControl(self.seed, self.deadline)

    def should_stop(self) -> bool:
        """True if it is time to end: the deadline has passed, or the run was interrupted."""
        return self.interrupted.is_set() or self.out_of_time

    @property
    def cause(self) -> Cause | None:
        """Return what ends this run early; None if nothing does."""
        if isinstance(self.interrupted, Interruption) and self.interrupted.is_set():
            return self.interrupted.cause
        if self.interrupted.is_set():
            return Cause.CALLER
        return Cause.TIME_LIMIT if self.out_of_time else None

    @property
    def early(self) -> Status:
        """The status of what is ended now, before it has finished."""
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
    """Return the control of a run that begins now, from the arguments that users give."""
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
    """The control of a task on its way to a worker: its seed, and the seconds that it has left.

    A deadline is sent as what is left of it, because each computer has a clock of its own. Where it
    arrives on the computer that has sent it, the time on the way counts too.
    """

    seed: int
    deadline: float | None

    def __reduce__(self) -> tuple[Any, ...]:
        left = None if self.deadline is None else self.deadline - time.monotonic()
        return _arrived, (self.seed, this_clock(), self.deadline, left)

    @contextmanager
    def running(self) -> Iterator[Control]:
        """Give the control of this task, whose integrations are cut off after its deadline."""
        control = Control(seed=self.seed, deadline=self.deadline)
        with watched(control):
            yield control


def _arrived(seed: int, clock: str, deadline: float | None, left: float | None) -> RemoteControl:
    """Return a control that was sent, with a deadline of the clock here."""
    elsewhere = left is not None and clock != this_clock()
    return RemoteControl(seed, time.monotonic() + (left or 0.0) if elsewhere else deadline)


@cache
def this_clock() -> str:
    """Return which clock :func:`time.monotonic` is: that of this computer since it was begun."""
    begun = Path("/proc/sys/kernel/random/boot_id")
    name = begun.read_text(encoding="utf-8").strip() if begun.exists() else ""
    return f"{socket.gethostname()} {name}"


SIGNALS = {signal.SIGINT: Cause.CTRL_C, signal.SIGTERM: Cause.TERMINATED}
"""The signals that end a run early with the best so far."""


@contextmanager
def interruptible(control: Control) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM set ``control.interrupted``; a second one acts as usual, at once.

    Within another such block for the same event, and after an interruption, nothing changes. So it
    is with SIGTERM where somebody else handles it. A signal reaches a block for another event
    around this one too, such as that of the command line.
    """
    interrupted = control.interrupted
    present = signal.getsignal(signal.SIGINT)
    handled = isinstance(present, _Handler) and present.interrupted is interrupted
    elsewhere = threading.current_thread() is not threading.main_thread()
    if handled or elsewhere or interrupted.is_set():
        yield
        return
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    terminate = previous[signal.SIGTERM]
    if terminate not in DEFAULTS and not isinstance(terminate, _Handler):
        del previous[signal.SIGTERM]
    handler = _Handler(interrupted, previous)
    for number in previous:
        signal.signal(number, handler)
    try:
        yield
    finally:
        handler.restore()


@dataclass(eq=False)
class _Handler:
    """A handler of signals that sets an event and puts the handlers before it back."""

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
        """Put the handlers back that were there before."""
        for number, before in self.previous.items():
            signal.signal(number, before)


@dataclass(eq=False)
class Watch:
    """The looks at a run of :func:`watched`; without `memory` that is not looked at."""

    control: Control
    memory: MemoryWatch | None = None
    clock: Callable[[], float] = time.monotonic
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
