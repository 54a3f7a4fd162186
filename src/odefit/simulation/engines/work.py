"""The work of integrations, counted while something runs, and limits of it.

What is to be the same on every computer cannot be limited by seconds. So work is counted in
operations, of which a computer does some 50 millions a second: steps of integrations count by what
they are predicted to cost (:mod:`odefit.simulation.engines.steps`), and the study of equations
counts its own (:mod:`odefit.structure.series.deadline`). All work of this thread is noted, whoever
does it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NANOSECONDS = 20.0  # nanoseconds that one operation takes


class WorkLimit(threading.Event):
    """An event that is set once so much work was done; or another one is set.

    `operations`: the number of operations; `also`: another event that has the same effect; None for
    none. `spent`: operations that were done so far.
    """

    def __init__(self, operations: float, also: threading.Event | None = None) -> None:
        super().__init__()
        self.operations = operations
        self.spent = 0.0
        self._also = also

    def is_set(self) -> bool:
        """Return whether the work was done, or the other event is set."""
        done = self.spent >= self.operations or super().is_set()
        return done or (self._also is not None and self._also.is_set())


_current: ContextVar[WorkLimit | None] = ContextVar("work", default=None)


def count_work(operations: float) -> None:
    """Count work of this thread for the limit that is in force, if there is one."""
    limit = _current.get()
    if limit is not None:
        limit.spent += operations


@contextmanager
def counting(limit: WorkLimit) -> Iterator[None]:
    """Count all work of this thread within the block."""
    token = _current.set(limit)
    try:
        yield
    finally:
        _current.reset(token)
