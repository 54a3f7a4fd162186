"""How many tasks go out together: enough that sending costs little, few enough at the end."""

from __future__ import annotations

BATCH_SECONDS = 0.5
"""Seconds of work that a batch should have: sending one costs some milliseconds with Dask, and
what a worker has finished of a batch is lost with it."""

SHARE = 3.0
"""The tasks that are left, over the workers times the size of the next batch: so that no worker is
idle at the end while another has many tasks before it."""

MEMORY = 0.7
"""Weight of what was known of the time of a task, beside that of the next batch."""


def batch_size(seconds: float | None, left: int | None, workers: int) -> int:
    """Return the number of tasks of the next batch.

    Parameters
    ----------
    seconds
        Time that a task takes; None while that is not known.
    left
        Number of tasks that are left; None where that is not known.
    workers
        Number of tasks that are done at the same time.

    Examples
    --------
    >>> batch_size(0.01, 5000, 4), batch_size(0.01, 24, 4), batch_size(2.0, 5000, 4)
    (50, 2, 1)
    """
    if seconds is None:
        return 1
    size = BATCH_SECONDS / max(seconds, 1e-5)
    if left is not None:
        size = min(size, left / (SHARE * max(workers, 1)))
    return max(int(size), 1)


def updated(seconds: float | None, batch: float, count: int) -> float:
    """Return the time of a task, from what it was thought to be and from a batch of `count`."""
    mean = batch / count
    return mean if seconds is None else MEMORY * seconds + (1 - MEMORY) * mean
