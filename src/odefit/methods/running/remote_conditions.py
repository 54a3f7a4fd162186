"""The conditions of one evaluation, distributed over several workers if there are few starts.

Workers hold the compiled problem, receive vectors of unknowns, and return trajectories. The values
are the same as those of one process, see :mod:`odefit.simulation.trajectories.conditions`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.running.control import Control
from odefit.methods.running.dispatch import dispatched
from odefit.methods.running.worker import Work
from odefit.methods.running.workers import Workers
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.trajectories.several_threads import lets_threads_run
from odefit.simulation.trajectories.unit_outcome import UnitOutcome

TASKS_PER_WORKER = 3
"""Number of tasks of an evaluation for each worker, as some conditions take longer."""

SHORTEST_EVALUATION = 0.05
"""Smallest average duration of an evaluation in seconds for which workers save time."""


@contextmanager
def conditions_over_workers(forward: ForwardMap, control: Control) -> Iterator[None]:
    """Let workers integrate the conditions of the evaluations of `forward`, if that saves time.

    In this process threads integrate them, with less effort, where there are compiled kernels.
    """
    if control.executor is None and lets_threads_run(forward.field, forward.engines):
        yield
        return
    with Workers(control) as workers:
        if forward.units < 2 or workers.number < 2:
            yield
            return
        forward.integrate_elsewhere(RemoteConditions(forward, workers))
        try:
            yield
        finally:
            forward.integrate_elsewhere(None)


class RemoteConditions:
    """Integrates the units of evaluations by workers.

    The workers are used once evaluations have taken longer than :data:`SHORTEST_EVALUATION`
    seconds.
    """

    def __init__(self, forward: ForwardMap, workers: Workers) -> None:
        self._workers = workers
        self._work = Work(partial(ForwardMap, *forward.arguments), _integrate)
        self._calls = 0
        self._pays = False
        self._began = self._counted = time.perf_counter()

    def __call__(
        self,
        numbers: Sequence[int],
        vector: Array,
        choices: Sequence[EngineChoice],
        sensitivities: bool,
    ) -> Mapping[int, UnitOutcome]:
        """See :class:`odefit.simulation.trajectories.conditions.Elsewhere`."""
        now = time.perf_counter()
        self._workers.count(now - self._counted)
        self._counted = now
        if self._calls and (now - self._began) / self._calls > SHORTEST_EVALUATION:
            self._pays = True
        self._calls += 1
        if not self._pays or self._workers.executor() is None:
            return {}
        count = min(len(numbers), TASKS_PER_WORKER * self._workers.number)
        parts = [part.tolist() for part in np.array_split(np.array(numbers), count)]
        done = dispatched(
            parts,
            lambda part: (self._work, (part, vector, choices, sensitivities)),
            lambda _: {},  # without workers the units are integrated by the caller
            self._workers,
            Control(),
            largest=1,
            late=lambda _: cut_off().reached,
        )
        integrated: dict[int, UnitOutcome] = {}
        waiting, failing = set(range(len(parts))), len(parts)
        with closing(done):
            for position, outcome in done:
                waiting.discard(position)
                if outcome["error"] is None:  # otherwise its units are integrated here
                    integrated.update(outcome["value"])
                    if any(
                        isinstance(end.trajectories, Failure) for end in outcome["value"].values()
                    ):
                        failing = min(failing, position)
                # After a failure only the parts before it matter.
                if failing < min(waiting, default=len(parts)):
                    break
        return integrated


def _integrate(
    forward: ForwardMap, task: tuple[list[int], Array, Sequence[EngineChoice], bool]
) -> dict[int, UnitOutcome]:
    """Integrate some units in a worker process, which keeps the compiled model."""
    return forward.integrate_units(*task)
