"""Which of all solutions of a square system are indistinguishable, and how many values they have.

A square system takes as many Taylor coefficients as there are unknowns, and most of its d
solutions differ in the next ones. The k that do not differ from the first are indistinguishable
from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from odefit.problem.arrays import BoolArray, ComplexArray
from odefit.structure.comparison import OutputComparison
from odefit.structure.homotopy.distinct import SAME_SOLUTION
from odefit.structure.homotopy.monodromy import GenericSolutions
from odefit.structure.square import SquareSystem


@dataclass(frozen=True, eq=False)
class SolutionCount:
    """How many solutions of a square system are indistinguishable from the first.

    Attributes
    ----------
    indistinguishable
        Which of the d solutions agree with the first in all derivatives, shape (d,).
    values
        For each algebraic unknown, the number of distinct values among these.
    """

    indistinguishable: BoolArray
    values: dict[str, int]

    @property
    def total(self) -> int:
        """The number k of indistinguishable solutions."""
        return int(self.indistinguishable.sum())

    @property
    def spurious(self) -> int:
        """The number d - k of solutions that the next derivatives rule out."""
        return len(self.indistinguishable) - self.total


def count_solutions(square: SquareSystem, generic: GenericSolutions) -> SolutionCount:
    """Count the solutions of a square system that are indistinguishable from the first."""
    compare = OutputComparison(square, generic.parameters)
    coefficients = compare.coefficients(generic.solutions)
    equal = compare.equal(coefficients[0], coefficients)
    chosen = generic.solutions[equal]
    return SolutionCount(equal, distinct_values(square, chosen, generic.parameters))


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
