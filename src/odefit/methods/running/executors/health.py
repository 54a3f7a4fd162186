"""What executors tell of themselves: how many workers they have, and whether they still work."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from typing import Any

LOOK_SECONDS = 2.0
"""Seconds between two looks at how many workers a cluster has."""

EMPTY_SECONDS = 30.0
"""Seconds without any worker after which a cluster is given up; workers that were killed are
replaced within a few."""


class Health:
    """The state of an executor.

    Parameters
    ----------
    executor
        Any executor. Of Dask's, the client knows more.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        module = type(executor).__module__.partition(".")[0]
        self._client: Any = getattr(executor, "_client", None) if module == "distributed" else None
        self._count = 0
        self._looked = -float("inf")
        self._seen = time.monotonic()

    @property
    def options(self) -> dict[str, Any]:
        """What to submit tasks with: Dask takes equal ones for one unless it is told otherwise."""
        return {} if self._client is None else {"pure": False}

    def workers(self) -> int | None:
        """Return the number of tasks that are done at the same time; None if it does not tell."""
        if self._client is None:
            for name in ("_max_workers", "num_workers"):
                count = getattr(self._executor, name, None)
                if isinstance(count, int) and count > 0:
                    return count
            return None
        self._look()
        return max(self._count, 1)

    def trouble(self) -> str:
        """Return in words why there is nothing to be expected any more; empty if there is."""
        if self._client is None:
            return ""
        if self._client.status != "running":
            return "the connection to the scheduler is lost"
        self._look()
        if self._count == 0 and time.monotonic() - self._seen > EMPTY_SECONDS:
            return f"the cluster has had no workers for {EMPTY_SECONDS:g} s"
        return ""

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS or self._client.status != "running":
            return
        self._looked = now
        try:
            self._count = sum(self._client.nthreads().values())
        except (OSError, TimeoutError):
            return  # the scheduler has gone this moment: the client will say so
        if self._count:
            self._seen = time.monotonic()
