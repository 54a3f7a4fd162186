"""Starts of searches, run one after another here or in parallel by worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Protocol

import numpy as np

from odefit.methods.estimate import Start, Status
from odefit.methods.running.control import Control, RemoteControl
from odefit.methods.running.dispatch import WorkerLateError, WorkerLostError, dispatched
from odefit.methods.running.run_log import LOGGER
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers
from odefit.simulation import ForwardMap


class SearchByStarts(Protocol):
    """A search from many starts, each of which can be run separately."""

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""


Task = tuple[SearchByStarts, int, Control]
"""A start: its search, its number there, and its control."""


def run_starts(
    tasks: Iterable[Task],
    forward: ForwardMap,
    workers: Workers,
    control: Control,
    total: int | None = None,
) -> Iterator[tuple[int, Start, bool]]:
    """Yield the position of each task, its end, and whether that is complete, as tasks finish.

    An end is incomplete if a limit may have cut it short: it must not be stored for another run.

    The starts are taken one by one, as capacity allows; `total` is their number, if it is known.
    Workers make their own forward map, which is the same.
    """
    numbers: dict[int, int] = {}
    size, sent = len(forward.problem.unknowns), count()

    def numbered() -> Iterator[Task]:
        for position, task in enumerate(tasks):
            numbers[position] = task[1]
            yield task

    def remote(task: Task) -> tuple[Work, tuple[int, RemoteControl]]:
        search, index, its_control = task
        begin = workers.made_once(lambda: _model(forward), forward)
        work = workers.made_once(lambda: Work(begin, partial(_run, search)), forward, search)
        return work, (index, its_control.for_workers(workers.cores_of(next(sent), total)))

    def here(task: Task) -> tuple[Start, bool]:
        search, index, its_control = task
        try:
            return ended(search.run(forward, index, its_control), its_control)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            # If linear algebra fails on some numbers, only this start is lost.
            LOGGER.error("start %d failed", index, exc_info=error)
            return _lost(index, error, size), False

    done = dispatched(
        numbered(), remote, here, workers, control, total=total, late=lambda task: task[2].is_late()
    )
    for position, outcome in done:
        error, index = outcome["error"], numbers.pop(position)
        end, whole = (_lost(index, error, size), False) if error is not None else outcome["value"]
        yield position, end, whole and not control.should_stop()


def _model(forward: ForwardMap) -> partial[ForwardMap]:
    """Return a function that makes the same forward map elsewhere."""
    return partial(ForwardMap, *forward.arguments)


def _run(
    search: SearchByStarts, forward: ForwardMap, task: tuple[int, RemoteControl]
) -> tuple[Start, bool]:
    """Run a start in a worker process."""
    index, task_control = task
    with task_control.running() as control:
        return ended(search.run(forward, index, control), control)


def ended(end: Start, control: Control) -> tuple[Start, bool]:
    """Return an end with its label, and whether it is complete.

    A failure after a limit may be caused by it, as integrations are cut off.
    """
    if not control.should_stop():
        return end, not end.status.cut_short
    if end.status is Status.FAILED and np.isfinite(end.vector).all():
        message = f"ended by {control.cause} before it had an answer: {end.message}"
        end = replace(end, status=control.early, message=message)
    return end, False


def _lost(index: int, error: BaseException, size: int) -> Start:
    """Return the start whose search, or worker process, has failed."""
    status, message = Status.FAILED, f"the search failed: {type(error).__name__}: {error}"
    if isinstance(error, WorkerLostError):
        message = f"the worker process failed: {error}"
    if isinstance(error, WorkerLateError):
        status, message = Status.TIME_LIMIT, f"the worker process was ended: {error}"
    # Its start values are unknown, so a checkpoint would not store it.
    began, end = np.full(0, np.nan), np.full(size, np.nan)
    return Start(index, began, end, math.inf, status, message, 0, 0.0, math.inf)
