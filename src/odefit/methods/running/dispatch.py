"""Independent tasks over an executor: each done once, whichever worker dies on the way.

Tasks are sent in batches, at most two for each worker, and outcomes come back in the order in which
batches finish. Unfinished tasks of a worker that died are sent again one by one. A task at which
:data:`SUSPECT_DEATHS` workers died waits until no other task is running, to identify the cause. A
task at which :data:`MAX_DEATHS` workers died is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from odefit.common.errors import InputError, counted
from odefit.methods.running.control import LATE_SECONDS, Control
from odefit.methods.running.worker import Outcome, Reply, Work, versions
from odefit.methods.running.workers import Workers

T = TypeVar("T")

WAIT_SECONDS = 0.2  # seconds between two checks for an interruption

SUSPECT_DEATHS = 2
"""Number of deaths of workers at a task after which the task runs alone."""

MAX_DEATHS = 3  # number of deaths of workers at a task after which it is given up

MAX_FRUITLESS = 3
"""Number of failed batches before an executor that has completed none is given up."""

BATCH_SECONDS = 0.5
"""Seconds of work that a batch should contain: sending one takes some milliseconds with Dask, and
the finished part of a batch is lost with its worker."""

SHARE = 3.0
"""Ratio of the remaining tasks to the product of workers and size of the next batch: no worker must
be idle at the end while another has many tasks left."""


class WorkerLostError(Exception):
    """Raised in place of an outcome: the workers that had a task have died."""


class WorkerLateError(Exception):
    """Raised in place of an outcome: a worker has not answered; if it is ours, it was ended."""


NO_ANSWER = f"it had not answered {LATE_SECONDS:g} s after the time limit, and was abandoned"
"""The reason given when a worker is ended because it hangs or was stopped."""


def batch_size(seconds: float | None, left: int | None, workers: int) -> int:
    """Return the number of tasks of the next batch.

    A task takes `seconds`, `left` tasks remain, and `workers` tasks run at the same time; the first
    two are None while unknown.

    Examples
    --------
    >>> batch_size(0.01, 5000, 4), batch_size(0.01, 24, 4), batch_size(2.0, 5000, 4)
    (50, 2, 1)
    """
    if seconds is None:
        return 1
    size = BATCH_SECONDS / max(seconds, 1e-5)
    if left is not None:
        size = min(size, left / (SHARE * max(workers, 1)))
    return max(int(size), 1)


def dispatched(
    tasks: Iterable[T],
    remote: Callable[[T], tuple[Work, Any]],
    here: Callable[[T], Any],
    workers: Workers,
    control: Control,
    *,
    total: int | None = None,
    largest: int | None = None,
    late: Callable[[T], bool] = lambda _: False,
) -> Generator[tuple[int, Outcome]]:
    """Yield the position of each task and its outcome, in the order in which they finish.

    Parameters
    ----------
    tasks
        The tasks; they are taken one by one, as capacity allows. An iterator that has none now may
        have some once an outcome is known.
    remote
        Returns the work of a task, and the argument of its call. The same kind of work must be the
        same object.
    here
        Runs a task in this process; its exceptions are raised here.
    workers
        The workers, used once that saves time. Raises InputError if they have no odefit, or another
        version of it.
    control
        Decides when to stop. After the time limit nothing more is sent; after an interruption
        nothing is awaited.
    total
        Number of tasks, if it is known.
    largest
        Largest number of tasks of a batch; None for no limit.
    late
        Returns whether tasks of workers are no longer awaited.
    """

    def entry(numbered: tuple[int, T]) -> _Entry[T]:
        return _Entry(*numbered, *remote(numbered[1]))

    entries = map(entry, enumerate(tasks))  # unlike a generator, these ask again after an end
    dispatch = _Dispatch(entries, here, workers, control, late)

    def size(work: Work) -> int:
        left = None if total is None else max(total - dispatch.taken, 0)
        tasks_of_batch = batch_size(workers.seconds(work), left, workers.number)
        return tasks_of_batch if largest is None else min(tasks_of_batch, largest)

    try:
        yield from dispatch.outcomes(size)
    finally:
        for future in dispatch.flying:
            future.cancel()


@dataclass
class _Entry(Generic[T]):
    """A task that has been sent."""

    position: int
    task: T
    work: Work
    argument: Any
    deaths: int = 0


@dataclass
class _Batch(Generic[T]):
    """Tasks of one kind of work that were sent together."""

    entries: list[_Entry[T]]
    executor: Executor
    alone: bool = False


class _Dispatch(Generic[T]):
    """The tasks of one call of :func:`dispatched`: not yet sent, running, and to be sent again."""

    def __init__(
        self,
        entries: Iterator[_Entry[T]],
        here: Callable[[T], Any],
        workers: Workers,
        control: Control,
        late: Callable[[T], bool],
    ) -> None:
        self.flying: dict[Future[Reply], _Batch[T]] = {}
        self.taken = 0
        self._fresh = entries
        self._peeked: deque[_Entry[T]] = deque()
        self._again: deque[_Entry[T]] = deque()
        self._suspects: deque[_Entry[T]] = deque()
        self._done: SimpleQueue[Future[Reply]] = SimpleQueue()
        self._here, self._workers, self._control, self._late = here, workers, control, late

    def outcomes(self, size: Callable[[Work], int]) -> Iterator[tuple[int, Outcome]]:
        """Send batches of these sizes, and yield the outcomes."""
        while True:
            yield from self._hand_out(size)
            if not self.flying or self._control.interrupted.is_set():
                return
            if self._workers.helped and self._done.empty() and not self._control.should_stop():
                entry = self._take()
                if entry is not None:
                    value = self._workers.timed(partial(self._here, entry.task))
                    yield entry.position, Outcome(value=value, error=None)
                    continue
            try:
                future = self._done.get(timeout=WAIT_SECONDS)
            except Empty:
                yield from self._look_after()
                yield from self._without_late()
                continue
            batch = self.flying.pop(future, None)
            if batch is not None:  # else it was sent again in the meantime
                yield from self._received(batch, future)

    def _hand_out(self, size: Callable[[Work], int]) -> Iterator[tuple[int, Outcome]]:
        """Send as many batches as capacity allows, or run tasks here."""
        while not self._control.should_stop() and not any(b.alone for b in self.flying.values()):
            executor = self._workers.executor()
            if executor is not None and len(self.flying) >= self._capacity():
                return
            entries = self._next(size if executor is not None else lambda _: 1)
            alone = not entries
            if alone:
                if self.flying or not self._suspects:
                    return
                entries = [self._suspects.popleft()]
            if executor is None:
                value = self._workers.timed(partial(self._here, entries[0].task))
                yield entries[0].position, Outcome(value=value, error=None)
            else:
                yield from self._send(_Batch(entries, executor, alone))

    def _capacity(self) -> int:
        """Return the number of batches for workers: one to work on, and one that waits.

        The last task does not wait for a worker if this process can do it.
        """
        number = self._workers.number
        while self._workers.helped and len(self._peeked) < 2:
            entry = self._fresh_entry()
            if entry is None:
                return number
            self._peeked.append(entry)
        return 2 * number

    def _next(self, size: Callable[[Work], int]) -> list[_Entry[T]]:
        """Return the next tasks, all of one kind of work; none if only suspects remain."""
        if self._again:
            return [self._again.popleft()]  # alone: it may kill the next worker, too
        first = self._take()
        if first is None:
            return []
        entries, most = [first], size(first.work)
        while len(entries) < most:
            following = self._take()
            if following is None:
                break
            if following.work is not first.work:
                self._peeked.appendleft(following)
                break
            entries.append(following)
        return entries

    def _take(self) -> _Entry[T] | None:
        return self._peeked.popleft() if self._peeked else self._fresh_entry()

    def _fresh_entry(self) -> _Entry[T] | None:
        entry = next(self._fresh, None)
        self.taken += entry is not None
        return entry

    def _send(self, batch: _Batch[T], whole: bool = False) -> Iterator[tuple[int, Outcome]]:
        trouble = self._workers.health(batch.executor).trouble()
        if not trouble:
            arguments = [entry.argument for entry in batch.entries]
            work = batch.entries[0].work
            try:
                future = self._workers.send(batch.executor, work, arguments, whole)
            except (RuntimeError, OSError) as error:  # the executor is broken, or was shut down
                trouble = f"{type(error).__name__}: {error}"
        if trouble:
            self._workers.lose(batch.executor, trouble)
            yield from self._given_up(batch, 0, trouble)
            return
        self.flying[future] = batch
        future.add_done_callback(self._done.put)

    def _look_after(self) -> Iterator[tuple[int, Outcome]]:
        """Take back the tasks of an executor from which no more replies will come."""
        for executor in {id(b.executor): b.executor for b in self.flying.values()}.values():
            trouble = self._workers.health(executor).trouble()
            if trouble:
                self._workers.lose(executor, trouble)
                for future in [f for f, b in self.flying.items() if b.executor is executor]:
                    batch = self.flying.pop(future)
                    future.cancel()
                    yield from self._given_up(batch, 0, trouble)

    def _without_late(self) -> Iterator[tuple[int, Outcome]]:
        """Give up tasks whose workers hang; resend the other tasks of the executor."""
        late = [f for f, b in self.flying.items() if all(self._late(e.task) for e in b.entries)]
        for future in late:
            batch = self.flying.pop(future)
            future.cancel()
            for entry in batch.entries:
                yield entry.position, Outcome(value=None, error=WorkerLateError(NO_ANSWER))
            if not self._workers.lose_own(batch.executor, NO_ANSWER):
                continue
            for other in [f for f, b in self.flying.items() if b.executor is batch.executor]:
                if other not in late:
                    yield from self._given_up(self.flying.pop(other), 0, NO_ANSWER)

    def _received(self, batch: _Batch[T], future: Future[Reply]) -> Iterator[tuple[int, Outcome]]:
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            yield from self._failed(batch, error)
            return
        outcomes = self._workers.read(batch.entries[0].work, future.result(), len(batch.entries))
        self._workers.fruitless = -1
        if outcomes is None:
            yield from self._send(batch, whole=True)
            return
        for entry, outcome in zip(batch.entries, outcomes, strict=True):
            yield entry.position, outcome

    def _failed(self, batch: _Batch[T], error: BaseException) -> Iterator[tuple[int, Outcome]]:
        """Handle a batch without a reply: its worker died, or the whole executor is broken."""
        workers, executor = self._workers, batch.executor
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        fruitless = workers.fruitless >= 0
        if fruitless and isinstance(error, ImportError | AttributeError):
            raise InputError(
                f"the workers cannot load odefit {versions()['odefit']} ({reason}): install the "
                "version of this process there"
            )
        deaths = 1
        trouble = workers.health(executor).trouble()
        if trouble:
            deaths, reason = 0, trouble
            workers.lose(executor, trouble)
        elif isinstance(error, BrokenExecutor):
            workers.lose(executor, reason)
        elif type(error).__name__ == "KilledWorker":
            deaths = SUSPECT_DEATHS  # Dask has sent it to several workers, and all of them died
        elif fruitless:
            deaths = 0  # the cause may be the executor, not the tasks
            workers.fruitless += 1
            if workers.fruitless >= MAX_FRUITLESS:
                workers.lose(executor, f"none of its workers has finished a task: {reason}")
        yield from self._given_up(batch, deaths, reason)

    def _given_up(
        self, batch: _Batch[T], deaths: int, reason: str
    ) -> Iterator[tuple[int, Outcome]]:
        """Send the tasks of a batch again, except those that have killed too many workers."""
        for entry in batch.entries:
            entry.deaths += deaths
            if entry.deaths >= MAX_DEATHS:
                lost = WorkerLostError(f"{reason} ({counted(entry.deaths, 'time')})")
                yield entry.position, Outcome(value=None, error=lost)
            elif entry.deaths >= SUSPECT_DEATHS:
                self._suspects.append(entry)
            else:
                self._again.append(entry)
