"""The number of cores that work of this thread may use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar

from odefit.common.context_values import holding

_cores: ContextVar[int] = ContextVar("cores", default=1)


def cores() -> int:
    """Return the number of threads that may work at the same time for this one, itself included."""
    return _cores.get()


def using_cores(count: int) -> AbstractContextManager[None]:
    """Let work of this thread use that many cores within the block."""
    return holding(_cores, count)
