"""The evaluation of nodes, in this process or by workers; the answer is the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.background import unless_stopped
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.residuals import Residuals
from odefit.methods.branch_and_bound.node_bounds import NodeBounder, NodeBounds
from odefit.methods.running.control import Control
from odefit.methods.running.dispatch import dispatched
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers
from odefit.simulation.engines.cut_off import WorkLimit, counting, cut_off

CHUNK_SIZE = 256
"""Number of nodes that are evaluated together: enough for efficient operations on arrays."""


class ResidualEnclosure(Protocol):
    """Enclosures of a problem's residuals over boxes, in continuous time or discretised.

    They are polynomials in `monomials`. `scope` names their problem, which may be discretised.
    `size` counts the residuals, priors included, and `lower_bound` bounds the objective for any
    unknowns. With a `unique_solution`, the equations have one solution for each value of the
    unknowns. `influence` is one where an unknown acts on a residual, shape (R, n). The objective is
    the sum of squares plus `offset`; residuals `of_spreads`, shape (R,), are those of spreads, and
    `composed` ones are functions whose polynomials may be replaced by ranges.
    """

    monomials: Monomials
    scope: str
    discretised: bool
    size: int
    lower_bound: float
    unique_solution: bool
    influence: Array
    offset: float
    of_spreads: BoolArray
    composed: BoolArray

    @property
    def compiled(self) -> ResidualEnclosure:
        """Return the same enclosure by compiled code, which pays in a long search."""

    def sharper(self, level: int) -> ResidualEnclosure | None:
        """Return an enclosure that is sharper by some levels, which takes longer; None without."""

    def __call__(self, lower: Array, upper: Array, radius: float = np.inf) -> Residuals:
        """Return the residuals over boxes with these corners, shapes (B, n).

        If their norm exceeds `radius`, they need no further enclosure.
        """


@dataclass(frozen=True, eq=False)
class NodeEvaluation:
    """The bounds of B nodes, and the approximate objective in the middle of each box.

    It has shape (B,) and is infinite where it is unknown. `work` counts operations.
    """

    bounds: NodeBounds
    midpoint_objective: Array
    work: float = 0.0


def evaluate_nodes(
    enclosure: ResidualEnclosure,
    lower: Array,
    upper: Array,
    radius: float,
    compiled: bool = False,
    level: int = 0,
) -> NodeEvaluation:
    """Evaluate the nodes whose boxes have these corners, shapes (B, n).

    The enclosure is sharper by `level`. Points with a residual norm above `radius` need not be
    bounded accurately.
    """
    spent = WorkLimit(math.inf)
    sharper = enclosure.sharper(level)
    assert sharper is not None, "only levels that are known are asked for"
    with counting(spent):
        residuals = (sharper.compiled if compiled else sharper)(lower, upper, radius)
    with np.errstate(all="ignore"):
        objective = np.einsum("rb,rb->b", residuals.c[:, 0], residuals.c[:, 0])
    known = np.isfinite(residuals.remainder).all(axis=0) & np.isfinite(objective)
    bounds = NodeBounder(sharper.monomials)(residuals, radius)
    return NodeEvaluation(bounds, np.where(known, objective, np.inf), spent.spent)


def number_of_chunks(nodes: int) -> int:
    """Return the number of chunks of a batch, even if there are several: two workers end together.

    It does not depend on the number of workers, and so the answer does not.
    """
    needed = -(-nodes // CHUNK_SIZE)
    return needed if needed < 2 else 2 * -(-needed // 2)


class NodeEvaluator:
    """Evaluates the nodes of a batch chunk by chunk, in this process or by workers.

    Workers need `make`, which builds the enclosure in their process.
    """

    def __init__(
        self,
        enclosure: ResidualEnclosure,
        make: Callable[[], ResidualEnclosure] | None = None,
        workers: Workers | None = None,
        control: Control | None = None,
    ) -> None:
        self._enclosure, self._workers = enclosure, workers
        self._work = None if make is None else Work(make, _evaluate_remotely)
        self._control = control or Control()
        self._compiled = False  # whether the compiled code has been used

    def __call__(
        self,
        lower: Array,
        upper: Array,
        radius: float,
        stop: Callable[[], bool],
        compiled: bool = False,
        level: int = 0,
    ) -> Iterator[NodeEvaluation]:
        """Yield evaluations of chunks of boxes with these corners, shape (B, n), until a `stop`."""
        how = compiled, level
        count = number_of_chunks(len(lower))
        chunks = list(zip(np.array_split(lower, count), np.array_split(upper, count), strict=True))
        if compiled and not self._compiled:
            first = self._compiling(*chunks.pop(0), radius, stop, level)
            if first is None or cut_off().reached:
                return
            self._compiled = True
            yield first
        if self._workers is None or self._work is None or len(chunks) <= 1:
            for number, chunk in enumerate(chunks, start=count - len(chunks)):
                if number and stop():
                    return
                evaluation = self._here(*chunk, radius, how)
                if cut_off().reached:  # parts of it are unknown only for want of time
                    return
                yield evaluation
            return
        yield from self._shared(self._workers, self._work, chunks, radius, how)

    def _shared(
        self,
        workers: Workers,
        work: Work,
        chunks: list[tuple[Array, Array]],
        radius: float,
        how: tuple[bool, int],
    ) -> Iterator[NodeEvaluation]:
        """Yield the evaluations of chunks by workers in their order, whichever ends first."""
        done = dispatched(
            chunks,
            lambda chunk: (work, (*chunk, radius, *how)),
            lambda chunk: evaluate_nodes(self._enclosure, *chunk, radius, *how),
            workers,
            self._control,
            total=len(chunks),
            largest=1,
        )
        waiting: dict[int, NodeEvaluation] = {}
        with closing(done):
            for number in range(len(chunks)):
                while number not in waiting:
                    position, outcome = next(done, (None, None))
                    if position is None or outcome is None:
                        return
                    if outcome["error"] is not None:  # the workers died: this process evaluates it
                        outcome["value"] = evaluate_nodes(
                            self._enclosure, *chunks[position], radius, *how
                        )
                    waiting[position] = outcome["value"]
                yield waiting.pop(number)

    def _here(
        self, lower: Array, upper: Array, radius: float, how: tuple[bool, int]
    ) -> NodeEvaluation:
        """Evaluate a chunk in this process."""
        work = partial(evaluate_nodes, self._enclosure, lower, upper, radius, *how)
        return work() if self._workers is None else self._workers.timed(work)

    def _compiling(
        self, lower: Array, upper: Array, radius: float, stop: Callable[[], bool], level: int
    ) -> NodeEvaluation | None:
        """Evaluate a chunk by compiled code for the first time; None if it is time to stop before.

        On a new computer this compiles for half a minute, which nothing can interrupt. Workers then
        find the compiled code on the disk.
        """
        return unless_stopped(partial(self._here, lower, upper, radius, (True, level)), stop)


def _evaluate_remotely(
    enclosure: ResidualEnclosure, task: tuple[Array, Array, float, bool, int]
) -> NodeEvaluation:
    """Evaluate a chunk in a worker process."""
    return evaluate_nodes(enclosure, *task)
