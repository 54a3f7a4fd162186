"""What there is to trace: sides of profiles, and the optimum that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, replace

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles.quantities import Quantity
from odefit.common.arrays import Array
from odefit.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum that profiles begin from.

    `noise` holds limits of the lower and the upper side, by number, of unknowns that are factors of
    a standard deviation.
    """

    problem: Problem
    vector: Array
    deviance: Deviance
    limit: float
    noise: dict[int, tuple[float, float]]

    def limit_of(self, task: Task) -> float:
        """Return the limit of the deviance on one side of a profile."""
        lower, upper = self.noise.get(task.index, (self.limit, self.limit))
        return lower if task.sign < 0 else upper


@dataclass(frozen=True)
class Task:
    """One side of one profile: of an unknown by its number, or of a quantity.

    It begins at the optimum, or at `start`, an optimum of another valley. From there it is traced
    outwards, or back to the value at the optimum where it is `inward`. Where there is a `fit`, a
    point of that curve, the task is one more point, at the coordinate `at`, instead of a side.
    """

    key: str
    sign: int
    index: int
    quantity: Quantity | None
    start: tuple[float, ...] = ()
    inward: bool = False
    at: float | None = None
    fit: tuple[float, ...] = ()

    @property
    def side(self) -> Task:
        """The side itself, from the optimum."""
        return replace(self, start=(), inward=False, at=None, fit=())

    @property
    def curve(self) -> Task:
        """The curve that a point belongs to."""
        return replace(self, at=None, fit=())
