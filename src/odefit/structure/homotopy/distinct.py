"""Distinct numerical solutions, and distinct values of their unknowns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odefit.common.arrays import ComplexArray
from odefit.structure.homotopy.square import SquareSystem

SAME_SOLUTION = 1e-6
"""Relative difference up to which two solutions, or two values of an unknown, are one."""


def index_of(point: ComplexArray, known: Sequence[ComplexArray]) -> int | None:
    """Return the number of the known solution that `point` is, or None if it is a new one."""
    if not len(known):
        return None
    every = np.array(known)
    scale = np.maximum(np.abs(every), np.abs(point)) + 1e-10
    difference = (np.abs(every - point) / scale).max(axis=1)
    nearest = int(difference.argmin())
    return nearest if difference[nearest] < SAME_SOLUTION else None


def distinct_rows(points: ComplexArray) -> int:
    """Return the number of distinct rows."""
    seen: list[ComplexArray] = []
    for point in points:
        if index_of(point, seen) is None:
            seen.append(point)
    return len(seen)


def distinct_values(
    square: SquareSystem, solutions: ComplexArray, parameters: ComplexArray
) -> dict[str, int]:
    """Return the number of distinct values of each unknown of the system among `solutions`."""
    counts = {}
    unknowns = square.all_unknowns(solutions, parameters)
    for name, column in zip(square.system.names, unknowns.T, strict=True):
        seen: list[complex] = []
        scale = 1e-6 * np.abs(column).max(initial=0.0)
        for value in column:
            size = max(abs(value), scale)
            if all(abs(value - s) > SAME_SOLUTION * max(size, abs(s)) for s in seen):
                seen.append(value)
        counts[name] = len(seen)
    return counts
