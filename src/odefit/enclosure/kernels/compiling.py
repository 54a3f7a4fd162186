"""Compilation of kernels whose rounding is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def rigorous(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that numba compiles on the first call, and caches on disk.

    Every operation is rounded as IEEE 754 says: the bounds count on it. Divisions by zero give
    infinities, as in NumPy.
    """
    return _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def called_from_python(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function like :func:`rigorous` makes it, which Python may call as well."""
    return _njit()(function)


def _njit(**options: bool) -> Callable[[Callable[P, R]], Callable[P, R]]:
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath=False, **options
    )
    return compile_function
