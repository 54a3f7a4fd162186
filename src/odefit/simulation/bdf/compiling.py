"""Compilation of the stiff engine's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that numba compiles when it is first called, and keeps on disk.

    Sums may be reordered, but NaN and infinities keep their meaning.
    """
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath={"contract", "reassoc", "nsz", "arcp"},
    )
    return compile_function(function)
