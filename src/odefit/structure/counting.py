"""Which of all solutions of a square system are structural, and how many values unknowns have.

A square system takes as many Taylor coefficients as there are unknowns, and most of its d
solutions differ in the next ones. The k that do not are the structural solutions: no data can
tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import BoolArray, ComplexArray
from odefit.structure.comparison import Comparison
from odefit.structure.homotopy.monodromy import GenericSolutions
from odefit.structure.square import SquareSystem

SAME = 1e-6
"""Relative difference up to which two solutions, or two values of an unknown, are one."""


@dataclass(frozen=True, eq=False)
class SolutionCount:
    """What the solutions of a square system are.

    Attributes
    ----------
    structural
        Which of the d solutions agree with the first in all derivatives, shape (d,).
    values
        By algebraic unknown, how many values it has among these.
    """

    structural: BoolArray
    values: dict[str, int]

    @property
    def total(self) -> int:
        """The number k of structural solutions."""
        return int(self.structural.sum())

    @property
    def spurious(self) -> int:
        """The number d - k of those that the next derivatives rule out."""
        return len(self.structural) - self.total


def count_solutions(square: SquareSystem, generic: GenericSolutions) -> SolutionCount:
    """Which of all solutions of a square system are structural."""
    compare = Comparison(square, generic.parameters)
    jets = compare.jets(generic.solutions)
    structural = compare.equal(jets[0], jets)
    chosen = generic.solutions[structural]
    return SolutionCount(structural, distinct_values(square, chosen, generic.parameters))


def distinct_values(
    square: SquareSystem, solutions: ComplexArray, parameters: ComplexArray
) -> dict[str, int]:
    """By unknown of the system, the number of its distinct values among `solutions`."""
    everything = square.everything(solutions, np.repeat(parameters[None], len(solutions), axis=0))
    counts = {}
    for name, column in zip(square.system.names, everything.T, strict=True):
        seen: list[complex] = []
        scale = np.abs(column).max(initial=0.0)
        for value in column:
            if all(abs(value - s) > SAME * max(abs(value), abs(s), 1e-6 * scale) for s in seen):
                seen.append(value)
        counts[name] = len(seen)
    return counts


def distinct_rows(points: ComplexArray) -> int:
    """The number of distinct rows."""
    seen: list[ComplexArray] = []
    for point in points:
        if not seen or index_of(point, seen) is None:
            seen.append(point)
    return len(seen)


def index_of(point: ComplexArray, known: list[ComplexArray]) -> int | None:
    """The number of a solution among those that are known."""
    every = np.array(known)
    scale = np.maximum(np.abs(every), np.abs(point)) + 1e-10
    near = (np.abs(every - point) / scale).max(axis=1)
    best = int(near.argmin())
    return best if near[best] < SAME else None
