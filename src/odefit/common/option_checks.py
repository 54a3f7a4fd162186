"""Checks of numbers in options of methods and arguments of functions."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from odefit.common.errors import InputError

LEAST_LEVEL = 1e-6
"""The smallest level of confidence: a shorter interval is lost in the rounding of its middle."""

MOST_DIGITS = 15
"""Number of digits of a whole number in a text: Python reads no number of over 4300."""


def natural_in(text: str) -> int | None:
    """Return the whole number in a text; None otherwise, or if it is far too large."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS):
        return None
    return int(digits)


def whole(value: Any, place: str, least: int = 1) -> None:
    """Raise an InputError that names `place` unless a value is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{place}: expected a whole number of at least {least}, got {value!r}")


def number(value: Any, place: str, *, least: float = -math.inf, most: float = math.inf) -> None:
    """Raise an InputError that names `place` unless a value is from `least` to `most`."""
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


def check_level(level: float, place: str = "level") -> None:
    """Refuse a level of confidence that is not between 0 and 1 or too small, by an InputError."""
    if not 0 < level < 1:
        raise InputError(f"{place}: expected a number between 0 and 1, got {level!r}")
    if level < LEAST_LEVEL:
        raise InputError(f"{place}: the smallest level is {LEAST_LEVEL:g}, got {level!r}")


def check_time_limit(time_limit: float | None) -> None:
    """Refuse a time limit that is not positive, by an InputError; None is no limit."""
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit: expected a positive number of seconds, got {time_limit!r}")
