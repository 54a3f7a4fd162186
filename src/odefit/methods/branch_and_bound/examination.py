"""Boxes looked at, here or by worker processes: the answer does not depend on which."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.enclosure.monomials import Monomials
from odefit.enclosure.residuals import Residuals
from odefit.methods.branch_and_bound.bounds import Judge, Verdict
from odefit.methods.workers import Workers, remembered
from odefit.problem.arrays import Array

CHUNK = 256
"""Boxes that are looked at together: enough for arrays to pay."""

GLANCE = 0.2
"""Seconds between two looks at whether to stop."""


class Enclosed(Protocol):
    """Residuals of a problem over boxes: in continuous time, or discretised."""

    monomials: Monomials
    scope: str
    size: int
    floor: float
    unique: bool
    influence: Array

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        """Over boxes with these corners, shapes (B, n); those beyond the radius need no care."""


@dataclass(frozen=True, eq=False)
class Examined:
    """What is known of some boxes.

    Attributes
    ----------
    verdict
        Bounds.
    middle
        Objectives in the middle of the boxes, about; infinite where that is not known, shape (B,).
    """

    verdict: Verdict
    middle: Array


def examined(enclosure: Enclosed, lower: Array, upper: Array, radius: float) -> Examined:
    """Boxes with these corners, shapes (B, n), in which norms up to `radius` are of interest."""
    residuals = enclosure(lower, upper, radius)
    with np.errstate(all="ignore"):
        middle = np.einsum("rb,rb->b", residuals.c[:, 0], residuals.c[:, 0])
    known = np.isfinite(residuals.remainder).all(axis=0) & np.isfinite(middle)
    verdict = Judge(enclosure.monomials)(residuals, radius)
    return Examined(verdict, np.where(known, middle, np.inf))


class Examiners:
    """Whoever looks at boxes.

    Parameters
    ----------
    enclosure
        In this process.
    make
        Makes it in another process; without it, all is done here.
    workers
        The other processes.
    """

    def __init__(
        self,
        enclosure: Enclosed,
        make: Callable[[], Enclosed] | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._enclosure, self._workers = enclosure, workers
        self._task = None if make is None else pickle.dumps(make)

    def __call__(
        self, lower: Array, upper: Array, radius: float, stop: Callable[[], bool]
    ) -> Iterator[tuple[int, Examined]]:
        """The first box of each chunk, and what is known of it; ends early if `stop` says so."""
        begins = list(range(0, len(lower), CHUNK))
        executor = None
        if self._workers is not None and self._task is not None:
            executor = self._workers.executor()
        if executor is None or len(begins) == 1:
            for i in begins:
                if i and stop():
                    return
                own = slice(i, i + CHUNK)

                def work(own: slice = own) -> Examined:
                    return examined(self._enclosure, lower[own], upper[own], radius)

                yield i, work() if self._workers is None else self._workers.timed(work)
            return
        pending = {
            self._submit(executor, lower[i : i + CHUNK], upper[i : i + CHUNK], radius): i
            for i in begins
        }
        try:
            yield from self._collected(pending, lower, upper, radius, stop)
        finally:
            for future in pending:
                future.cancel()

    def _submit(
        self, executor: Executor, lower: Array, upper: Array, radius: float
    ) -> Future[Examined]:
        assert self._task is not None
        return executor.submit(_remotely, self._task, lower, upper, radius)

    def _collected(
        self,
        pending: dict[Future[Examined], int],
        lower: Array,
        upper: Array,
        radius: float,
        stop: Callable[[], bool],
    ) -> Iterator[tuple[int, Examined]]:
        # In the order of the chunks, whoever is done first.
        for future, i in pending.items():
            while not future.done():
                wait_for([future], timeout=GLANCE)
                if stop():
                    return
            own = slice(i, i + CHUNK)
            if future.exception() is None:
                yield i, future.result()
            else:  # a worker that died; what it was to do is done here
                yield i, examined(self._enclosure, lower[own], upper[own], radius)


def _remotely(task: bytes, lower: Array, upper: Array, radius: float) -> Examined:
    enclosure: Enclosed = remembered(task, lambda: pickle.loads(task)())
    return examined(enclosure, lower, upper, radius)
