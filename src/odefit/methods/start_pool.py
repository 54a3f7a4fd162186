"""Starts of searches, one after the other here or side by side in worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Protocol

import numpy as np

from odefit.methods.estimate import Start, Status
from odefit.methods.running.control import Control, watched
from odefit.methods.running.dispatch import WorkerLostError, dispatched
from odefit.methods.running.run_log import LOGGER
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers
from odefit.simulation import ForwardMap


class SearchByStarts(Protocol):
    """A search from many starts, each of which can be made on its own."""

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""


Task = tuple[SearchByStarts, int, Control]
"""A start: its search, its number there, and how it is run."""


def run_starts(
    tasks: Iterable[Task],
    forward: ForwardMap,
    workers: Workers,
    control: Control,
    total: int | None = None,
) -> Iterator[tuple[int, Start]]:
    """Yield the position of each task and its end, in the order in which they finish.

    The starts are taken one by one, as there is room for them; `total` is their number, if it is
    known. Workers make their own forward map, which is the same.
    """
    numbers: dict[int, int] = {}
    size = len(forward.problem.unknowns)

    def numbered() -> Iterator[Task]:
        for position, task in enumerate(tasks):
            numbers[position] = task[1]
            yield task

    def remote(task: Task) -> tuple[Work, tuple[int, int, float | None]]:
        search, index, its_control = task
        begin = workers.kept(lambda: _model(forward), forward)
        work = workers.kept(lambda: Work(begin, partial(_run, search)), forward, search)
        return work, (index, its_control.seed, its_control.deadline)

    def here(task: Task) -> Start:
        search, index, its_control = task
        try:
            return search.run(forward, index, its_control)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            # Numbers that linear algebra gives up on cost this start alone.
            LOGGER.error("start %d failed", index, exc_info=error)
            return _lost(index, error, size)

    for position, outcome in dispatched(numbered(), remote, here, workers, control, total=total):
        error = outcome["error"]
        index = numbers.pop(position)
        yield position, outcome["value"] if error is None else _lost(index, error, size)


def _model(forward: ForwardMap) -> partial[ForwardMap]:
    """Return what makes the same forward map elsewhere."""
    return partial(ForwardMap, *forward.arguments)


def _run(search: SearchByStarts, forward: ForwardMap, task: tuple[int, int, float | None]) -> Start:
    """Run a start in a worker process."""
    index, seed, deadline = task
    control = Control(seed=seed, deadline=deadline)
    with watched(control):
        return search.run(forward, index, control)


def _lost(index: int, error: BaseException, size: int) -> Start:
    """Return the start whose search, or whose worker process, has failed."""
    message = f"the search failed: {type(error).__name__}: {error}"
    if isinstance(error, WorkerLostError):
        message = f"the worker process failed: {error}"
    # Nobody knows where it began: it is no end that a checkpoint would keep.
    began, end = np.full(0, np.nan), np.full(size, np.nan)
    return Start(index, began, end, math.inf, Status.FAILED, message, 0, 0.0, math.inf)
