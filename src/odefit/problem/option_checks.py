"""Checks of the numbers that the options of methods take."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from odefit.problem.errors import InputError


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
