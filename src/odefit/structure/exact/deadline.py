"""A limit that long computations ask about."""

from __future__ import annotations

import time
from collections.abc import Callable


class UnfinishedError(RuntimeError):
    """The time allowed has passed, or the memory allowed would not suffice."""


class Deadline:
    """A moment after which to give up.

    Parameters
    ----------
    seconds
        From now; None for never.
    stop
        Asked as well whether to give up.
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
