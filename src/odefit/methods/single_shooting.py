"""Single shooting: integration from t0 through all data, improved by Gauss-Newton steps."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.local.event_times import event_places, minimise_between
from odefit.methods.local.interior_steps import Interior
from odefit.methods.local.kinks import minimise_past_kinks
from odefit.methods.local.scaling import Scaling
from odefit.methods.local.stopping import Minimum, Quadratic, Tolerances
from odefit.methods.local.trust_region import minimise
from odefit.methods.local.variable_projection import Projection, VariableProjection
from odefit.methods.method import LocalMethod, Method
from odefit.methods.running.control import Control
from odefit.methods.running.remote_conditions import conditions_over_workers
from odefit.methods.running.run_log import failed_start
from odefit.methods.starts import guess, sample
from odefit.problem.problem import Problem
from odefit.problem.variants.features import switches
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.engines.registry import EngineName

MIN_LIKELIHOOD_GAIN = 1e-9  # gain of the log-likelihood below which the search ends


@dataclass(frozen=True)
class SingleShooting(Method, LocalMethod):
    """Run a bounded Gauss-Newton method on the integrated trajectories from one start.

    Attributes
    ----------
    evaluations
        Largest number of evaluations of residuals and Jacobian.
    tolerance
        Relative decrease of the cost that is too small for another step.
    step
        Relative length of a step that counts as zero.
    patience
        Number of evaluations in which the cost must fall by one per cent.
    engine
        ``"auto"`` recognises stiffness; ``"heyoka"``, ``"runge-kutta"``, ``"bdf"`` or ``"casadi"``
        forces one engine.
    to_the_last_digit
        Whether to continue after the data are reproduced to rounding. This is pointless with any
        noise, but poorly determined unknowns still gain from the remaining digits.
    eliminate
        Whether variable projection eliminates unknowns of the observation alone that have an
        explicit optimum, such as scales, offsets and standard deviations. Their start values then
        do not matter.
    """

    evaluations: int = 1000
    tolerance: float = 1e-12
    step: float = 1e-11
    patience: int = 200
    engine: EngineName = "auto"
    to_the_last_digit: bool = False
    eliminate: bool = True

    @property
    def name(self) -> str:
        """The method's name in results."""
        return "SingleShooting"

    @property
    def controlled(self) -> bool:
        """True if sensitivities are under error control."""
        return False

    @property
    def shares_conditions(self) -> bool:
        """True if workers may integrate the conditions of its evaluations."""
        return True

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns from the problem's guess, or from a first sample without one."""
        start = guess(problem)
        if start is None:
            start = sample(problem, 0, 1, control.seed)[0]
        forward = ForwardMap(problem, self.engine)
        with conditions_over_workers(forward, control):
            run = self.run(forward, 0, start, control)
        return Estimate((run,), run.status, run.message)

    def run(
        self,
        forward: ForwardMap,
        index: int,
        start: Array,
        control: Control,
        *,
        interior: bool | None = None,
    ) -> Start:
        """Run one start from unknowns in natural units, shape (n,); no failure is raised.

        With `interior` it keeps away from bounds; by default every second start does.
        """
        began = time.perf_counter()
        inside = np.clip(start, forward.problem.lower, forward.problem.upper)
        cost = LocalCost.of(forward, inside, eliminate=self.eliminate)
        try:
            # The two kinds of search reach the best optimum from different starts. The first alone
            # misses that of the model of Raia et al. (2011), the second is slower.
            away = index % 2 == 0 if interior is None else interior
            minimum = descend(self, cost, control.should_stop, interior=away)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            # If linear algebra fails on some numbers, only this start is lost.
            return failed_start(index, inside, error, time.perf_counter() - began)
        lowest = math.inf if minimum.evaluation is None else minimum.evaluation.cost
        return Start(
            index,
            inside,
            cost.vector(minimum),
            cost.objective(minimum),
            _status(minimum, control),
            _message(minimum, cost),
            minimum.evaluations,
            time.perf_counter() - began,
            lowest,
            dict(cost.failures),
            cost.exact(minimum),
        )


START_SEARCH = SingleShooting(evaluations=300, tolerance=1e-8, step=1e-7, patience=30)
"""The local search of one of many starts, the best of which is improved further afterwards."""


def descend(
    search: SingleShooting,
    cost: LocalCost,
    stop: Callable[[], bool],
    evaluate: Callable[[Array], Quadratic | None] | None = None,
    *,
    interior: bool = True,
) -> Minimum:
    """Minimise a cost from its start; `evaluate` takes the place of the cost itself.

    With `interior`, a search within bounds keeps away from them: in logarithms until it is near an
    optimum, otherwise while they are in its way.
    """
    forward = cost.projection.forward
    tolerances = Tolerances(
        cost=search.tolerance,
        step=search.step,
        floor=-math.inf if search.to_the_last_digit else CostTolerance.of(forward).zero(),
        evaluations=search.evaluations,
        patience=search.patience,
        least=MIN_LIKELIHOOD_GAIN if forward.likelihood else 0.0,
        noisy=forward.likelihood,
    )
    columns, scaling = cost.projection.remaining, cost.scaling
    at = cost if evaluate is None else evaluate
    bounds = cost.lower, cost.upper
    sizes = scaling.least_sizes(forward.problem)[columns]
    if switches(forward.problem, forward.field):
        minimum = minimise_past_kinks(at, cost.start, *bounds, tolerances, stop, sizes)
    else:
        inside = scaling.interior(columns) if interior else Interior.NEVER
        minimum = minimise(at, cost.start, *bounds, tolerances, stop, sizes=sizes, interior=inside)
    places = event_places(forward.problem, scaling, columns)
    if minimum.evaluation is None or stop() or not any(len(ends) for ends in places):
        return minimum
    return minimise_between(at, minimum, *bounds, tolerances, stop, sizes, places)


@dataclass(frozen=True, eq=False)
class _Scaled:
    cost: float
    residuals: Array
    jacobian: Array
    natural: Projection


class LocalCost:
    """The reduced cost in the optimiser's coordinates; it counts failed integrations."""

    @classmethod
    def of(cls, forward: ForwardMap, start: Array, *, eliminate: bool = True) -> LocalCost:
        """Return the cost of a forward map around a start in natural units, shape (n,)."""
        return cls(VariableProjection(forward, eliminate), start)

    def __init__(self, projection: VariableProjection, start: Array) -> None:
        self.projection = projection
        self.scaling = Scaling.of(projection.forward.problem)
        self.failures: Counter[str] = Counter()
        self.last_failure: Failure | None = None
        self.choice: EngineChoice = UNDECIDED
        self._start = self.scaling.coordinates(start)
        columns = projection.remaining
        self.start = self._start[columns]
        self.lower, self.upper = self.scaling.lower[columns], self.scaling.upper[columns]

    def __call__(self, coordinates: Array) -> _Scaled | None:
        vector = self._natural(coordinates)
        projection_at = self.projection.evaluate(vector, self.choice)
        if isinstance(projection_at, Failure):
            self.choice = projection_at.choice
            self.failures[projection_at.reason] += 1
            self.last_failure = projection_at
            return None
        evaluation = projection_at.evaluation
        self.choice = evaluation.choice
        factor = self.scaling.derivative(vector)[self.projection.remaining]
        return _Scaled(
            evaluation.cost, evaluation.residuals, projection_at.jacobian * factor, projection_at
        )

    def _natural(self, coordinates: Array) -> Array:
        """Return all unknowns in natural units; eliminated ones keep their values at the start."""
        full = self._start.copy()
        full[self.projection.remaining] = coordinates
        return self.scaling.natural(full)

    def vector(self, minimum: Minimum) -> Array:
        at = minimum.evaluation
        return at.natural.vector if isinstance(at, _Scaled) else self._natural(minimum.vector)

    def exact(self, minimum: Minimum) -> bool:
        """Return whether the data are reproduced to rounding."""
        at = minimum.evaluation
        if not isinstance(at, _Scaled):
            return False
        forward = self.projection.forward
        accuracy = forward.accuracy(self.choice)
        vector = at.natural.vector[self.projection.remaining]
        return CostTolerance.of(forward).exact(at.cost, accuracy, at.natural.jacobian, vector)

    def objective(self, minimum: Minimum) -> float:
        at = minimum.evaluation
        return at.natural.evaluation.objective if isinstance(at, _Scaled) else math.inf


def _status(minimum: Minimum, control: Control) -> Status:
    if minimum.evaluation is None:
        return Status.FAILED
    return Status.CONVERGED if minimum.converged else control.early


def _message(minimum: Minimum, cost: LocalCost) -> str:
    if minimum.evaluation is None and cost.last_failure is not None:
        return str(cost.last_failure)
    return minimum.message
