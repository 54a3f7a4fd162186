"""The stiff engine: numerical differentiation formulas on states and sensitivities."""

from __future__ import annotations

from odefit.simulation.engines.bdf import integration
from odefit.simulation.engines.bdf.adjoint import RecordedSegment
from odefit.simulation.engines.bdf.kernel_engine import KernelEngine, PartToSolve, SolvedPart
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine import EngineFailure, SegmentSolution, Values
from odefit.simulation.engines.segments import Segment


class BdfEngine(KernelEngine):
    """Numerical differentiation formulas.

    Without error control of the sensitivities, it needs a half to two thirds of the steps.
    """

    name = "bdf"

    def recorded(
        self, segment: Segment, initial: Values, max_steps: int
    ) -> tuple[SegmentSolution, RecordedSegment] | EngineFailure:
        """Return the solution, and the adjoint that leads from it back to its beginning."""
        solved = self._integrate(segment, initial, max_steps, recording=True)
        if isinstance(solved, EngineFailure):
            return solved
        solution, parts = solved
        return solution, RecordedSegment(self._compiled, len(initial.scalars), parts)

    def _solve(self, part: PartToSolve) -> SolvedPart:
        solved = integration.integrate(
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
            part.recording,
            part.out,
            part.out_sensitivities,
        )
        return SolvedPart(*solved)
