"""Ranks and trajectories with many digits: part of `special_starts.py`."""

from __future__ import annotations

from typing import Any

import mpmath

DIGITS = 50  # decimal digits of the second look


def rank_of(rows: list[list[Any]]) -> int:
    """Return the rank of a matrix of many digits, by elimination with full pivoting."""
    left = [list(row) for row in rows]
    found, width = 0, len(rows[0]) if rows else 0
    tiny = mpmath.mpf(10) ** (-DIGITS // 2)
    columns = list(range(width))
    while columns and left:
        sizes = [(abs(row[k]), i, k) for i, row in enumerate(left) for k in columns]
        size, i, k = max(sizes)
        if size <= tiny:
            break
        pivot = left.pop(i)
        columns.remove(k)
        found += 1
        for row in left:
            factor = row[k] / pivot[k]
            for c in columns:
                row[c] -= factor * pivot[c]
    return found


def extrapolated(rate: Any, z: list[Any], length: Any) -> list[Any]:
    """Return the state after a step, by Gragg's method and extrapolation (Bulirsch and Stoer)."""
    table: list[list[list[Any]]] = []
    first = rate(z)
    tiny = mpmath.mpf(10) ** (-DIGITS + 8)
    for j in range(1, 30):
        steps = 2 * j
        h = length / steps
        before, now = z, [a + h * b for a, b in zip(z, first, strict=True)]
        for _ in range(steps - 1):
            slopes = rate(now)
            before, now = now, [a + 2 * h * b for a, b in zip(before, slopes, strict=True)]
        slopes = rate(now)
        smooth = [(a + b + h * c) / 2 for a, b, c in zip(before, now, slopes, strict=True)]
        row = [smooth]
        for k in range(1, j):
            ratio = (mpmath.mpf(j) / (j - k)) ** 2 - 1
            row.append(
                [a + (a - b) / ratio for a, b in zip(row[-1], table[-1][k - 1], strict=True)]
            )
        if table:
            gap = [abs(a - b) <= tiny * abs(a) for a, b in zip(row[-1], table[-1][-1], strict=True)]
            if all(gap):
                return row[-1]
        table.append(row)
    return table[-1][-1]
