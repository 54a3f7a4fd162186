"""Candidates evaluated and polished on the true trajectories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.algebraic.candidates import REAL_TOLERANCE, Candidate
from odefit.methods.algebraic.derivatives import DataSegment
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.polish import past_rounding
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.registry import EngineName

MAX_EXPLAINED_RATIO = 2.0  # root mean square of residuals over the noise
MIN_RELATIVE_NOISE = 1e-12  # smallest noise of the data, relative to their largest value

MAX_FIT_RATIO = 0.05
"""Ratio of the sum of squared residuals to that of the data about their means above which an answer
is not a fit."""

SAME_COST = 1.001  # ratio of costs up to which two solutions reproduce the data equally well

POLISH = SingleShooting(
    evaluations=1000, tolerance=1e-14, step=1e-15, patience=300, to_the_last_digit=True
)
"""The local search that polishes candidates to the last digit."""


class Trajectories:
    """Evaluates vectors of unknowns by the cost of the problem itself.

    A cost of at most `zero` means that the data are reproduced to rounding.
    """

    def __init__(self, problem: Problem, engine: EngineName, control: Control) -> None:
        self.problem = problem
        self.control = control
        self.forward = ForwardMap(problem, engine)
        self._choice = UNDECIDED
        self.zero = CostTolerance.of(self.forward).zero(self.forward.accuracy())

    def evaluated(self, vector: Array) -> Evaluation | None:
        """Return residuals and their derivatives; None if the trajectory fails."""
        with np.errstate(all="ignore"):
            evaluation = self.forward.evaluate(vector, self._choice)
        self._choice = evaluation.choice
        if isinstance(evaluation, Failure) or not math.isfinite(evaluation.cost):
            return None
        return evaluation

    def equal_cost(self, best: Start) -> float:
        """Return the highest cost that is as good as that of `best`."""
        return SAME_COST * best.cost + max(0.0, 100 * self.zero)

    def start(self, made: Candidate, cost: float, objective: float) -> Start:
        """Return a candidate as a start, without polishing."""
        note = (
            ""
            if made.imaginary <= REAL_TOLERANCE
            else f", imaginary part {made.imaginary:.1e} left out"
        )
        inside = self.allowed(made.vector)
        return Start(
            index=0,
            start=made.vector,
            vector=made.vector,
            objective=objective,
            status=Status.CONVERGED if inside else Status.NOT_CONVERGED,
            message=f"{made.origin}{note}{'' if inside else '; outside the bounds'}",
            evaluations=1,
            seconds=0.0,
            cost=cost if inside else math.inf,
            exact=cost <= self.zero,
        )

    def polished(self, start: Start) -> Start:
        """Return a start improved on the true trajectories; the same one if nothing is gained."""
        end = POLISH.run(self.forward, start.index, start.vector, self.control)
        if not end.cost < start.cost:
            return replace(start, evaluations=end.evaluations, seconds=end.seconds)
        if end.exact:
            nearest = past_rounding(self.forward, end.vector)
            at = self.forward.evaluate_cost(nearest, UNDECIDED)
            if isinstance(at, Evaluation) and at.cost < end.cost:
                end = replace(end, vector=nearest, cost=at.cost, objective=at.objective)
        return replace(end, start=start.start, message=f"{start.message}; {end.message}")

    def allowed(self, vector: Array) -> bool:
        """Return whether a vector is within the bounds of the problem, up to rounding."""
        slack = 1e-6 * np.abs(vector)
        low, high = self.problem.lower - slack, self.problem.upper + slack
        return bool(np.all((vector >= low) & (vector <= high)))

    def explained(
        self,
        end: Start,
        segments: Sequence[DataSegment],
        noise: Sequence[dict[str, float]],
        min_relative_noise: float = MIN_RELATIVE_NOISE,
    ) -> bool:
        """Return whether the residuals are as small as the noise of the data, given by observable.

        The noise is taken to be at least `min_relative_noise` of the largest value.
        """
        if end.exact:
            return True
        expected = 0.0
        least = max(min_relative_noise, 10 * self.forward.accuracy(self._choice))
        for segment, sds in zip(segments, noise, strict=True):
            for name, (times, values) in segment.series.items():
                size = least * float(np.abs(values).max(initial=0.0))
                expected += len(times) * max(sds[name], size) ** 2
        return self._squares(end.vector) <= MAX_EXPLAINED_RATIO**2 * expected

    def unfit(self, end: Start) -> bool:
        """Return whether the residuals are so large that the answer is not a fit."""
        spread = sum(
            float(np.sum((s.values - s.values.mean()) ** 2))
            for c in self.problem.conditions
            for s in c.series.values()
        )
        return self._squares(end.vector) > MAX_FIT_RATIO * spread

    def _squares(self, vector: Array) -> float:
        """Return the sum of squared residuals without weights."""
        total = 0.0
        for condition in self.problem.conditions:
            trajectory = self.forward.trajectory(vector, condition.name)
            if isinstance(trajectory, Failure):
                return math.inf
            predicted = self.forward.predictions(condition, vector, trajectory)
            for name, series in condition.series.items():
                model = predicted[name].array(len(condition.times))[series.rows]
                total += float(np.sum((model - series.values) ** 2))
        return total
