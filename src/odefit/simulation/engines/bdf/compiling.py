"""Compilation of the engines' kernels."""

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
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
}
"""Options of the compiler.

A product and a sum may be rounded together. Sums may not be reordered: the order would depend on
inlining by the compiler, so that the compiling process would get other digits than those that load
the cached code."""

INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True}
"""Options for functions without an interface to Python, which are compiled faster."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that numba compiles on the first call, and caches on disk.

    Only other compiled functions may call it.

    On a new machine the user waits for the compiler. Some code takes seconds to compile. An
    assignment to a slice brings a message for wrong shapes along. Calls of one function with a
    literal number and with a variable compile it twice.
    """
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(**INNER)
    return compile_function(function)


def called_from_python(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function like :func:`compiled` makes it, which Python may call as well."""
    compile_function: Callable[[Callable[P, R]], Callable[P, R]] = numba.njit(**OPTIONS)
    return compile_function(function)
