"""The evaluation of nodes, in this process or by workers; the answer is the same."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.background import unless_stopped
from odefit.enclosure.arithmetic.taylor_models import Monomials
from odefit.enclosure.residuals import Residuals
from odefit.methods.branch_and_bound.chunks import CHUNK_SIZE, Chunk
from odefit.methods.branch_and_bound.node_bounds import NodeBounder, NodeBounds
from odefit.methods.running.control import Control
from odefit.methods.running.dispatch import dispatched
from odefit.methods.running.worker import Outcome, Work
from odefit.methods.running.workers import Workers
from odefit.simulation.engines.cut_off import WorkLimit, counting, cut_off


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


@dataclass(eq=False)
class _Place:
    """The place of a chunk in the order in which chunks are returned."""

    chunk: Chunk
    evaluation: NodeEvaluation | None = None


class NodeEvaluator:
    """Evaluates chunks of nodes, in this process or by workers, and returns them in their order.

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
        self._order: deque[_Place] = deque()
        self._unsent: deque[_Place] = deque()
        self._sent: dict[int, _Place] = {}
        self._taken = 0  # chunks that the present dispatch has taken
        self._done: Generator[tuple[int, Outcome]] | None = None

    def prepare(self) -> None:
        """Let workers that exist build the enclosure meanwhile."""
        if self._workers is not None and self._work is not None:
            self._workers.prepare(self._work)

    # Chunks -----------------------------------------------------------------------------------

    def put(self, chunk: Chunk) -> None:
        """Add a chunk, which workers may begin once :meth:`next` is called."""
        place = _Place(chunk)
        self._order.append(place)
        self._unsent.append(place)

    def next(self, stop: Callable[[], bool]) -> NodeEvaluation | None:
        """Return the evaluation of the chunk that was put first, or None if it is time to stop."""
        first = self._order[0]
        while first.evaluation is None:
            if first.chunk.compiled and not self._compiled:
                evaluation = self._compiling(first.chunk, stop)
                self._compiled = evaluation is not None
                known = self._keep(first, evaluation)
            elif self._workers is None or self._work is None or self._only_chunk:
                known = self._keep(first, self._here(first.chunk))
            else:
                known = self._receive(self._workers, self._work)
            if not known:
                return None
        self._order.popleft()
        return first.evaluation

    def clear(self) -> None:
        """Forget all chunks."""
        if self._done is not None:
            self._done.close()
        self._done = None
        self._order.clear()
        self._unsent.clear()
        self._sent.clear()

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
        count = number_of_chunks(len(lower))
        for part in zip(np.array_split(lower, count), np.array_split(upper, count), strict=True):
            self.put(Chunk(*part, radius, compiled, level))
        try:
            for number in range(count):
                if number and stop():
                    return
                evaluation = self.next(stop)
                if evaluation is None:
                    return
                yield evaluation
        finally:
            self.clear()

    # Who evaluates them -----------------------------------------------------------------------
    @property
    def _only_chunk(self) -> bool:
        """True if there is one chunk and no worker has it."""
        return len(self._order) == len(self._unsent) == 1

    def _keep(self, first: _Place, evaluation: NodeEvaluation | None) -> bool:
        """Keep what this process knows of the first chunk, unless time has run out meanwhile."""
        if evaluation is None or cut_off().reached:  # parts are unknown only for want of time
            return False
        self._unsent.popleft()
        first.evaluation = evaluation
        return True

    def _receive(self, workers: Workers, work: Work) -> bool:
        """Wait until any chunk is evaluated, by workers or here; return False if time ran out."""
        if self._done is None:
            self._taken = 0
            self._done = dispatched(
                _Unsent(self._next_unsent),
                lambda chunk: (work, tuple(chunk)),
                lambda chunk: evaluate_nodes(self._enclosure, *chunk),
                workers,
                self._control,
                largest=1,
            )
        position, outcome = next(self._done, (None, None))
        if position is None or outcome is None:  # what was sent is no longer awaited
            self._done = None
            self._sent.clear()
            self._unsent = deque(place for place in self._order if place.evaluation is None)
            return not self._control.should_stop()
        place = self._sent.pop(position)
        value = outcome["value"]
        if outcome["error"] is not None:  # the workers died: this process evaluates it
            value = evaluate_nodes(self._enclosure, *place.chunk)
        if cut_off().reached:
            return False
        place.evaluation = value
        return True

    def _next_unsent(self) -> Chunk | None:
        """Return the next chunk for a worker; None while no chunk waits."""
        if not self._unsent or self._unsent[0].chunk.compiled > self._compiled:
            return None
        place = self._unsent.popleft()
        self._sent[self._taken] = place
        self._taken += 1
        return place.chunk

    def _here(self, chunk: Chunk) -> NodeEvaluation:
        """Evaluate a chunk in this process."""
        work = partial(evaluate_nodes, self._enclosure, *chunk)
        return work() if self._workers is None else self._workers.timed(work)

    def _compiling(self, chunk: Chunk, stop: Callable[[], bool]) -> NodeEvaluation | None:
        """Evaluate a chunk by compiled code for the first time; None if it is time to stop before.

        On a new computer this compiles for half a minute, which nothing can interrupt. Workers then
        find the compiled code on the disk.
        """
        return unless_stopped(partial(self._here, chunk), stop)


class _Unsent:
    """Chunks for workers: after its end more may follow."""

    def __init__(self, following: Callable[[], Chunk | None]) -> None:
        self._following = following

    def __iter__(self) -> _Unsent:
        return self

    def __next__(self) -> Chunk:
        chunk = self._following()
        if chunk is None:
            raise StopIteration
        return chunk


def _evaluate_remotely(
    enclosure: ResidualEnclosure, task: tuple[Array, Array, float, bool, int]
) -> NodeEvaluation:
    """Evaluate a chunk in a worker process."""
    return evaluate_nodes(enclosure, *task)
