"""Limits for all integrations of a thread: a cut-off, and an amount of work.

A search checks between two evaluations whether to stop. One trajectory may take unacceptably long,
for example if steps become tiny. So the engines check a flag while they integrate; the caller of a
search sets it from another thread, some time after the search should have stopped.

Results that must be the same on every computer cannot be limited by seconds. So work is counted in
operations, of which a computer does some 50 millions a second. Steps of integrations count by their
predicted costs (:mod:`odefit.simulation.engines.steps`), and the analysis of equations counts its
own operations (:mod:`odefit.structure.series.deadline`). All work of this thread is counted,
whatever its purpose.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from odefit.common.context_values import holding

REASON = "the integration was stopped because the search had to end"
"""The reason of a trajectory that was cut off."""


class CutOffError(Exception):
    """Raised if the cut-off interrupts work that is not essential; see :class:`CutOff`."""


@dataclass(frozen=True, eq=False)
class CutOff:
    """A flag that is true if integrations are to stop now."""

    # One number, which compiled integrators check: nonzero if they are to stop.
    flag: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, dtype=np.uint8))
    # Whether an evaluation after the cut-off raises :class:`CutOffError`. Otherwise it is a failure
    # with its reason, as the searches expect it.
    raising: bool = False

    @property
    def reached(self) -> bool:
        """True if integrations are to stop now."""
        return bool(self.flag[0])

    def now(self) -> None:
        """Let all integrations stop."""
        self.flag[0] = 1

    def as_error(self) -> CutOff:
        """Return the same cut-off in the form that raises an error."""
        return CutOff(self.flag, True)


NEVER = CutOff()  # no cut-off

_cut_off: ContextVar[CutOff] = ContextVar("cut_off", default=NEVER)


def cut_off() -> CutOff:
    """Return the cut-off in force here."""
    return _cut_off.get()


def cutting_off(by: CutOff) -> AbstractContextManager[None]:
    """Apply a cut-off to all integrations of this thread within the block."""
    return holding(_cut_off, by)


NANOSECONDS = 20.0  # nanoseconds that one operation takes


class CountedSeconds(float):
    """A limit in seconds of a reference computer, with the same effect on every computer.

    The reference computer does 50 million operations a second. It is the default where users may
    give seconds of the clock.
    """

    @property
    def operations(self) -> float:
        """The number of operations in that time."""
        return self * 1e9 / NANOSECONDS


class WorkLimit(threading.Event):
    """An event that is set after an amount of work, or when another event is set.

    Another event, `also`, has the same effect.
    """

    def __init__(self, operations: float, also: threading.Event | None = None) -> None:
        super().__init__()
        self.operations = operations
        self.spent = 0.0
        self._also = also

    def is_set(self) -> bool:
        """Return whether the work is done, or the other event is set."""
        done = self.spent >= self.operations or super().is_set()
        return done or (self._also is not None and self._also.is_set())


_work_limit: ContextVar[WorkLimit | None] = ContextVar("work", default=None)


def work_limit() -> WorkLimit | None:
    """Return the limit of work in force here, if there is one."""
    return _work_limit.get()


def count_work(operations: float) -> None:
    """Count work of this thread towards the limit in force, if there is one."""
    limit = _work_limit.get()
    if limit is not None:
        limit.spent += operations


def counting(limit: WorkLimit) -> AbstractContextManager[None]:
    """Count all work of this thread within the block."""
    return holding(_work_limit, limit)
