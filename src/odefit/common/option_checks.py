"""Checks of the numbers that options of methods and arguments of functions take."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from odefit.common.errors import InputError


def whole(value: Any, place: str, least: int = 1) -> None:
    """Refuse a value that is no whole number of at least `least`.

    Raises
    ------
    InputError
        Naming `place`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{place}: expected a whole number of at least {least}, got {value!r}")


def number(value: Any, place: str, *, least: float = -math.inf, most: float = math.inf) -> None:
    """Refuse a value that is no finite number from `least` to `most`.

    Raises
    ------
    InputError
        Naming `place`.
    """
    fine = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if fine and least <= float(value) <= most:
        return
    kind = "a finite number"
    if 0 < least < 1e-300:
        kind = "a number above 0"
    elif least > -math.inf:
        kind = f"a number of at least {least:g}"
    if most < math.inf:
        kind += f" and at most {most:g}"
    raise InputError(f"{place}: expected {kind}, got {value!r}")


def check_level(level: float) -> None:
    """Refuse a level of confidence that is none.

    Raises
    ------
    InputError
        It is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(f"level: expected a number between 0 and 1, got {level!r}")


def check_time_limit(time_limit: float | None) -> None:
    """Refuse a time limit that leaves no time; None is no limit.

    Raises
    ------
    InputError
        It is not positive.
    """
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit: expected a positive number of seconds, got {time_limit!r}")
