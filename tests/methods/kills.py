"""Work that is killed after each of its writes, as by SIGKILL, but in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from odefit.methods.running import checkpoint
from odefit.methods.running.checkpoint import Checkpoint

T = TypeVar("T")


class Killed(BaseException):
    """Stands for the end of the process."""


def killed_again_and_again(
    work: Callable[[], T], writes: int = 1, most: int = 200
) -> tuple[T, int]:
    """Run `work` until it has written so often, and again, until it ends.

    Returns
    -------
    What it returned at last, and how often it was killed before.
    """
    transaction = Checkpoint._transaction
    left = writes

    def counted(self: Checkpoint, *arguments: Any, **options: Any) -> bool:
        nonlocal left
        if left == 0:
            return False  # a process that is dead writes nothing
        done = transaction(self, *arguments, **options)
        left -= 1
        if left == 0:
            raise Killed
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "_transaction", counted)
        patch.setattr(checkpoint, "WRITE_RATIO", 0.0)
        for kills in range(most):
            left = writes
            try:
                return work(), kills
            except Killed:
                continue
    raise AssertionError("the work does not come to an end")
