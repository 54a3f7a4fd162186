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

    def check(self) -> None:
        """Raise :class:`UnfinishedError` if the moment has passed."""
        if (self._end is not None and time.monotonic() > self._end) or self._stop():
            raise UnfinishedError("the time allowed has passed")
