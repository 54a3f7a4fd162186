"""Numbers that mean a missing value, such as -999, far from the others of their column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.inputs.issues import Issues

FAR = 5.0
"""Least distance of a code for missing data from the other values, in units of their range."""

ENORMOUS, MANY_TIMES = 1e10, 1e6
"""A value this many times larger than all others need not be a common code."""

_CODES = frozenset({-999.25, -32768.0, 32767.0, 65535.0, 2147483647.0, -2147483648.0})
_BELOW = re.compile(r"-(9+(\.9+)?|777+|888+)\Z")
_ABOVE = re.compile(r"(999+|99+\.9+)\Z")


def sentinels(values: Array) -> tuple[list[tuple[float, int]], Array]:
    """Return values that seem to mean missing data with their numbers, and all others."""
    finite = values[np.isfinite(values)]
    unique, counts = np.unique(finite, return_counts=True)
    usual = np.array([not _is_code(u) for u in unique], dtype=bool)
    if not usual.any():
        return [], finite
    sizes = np.sort(np.abs(unique[usual]))
    if sizes[-1] >= ENORMOUS and len(sizes) > 1 and sizes[-1] > MANY_TIMES * sizes[-2]:
        usual &= np.abs(unique) < sizes[-1]
    low, high = unique[usual].min(), unique[usual].max()
    suspects = [
        (float(u), int(count))
        for u, count in zip(unique[~usual], counts[~usual], strict=True)
        if _is_far(float(u), float(low), float(high))
    ]
    return suspects, finite[~np.isin(finite, [u for u, _ in suspects])]


def _is_code(value: float) -> bool:
    text = f"{value:.10g}"
    return value in _CODES or bool(_BELOW.match(text) or _ABOVE.match(text))


def _is_far(value: float, low: float, high: float) -> bool:
    """Return whether a code lies far from a range, or below values that are never negative."""
    size = max(abs(low), abs(high))
    if value < low:
        if low >= 0.0:
            return value <= -99.0 or -value >= high
        return low - value > FAR * (high - low) and -value > 2.0 * size
    return value - high > FAR * (high - low) and value > 2.0 * size


def point_out_sentinels(columns: Mapping[str, Any], place: str, issues: Issues) -> None:
    """Warn of each column of numbers in which some seem to stand for missing values."""
    for name, column in columns.items():
        try:
            values = np.asarray(column, dtype=float).ravel()
        except (TypeError, ValueError):
            continue  # reading reports it
        suspects, others = sentinels(values)
        for value, count in suspects:
            issues.warn(
                f"{place}, column {name}",
                f"{value:.10g} occurs in {count} of {len(values[np.isfinite(values)])} values, far "
                f"from all others ({others.min():g} to {others.max():g}); if it means that nothing "
                "was measured, leave these fields empty",
            )
