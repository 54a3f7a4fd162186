"""Compilation of the stiff engine's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that numba compiles on the first call, and caches on disk.

    A product and a sum may be rounded together. Sums may not be reordered: the order would depend
    on inlining by the compiler, so that the compiling process would get other digits than those
    that load the cached code.
    """
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath={"contract"},
    )
    return compile_function(function)
