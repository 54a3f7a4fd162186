"""Candidates on the true trajectories: how well they fit, and how much better they can."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.methods.algebraic.candidates import Candidate
from odefit.methods.algebraic.derivatives import Window
from odefit.methods.algebraic.indistinguishable import REAL
from odefit.methods.control import Control
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Start, Status
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.arrays import Array
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engine_choice import UNDECIDED
from odefit.simulation.engines import EngineName

EXPLAINED = 2.0
"""Root mean square of the residuals over the noise of the data up to which they are explained."""

ROUNDED = 1e-12
"""Noise, relative to the largest value, that data have at least."""

UNFIT = 0.05
"""Sum of squared residuals over the spread of the data from which an answer is no fit."""

SAME_COST = 1.001
"""Ratio of costs up to which two solutions reproduce the data equally well."""

POLISH = SingleShooting(
    evaluations=1000, tolerance=1e-14, step=1e-15, patience=300, to_the_last_digit=True
)
"""Exact data deserve it: what is poorly determined gains from every digit that is left."""


class Trajectories:
    """The problem's own cost.

    Parameters
    ----------
    problem
        The problem.
    engine
        That integrates.
    control
        When to stop.
    """

    def __init__(self, problem: Problem, engine: EngineName, control: Control) -> None:
        self.problem = problem
        self.control = control
        self.forward = ForwardMap(problem, engine)
        self._choice = UNDECIDED
        self.zero = CostTolerance.of(self.forward).zero(self.forward.accuracy())

    def evaluated(self, vector: Array) -> Evaluation | None:
        """Residuals and their derivatives; None where the trajectory fails."""
        with np.errstate(all="ignore"):
            evaluation = self.forward.evaluate(vector, self._choice)
        self._choice = evaluation.choice
        if isinstance(evaluation, Failure) or not math.isfinite(evaluation.cost):
            return None
        return evaluation

    def level(self, best: Start) -> float:
        """The highest cost that is as good as that of `best`."""
        return SAME_COST * best.cost + max(0.0, 100 * self.zero)

    def start(self, made: Candidate, cost: float, objective: float) -> Start:
        """A candidate as it is, unpolished."""
        note = "" if made.imaginary <= REAL else f", imaginary part {made.imaginary:.1e} left out"
        inside = self.allowed(made.vector)
        return Start(
            0,
            made.vector,
            made.vector,
            objective,
            Status.CONVERGED if inside else Status.NOT_CONVERGED,
            f"{made.origin}{note}{'' if inside else '; outside the bounds'}",
            1,
            0.0,
            cost if inside else math.inf,
            {},
            cost <= self.zero,
        )

    def polished(self, start: Start) -> Start:
        """Improved on the true trajectories, to the last digit where these are reproduced."""
        end = POLISH.run(self.forward, start.index, start.vector, self.control)
        if not end.cost < start.cost:
            return replace(start, evaluations=end.evaluations, seconds=end.seconds)
        return replace(end, start=start.start, message=f"{start.message}; {end.message}")

    def allowed(self, vector: Array) -> bool:
        """Whether the bounds that were given hold, but for rounding."""
        slack = 1e-6 * np.abs(vector)
        low, high = self.problem.lower - slack, self.problem.upper + slack
        return bool(np.all((vector >= low) & (vector <= high)))

    def explained(
        self,
        end: Start,
        windows: Sequence[Window],
        noise: Sequence[dict[str, float]],
        rounded: float = ROUNDED,
    ) -> bool:
        """Whether the residuals are as small as the noise of the data.

        Parameters
        ----------
        end
            An answer.
        windows, noise
            By experiment, the measurements, and by observable their standard deviation.
        rounded
            Noise that the data have at least, relative to their largest value.
        """
        if end.exact:
            return True
        expected = 0.0
        least = max(rounded, 10 * self.forward.accuracy(self._choice))
        for w, sds in zip(windows, noise, strict=True):
            for name, (times, values) in w.series.items():
                size = least * float(np.abs(values).max(initial=0.0))
                expected += len(times) * max(sds[name], size) ** 2
        return self._squares(end.vector) <= EXPLAINED**2 * expected

    def unfit(self, end: Start) -> bool:
        """Whether the answer could hardly be called a fit."""
        spread = sum(
            float(np.sum((s.values - s.values.mean()) ** 2))
            for c in self.problem.conditions
            for s in c.series.values()
        )
        return self._squares(end.vector) > UNFIT * spread

    def _squares(self, vector: Array) -> float:
        """Plain sum of squared residuals."""
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
