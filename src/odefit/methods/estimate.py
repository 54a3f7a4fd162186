"""What a method returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from odefit.problem.arrays import Array
from odefit.simulation.nodes import Nodes


class Status(Enum):
    """How an estimation ended. The value is what files and the command line show."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not converged"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Start:
    """What became of one start of a local method.

    Attributes
    ----------
    index
        Its number, from 0.
    start, vector
        Where it began and ended, shape (n,).
    objective
        At the end, the weighted sum of squared residuals; infinite if the start failed.
    status
        How it ended.
    message
        In words; for a failure the experiment, time and reason.
    evaluations
        Of the residuals.
    seconds
        Spent on it.
    cost
        At the end, what is minimised; infinite if the start failed. Half the objective, and
        the logarithms of standard deviations that are estimated.
    failures
        Integrations that failed on the way, by reason.
    exact
        The data are reproduced to rounding: no cost can be lower.
    nodes
        Where the trajectories begin anew, if no single integration can follow them, or if the
        answer satisfies conditions beside the data.
    """

    index: int
    start: Array
    vector: Array
    objective: float
    status: Status
    message: str
    evaluations: int
    seconds: float
    cost: float = math.nan
    failures: Mapping[str, int] = field(default_factory=dict)
    exact: bool = False
    nodes: Nodes | None = None


@dataclass(frozen=True)
class BoundStep:
    """Where the bounds stood at one time of a search.

    Attributes
    ----------
    stage
        What had been done, e.g. ``"contraction"``.
    iteration
        Of that stage, from 1.
    lower, upper
        Bounds of the objective.
    seconds
        Since the search began.
    """

    stage: str
    iteration: int
    lower: float
    upper: float
    seconds: float

    @property
    def gap(self) -> float:
        """``(upper - lower) / |upper|``."""
        if self.upper == self.lower:
            return 0.0
        return (self.upper - self.lower) / abs(self.upper) if self.upper else math.inf


@dataclass(frozen=True)
class Certificate:
    """Bounds that a method proved.

    Attributes
    ----------
    lower, upper
        No answer within the bounds of the unknowns has an objective below `lower`; one with
        `upper` was found.
    scope
        Of which problem, e.g. ``"discretised (trapezoid, M = 100)"``.
    solver
        Whose bound it is.
    closed
        The bounds have met, for what was asked.
    negligible
        Difference of objectives that means nothing: where the optimum is zero, bounds do not
        meet in relation to it.
    history
        How the bounds came together, where the method keeps a log.
    rigorous
        Rounding was outwards throughout: the lower bound holds in exact arithmetic.
    assumed
        Bounds by key of unknowns, where they are not the problem's own.
    remark
        What else the bounds are about, as a sentence.
    """

    lower: float
    upper: float
    scope: str
    solver: str
    closed: bool
    negligible: float
    history: tuple[BoundStep, ...] = ()
    rigorous: bool = False
    assumed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class Discretised:
    """The discretised problem's own answer beside the true trajectories.

    Attributes
    ----------
    scheme, steps
        How it was discretised, and the number of mesh steps M.
    objective
        Of the discretised answer, on the discretised trajectories.
    true_objective
        Of the same unknowns, on the true trajectories; infinite if these cannot be integrated.
    error
        Largest difference between the two trajectories at the measurements, relative to the
        largest value of each observable.
    vector
        The discretised answer, n values.
    """

    scheme: str
    steps: int
    objective: float
    true_objective: float
    error: float
    vector: tuple[float, ...]


@dataclass(frozen=True)
class Counted:
    """How many solutions no measurement of the outputs can tell apart.

    Attributes
    ----------
    possible
        As the structure of the equations says, complex ones included; None where that is not
        known.
    found
        Those found with the same outputs as the answer, itself included.
    real
        Those of them that are real.
    lost
        Paths of the search that did not arrive: so many solutions may be missing.
    doubt
        Probability that the search did not know of a solution at all.
    coincide
        The equations are singular at the answer: solutions come together there.
    """

    possible: int | None
    found: int
    real: int
    lost: int
    doubt: float
    coincide: bool = False


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method found.

    Attributes
    ----------
    starts
        Every attempt, in the order of their numbers.
    status
        How the method ended.
    message
        In words.
    certificate
        Bounds, where the method proves any.
    discretised
        Where the method discretises, how far that is from the true trajectories.
    counted
        Where the method finds all solutions, how many there are.
    """

    starts: Sequence[Start]
    status: Status
    message: str
    certificate: Certificate | None = None
    discretised: Discretised | None = None
    counted: Counted | None = None

    @property
    def best(self) -> Start | None:
        """The attempt with the lowest cost; None if all failed."""
        usable = [s for s in self.starts if s.status is not Status.FAILED]
        return min(usable, key=lambda s: (s.cost, s.index), default=None)
