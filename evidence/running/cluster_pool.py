"""Tasks of a campaign over an executor, such as a Dask cluster: each in a child of a worker.

A task that hangs, dies or takes too much memory ends its child, and not the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from functools import partial
from multiprocessing.connection import wait

from evidence.running.campaign import Campaign, Record, Task
from evidence.running.pool import RENEWED_AFTER, Worker
from odefit.common.errors import InputError
from odefit.methods.running.child import POLLING_INTERVAL
from odefit.methods.running.control import Control
from odefit.methods.running.dispatch import WorkerLostError, dispatched
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers


def run_tasks_over(
    executor: Executor, campaign: Campaign, tasks: Sequence[Task], stop: threading.Event
) -> Generator[Record]:
    """Yield records in the order in which tasks end, until `stop` is set."""
    control = Control(executor=executor, interrupted=stop)
    work = Work(partial(Host, campaign), _run)
    here: list[Host] = []

    def done_here(task: Task) -> Record:
        here[:] = here or [Host(campaign)]
        return here[0].run(task)

    with Workers(control) as workers:
        every = dispatched(
            tasks,
            lambda task: (work, dict(task)),
            done_here,
            workers,
            control,
            total=len(tasks),
            largest=1,
        )
        for position, outcome in every:
            error, task = outcome["error"], tasks[position]
            if isinstance(error, ImportError):
                raise InputError(
                    f"the workers cannot import the evidence ({error}): start them in a checkout, "
                    "with its folder in PYTHONPATH"
                )
            if isinstance(error, WorkerLostError):
                yield Record(task["key"], task, "crashed", None, str(error), 0.0)
            elif error is not None:
                raise error
            else:
                yield outcome["value"]


class Host:
    """Runs tasks in a child process, and replaces the child when it hangs or dies."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._worker: Worker | None = None

    def run(self, task: Task) -> Record:
        """Return the record of a task."""
        worker = self._ready()
        worker.send(task)
        while True:
            wait([worker.connection], POLLING_INTERVAL)
            record = worker.poll()
            if record is not None:
                if not worker.alive or worker.served >= RENEWED_AFTER:
                    worker.kill()
                    self._worker = None
                return record

    def _ready(self) -> Worker:
        worker = self._worker = self._worker or Worker(self._campaign, self._campaign.memory or 0)
        while not worker.ready:
            wait([worker.connection], POLLING_INTERVAL)
            worker.poll()
            if not worker.alive:
                self._worker = None
                raise RuntimeError(f"worker processes cannot start: {worker.output}")
        return worker

    def __del__(self) -> None:
        if self._worker is not None:
            self._worker.kill()


def _run(host: Host, task: Task) -> Record:
    """Run a task in a worker."""
    return host.run(task)
