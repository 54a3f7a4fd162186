"""The outputs of a sensitivity analysis, as functions of the unknowns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odefit.assessment.functionals.over_time import OverTime, over_time
from odefit.assessment.predictions.prediction_runs import Run, runs_of
from odefit.common.arrays import Array
from odefit.common.errors import InputError, one_of
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

FIT = "fit"
"""The name of the cost of the fit among outputs: half the sum of squares, or -log L."""


@dataclass(frozen=True)
class Output:
    """One number: an observable at a time, a quantity (its time is NaN), or the fit.

    The fit belongs to no experiment: its name is empty there.
    """

    name: str
    experiment: str
    time: float


@dataclass(frozen=True, eq=False)
class Outputs:
    """All requested numbers, computed together.

    Attributes
    ----------
    problem
        The problem, with a condition for each scenario.
    runs
        Experiments and scenarios with their times.
    observables
        Names of observables.
    quantities
        Functionals over time, of any run.
    fit
        Whether the cost of the fit is one of the numbers.
    """

    problem: Problem
    runs: tuple[Run, ...]
    observables: tuple[str, ...]
    quantities: tuple[OverTime, ...]
    fit: bool

    @property
    def numbers(self) -> list[Output]:
        """The outputs, in the order of :meth:`values`."""
        outputs_found = [
            Output(name, run.condition.name, float(time))
            for run in self.runs
            for name in self.observables
            for time in run.times
        ]
        outputs_found += [Output(q.key, q.experiment, math.nan) for q in self.quantities]
        return [*outputs_found, Output(FIT, "", math.nan)] if self.fit else outputs_found

    def values(self, forward: ForwardMap, vector: Array) -> Array:
        """Return the numbers at a vector of unknowns, shape (m,), NaN where they fail."""
        parts: list[Array] = []
        if self.observables:
            parts += [self._curves(forward, vector, run) for run in self.runs]
        parts += [np.array([q.at(forward, vector)[0]]) for q in self.quantities]
        if self.fit:
            parts.append(np.array([forward.cost(vector, UNDECIDED)]))
        numbers = np.concatenate(parts)
        return np.where(np.isfinite(numbers), numbers, np.nan)

    def derivatives(self, forward: ForwardMap, vector: Array) -> tuple[Array, Array]:
        """Return the numbers, shape (m,), and their derivatives by the unknowns, shape (m, n)."""
        n = len(vector)
        values: list[Array] = []
        rows: list[Array] = []
        for run in self.runs if self.observables else ():
            predicted = self._predicted(forward, vector, run, sensitivities=True)
            count = len(run.times)
            for name in self.observables:
                dual = None if predicted is None else predicted[name]
                nothing = np.full(count, np.nan)
                values.append(nothing if dual is None else np.broadcast_to(dual.value, count))
                rows.append(
                    np.full((count, n), np.nan) if dual is None else dual.gradient(n, count)
                )
        for quantity in self.quantities:
            value, gradient = quantity.at(forward, vector)
            values.append(np.array([value]))
            rows.append(gradient[None, :])
        if self.fit:
            slope = forward.gradient(vector, UNDECIDED)
            cost, gradient = math.nan, np.full(n, np.nan)
            if not isinstance(slope, Failure):
                cost, gradient = slope.cost, slope.gradient
            values.append(np.array([cost]))
            rows.append(gradient[None, :])
        return np.concatenate(values), np.concatenate(rows)

    def _curves(self, forward: ForwardMap, vector: Array, run: Run) -> Array:
        predicted = self._predicted(forward, vector, run, sensitivities=False)
        count = len(run.times)
        if predicted is None:
            return np.full(count * len(self.observables), np.nan)
        return np.concatenate(
            [np.broadcast_to(predicted[name].value, count) for name in self.observables]
        )

    def _predicted(
        self, forward: ForwardMap, vector: Array, run: Run, *, sensitivities: bool
    ) -> Any:
        """Return the observables of a run, by name; None if the integration fails."""
        trajectory = forward.trajectory(
            vector, run.condition.name, run.times, sensitivities=sensitivities
        )
        if isinstance(trajectory, Failure):
            return None
        with np.errstate(all="ignore"):
            return forward.predictions(run.condition, vector, trajectory)


def outputs(
    problem: Problem,
    of: Sequence[str] | str | None = None,
    experiment: Any = None,
    times: Any = None,
) -> Outputs:
    """Return the outputs requested by a user.

    Parameters
    ----------
    problem
        The problem.
    of
        Names of observables, quantities such as ``"AUC = integral(y)"``, and ``"fit"``; None for
        all observables.
    experiment, times
        Experiments, scenarios and times, as :func:`runs_of` takes them.

    Raises
    ------
    InputError
        A name or a quantity is unusable, or there is nothing to compute.
    """
    texts = [of] if isinstance(of, str) else list(of or problem.model.observables)
    every = None if experiment is not None else [c.name for c in problem.conditions]
    whole, runs = runs_of(problem, experiment if every is None else every, times)
    runs = [r if times is not None else _finite(r) for r in runs]
    known = tuple(problem.model.observables)
    names = [text for text in texts if text in known]
    functions: list[OverTime] = []
    for text in texts:
        if text in known or text == FIT:
            continue
        if text.isidentifier():
            hint = one_of(text, [*known, FIT])
            raise InputError(
                f"of: there is no observable '{text}'{hint}; a quantity is written as "
                '"AUC = integral(y)" or "max(y)"'
            )
        functions += [over_time(whole, text, run.condition.name) for run in runs]
    if FIT in texts and FIT not in known and not problem.size:
        raise InputError("of: there are no measurements, so there is no fit")
    fit = FIT in texts and FIT not in known
    return Outputs(whole, tuple(runs), tuple(dict.fromkeys(names)), tuple(functions), fit)


def _finite(run: Run) -> Run:
    """Return a run without a steady state among its times, which cannot be on an axis."""
    return Run(run.condition, run.times[np.isfinite(run.times)], run.like, run.scenario)
