"""The number of cores that work of this thread may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_cores: ContextVar[int] = ContextVar("cores", default=1)


def cores() -> int:
    """Return the number of threads that may work at the same time for this one, itself included."""
    return _cores.get()


@contextmanager
def using_cores(count: int) -> Iterator[None]:
    """Let work of this thread use that many cores within the block."""
    token = _cores.set(count)
    try:
        yield
    finally:
        _cores.reset(token)
