"""The estimate that a method returns: its starts, and its proofs about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from odefit.common.arrays import Array
from odefit.simulation.nodes import Nodes

if TYPE_CHECKING:  # the command line needs no simulation to tell its options
    from odefit.problem.problem import Problem
    from odefit.simulation import Evaluation, Failure

FINE_MESH_ERROR = 1e-2
"""Relative error of discretised trajectories up to which a mesh is fine enough."""

NO_START = "stopped before the first start was finished"
"""The message of a search that was stopped before any start."""


class Status(Enum):
    """The end of an estimation. Files and the command line show the value."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not converged"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    MEMORY_LIMIT = "memory limit"
    FAILED = "failed"

    @property
    def cut_short(self) -> bool:
        """True if a limit or an interruption has stopped it: there may be more to find."""
        return self in (Status.TIME_LIMIT, Status.INTERRUPTED, Status.MEMORY_LIMIT)


class Cause(Enum):
    """The cause of an early end of a run. Files hold its value, and messages its text."""

    CTRL_C = "Ctrl-C"
    TERMINATED = "SIGTERM"
    HUNG_UP = "SIGHUP"
    TIME_LIMIT = "time limit"
    MEMORY_LIMIT = "memory limit"
    OUT_OF_MEMORY = "out of memory"
    CALLER = "caller"

    def __str__(self) -> str:
        return _CAUSES.get(self, self.value)

    @property
    def memory(self) -> bool:
        """Return whether memory was short, before or after an allocation failed."""
        return self in (Cause.MEMORY_LIMIT, Cause.OUT_OF_MEMORY)


_CAUSES = {
    Cause.TIME_LIMIT: "the time limit",
    Cause.MEMORY_LIMIT: "the memory limit",
    Cause.OUT_OF_MEMORY: "a lack of memory",
    Cause.CALLER: "the caller",
}
"""The words for causes that have other names in files."""


@dataclass(frozen=True, eq=False)
class Start:
    """The end of one start of a local method.

    Attributes
    ----------
    index
        The number of the start, from 0.
    start, vector
        The unknowns at its beginning and at its end, shape (n,).
    objective
        The weighted sum of squared residuals at the end; infinite if the start failed.
    status
        How the start ended.
    message
        The status in words; for a failure the experiment, the time and the reason.
    evaluations
        The number of evaluations of the residuals.
    seconds
        The time spent on the start.
    cost
        The cost that the optimiser minimised, at the end: half the objective and the logarithms of
        estimated standard deviations; infinite if the start failed.
    failures
        The number of integrations that failed on the way, by reason.
    exact
        Whether the data are reproduced to rounding, so that no cost can be lower.
    nodes
        The shooting nodes of the answer, if no single integration can follow its trajectories, or
        if it satisfies conditions besides the data.
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
    """The bounds of the objective at one time of a search.

    Attributes
    ----------
    stage
        The last completed stage, e.g. ``"contraction"``.
    iteration
        The number of the iteration within that stage, from 1.
    lower, upper
        Lower and upper bound of the objective.
    seconds
        Time since the search began.
    """

    stage: str
    iteration: int
    lower: float
    upper: float
    seconds: float

    @property
    def gap(self) -> float:
        """The relative distance between the bounds, ``(upper - lower) / |upper|``."""
        return relative_gap(self.lower, self.upper)


def relative_gap(lower: float, upper: float) -> float:
    """Return ``(upper - lower) / |upper|``; 0 for equal bounds, infinite if `upper` alone is 0."""
    if upper == lower:
        return 0.0
    return (upper - lower) / abs(upper) if upper else math.inf


UNSAVED = {"saved": False}
"""Metadata of a field that the sentence of the assessment includes, and that no file holds."""


@dataclass(frozen=True)
class Certificate:
    """Bounds of the objective that a method proved.

    Attributes
    ----------
    lower, upper
        No values within the bounds of the unknowns have an objective below `lower`; some values
        were found with the objective `upper`.
    scope
        The problem to which the bounds apply, e.g. ``"discretised (trapezoid, M = 100)"`` or
        ``"continuous time"``.
    discretised
        Whether they apply to a discretised problem; None if an old file does not say.
    sentence
        The bounds in words, written by the assessment.
    closed
        Whether the bounds have met, to the requested gap.
    history
        The bounds in the course of the search, if the method keeps a log.
    solver
        The name of the solver that computed the bounds.
    negligible
        Difference of objectives that is negligible: if the optimum is zero, the relative gap of the
        bounds never closes.
    rigorous
        Whether all rounding was outwards, so that the lower bound holds in exact arithmetic.
    assumed
        Bounds by key of unknowns, if they are not the problem's own.
    remark
        A sentence on further conditions of the bounds.
    measure
        The name of what is bounded: the objective, or -2 log L if the noise is estimated.
    unit
        The number to which the gap is relative, if that is not `upper`: for -2 log L the sum of
        squares at the best values.
    """

    lower: float
    upper: float
    scope: str
    sentence: str = ""
    closed: bool = False
    history: tuple[BoundStep, ...] = ()
    solver: str = field(default="", metadata=UNSAVED)
    negligible: float = field(default=0.0, metadata=UNSAVED)
    rigorous: bool = field(default=False, metadata=UNSAVED)
    assumed: Mapping[str, tuple[float, float]] = field(default_factory=dict, metadata=UNSAVED)
    remark: str = field(default="", metadata=UNSAVED)
    discretised: bool | None = field(default=None, metadata={"optional": True})
    measure: str = field(default="objective", metadata={"optional": True})
    unit: float | None = field(default=None, metadata={"optional": True})

    @property
    def gap(self) -> float:
        """The distance between the bounds, relative to the upper one, or to `unit`."""
        if self.unit:
            return (self.upper - self.lower) / self.unit
        return relative_gap(self.lower, self.upper)


@dataclass(frozen=True)
class Agreement:
    """The distance of the discretised problem's answer from the integrated trajectories.

    Attributes
    ----------
    scheme, steps
        The name of the scheme, and the number of mesh steps M.
    objective, true_objective
        The objective of the discretised answer, on the discretised and on the integrated
        trajectories; the latter is infinite if these cannot be integrated.
    error
        Largest difference of the two trajectories at the measurements, relative to the largest
        value of each observable.
    shift
        Largest relative difference between the discretised answer and the final one; infinite until
        the assessment computes it.
    sentence
        The distance in words, written by the assessment.
    vector
        The unknowns of the discretised answer, n values.
    """

    scheme: str
    steps: int
    objective: float
    true_objective: float
    error: float
    shift: float = math.inf
    sentence: str = ""
    vector: tuple[float, ...] = field(default=(), metadata=UNSAVED)

    @property
    def fine(self) -> bool:
        """True if the mesh is fine enough to be trusted on its own."""
        return self.error <= FINE_MESH_ERROR


@dataclass(frozen=True)
class Completeness:
    """The numbers of solutions that have the same outputs, and of those that were found.

    Attributes
    ----------
    possible
        The number of solutions that the structure of the equations admits, complex ones included;
        if that is not known, the number of solutions found.
    found
        The number of solutions found with the same outputs as the answer, including the answer.
    sentence
        The numbers in words, written by the assessment.
    known
        Whether `possible` is a count of all solutions.
    real
        The number of real solutions among those found.
    lost
        The number of lost paths of the search; each may have led to a missing solution.
    doubt
        Probability that the search missed a solution altogether.
    coincide
        Whether the equations are singular at the answer: solutions coincide there.
    outside
        The solutions found outside the bounds, each with its values by key; for a group of
        experiments with separate unknowns, the values of these alone.
    groups
        If experiments share no unknowns: the number of equally good solutions of each group within
        the bounds, by the names of its experiments. Each of these can be combined with each of the
        other groups, so that the total numbers are products.
    """

    possible: int
    found: int
    sentence: str = ""
    known: bool = field(default=True, metadata=UNSAVED)
    real: int = field(default=0, metadata=UNSAVED)
    lost: int = field(default=0, metadata=UNSAVED)
    doubt: float = field(default=0.0, metadata=UNSAVED)
    coincide: bool = field(default=False, metadata=UNSAVED)
    outside: tuple[Mapping[str, float], ...] = field(default=(), metadata=UNSAVED)
    groups: Mapping[str, int] = field(default_factory=dict, metadata={"optional": True})


NodeEvaluator: TypeAlias = "Callable[[Problem, Array, Nodes], tuple[Evaluation, float] | Failure]"
"""Evaluates a problem at unknowns, shape (n,), and shooting nodes.

It returns the evaluation as a function of the unknowns alone, and the largest discontinuity
relative to the sizes of the states. If an interval cannot be integrated, it returns a failure.
"""


@dataclass(frozen=True)
class Route:
    """The attempts and findings of one method that :class:`odefit.Automatic` combines.

    Attributes
    ----------
    name
        The name of the method.
    starts, failed
        The number of its starts, and of the failed ones.
    hits
        The number of its starts that ended at the lowest cost of all routes, except those that only
        returned there by iterated local search.
    objective
        The lowest objective of its starts; infinite if none has one.
    seconds
        The time spent on it.
    message
        Its end, or the reason for not using it, in words.
    cost
        The lowest cost of its starts, see :class:`Start`; None if none has one.
    """

    name: str
    starts: int
    failed: int
    hits: int
    objective: float
    seconds: float
    message: str
    cost: float | None = field(default=None, metadata={"optional": True})


@dataclass(frozen=True)
class Doubt:
    """The doubt of a best end whose residuals are not noise, or which lies beside a kink.

    Attributes
    ----------
    lost
        The unknowns that are at bounds there, or that the measurements do not determine.
    p
        The probability that noise leaves such residuals; 1 if the unknowns have no effect on this
        side of a switch or kink of the equations, whatever the residuals.
    starts
        The number of starts that searched for a better end elsewhere.
    """

    lost: tuple[str, ...]
    p: float
    starts: int = 0


@dataclass(frozen=True, eq=False)
class Estimate:
    """The findings of a method.

    Attributes
    ----------
    starts
        Every start, in the order of their numbers.
    status
        How the method ended.
    message
        The status in words.
    certificate
        Bounds of the objective, if the method proves any.
    agreement
        The distance of a discretised answer from the integrated trajectories, if the method
        discretises.
    completeness
        The number of solutions, if the method finds all.
    evaluate_nodes
        The function that evaluates an end on shooting nodes, if starts may end on them.
    routes
        The attempts of each method, if the method combines others.
    told
        The cause of an early end, if the message gives it.
    sufficient
        Whether the ends of all starts are sufficient evidence that no end is better; None if the
        method weighs no evidence.
    doubt
        The doubt of the best end that starts elsewhere have not removed.
    finding
        The message without the cause of an early end; empty if that is the whole message.
    """

    starts: Sequence[Start]
    status: Status
    message: str
    certificate: Certificate | None = None
    agreement: Agreement | None = None
    completeness: Completeness | None = None
    evaluate_nodes: NodeEvaluator | None = None
    routes: Sequence[Route] = ()
    told: Cause | None = None
    sufficient: bool | None = None
    doubt: Doubt | None = None
    finding: str = ""

    @property
    def best(self) -> Start | None:
        """The start with the lowest cost; None if all failed."""
        usable = [s for s in self.starts if s.status is not Status.FAILED]
        return min(usable, key=lambda s: (s.cost, s.index), default=None)
