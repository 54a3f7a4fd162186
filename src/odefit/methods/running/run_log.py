"""The log of what is tried: Python's standard logging, under the name ``odefit``.

Nothing is shown unless somebody asks for it: ``odefit fit --log FILE``, or a handler for
``logging.getLogger("odefit")``. Workers log nothing; what they return is logged where it arrives.
"""

from __future__ import annotations

import logging
import math

from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.methods.estimate import Start, Status

LOGGER = logging.getLogger("odefit")  # the logger of everything

LOGGER.addHandler(logging.NullHandler())


def log_start(method: str, start: Start) -> None:
    """Log how a start of a method has ended; one that has failed is a warning."""
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

    It began at `vector`, shape (n,), NaN where nobody knows.
    """
    LOGGER.error("start %d failed", index, exc_info=error)
    message = f"the search failed: {type(error).__name__}: {error}"
    return Start(index, vector, vector, math.inf, Status.FAILED, message, 0, seconds, math.inf)
