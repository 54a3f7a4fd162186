"""Worker processes, each with a task at a time, replaced when they hang or die."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator, Sequence
from multiprocessing.connection import wait
from typing import Any

from evidence.running.campaign import Campaign, Outcome, Record, Task
from evidence.running.store import to_json
from odefit.methods.running.child import POLLING_INTERVAL, Child

STARTING = 120.0  # time in seconds within which a worker must have imported its modules

# Number of tasks after which a worker is replaced, so that leaks of libraries do not add up
RENEWED_AFTER = 200


def run_tasks(
    campaign: Campaign, tasks: Sequence[Task], jobs: int, stop: threading.Event
) -> Generator[Record]:
    """Yield records in the order in which tasks end, until `stop` is set.

    Each task is alone in its process. A task that exceeds the campaign's limit, or whose process
    dies, gives a record too; the next task gets a new process.
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
                        raise RuntimeError(f"worker processes cannot start: {worker.output}")
    finally:
        for worker in workers:
            worker.kill()


class Worker:
    """A worker process, as its parent handles it."""

    def __init__(self, campaign: Campaign, memory: int) -> None:
        self._child = Child(memory)
        self.connection = self._child.connection
        self.task: Task | None = None  # the task under way, if there is one
        self.ready = False  # whether the process has started up
        self.served = 0  # number of tasks done
        self._began = time.monotonic()
        self._seconds = campaign.seconds
        self._child.call(_begin, campaign)

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._child.alive

    @property
    def output(self) -> str:
        """Return the end of the output of a process that has ended."""
        return self._child.output

    @property
    def deadline(self) -> float:
        """The time at which the wait ends, in seconds of :func:`time.monotonic`."""
        if not self.ready:
            return self._began + STARTING
        return self._began + self._seconds if self.task is not None else float("inf")

    def send(self, task: Task) -> None:
        """Begin a task."""
        self.task = task
        self._began = time.monotonic()
        self._child.call(_attempt, dict(task))

    def poll(self) -> Record | None:
        """Return the record of the task if it has ended in any way."""
        message = self._child.receive(0.0)
        if message is not None and message.kind == "died":
            return self._died(message.content)
        if message is not None and not self.ready:
            self.ready = message.kind == "returned"
            return None
        if message is not None:
            self.served += 1
            outcome, result, reason = message.content
            return self._record(outcome, reason, json.loads(result) if result else None)
        if time.monotonic() >= self.deadline:
            self.kill()
            words = f"stopped after {self._seconds:g} s"
            return self._record("time limit", words) if self.task is not None else None
        return None

    def kill(self) -> None:
        """End the process and all processes that it started at once."""
        self._child.kill()

    def _died(self, reason: str) -> Record | None:
        if self.task is None:
            return None
        outcome: Outcome = "crashed"
        if self._child.exit_code == -signal.SIGKILL or "bad_alloc" in self.output:
            outcome = "out of memory"
        return self._record(outcome, reason)

    def _record(
        self, outcome: Outcome, reason: str, result: dict[str, Any] | None = None
    ) -> Record:
        assert self.task is not None
        task, self.task = self.task, None
        return Record(task["key"], task, outcome, result, reason, time.monotonic() - self._began)


# In the worker ----------------------------------------------------------------------------------

_campaigns: list[Campaign] = []  # the campaign whose tasks this process runs


def _begin(campaign: Campaign) -> None:
    """Take the campaign, and let fatal signals leave a traceback in the log."""
    faulthandler.enable()
    _campaigns.append(campaign)


def _attempt(task: dict[str, Any]) -> tuple[Outcome, str, str]:
    """Run a task; return its outcome, its result as JSON, and the reason of a failure."""
    try:
        return "done", to_json(_campaigns[0].run(task)), ""
    except MemoryError:
        return "out of memory", "", "the task needs more memory than it may use"
    except Exception as error:  # noqa: BLE001 - whatever a task raises is its outcome
        traceback.print_exc()
        sys.stderr.flush()
        return "error", "", f"{type(error).__name__}: {error}"


# In the parent ----------------------------------------------------------------------------------


def _busy(workers: Sequence[Worker]) -> int:
    return sum(w.task is not None for w in workers)


def _wait(workers: Sequence[Worker]) -> None:
    """Wait until a worker sends a message or must be stopped."""
    nearest = min(w.deadline for w in workers)
    timeout = min(max(nearest - time.monotonic(), 0.0), POLLING_INTERVAL)
    wait([w.connection for w in workers], timeout)


def _memory() -> int:
    """Return the bytes of memory to divide among tasks; 0 if unknown."""
    try:
        return int(0.9 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 0
