"""Matrices of partial derivatives of which most are zero, as Taylor series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odefit.common.arrays import IntArray
from odefit.structure.series.deadline import NEVER, PER_TERM, Deadline
from odefit.structure.series.number_fields import MatrixSeries, Scalars
from odefit.structure.series.tape import Tape, Term


@dataclass(frozen=True, eq=False)
class SparseJacobian:
    """A matrix of partial derivatives, mostly zero; `terms` are the others, row by row."""

    shape: tuple[int, int]
    rows: IntArray
    columns: IntArray
    terms: tuple[Term, ...]

    @classmethod
    def of(
        cls,
        tape: Tape,
        terms: Sequence[Term],
        variables: Sequence[Term],
        deadline: Deadline = NEVER,
    ) -> SparseJacobian:
        """Return the derivatives of `terms` by `variables`, which are recorded on the tape."""
        found = []
        places = {variable.index: k for k, variable in enumerate(variables)}
        for i, term in enumerate(terms):
            deadline.check()
            before = len(tape.entries)
            touched = sorted(places[v] for v in tape.depends(term) if v in places)
            found += [(i, k, tape.derivative(term, variables[k])) for k in touched]
            deadline.spend(PER_TERM * (1 + len(tape.entries) - before))
        rows = np.array([f[0] for f in found], dtype=np.intp)
        columns = np.array([f[1] for f in found], dtype=np.intp)
        return cls((len(terms), len(variables)), rows, columns, tuple(f[2] for f in found))

    def series(self, v: npt.NDArray[Scalars], slot: Mapping[int, int]) -> MatrixSeries[Scalars]:
        """Return the matrix as Taylor series, from `v`, shape (orders, slots, batch), by `slot`."""
        slots = np.array([slot[t.index] for t in self.terms], dtype=np.intp)
        return MatrixSeries(self.shape, self.rows, self.columns, v[:, slots])

    def dense(self, v: npt.NDArray[Scalars], slot: Mapping[int, int]) -> npt.NDArray[Scalars]:
        """Return the matrix as Taylor series, shape (batch, orders, rows, columns)."""
        return self.series(v, slot).dense
