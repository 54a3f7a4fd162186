"""The conditions of one evaluation, divided among several threads of this process.

Compiled kernels let other threads run. Each thread has maps of its own, since integrators serve one
thread at a time. The values are those of a single thread, whichever thread integrates a unit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING

from odefit.common.arrays import Array
from odefit.common.cores import cores, using_cores
from odefit.simulation.engines.cut_off import work_limit
from odefit.simulation.engines.failure import Failure

if TYPE_CHECKING:
    from odefit.problem.vector_field import VectorField
    from odefit.simulation.engines.engine_choice import EngineChoice
    from odefit.simulation.engines.engines import Engines
    from odefit.simulation.trajectories.unit_outcome import Integrate, UnitOutcome

SHORTEST_EVALUATION = 0.01
"""Smallest average duration in seconds of the evaluations of a map for which threads save time."""

LEAST_SECONDS = 1.0
"""Duration of all evaluations of a map before other threads make maps of their own, which takes
about as long as an evaluation with its compilation."""

PARTS_PER_THREAD = 3
"""Number of parts for each thread into which the units left are divided when one is taken.

Large parts share what their conditions have in common; small ones at the end leave no thread idle.
"""


def lets_threads_run(field: VectorField, engines: Engines) -> bool:
    """Return whether compiled kernels integrate, during which other threads of Python run."""
    return not field.algebraic and engines.setting != "casadi"


class SeveralThreads:
    """Integrates the units of evaluations by this thread and others.

    `make` makes the integration of the same units for a further thread.
    """

    def __init__(self, integrate: Integrate, make: Callable[[], Integrate]) -> None:
        self._integrate, self._make = integrate, make
        self._others: list[Integrate] = []
        self._seconds, self._calls = 0.0, 0

    def count(self, seconds: float) -> None:
        """Count an evaluation and its duration."""
        self._seconds += seconds
        self._calls += 1

    @property
    def pays(self) -> bool:
        """True if other threads may be used here, and are expected to save time."""
        if cores() < 2 or self._seconds < LEAST_SECONDS or work_limit() is not None:
            return False
        return self._seconds > SHORTEST_EVALUATION * self._calls

    def __call__(
        self, numbers: Sequence[int], vector: Array, choices: Sequence[EngineChoice]
    ) -> Mapping[int, UnitOutcome]:
        """Return the outcomes of units by number, of all before the first failure."""
        count = min(cores(), len(numbers))
        while len(self._others) < count - 1:
            self._others.append(self._make())
        parts = deque(parts_of(list(numbers), count))
        outcomes: dict[int, UnitOutcome] = {}

        def work(integrate: Integrate) -> None:
            with using_cores(1):
                while parts:
                    try:
                        part = parts.popleft()
                    except IndexError:  # another thread has taken the last one
                        return
                    done = integrate(part, vector, choices)
                    outcomes.update(done)
                    # Those before it are done or under way: they are taken in order.
                    if any(isinstance(one.trajectories, Failure) for one in done.values()):
                        parts.clear()

        pool = threads(cores() - 1)
        others = self._others[: count - 1]
        futures = [pool.submit(copy_context().run, work, other) for other in others]
        try:
            work(self._integrate)
        finally:
            parts.clear()
            errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error
        return outcomes


def parts_of(numbers: list[int], threads: int) -> Iterator[list[int]]:
    """Yield the units in consecutive parts that become smaller.

    Examples
    --------
    >>> [len(part) for part in parts_of(list(range(30)), 2)]
    [5, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    while numbers:
        size = max(len(numbers) // (PARTS_PER_THREAD * threads), 1)
        yield numbers[:size]
        numbers = numbers[size:]


@cache
def threads(count: int) -> ThreadPoolExecutor:
    """Return the threads of this process that help others, which wait between evaluations."""
    return ThreadPoolExecutor(count, thread_name_prefix="odefit-conditions")
