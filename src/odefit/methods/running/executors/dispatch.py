"""Independent tasks over an executor: each done once, whoever dies on the way.

Tasks go out in batches (:mod:`odefit.methods.running.executors.sizes`), at most two for each
worker, and outcomes come back in the order in which batches finish. What a worker had not finished
when it died is sent again, each task on its own; one that was there :data:`SUSPECT_DEATHS` times
waits until nothing else is under way, so that it is known whose fault it is, and one that was there
:data:`MAX_DEATHS` times is given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from odefit.common.errors import InputError, counted
from odefit.methods.running.control import Control
from odefit.methods.running.executors.batch import Outcome, Reply, Work, versions
from odefit.methods.running.executors.sizes import batch_size
from odefit.methods.running.executors.workers import WAIT_SECONDS, Workers

T = TypeVar("T")

SUSPECT_DEATHS = 2
"""Number of deaths of workers at a task after which it is done with nothing else under way."""

MAX_DEATHS = 3
"""Number of deaths of workers at a task after which it is given up."""

MAX_FRUITLESS = 3
"""Number of batches that fail before an executor that has not done a single one is given up."""


class WorkerLostError(Exception):
    """Raised in place of an outcome: the workers that were given a task have died."""


@dataclass
class _Entry(Generic[T]):
    """A task on its way."""

    position: int
    task: T
    work: Work
    argument: Any
    deaths: int = 0


@dataclass
class _Batch(Generic[T]):
    """Tasks that were sent together."""

    entries: list[_Entry[T]]
    executor: Executor
    alone: bool = False


@dataclass
class _Queue(Generic[T]):
    """What is still to be sent: tasks that were not, those to send again, and suspects."""

    fresh: Iterator[_Entry[T]]
    again: deque[_Entry[T]] = field(default_factory=deque)
    suspects: deque[_Entry[T]] = field(default_factory=deque)
    taken: int = 0
    peeked: _Entry[T] | None = None

    def next(self, size: Callable[[Work], int]) -> list[_Entry[T]]:
        """Return the next tasks, all of one kind of work; none if there are none but suspects."""
        if self.again:
            return [self.again.popleft()]  # on its own: it may kill the next worker, too
        first = self._take()
        if first is None:
            return []
        found, most = [first], size(first.work)
        while len(found) < most:
            following = self._take()
            if following is None:
                break
            if following.work is not first.work:
                self.peeked = following
                break
            found.append(following)
        return found

    def _take(self) -> _Entry[T] | None:
        entry, self.peeked = self.peeked, None
        if entry is None:
            entry = next(self.fresh, None)
            self.taken += entry is not None
        return entry

    def resend(self, entries: Iterable[_Entry[T]], deaths: int) -> Iterator[_Entry[T]]:
        """Take back what workers have not finished; yield what is given up."""
        for entry in entries:
            entry.deaths += deaths
            if entry.deaths >= MAX_DEATHS:
                yield entry
            elif entry.deaths >= SUSPECT_DEATHS:
                self.suspects.append(entry)
            else:
                self.again.append(entry)


def dispatched(
    tasks: Iterable[T],
    remote: Callable[[T], tuple[Work, Any]],
    here: Callable[[T], Any],
    workers: Workers,
    control: Control,
    *,
    total: int | None = None,
    largest: int | None = None,
) -> Generator[tuple[int, Outcome]]:
    """Yield the position of each task and its outcome, in the order in which they finish.

    Parameters
    ----------
    tasks
        The tasks; they are taken one by one, as there is room for them.
    remote
        Returns the work that a task belongs to, and what that is called with. The same kind of
        work has to be the same object.
    here
        Does a task in this process; what it raises is raised here.
    workers
        The workers, who take tasks once it pays.
    control
        When to stop. After the time limit nothing more is sent, after an interruption nothing is
        waited for.
    total
        Number of tasks, if it is known.
    largest
        Largest number of tasks of a batch; None for no limit.

    Raises
    ------
    InputError
        The workers have no odefit, or another version of it.
    """
    entries = (_Entry(position, task, *remote(task)) for position, task in enumerate(tasks))
    run = _Run(_Queue(entries), here, workers, control, total, largest)
    try:
        yield from run.outcomes()
    finally:
        for future in run.flying:
            future.cancel()


class _Run(Generic[T]):
    """One call of :func:`dispatched`."""

    def __init__(
        self,
        queue: _Queue[T],
        here: Callable[[T], Any],
        workers: Workers,
        control: Control,
        total: int | None,
        largest: int | None,
    ) -> None:
        self.flying: dict[Future[Reply], _Batch[T]] = {}
        self._done: SimpleQueue[Future[Reply]] = SimpleQueue()
        self._queue, self._here, self._workers, self._control = queue, here, workers, control
        self._total, self._largest = total, largest

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """Send, and yield what comes back."""
        while True:
            yield from self._hand_out()
            if not self.flying or self._control.interrupted.is_set():
                return
            try:
                future = self._done.get(timeout=WAIT_SECONDS)
            except Empty:
                yield from self._look_after()
                continue
            batch = self.flying.pop(future, None)
            if batch is not None:  # else it was sent again in the meantime
                yield from self._received(batch, future)

    def _hand_out(self) -> Iterator[tuple[int, Outcome]]:
        """Send as many batches as there is room for, or do tasks here."""
        while not self._control.should_stop() and not any(b.alone for b in self.flying.values()):
            executor = self._workers.executor()
            if executor is not None and len(self.flying) >= self._workers.slots:
                return
            entries = self._queue.next(self._size if executor is not None else lambda _: 1)
            alone = not entries
            if alone:
                if self.flying or not self._queue.suspects:
                    return
                entries = [self._queue.suspects.popleft()]
            if executor is None:
                value = self._workers.timed(partial(self._here, entries[0].task))
                yield entries[0].position, Outcome(value=value, error=None)
                continue
            yield from self._send(_Batch(entries, executor, alone))

    def _size(self, work: Work) -> int:
        left = None if self._total is None else max(self._total - self._queue.taken, 0)
        size = batch_size(self._workers.delivery.seconds(work), left, self._workers.number)
        return size if self._largest is None else min(size, self._largest)

    def _send(self, batch: _Batch[T], whole: bool = False) -> Iterator[tuple[int, Outcome]]:
        work = batch.entries[0].work
        arguments = [entry.argument for entry in batch.entries]
        workers, health = self._workers, self._workers.health(batch.executor)
        trouble = health.trouble()
        if not trouble:
            try:
                future = workers.delivery.send(batch.executor, health, work, arguments, whole)
            except (RuntimeError, OSError) as error:  # it is broken, or was shut down
                trouble = f"{type(error).__name__}: {error}"
        if trouble:
            workers.lose(batch.executor, trouble)
            yield from self._given_up(batch, 0, trouble)
            return
        self.flying[future] = batch
        future.add_done_callback(self._done.put)

    def _look_after(self) -> Iterator[tuple[int, Outcome]]:
        """Take back what is with an executor from which nothing more will come."""
        for executor in {id(b.executor): b.executor for b in self.flying.values()}.values():
            trouble = self._workers.health(executor).trouble()
            if trouble:
                self._workers.lose(executor, trouble)
                lost = [f for f, b in self.flying.items() if b.executor is executor]
                for future in lost:
                    batch = self.flying.pop(future)
                    future.cancel()
                    yield from self._given_up(batch, 0, trouble)

    def _received(self, batch: _Batch[T], future: Future[Reply]) -> Iterator[tuple[int, Outcome]]:
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            yield from self._failed(batch, error)
            return
        work = batch.entries[0].work
        found = self._workers.delivery.read(work, future.result(), len(batch.entries))
        self._workers.fruitless = -1
        if found is None:
            yield from self._send(batch, whole=True)
            return
        for entry, outcome in zip(batch.entries, found, strict=True):
            yield entry.position, outcome

    def _failed(self, batch: _Batch[T], error: BaseException) -> Iterator[tuple[int, Outcome]]:
        """Act on a batch that has no reply: its worker died, or the whole executor is broken."""
        workers, executor = self._workers, batch.executor
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        never = workers.fruitless >= 0
        if never and isinstance(error, ImportError | AttributeError):
            raise InputError(
                f"the workers cannot load odefit {versions()['odefit']} ({said}): install the "
                "version of this process there"
            )
        trouble = workers.health(executor).trouble()
        if trouble:
            workers.lose(executor, trouble)
            yield from self._given_up(batch, 0, trouble)
            return
        deaths = 1
        if isinstance(error, BrokenExecutor):
            workers.lose(executor, said)
        elif type(error).__name__ == "KilledWorker":
            deaths = SUSPECT_DEATHS  # Dask has sent it to several workers, and all of them died
        elif never:
            deaths = 0  # it may be the executor, and not the tasks
            workers.fruitless += 1
            if workers.fruitless >= MAX_FRUITLESS:
                workers.lose(executor, f"none of its workers has done anything: {said}")
        yield from self._given_up(batch, deaths, said)

    def _given_up(
        self, batch: _Batch[T], deaths: int, reason: str
    ) -> Iterator[tuple[int, Outcome]]:
        """Send the tasks of a batch again, but for those that have killed too many workers."""
        for entry in self._queue.resend(batch.entries, deaths):
            times = counted(max(entry.deaths, MAX_DEATHS), "time")
            lost = WorkerLostError(f"{reason} ({times})")
            yield entry.position, Outcome(value=None, error=lost)
