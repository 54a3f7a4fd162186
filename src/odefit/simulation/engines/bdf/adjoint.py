"""Gradients of scalars by the adjoint of an integration: the transposed steps, backwards.

An integration of the states is a chain of operations that are linear in the backward differences,
except for the implicit equations of each step. For the step lengths and orders that were used, its
derivative is exact. The chain is traversed from its end, each operation transposed, with one
solution of transposed linear equations per step (internal numerical differentiation; H. G. Bock,
Numerical treatment of inverse problems in chemical reaction kinetics, 1981). Its cost does not
depend on the number of unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.common.kernels.kernel import compiled
from odefit.simulation.engines.bdf.differences import (
    ALPHA,
    IMPLICIT,
    MAX_ORDER,
    change_matrix,
    combine,
    interpolation,
)
from odefit.simulation.engines.bdf.elimination import factorise, solve_transposed
from odefit.simulation.engines.bdf.equations import CompiledField, Equations
from odefit.simulation.engines.bdf.evaluation import evaluate, registers
from odefit.simulation.engines.bdf.recording import (
    ACCEPTED,
    AFTER,
    BEFORE,
    FACTOR,
    LENGTH,
    ORDER,
    STATES,
)
from odefit.simulation.engines.programs import Indices


@compiled
def pull_back(
    eq: Equations,
    scalar_row: Indices,
    scalar_column: Indices,
    start: float,
    times: Array,
    states: Array,
    constants: Array,
    record: Array,
    by_outputs: Array,
    by_states: Array,
    by_scalars: Array,
) -> bool:
    """Propagate the derivatives of a scalar from the outputs of an integration to its start.

    The integration is given as in :func:`odefit.simulation.engines.bdf.integration.integrate`, with
    its record. `by_outputs` are derivatives of the scalar with respect to the states at the times,
    shape (k, n). Derivatives with respect to the initial states, shape (n,), are written to
    `by_states`, and those with respect to the scalars of the field, shape (p,), are added to
    `by_scalars`. Returns whether all factors were reliable.
    """
    n = states.shape[0]
    nonzeros = eq.entries.row.shape[0]
    w = registers(eq.derivatives)
    derivatives = np.empty(eq.derivatives.outputs.shape[0])
    lu = np.empty(eq.elimination.size)
    x = np.empty(1 + n + constants.shape[0])
    for i in range(constants.shape[0]):
        x[1 + n + i] = constants[i]
    d = np.zeros((MAX_ORDER + 2, n))  # derivatives with respect to the differences
    rows = np.empty((MAX_ORDER + 1, n))
    solved = np.empty(n)
    matrix = np.empty((MAX_ORDER + 1, MAX_ORDER + 1))
    transposed = np.empty((MAX_ORDER + 1, MAX_ORDER + 1))
    shares = np.empty((1, MAX_ORDER + 1))
    implicit = IMPLICIT.copy()
    row = times.shape[0] - 1
    for reverse in range(record.shape[0]):
        k = record.shape[0] - 1 - reverse
        order = int(record[k, ORDER])
        if record[k, ACCEPTED] != 0.0:
            t, h = record[k, AFTER], record[k, LENGTH]
            while row >= 0 and times[row] > record[k, BEFORE]:
                interpolation(order, t, h, times[row], shares)
                for j in range(order + 1):
                    for i in range(n):
                        d[j, i] += shares[0, j] * by_outputs[row, i]
                row -= 1
            # The differences are sums of the old ones and of the correction, which is the new state
            # minus the extrapolated one.
            for j in range(order + 1):
                for i in range(n):
                    d[j + 1, i] += d[j, i]
            x[0] = start + t
            for i in range(n):
                x[1 + i] = record[k, STATES + i]
                solved[i] = d[order + 1, i]
            evaluate(eq.derivatives, x, w, derivatives)
            c = h / ALPHA[order]
            if not factorise(eq.elimination, c, derivatives[:nonzeros], lu):
                return False
            solve_transposed(eq.elimination, lu, solved)
            for j in range(order + 1):
                share = implicit[order, j]
                for i in range(n):
                    d[j, i] += share * solved[i] - d[order + 1, i]
            for i in range(n):
                d[order + 1, i] = 0.0
            for k_scalar in range(scalar_row.shape[0]):
                by_scalars[scalar_column[k_scalar]] += (
                    c * derivatives[nonzeros + k_scalar] * solved[scalar_row[k_scalar]]
                )
        if record[k, FACTOR] != 1.0:
            change_matrix(order, record[k, FACTOR], matrix)
            for i in range(MAX_ORDER + 1):
                for j in range(MAX_ORDER + 1):
                    transposed[i, j] = matrix[j, i]
            for j in range(1, order + 1):
                combine(d, transposed, j, rows[j])
            for j in range(1, order + 1):
                for i in range(n):
                    d[j, i] = rows[j, i]
    # The first difference is a step times the derivative at the start.
    h = record[0, LENGTH] / record[0, FACTOR]
    x[0] = start
    for i in range(n):
        x[1 + i] = states[i]
        by_states[i] = d[0, i]
    evaluate(eq.derivatives, x, w, derivatives)
    for k in range(nonzeros):
        by_states[eq.entries.column[k]] += h * derivatives[k] * d[1, eq.entries.row[k]]
    for k in range(scalar_row.shape[0]):
        by_scalars[scalar_column[k]] += h * derivatives[nonzeros + k] * d[1, scalar_row[k]]
    return True


class RecordedPart(NamedTuple):
    """A part of a segment between two breakpoints of the inputs."""

    # The arguments of :func:`odefit.simulation.engines.bdf.integration.integrate`.
    start: float
    times: Array
    states: Array
    constants: Array
    record: Array  # The steps, see :mod:`odefit.simulation.engines.bdf.recording`
    rows: slice  # The times of the segment that lie in it


class RecordedSegment:
    """The adjoint of an integration: derivatives with respect to its values and its start."""

    def __init__(
        self, compiled: CompiledField, scalars: int, parts: Sequence[RecordedPart]
    ) -> None:
        self._compiled = compiled
        self._scalars = scalars
        self._parts = parts

    def pull_back(self, by_values: Array) -> tuple[Array, Array] | None:
        """See :class:`odefit.simulation.engines.engine.Adjoint`.

        There are no derivatives if the elimination without pivoting is unreliable.
        """
        compiled = self._compiled
        n = len(compiled.order)
        by_scalars = np.zeros(self._scalars)
        at_end = np.zeros(n)
        for part in reversed(self._parts):
            by_outputs = np.zeros((len(part.times), n))
            by_outputs[: part.rows.stop - part.rows.start] = by_values[part.rows][:, compiled.order]
            by_outputs[-1] += at_end
            at_end = np.empty(n)
            trusted = pull_back(
                compiled.equations,
                compiled.scalar_rows,
                compiled.scalar_columns,
                part.start,
                part.times,
                part.states,
                part.constants,
                part.record,
                by_outputs,
                at_end,
                by_scalars,
            )
            if not trusted:
                return None
        by_states = np.empty(n)
        by_states[compiled.order] = at_end
        return by_states, by_scalars
