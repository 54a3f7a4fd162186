"""The explicit engine: a Runge-Kutta method of order 8 on states and sensitivities."""

from __future__ import annotations

import numpy as np

from odefit.simulation.engines.bdf.kernel_engine import KernelEngine, PartToSolve, SolvedPart
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.runge_kutta.integration import integrate
from odefit.simulation.engines.runge_kutta.stages import METHOD


class RungeKuttaEngine(KernelEngine):
    """The pair of Dormand & Prince of order 8, with dense output of order 7."""

    name = "runge-kutta"

    def _solve(self, part: PartToSolve) -> SolvedPart:
        status, time, steps, step = integrate(
            self._equations,
            METHOD,
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
            part.proposed,
            part.max_steps,
            cut_off().flag,
            part.out,
            part.out_sensitivities,
        )
        return SolvedPart(status, time, steps, step, np.zeros((0, 0)))
