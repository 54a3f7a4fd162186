"""Compilation of kernels whose rounding is bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": False,
}
"""Options of the compiler. Every operation is rounded as IEEE 754 says, and divisions by zero give
infinities, as in NumPy."""

INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options for functions without an interface to Python, whose compilation takes a third less."""


def rigorous(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that numba compiles on the first call, and caches on disk.

    Only other compiled functions may call it.
    """
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(**INNER)
    return compile_function(function)


def called_from_python(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function like :func:`rigorous` makes it, which Python may call as well."""
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(**OPTIONS)
    return compile_function(function)
