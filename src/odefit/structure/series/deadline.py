"""Limits of long computations, on their work and on time, that these check.

Work is counted in operations on residues or Taylor coefficients inside arrays, of which a computer
does some 50 millions a second. What is done one by one in Python counts as so many operations as
take as long (:data:`PER_TERM`, :data:`PER_CALL`). So what is given up for its work is given up on
every machine; time is for limits that users give.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from odefit.simulation.engines.cut_off import CountedSeconds, count_work

PER_TERM = 60
"""Operations that take as long as one on a term of a polynomial that is kept by its monomials."""

PER_ENTRY = 300
"""Operations that take as long as the derivative of one entry of a tape."""

PER_CALL = 400
"""Operations that take as long as a call of an array function with next to nothing to do."""


class UnfinishedError(RuntimeError):
    """A computation was given up: its limit was reached, or the memory would not suffice."""


class Deadline:
    """A limit at which a computation is given up.

    The limit is `seconds` from now, `work` operations, or that `stop` returns True, whichever comes
    first; `within` is a larger computation whose limit counts too. `spent` counts operations.
    """

    def __init__(
        self,
        seconds: float | None = None,
        stop: Callable[[], bool] = lambda: False,
        work: float | None = None,
        within: Deadline | None = None,
    ) -> None:
        if isinstance(seconds, CountedSeconds):
            work, seconds = seconds.operations, None
        self._end = None if seconds is None else time.monotonic() + seconds
        self._stop = stop
        self._within = within
        self.work = work
        self.spent = 0.0

    def spend(self, operations: float) -> None:
        """Count work that is done, or about to be done."""
        count_work(operations)
        self._add(operations)

    def _add(self, operations: float) -> None:
        self.spent += operations
        if self._within is not None:
            self._within._add(operations)

    @property
    def passed(self) -> bool:
        """Return whether the limit was reached."""
        return (
            (self.work is not None and self.spent >= self.work)
            or (self._end is not None and time.monotonic() > self._end)
            or self._stop()
            or (self._within is not None and self._within.passed)
        )

    def part(self, share: float, work: float) -> Deadline:
        """Return the limit of a part, which may use a share of the time and work that are left.

        It may use `work` operations where there is no limit at all.
        """
        seconds = None if self._end is None else share * max(self._end - time.monotonic(), 0.0)
        if self.work is not None:
            work = share * max(self.work - self.spent, 0.0)
        limited = seconds is None or self.work is not None
        return Deadline(seconds, work=work if limited else None, within=self)

    def narrow(self, work: float) -> None:
        """Allow no more than `work` operations from now on."""
        left = self.spent + work
        self.work = left if self.work is None else min(self.work, left)

    def check(self) -> None:
        """Raise :class:`UnfinishedError` if the limit was reached."""
        if self.passed:
            raise UnfinishedError("the work or the time allowed was used up")


NEVER = Deadline()
"""The limit of a computation that has none."""
