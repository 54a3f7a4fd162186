"""Worker processes, each with a task at a time, replaced when they hang or die."""

from __future__ import annotations

import json
import os
import pickle
import signal
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from odefit.methods.process import Child, end_in_words
from studies.campaign import Campaign, Outcome, Record, Task

STARTING = 120.0
"""Seconds that a worker has to import what it needs."""

RENEWED_AFTER = 200
"""Tasks after which a worker is replaced: what libraries keep and leak must not add up."""


GLANCE = 0.2
"""Seconds between looks at whether to stop."""


def run_tasks(
    campaign: Campaign, tasks: Sequence[Task], jobs: int, stop: threading.Event
) -> Generator[Record]:
    """Records in the order in which tasks end, until `stop` is set.

    Each task is alone in its process. One that takes longer than the campaign's limit, or whose
    process dies, is a record like others; the next task gets a new process.

    Raises
    ------
    RuntimeError
        Workers die before they take a task.
    """
    waiting = list(reversed(tasks))
    memory = campaign.memory if campaign.memory is not None else _memory() // jobs
    workers: list[Worker] = []
    failed_starts = 0
    try:
        while not stop.is_set() and (waiting or _busy(workers)):
            while len(workers) < jobs and len(workers) < len(waiting) + _busy(workers):
                workers.append(Worker(campaign, memory))
            _wait(workers)
            for worker in list(workers):
                record = worker.poll()
                if record is not None:
                    yield record
                if worker.alive and worker.ready and worker.task is None:
                    failed_starts = 0
                    if worker.served >= RENEWED_AFTER or not waiting:
                        worker.kill()
                    else:
                        worker.send(waiting.pop())
                if not worker.alive:
                    workers.remove(worker)
                    failed_starts += not worker.ready
                    if failed_starts > jobs:
                        raise RuntimeError(f"worker processes cannot start: {worker.last_words}")
    finally:
        for worker in workers:
            worker.kill()


class Worker:
    """One worker process, seen from the parent.

    Attributes
    ----------
    task
        Under way, if there is one.
    ready
        It has started up.
    served
        Tasks done.
    """

    def __init__(self, campaign: Campaign, memory: int) -> None:
        self._child = Child("studies.worker", [memory])
        self.connection = self._child.connection
        self.task: Task | None = None
        self.ready = False
        self.served = 0
        self._began = time.monotonic()
        self._seconds = campaign.seconds
        with suppress(OSError):
            self.connection.send_bytes(pickle.dumps(campaign))

    @property
    def alive(self) -> bool:
        """It has not ended."""
        return self._child.alive

    @property
    def last_words(self) -> str:
        """The end of what it wrote, when it has ended."""
        return self._child.last_words

    @property
    def deadline(self) -> float:
        """When to stop waiting, in seconds of :func:`time.monotonic`."""
        if not self.ready:
            return self._began + STARTING
        return self._began + self._seconds if self.task is not None else float("inf")

    def send(self, task: Task) -> None:
        """Begin a task."""
        self.task = task
        self._child.forget()
        self._began = time.monotonic()
        with suppress(OSError):  # it has died: the next poll will find out
            self.connection.send(dict(task))

    def poll(self) -> Record | None:
        """The record of the task, if it has ended in whatever way."""
        try:
            if self.connection.poll():
                outcome, result, reason = self.connection.recv()
                if outcome == "ready":
                    self.ready = True
                    return None
                self.served += 1
                return self._record(outcome, reason, json.loads(result) if result else None)
        except (EOFError, OSError, pickle.UnpicklingError):
            return self._died()
        if time.monotonic() >= self.deadline:
            self.kill()
            words = f"stopped after {self._seconds:g} s"
            return self._record("time limit", words) if self.task is not None else None
        return None

    def kill(self) -> None:
        """End it now, with all processes that it started."""
        self._child.kill()

    def _died(self) -> Record | None:
        code = self._child.end()
        if self.task is None:
            return None
        outcome: Outcome = "crashed"
        if code == -signal.SIGKILL or "bad_alloc" in self.last_words:
            outcome = "out of memory"
        reason = end_in_words(code)
        if self.last_words:
            reason += f"; it wrote: {self.last_words}"
        return self._record(outcome, reason)

    def _record(
        self, outcome: Outcome, reason: str, result: dict[str, Any] | None = None
    ) -> Record:
        assert self.task is not None
        task, self.task = self.task, None
        return Record(task["key"], task, outcome, result, reason, time.monotonic() - self._began)


def _busy(workers: Sequence[Worker]) -> int:
    return sum(w.task is not None for w in workers)


def _wait(workers: Sequence[Worker]) -> None:
    """Until a worker has something to say, or must be stopped."""
    nearest = min(w.deadline for w in workers)
    timeout = min(max(nearest - time.monotonic(), 0.0), GLANCE)
    wait([w.connection for w in workers], timeout)


def _memory() -> int:
    """Bytes of this machine, some left for others; 0 if that cannot be told."""
    try:
        return int(0.9 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 0
