"""The evaluation of nodes, in this process or by workers: the answer does not depend on which."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.enclosure.monomials import Monomials
from odefit.enclosure.residuals import Residuals
from odefit.methods.branch_and_bound.node_bounds import NodeBounder, NodeBounds
from odefit.methods.workers import Workers, remembered
from odefit.problem.arrays import Array

CHUNK_SIZE = 256
"""Number of nodes that are evaluated together: enough for operations on arrays to pay."""

POLL_SECONDS = 0.2
"""Seconds between two checks whether to stop, while workers compute."""


class ResidualEnclosure(Protocol):
    """Enclosures of a problem's residuals over boxes, in continuous time or discretised.

    Attributes
    ----------
    monomials
        Monomials of the enclosed residuals.
    scope
        The problem that the enclosures are of, in words.
    size
        Number of residuals, priors included.
    lower_bound
        Lower bound of the objective that holds whatever the unknowns are.
    unique_solution
        Whether the equations have one solution for each value of the unknowns.
    influence
        Which unknowns act on which residual, as zeros and ones, shape (R, n).
    """

    monomials: Monomials
    scope: str
    size: int
    lower_bound: float
    unique_solution: bool
    influence: Array

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        """Return the residuals over boxes with these corners, shapes (B, n).

        Where their norm exceeds `radius`, they need not be enclosed any further.
        """


@dataclass(frozen=True, eq=False)
class NodeEvaluation:
    """What is known of B nodes after their evaluation.

    Attributes
    ----------
    bounds
        The bounds of the nodes.
    midpoint_objective
        Approximate objective in the middle of each box, shape (B,); infinite where it is unknown.
    """

    bounds: NodeBounds
    midpoint_objective: Array


def evaluate_nodes(
    enclosure: ResidualEnclosure, lower: Array, upper: Array, radius: float
) -> NodeEvaluation:
    """Evaluate the nodes whose boxes have these corners, shapes (B, n).

    Parameters
    ----------
    radius
        Residual norm above which a point is of no interest.
    """
    residuals = enclosure(lower, upper, radius)
    with np.errstate(all="ignore"):
        objective = np.einsum("rb,rb->b", residuals.c[:, 0], residuals.c[:, 0])
    known = np.isfinite(residuals.remainder).all(axis=0) & np.isfinite(objective)
    bounds = NodeBounder(enclosure.monomials)(residuals, radius)
    return NodeEvaluation(bounds, np.where(known, objective, np.inf))


class NodeEvaluator:
    """Evaluates the nodes of a batch, chunk by chunk.

    Parameters
    ----------
    enclosure
        The enclosure of this process.
    make
        Makes the enclosure in a worker process; without it, all is computed in this process.
    workers
        The worker processes.
    """

    def __init__(
        self,
        enclosure: ResidualEnclosure,
        make: Callable[[], ResidualEnclosure] | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._enclosure, self._workers = enclosure, workers
        self._task = None if make is None else pickle.dumps(make)

    def __call__(
        self, lower: Array, upper: Array, radius: float, stop: Callable[[], bool]
    ) -> Iterator[NodeEvaluation]:
        """Yield the evaluation of one chunk after the other; end early if `stop` says so.

        Parameters
        ----------
        lower, upper
            Corners of the boxes, shapes (B, n).
        radius
            Residual norm above which a point is of no interest.
        """
        chunks = [
            (lower[i : i + CHUNK_SIZE], upper[i : i + CHUNK_SIZE])
            for i in range(0, len(lower), CHUNK_SIZE)
        ]
        task, executor = self._task, None
        if self._workers is not None and task is not None:
            executor = self._workers.executor()
        if executor is None or task is None or len(chunks) == 1:
            for number, chunk in enumerate(chunks):
                if number and stop():
                    return
                yield self._here(*chunk, radius)
            return
        pending = [executor.submit(_evaluate_remotely, task, *chunk, radius) for chunk in chunks]
        try:
            # In the order of the chunks, whichever is done first.
            for future, chunk in zip(pending, chunks, strict=True):
                if not _finished(future, stop):
                    return
                if future.exception() is None:
                    yield future.result()
                else:  # its worker died: the chunk is evaluated here
                    yield evaluate_nodes(self._enclosure, *chunk, radius)
        finally:
            for future in pending:
                future.cancel()

    def _here(self, lower: Array, upper: Array, radius: float) -> NodeEvaluation:
        """Evaluate a chunk in this process."""

        def work() -> NodeEvaluation:
            return evaluate_nodes(self._enclosure, lower, upper, radius)

        return work() if self._workers is None else self._workers.timed(work)


def _finished(future: Future[NodeEvaluation], stop: Callable[[], bool]) -> bool:
    """Wait for a worker; return False if `stop` says so before."""
    while not future.done():
        wait_for([future], timeout=POLL_SECONDS)
        if stop():
            return False
    return True


def _evaluate_remotely(task: bytes, lower: Array, upper: Array, radius: float) -> NodeEvaluation:
    """Evaluate a chunk in a worker process."""
    enclosure: ResidualEnclosure = remembered(task, lambda: pickle.loads(task)())
    return evaluate_nodes(enclosure, lower, upper, radius)
