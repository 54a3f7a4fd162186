"""The limits of a solver of discretised problems, its answer, and code shared by solvers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NoReturn, Protocol, runtime_checkable

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.instance import Instance, Scales, row_sizes
from odefit.expressions.grammar import named
from odefit.methods.running.control import Control
from odefit.methods.running.start_checkpoint import numbers

FEASIBILITY_TOLERANCE = 1e-5
"""Constraint violation, relative to the size of the variable, that counts as zero."""


SLACK_TOLERANCE = 1e-6
"""Violation of a soft constraint up to which no penalty is charged. Solvers accept as much as
feasible in the other formulations, and P = 1e5 times their rounding errors is not small.
"""


LEAST_SECONDS = 0.01
"""Smallest time limit of a solver in seconds, however late it is."""


@dataclass(frozen=True)
class Limits:
    """The limits of a solver.

    Attributes
    ----------
    seconds
        Wall time in seconds; None for no limit.
    threads
        Largest number of threads.
    gap, absolute_gap
        A global solver stops when upper and lower bound of the objective differ by less than `gap`
        times the upper one, or by less than `absolute_gap`.
    stop
        A function that is called from time to time while a local solver works; if it returns True,
        the solver stops.
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
            seconds = max(control.seconds_left, LEAST_SECONDS)
        return cls(seconds, stop=control.interrupted.is_set)

    def met(self, upper: float, lower: float) -> bool:
        """Return whether bounds of the objective are as close as required."""
        return upper - lower <= max(self.gap * abs(upper), self.absolute_gap)


class Outcome(Enum):
    """The end of a solver. Files and tables show the value."""

    SOLVED = "solved"
    LIMIT = "limit"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a solver.

    Attributes
    ----------
    outcome
        ``SOLVED``: a local optimum for a local solver, one proved global within the gap for a
        global one. ``LIMIT``: stopped by a limit.
    values, unknowns
        The best point found, feasible or (local solvers) the last, or None.
    objective
        The objective there without penalties: the sum of squared weighted residuals, and twice the
        logarithms of unknown standard deviations; NaN without a point.
    lower_bound
        A bound below which no feasible point has a value of the formulation's objective; None if
        the solver proves no bounds.
    violation
        Largest violation of a constraint of the formulation, relative to the size of its variable.
    seconds
        Wall time of the solver, without building its model.
    message
        The solver's own message.
    iterations
        Number of iterations, or of nodes of its tree; -1 if the solver does not report it.
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
        """True if the solver itself reports success, the paper's SOLVED."""
        return self.outcome is Outcome.SOLVED

    @property
    def success(self) -> bool:
        """True if nothing failed and the point is feasible, the paper's SUCCESS."""
        fine = self.outcome in (Outcome.SOLVED, Outcome.LIMIT)
        return fine and self.values is not None and self.violation <= FEASIBILITY_TOLERANCE


Report = Callable[[float, float], None]
"""A function that is called with the best objective and the lower bound so far."""


class Solver(Protocol):
    """A solver of discretised problems, with its options as fields."""

    @property
    def name(self) -> str:
        """The name shown in results."""

    @property
    def scope(self) -> Literal["local", "global"]:
        """The scope of the solver: local optima, or global ones with proved bounds."""

    def missing(self) -> str | None:
        """Return a sentence on why it cannot run here, with the remedy; None if it can."""

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Return the solver's answer; a failed solver raises nothing."""


Progress = Callable[[Array | None, Array | None, float | None], None]
"""A function that is called with the best point so far (values at points and unknowns, None if
unchanged) and with the lower bound, or None."""


@runtime_checkable
class ReportingSolver(Protocol):
    """A solver that reports its progress during the solve."""

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        """Solve, calling `progress`."""


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
    """Return an :class:`Answer` with objective and violation computed here, not by the solver."""
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
    """Return the function that the formulation minimises: the objective plus P times all slacks."""
    d = instance.discretisation
    total = d.objective(values, unknowns)
    constraints = instance.formulation.constraints(d.rows.dynamic)
    if constraints.slacks:
        slacks = np.abs(d.defects(values, unknowns)[d.rows.dynamic])
        total += constraints.penalty * float(slacks[slacks > SLACK_TOLERANCE].sum())
    return total


def constraint_violation(instance: Instance, values: Array, unknowns: Array) -> float:
    """Return the largest violation of constraints and bounds, relative to sizes of variables."""
    d = instance.discretisation
    scales = Scales.of(d)
    constraints = instance.formulation.constraints(d.rows.dynamic)
    rows = d.defects(values, unknowns)[constraints.rows]
    bound = constraints.slack < 0  # a slack variable absorbs any violation
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
    """Return the largest value of the variable that each row belongs to."""
    top = np.empty(values.shape)
    for number in range(len(d.problem.conditions)):
        rows = d.condition_of == number
        top[rows] = np.abs(values[rows]).max(axis=0, initial=0.0)
    return row_sizes(d, top)


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Return an answer as a JSON value."""
    return {
        "outcome": answer.outcome.value,
        "values": None if answer.values is None else answer.values.tolist(),
        "unknowns": None if answer.unknowns is None else answer.unknowns.tolist(),
        "objective": float(answer.objective),
        "lower_bound": None if answer.lower_bound is None else float(answer.lower_bound),
        "violation": float(answer.violation),
        "seconds": float(answer.seconds),
        "message": answer.message,
        "iterations": int(answer.iterations),
    }


def answer_from_json(record: Any, shape: tuple[int, int], unknowns: int) -> Answer:
    """Return the answer of a record, whose values have the given `shape`, points by variables.

    Raises KeyError, TypeError or ValueError for a damaged record.
    """
    rows, vector, lower = record["values"], record["unknowns"], record["lower_bound"]
    values = None
    if rows is not None:
        values = np.array([numbers(row, shape[1]) for row in rows]).reshape(shape)
    return Answer(
        Outcome(record["outcome"]),
        values,
        None if vector is None else numbers(vector, unknowns),
        float(record["objective"]),
        None if lower is None else float(lower),
        float(record["violation"]),
        float(record["seconds"]),
        str(record["message"]),
        int(record["iterations"]),
    )


class BoundingAlgebra(ABC):
    """Expressions of a global solver, named in refusals, and floats of known values."""

    solver: str

    def number(self, text: str) -> float:
        return float(text)

    def power(self, base: Any, exponent: Any) -> Any:
        if isinstance(exponent, float):
            if isinstance(base, float):
                return math.pow(base, exponent)  # ** would return complex numbers
            return self.constant_power(base, exponent)
        if isinstance(base, float) and base == 0.0:
            return 0.0  # as everywhere: 0^p is 0 for every positive p
        return self.call("exp", [exponent * self.call("log", [base])])

    @abstractmethod
    def constant_power(self, base: Any, exponent: float) -> Any:
        """Return an expression to a known power."""

    @abstractmethod
    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        """Return a function of expressions."""

    def refuse(self, function: str) -> NoReturn:
        """Refuse a function that the solver cannot bound."""
        raise InputError(
            f"{self.solver}: the model uses {named(function)}(), which a global solver cannot "
            "bound here; take a local solver, or write the equations without it"
        )
