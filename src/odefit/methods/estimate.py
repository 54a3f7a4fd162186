"""What a method returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from odefit.problem.algebras import Array


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
    """

    starts: Sequence[Start]
    status: Status
    message: str

    @property
    def best(self) -> Start | None:
        """The attempt with the lowest cost; None if all failed."""
        usable = [s for s in self.starts if s.status is not Status.FAILED]
        return min(usable, key=lambda s: (s.cost, s.index), default=None)
