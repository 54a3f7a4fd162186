"""The slave problem (step 3): the nonlinear program, solved locally from the master's point."""

from __future__ import annotations

import math
import time

import numpy as np

from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance
from odefit.methods.running.control import Control
from odefit.methods.solvers.guarded_solve import solve_locally
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.reduced_space import ReducedSpace
from odefit.methods.solvers.solver import LEAST_SECONDS, Answer, Limits, make_answer
from odefit.simulation import ForwardMap

SECOND_SOLVER_SHARE = 0.05
"""Share of the time left that the second solver may take where the first one has an answer."""


class SlaveProblem:
    """The nonlinear program of the discretised problem, whose states are bounded."""

    def __init__(self, forward: ForwardMap, d: Discretisation, control: Control) -> None:
        self._reduced = ReducedSpace(forward, d)
        self._d, self._control = d, control

    def solve(self, w: Array) -> Answer:
        """Return the better of two local optima next to a point of the master problem.

        One is found in the space of the unknowns, with states that follow from the equations, the
        other with the states free. The variables of the discretised problem come first in `w`.
        """
        d, control = self._d, self._control
        at_points, n = d.points * len(d.variables), len(d.problem.unknowns)
        values = w[:at_points].reshape(d.points, len(d.variables))
        unknowns = w[at_points : at_points + n]
        first = self._reduced.minimise(unknowns, values, control.should_stop)
        known = first is not None and first.success
        seconds = max((control.deadline or math.inf) - time.time(), LEAST_SECONDS)
        limits = Limits(
            SECOND_SOLVER_SHARE * seconds if known else seconds, stop=control.interrupted.is_set
        )
        instance = Instance(d, Baseline(), values, unknowns)
        second = solve_locally(Ipopt(iterations=500), instance, limits)
        if first is None or not known:
            return second
        return second if second.success and second.objective < first.objective else first

    def confirm(self, answer: Answer) -> Answer | None:
        """Return an answer within the bounds of the states, which it was found without.

        It is the same one if that lies within them, else one next to it, None if there is none.
        """
        values, unknowns = answer.values, answer.unknowns
        if values is None or unknowns is None:
            return None
        instance = Instance(self._d, Baseline(), values, unknowns)
        found = make_answer(
            instance, answer.outcome, values, unknowns, None, answer.seconds, answer.message
        )
        if not found.success:
            found = self.solve(np.concatenate([values.ravel(), unknowns]))
        return found if found.success else None
