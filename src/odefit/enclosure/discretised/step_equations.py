"""The equations of a scheme, divided into as few as determine one or more points of the mesh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.mesh import Segment


@dataclass(frozen=True, eq=False)
class StepEquations:
    """Equations ``A x = B f(x)`` of points that have to be solved for together.

    They are those of one finite element of a collocation scheme, or of one step or a few steps of
    another scheme. `old` points are known before. Coefficients have shape (rows, points).
    """

    old: list[int]
    new: list[int]
    a_old: Array
    a_new: Array
    b_old: Array
    b_new: Array

    @property
    def explicit(self) -> bool:
        """Whether each point follows from those before: then there is only one solution."""
        return not (np.triu(self.a_new, 1).any() or np.triu(self.b_new).any())

    @property
    def one_step(self) -> bool:
        """Whether the new points follow from the last point before them alone."""
        return self.old == [self.new[0] - 1]

    def difference(self, other: StepEquations) -> float:
        """Return the largest relative difference of the coefficients.

        It is infinite where different coefficients are zero.
        """
        largest = 0.0
        for name in ("a_old", "a_new", "b_old", "b_new"):
            a, b = getattr(self, name), getattr(other, name)
            if a.shape != b.shape or ((a == 0) != (b == 0)).any():
                return np.inf
            used = a != 0
            largest = max(largest, float((np.abs(b - a)[used] / np.abs(a)[used]).max(initial=0.0)))
        return largest


def step_equations(segment: Segment) -> Iterator[StepEquations]:
    """Yield the equations of a segment in the order of time.

    Raises InputError if the scheme's equations do not determine its points step by step.
    """
    if len(segment.mesh) < 2:
        return
    relations = segment.relations
    a, b = relations.states, relations.rhs
    rows = a.shape[0]
    last = np.zeros(rows, dtype=np.intp)
    used: list[set[int]] = []
    for row in range(rows):
        columns = set(a.indices[a.indptr[row] : a.indptr[row + 1]].tolist())
        columns |= set(b.indices[b.indptr[row] : b.indptr[row + 1]].tolist())
        used.append(columns)
        last[row] = max(columns)
    order = np.argsort(last, kind="stable")
    done, begin = 0, 0
    for boundary in relations.boundary[1:].tolist():
        own = order[begin : int(np.searchsorted(last[order], boundary, side="right"))]
        if len(own) != boundary - done:
            continue
        new = list(range(done + 1, boundary + 1))
        old = sorted({c for row in own for c in used[row]} - set(new))
        parts = [m[own][:, points].toarray() for m in (a, b) for points in (old, new)]
        yield StepEquations(old, new, *parts)
        done, begin = boundary, begin + len(own)
    if done + 1 < len(relations.times):
        raise InputError(
            "BranchAndBound, scheme: its equations do not determine its points step by step; "
            "take one of those that are named"
        )
