"""A time limit that long computations check."""

from __future__ import annotations

import time
from collections.abc import Callable


class UnfinishedError(RuntimeError):
    """A computation was given up: the time has passed, or the memory would not suffice."""


class Deadline:
    """A moment after which a computation is given up.

    Parameters
    ----------
    seconds
        Seconds from now to that moment; None for no limit.
    stop
        The computation is given up as well when this returns True.
    """

    def __init__(
        self, seconds: float | None = None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._stop = stop

    @property
    def passed(self) -> bool:
        """Whether the moment has passed."""
        return (self._end is not None and time.monotonic() > self._end) or self._stop()

    @property
    def left(self) -> float | None:
        """Seconds that are left, 0 or more; None where there is no limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise :class:`UnfinishedError` if the moment has passed."""
        if self.passed:
            raise UnfinishedError("the time allowed has passed")


NEVER = Deadline()
"""The deadline of a computation without a time limit."""
