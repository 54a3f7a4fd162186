"""What a solver of discretised problems is given, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.instance import Instance
from odefit.discretisation.scales import Scales, row_sizes
from odefit.methods.control import Control
from odefit.problem.arrays import Array

FEASIBILITY_TOLERANCE = 1e-5
"""Violation of a constraint, relative to the size of its variable, that counts as none."""


SLACK_TOLERANCE = 1e-6
"""A violation of a soft constraint up to which no slack is charged: solvers take as much for
feasible in the other formulations, and P = 1e5 times their rounding errors is not small."""


LEAST_SECONDS = 0.01
"""Seconds that a solver is given at least, however late it is."""


@dataclass(frozen=True)
class Limits:
    """When a solver stops.

    Attributes
    ----------
    seconds
        Wall time; None for no limit.
    threads
        At most.
    gap, absolute_gap
        A global solver stops when upper and lower bound of the objective differ by less than
        `gap` times the upper one, or by less than `absolute_gap`.
    stop
        Asked now and then whether to end early, by solvers that run in this process.
    """

    seconds: float | None = None
    threads: int = 1
    gap: float = 1e-3
    absolute_gap: float = 0.0
    stop: Callable[[], bool] | None = None

    @classmethod
    def until(cls, control: Control) -> Limits:
        """Return the limits of one run of a solver in this process: deadline and interruption."""
        seconds = None
        if control.deadline is not None:
            seconds = max(control.deadline - time.time(), LEAST_SECONDS)
        return cls(seconds, stop=control.interrupted.is_set)

    def met(self, upper: float, lower: float) -> bool:
        """Whether bounds of the objective are as close as was asked."""
        return upper - lower <= max(self.gap * abs(upper), self.absolute_gap)


class Outcome(Enum):
    """How a solver ended. The value is what files and tables show."""

    SOLVED = "solved"
    LIMIT = "limit"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver found.

    Attributes
    ----------
    outcome
        ``SOLVED``: a local optimum for a local solver, one proved global within the gap for a
        global one. ``LIMIT``: stopped by a limit.
    values, unknowns
        The best point found, feasible or (local solvers) the last; None if there is none.
    objective
        What is minimised there, slacks not counted: the sum of squared weighted residuals, and
        twice the logarithms of unknown standard deviations; NaN without a point.
    lower_bound
        No feasible point has a lower value of the formulation's objective; None if the solver
        proves no bounds.
    violation
        Largest violation of a constraint of the formulation, relative to the size of its variable.
    seconds
        Wall time of the solver, without building its model.
    message
        The solver's own words.
    iterations
        Or nodes; -1 if the solver does not say.
    """

    outcome: Outcome
    values: Array | None
    unknowns: Array | None
    objective: float
    lower_bound: float | None
    violation: float
    seconds: float
    message: str
    iterations: int = -1

    @property
    def solved(self) -> bool:
        """The paper's SOLVED: the solver's own final status."""
        return self.outcome is Outcome.SOLVED

    @property
    def success(self) -> bool:
        """The paper's SUCCESS: no trouble, and a feasible point."""
        fine = self.outcome in (Outcome.SOLVED, Outcome.LIMIT)
        return fine and self.values is not None and self.violation <= FEASIBILITY_TOLERANCE


Report = Callable[[float, float], None]
"""Called with the best objective and the lower bound so far."""


class Solver(Protocol):
    """One solver, with its options as fields."""

    @property
    def name(self) -> str:
        """For results."""

    @property
    def scope(self) -> Literal["local", "global"]:
        """Whether it proves bounds."""

    def missing(self) -> str | None:
        """Why it cannot run here, in one sentence with the remedy; None if it can."""

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Solve; never raises for what the solver does."""


def make_answer(
    instance: Instance,
    outcome: Outcome,
    values: Array | None,
    unknowns: Array | None,
    lower_bound: float | None,
    seconds: float,
    message: str,
    iterations: int = -1,
) -> Answer:
    """An :class:`Answer` with objective and violation computed here, not by the solver."""
    objective, violation = float("nan"), float("inf")
    if values is not None and unknowns is not None:
        d = instance.discretisation
        if np.isfinite(values).all() and np.isfinite(unknowns).all():
            objective = d.objective(values, unknowns)
            violation = constraint_violation(instance, values, unknowns)
        else:
            values = unknowns = None
    return Answer(
        outcome, values, unknowns, objective, lower_bound, violation, seconds, message, iterations
    )


def penalised_objective(instance: Instance, values: Array, unknowns: Array) -> float:
    """What the formulation minimises: the objective, and P times the sum of the slacks."""
    d = instance.discretisation
    total = d.objective(values, unknowns)
    constraints = instance.formulation.constraints(d.rows.dynamic)
    if constraints.slacks:
        slacks = np.abs(d.defects(values, unknowns)[d.rows.dynamic])
        total += constraints.penalty * float(slacks[slacks > SLACK_TOLERANCE].sum())
    return total


def constraint_violation(instance: Instance, values: Array, unknowns: Array) -> float:
    """Largest violation of constraints and bounds, each relative to the size of its variable."""
    d = instance.discretisation
    scales = Scales.of(d)
    constraints = instance.formulation.constraints(d.rows.dynamic)
    rows = d.defects(values, unknowns)[constraints.rows]
    bound = constraints.slack < 0  # a slack variable takes any violation
    over = np.maximum(rows - constraints.upper, constraints.lower - rows)
    over /= np.maximum(scales.rows, row_magnitudes(d, values))[constraints.rows]
    outside = np.maximum(d.problem.lower - unknowns, unknowns - d.problem.upper)
    parts = [
        (np.maximum(d.lower - values, values - d.upper) / scales.values).ravel(),
        outside / np.maximum(scales.unknowns, np.abs(unknowns)),
        over[bound],
    ]
    return max(float(np.max(part, initial=0.0)) for part in parts)


def row_magnitudes(d: Discretisation, values: Array) -> Array:
    """Largest value of the variable that each row is about."""
    top = np.empty(values.shape)
    for number in range(len(d.problem.conditions)):
        own = d.condition_of == number
        top[own] = np.abs(values[own]).max(axis=0, initial=0.0)
    return row_sizes(d, top)
