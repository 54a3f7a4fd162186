"""The log of all attempts: Python's standard logging, under the name ``odefit``.

Nothing is shown unless requested by ``odefit fit --log FILE``, or by a handler for
``logging.getLogger("odefit")``. Workers log nothing; their results are logged on arrival.
"""

from __future__ import annotations

import logging
import math

from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.methods.estimate import Start, Status

LOGGER = logging.getLogger("odefit")  # the logger of the whole package

LOGGER.addHandler(logging.NullHandler())


def log_start(method: str, start: Start) -> None:
    """Log the end of a start; a failed start is a warning."""
    level = logging.WARNING if start.status is Status.FAILED else logging.INFO
    LOGGER.log(
        level,
        "%s, start %d: %s, objective %.6g, %s, %.3g s: %s",
        method,
        start.index,
        start.status.value,
        start.objective,
        counted(start.evaluations, "evaluation"),
        start.seconds,
        start.message,
    )


def failed_start(index: int, vector: Array, error: Exception, seconds: float = 0.0) -> Start:
    """Return a start whose search failed with an exception, and log the traceback.

    It began at `vector`, shape (n,), NaN if unknown.
    """
    LOGGER.error("start %d failed", index, exc_info=error)
    message = f"the search failed: {type(error).__name__}: {error}"
    return Start(index, vector, vector, math.inf, Status.FAILED, message, 0, seconds, math.inf)
