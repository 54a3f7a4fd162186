"""Starts of searches, one after the other here or side by side in worker processes."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from functools import partial
from typing import Protocol

import numpy as np

from odefit.methods.control import Control
from odefit.methods.estimate import Start, Status
from odefit.methods.workers import Workers, remembered
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap


class Search(Protocol):
    """A search from many starts, each of which can be made on its own."""

    def forward(self, problem: Problem) -> ForwardMap:
        """Return the forward map of the search."""

    def run(self, forward: ForwardMap, index: int, control: Control) -> Start:
        """Return the end of start number `index`."""


Task = tuple[Search, int, Control]
"""A start: its search, its number there, and how it is run."""


def run_starts(
    tasks: Iterable[Task], forward: ForwardMap, workers: Workers, control: Control
) -> Iterator[tuple[int, Start]]:
    """Yield the position of each task and its end, in the order in which they finish.

    Parameters
    ----------
    tasks
        The starts; they are taken one by one, as there is room for them.
    forward
        The forward map of all searches, for starts in this process.
    workers
        The processes that take tasks, once it pays.
    control
        When to stop.
    """
    pending: dict[Future[Start], int] = {}
    numbers: dict[int, int] = {}
    try:
        for position, (search, index, its_control) in enumerate(tasks):
            if control.should_stop():
                break
            executor = workers.executor()
            if executor is None:
                yield position, workers.timed(partial(search.run, forward, index, its_control))
                continue
            future = _submit(executor, search, forward.problem, index, its_control)
            pending[future] = position
            numbers[position] = index
            if len(pending) >= workers.slots:
                yield from _collect(pending, numbers, control)
        while pending and not control.interrupted.is_set():
            yield from _collect(pending, numbers, control)
    finally:
        for future in pending:
            future.cancel()


def _submit(
    executor: Executor, search: Search, problem: Problem, index: int, control: Control
) -> Future[Start]:
    return executor.submit(_run_remotely, search, problem, index, control.seed, control.deadline)


def _run_remotely(
    search: Search, problem: Problem, index: int, seed: int, deadline: float | None
) -> Start:
    """Run a start in a worker process, which keeps the compiled model."""
    engine = getattr(getattr(search, "method", None), "engine", "auto")
    forward = remembered(pickle.dumps((problem, engine)), partial(search.forward, problem))
    return search.run(forward, index, Control(seed=seed, deadline=deadline))


def _collect(
    pending: dict[Future[Start], int], numbers: dict[int, int], control: Control
) -> Iterator[tuple[int, Start]]:
    done: set[Future[Start]] = set()
    while not done and not control.interrupted.is_set():
        done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
    for future in done:
        position = pending.pop(future)
        error = future.exception()
        yield position, future.result() if error is None else _lost(numbers[position], error)


def _lost(index: int, error: BaseException) -> Start:
    """Return the start whose worker process has failed."""
    nothing = np.full(0, np.nan)
    message = f"the worker process failed: {type(error).__name__}: {error}"
    return Start(index, nothing, nothing, math.inf, Status.FAILED, message, 0, 0.0, math.inf)
