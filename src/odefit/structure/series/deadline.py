"""Limits of long computations on their work and time, which the computations check.

Work is counted in operations on residues or Taylor coefficients inside arrays, of which a computer
does some 50 millions a second. Work done item by item in Python counts as the number of operations
that take as long (:data:`PER_TERM`, :data:`PER_CALL`). So a computation that is given up for its
work is given up on every machine; limits in time are only those of users.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from odefit.simulation.engines.cut_off import CountedSeconds, count_work

PER_TERM = 60
"""Number of operations equivalent to one on a term of a polynomial stored by monomials."""

PER_ENTRY = 300
"""Number of operations equivalent to the derivative of one entry of a tape."""

PER_CALL = 400
"""Number of operations equivalent to a call of an array function with almost no work."""


class UnfinishedError(RuntimeError):
    """A computation was given up at its limit, or because memory would not suffice."""


class Deadline:
    """A limit at which a computation is given up.

    The limit is `seconds` from now, `work` operations, or `stop` returning True, whichever comes
    first; the limit of a larger computation `within` applies as well. `spent` counts operations.
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
        """Return the limit of a part, which may use a share of the remaining time and work.

        It may use `work` operations if there is no limit at all.
        """
        seconds = None if self._end is None else share * max(self._end - time.monotonic(), 0.0)
        if self.work is not None:
            work = share * max(self.work - self.spent, 0.0)
        limited = seconds is None or self.work is not None
        return Deadline(seconds, work=work if limited else None, within=self)

    def narrow(self, work: float) -> None:
        """Limit the remaining work to `work` operations."""
        left = self.spent + work
        self.work = left if self.work is None else min(self.work, left)

    def check(self) -> None:
        """Raise :class:`UnfinishedError` if the limit was reached."""
        if self.passed:
            raise UnfinishedError("the work or the time allowed was used up")


NEVER = Deadline()
"""The limit of a computation without a limit."""
