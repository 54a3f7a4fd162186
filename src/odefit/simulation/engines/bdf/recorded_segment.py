"""A segment that was integrated with a record of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from odefit.common.arrays import Array
from odefit.simulation.engines.bdf.adjoint import pull_back
from odefit.simulation.engines.bdf.compiled_field import CompiledField


class RecordedPart(NamedTuple):
    """A part of a segment between two breakpoints of the inputs."""

    # The arguments of :func:`odefit.simulation.engines.bdf.integration.integrate`.
    start: float
    times: Array
    states: Array
    constants: Array
    record: Array  # The steps, see :mod:`odefit.simulation.engines.bdf.recording`
    rows: slice  # Which of the times of the segment lie in it


class RecordedSegment:
    """The adjoint of an integration: from derivatives by its values to those by its beginning.

    `scalars`: number of the field's scalars.
    """

    def __init__(
        self, compiled: CompiledField, scalars: int, parts: Sequence[RecordedPart]
    ) -> None:
        self._compiled = compiled
        self._scalars = scalars
        self._parts = parts

    def pull_back(self, by_values: Array) -> tuple[Array, Array] | None:
        """See :class:`odefit.simulation.engines.engine.Adjoint`.

        There are no derivatives where the elimination without pivoting cannot be trusted.
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
