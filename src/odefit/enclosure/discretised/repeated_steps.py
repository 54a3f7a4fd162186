"""Many equal steps of a scheme at once, where the equations are linear: powers of an affine map."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.enclosure.affine_maps import AffinePowers
from odefit.enclosure.arithmetic.taylor_models import TaylorModel
from odefit.enclosure.discretised.krawczyk import KrawczykSolver, PointEnclosure
from odefit.enclosure.discretised.step_equations import StepEquations

MIN_REPEATS = 24
"""Number of equal steps from which on powers of their map pay."""

EQUALITY_TOLERANCE = 1e-11
"""Relative difference of the coefficients up to which steps count as equal.

The difference itself is accounted for by the enclosure.
"""

MAX_COMPARED = 8
"""Number of different steps, the last ones, that a step is compared with."""


@dataclass(frozen=True, eq=False)
class StepSequence:
    """Equal steps, of the kind of one number, of which only the last point is needed later."""

    count: int
    kind: int


class RepeatedSteps:
    """The sequences of equal steps in a segment that are long enough for powers of their map.

    `last_use` is the number of the last step that needs each point. `different` has one step of
    each kind, `differences` the largest relative difference of coefficients within each kind, and
    `sequences` are by number of their first step.
    """

    def __init__(self, steps: Sequence[StepEquations], last_use: Mapping[int, int]) -> None:
        self.different: list[StepEquations] = []
        self.differences: list[float] = []
        self.sequences: dict[int, StepSequence] = {}
        kinds: list[int | None] = []
        for number, step in enumerate(steps):
            later = any(last_use.get(k, 0) > number for k in step.new[:-1])
            end = last_use.get(step.new[-1], 0) > number + 1
            single = later or end or not step.one_step
            kinds.append(None if single else self._kind(step))
        number = 0
        for kind, equal in itertools.groupby(kinds):
            count = len(list(equal))
            if kind is not None and kinds.count(kind) >= MIN_REPEATS:
                self.sequences[number] = StepSequence(count, kind)
            number += count

    def _kind(self, step: StepEquations) -> int:
        """Return the number of the different step that a step is equal to."""
        count = len(self.different)
        for kind in range(count - 1, max(count - MAX_COMPARED, 0) - 1, -1):
            difference = self.different[kind].difference(step)
            if difference <= EQUALITY_TOLERANCE:
                self.differences[kind] = max(self.differences[kind], difference)
                return kind
        self.different.append(step)
        self.differences.append(0.0)
        return count


def step_powers(solver: KrawczykSolver, step: StepEquations) -> AffinePowers:
    """Return the powers of the map of a step.

    The map is found from the solutions that start at zero and at each unit vector: the solver has
    ``(n + 1) B`` boxes, all boxes n + 1 times one after the other.
    """
    n, equations = solver.states, solver.rhs
    boxes = solver.boxes // (n + 1)
    c = np.zeros((n, len(equations.monomials), (n + 1) * boxes))
    for j in range(n):
        c[j, 0, j * boxes : (j + 1) * boxes] = 1.0
    start = PointEnclosure(c, np.zeros((n, (n + 1) * boxes)))
    found = solver.step(step, start).models(equations.monomials)

    def end(i: int, j: int) -> TaylorModel:
        """Return state i of the solution from unit vector j, or from zero for j = n."""
        return found[i].take(np.arange(j * boxes, (j + 1) * boxes))

    shift = [end(i, n) for i in range(n)]
    places = np.argwhere(equations.dependence).tolist()
    matrix = {(i, j): end(i, j) - shift[i] for i, j in places}
    return AffinePowers.of(equations.groups, matrix, shift)
