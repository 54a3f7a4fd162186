"""Values that hold for the work of one thread within a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def holding(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a variable another value within the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
