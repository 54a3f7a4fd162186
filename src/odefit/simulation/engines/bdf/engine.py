"""The stiff engine: numerical differentiation formulas on states and sensitivities."""

from __future__ import annotations

from functools import cached_property
from weakref import finalize

from odefit.common.arrays import Array
from odefit.simulation.engines.bdf import integration
from odefit.simulation.engines.bdf.adjoint import RecordedSegment
from odefit.simulation.engines.bdf.kernel_engine import (
    KernelEngine,
    PartToSolve,
    SolvedPart,
)
from odefit.simulation.engines.bdf.recording import Rooms
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.segments import Segment


class BdfEngine(KernelEngine):
    """Numerical differentiation formulas.

    Without error control of the sensitivities, it needs a half to two thirds of the steps.
    """

    name = "bdf"

    @cached_property
    def _rooms(self) -> Rooms:
        return Rooms(len(self._order))

    def recorded(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> tuple[SegmentSolution, RecordedSegment] | EngineFailure:
        """Return the solution, and the adjoint that leads from it back to its beginning."""
        solved = self._integrate(segment, initial, max_steps, recording=True)
        if isinstance(solved, EngineFailure):
            return solved
        solution, parts = solved
        adjoint = RecordedSegment(self._compiled, len(initial.scalars), parts)
        finalize(adjoint, self._rooms.give_back, [part.record for part in parts])
        return solution, adjoint

    def _solve(self, part: PartToSolve) -> SolvedPart:
        if not part.recording:
            return self._steps(part, self._rooms.none)
        record, sizes = self._rooms.take(), part.sizes.copy()
        solved = self._steps(part, record)
        finished = solved.status == integration.FINISHED
        if finished and solved.steps > len(record):
            self._rooms.give_back([record])
            record = self._rooms.take(solved.steps)
            part.sizes[:] = sizes
            solved = self._steps(part, record)
        elif not finished:
            self._rooms.give_back([record])
        return solved._replace(record=record[: solved.steps])

    def _steps(self, part: PartToSolve, record: Array) -> SolvedPart:
        """Integrate a part, and write as many steps as there is room for into a record."""
        status, time, steps, step = integration.integrate(
            self._equations,
            part.start,
            part.times,
            part.horizon,
            part.ahead,
            part.states,
            part.constants,
            part.sensitivities,
            part.terms,
            part.sizes,
            part.places,
            self._absolute * self._tolerance,
            self._tolerance,
            self._controlled,
            part.watching,
            part.max_steps,
            cut_off().flag,
            record,
            part.out,
            part.out_sensitivities,
        )
        return SolvedPart(status, time, steps, step, record)
