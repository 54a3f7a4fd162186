"""One start: integrate from t0 through all data, and improve the unknowns by Gauss-Newton."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from odefit.methods.control import Control
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.scaling import Scaling
from odefit.methods.starts import guess, sample
from odefit.methods.trust_region import Minimum, Tolerances, minimise
from odefit.problem.arrays import Array
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines import EngineName

LEAST_LIKELIHOOD = 1e-9
"""Gain of log-likelihood that is not worth another step."""


@dataclass(frozen=True)
class SingleShooting:
    """Bounded trust-region Gauss-Newton on the integrated trajectories, from one start.

    Attributes
    ----------
    evaluations
        Of residuals and Jacobian, at most.
    tolerance
        Relative decrease of the cost that is not worth another step.
    step
        Relative step that counts as none.
    patience
        Evaluations in which the cost must fall by one per cent.
    engine
        ``"auto"`` recognises stiffness; ``"heyoka"`` or ``"casadi"`` forces one engine.
    to_the_last_digit
        Go on where the data are reproduced to rounding: pointless with any noise, but what is
        poorly determined still gains from the digits that are left.
    """

    evaluations: int = 1000
    tolerance: float = 1e-12
    step: float = 1e-11
    patience: int = 200
    engine: EngineName = "auto"
    to_the_last_digit: bool = False

    @property
    def name(self) -> str:
        """For results."""
        return "SingleShooting"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate from the problem's guess, or from the first sample if there is none."""
        start = guess(problem)
        if start is None:
            start = sample(problem, 0, 1, control.seed)[0]
        forward = ForwardMap(problem, self.engine)
        run = self.run(forward, 0, start, control)
        return Estimate((run,), run.status, run.message)

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """One start; never raises for a failed integration.

        Parameters
        ----------
        forward
            The problem's forward map; what it has learnt of stiffness is forgotten first, so
            that the result does not depend on what was computed before.
        index
            Its number.
        start
            Natural units, shape (n,).
        """
        began = time.perf_counter()
        forward.engines.reset()
        cost = _Cost(forward)
        scaling = cost.scaling
        tolerance = CostTolerance.of(forward)
        tolerances = Tolerances(
            cost=self.tolerance,
            step=self.step,
            floor=-math.inf if self.to_the_last_digit else tolerance.zero(),
            evaluations=self.evaluations,
            patience=self.patience,
            least=LEAST_LIKELIHOOD if forward.likelihood else 0.0,
        )
        inside = np.clip(start, forward.problem.lower, forward.problem.upper)
        # Far from any sensible answer, squares overflow: an infinite cost is no step forward.
        with np.errstate(all="ignore"):
            minimum = minimise(
                cost,
                scaling.coordinates(inside),
                scaling.lower,
                scaling.upper,
                tolerances,
                control.should_stop,
            )
        lowest = math.inf if minimum.evaluation is None else minimum.evaluation.cost
        return Start(
            index,
            inside,
            scaling.natural(minimum.vector),
            cost.objective(minimum),
            _status(minimum, control),
            _message(minimum, cost),
            minimum.evaluations,
            time.perf_counter() - began,
            lowest,
            dict(cost.failures),
            lowest <= tolerance.zero(forward.accuracy),
        )


@dataclass(frozen=True, eq=False)
class _Scaled:
    cost: float
    residuals: Array
    jacobian: Array
    natural: Evaluation


@dataclass(eq=False)
class _Cost:
    """The cost in the optimiser's coordinates, counting what fails."""

    forward: ForwardMap
    failures: Counter[str] = field(default_factory=Counter)
    last_failure: Failure | None = None

    def __post_init__(self) -> None:
        self.scaling = Scaling.of(self.forward.problem)

    def __call__(self, coordinates: Array) -> _Scaled | None:
        vector = self.scaling.natural(coordinates)
        evaluation = self.forward.evaluate(vector)
        if isinstance(evaluation, Failure):
            self.failures[evaluation.reason] += 1
            self.last_failure = evaluation
            return None
        slope = self.scaling.slope(vector)
        return _Scaled(
            evaluation.cost, evaluation.residuals, evaluation.jacobian * slope, evaluation
        )

    def objective(self, minimum: Minimum) -> float:
        at = minimum.evaluation
        return at.natural.objective if isinstance(at, _Scaled) else math.inf


def _status(minimum: Minimum, control: Control) -> Status:
    if minimum.evaluation is None:
        return Status.FAILED
    if minimum.converged:
        return Status.CONVERGED
    if control.interrupted.is_set():
        return Status.INTERRUPTED
    return Status.TIME_LIMIT if control.out_of_time else Status.NOT_CONVERGED


def _message(minimum: Minimum, cost: _Cost) -> str:
    if minimum.evaluation is None and cost.last_failure is not None:
        return str(cost.last_failure)
    return minimum.message
