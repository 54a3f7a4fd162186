"""Compilation of the stiff engine's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that numba compiles when it is first called, and keeps on disk.

    A product and a sum may be rounded together. Sums may not be reordered: how they are depends on
    what the compiler has inlined, so that the process that compiles would get other digits than
    those that load what it has kept.
    """
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath={"contract"},
    )
    return compile_function(function)
