"""What an answer is worth: the parts of the assessment, as plain values.

Each part says only what was shown: ``local`` never speaks of other optima, ``complete`` counts
solutions, ``bounds`` (DESIGN's ``global``) holds a lower bound together with its scope.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from odefit.methods.estimate import BoundStep
from odefit.problem.arrays import Array

AGREES = 1e-2
"""Relative error of discretised trajectories up to which a mesh counts as fine enough."""

Trouble = Literal["no effect", "not determined", "weakly determined", "at a bound", "fixed"]
"""Why an unknown has no standard error, or one to be taken with care."""


@dataclass(frozen=True)
class Local:
    """Is the answer a local optimum, on the true (integrated) trajectories?

    Attributes
    ----------
    optimal
        First-order conditions hold: the step to the minimum of the local quadratic model is
        below `tolerance`, relative.
    gradient
        Norm of the projected gradient in the units of the residuals (root of the decrease
        that the local quadratic model still promises, over that of the objective).
    tolerance
        What `gradient` is compared with.
    curvature
        Smallest singular value of the scaled Jacobian over its largest; 0 if some direction
        does not matter at all.
    sentence
        All this in words.
    """

    optimal: bool
    gradient: float
    tolerance: float
    curvature: float
    sentence: str


@dataclass(frozen=True)
class Complete:
    """How many of all structurally possible solutions were found."""

    possible: int
    found: int
    sentence: str


@dataclass(frozen=True)
class Bounds:
    """A certificate: no answer within the bounds is better than `lower`, in `scope`.

    Attributes
    ----------
    lower, upper
        Of the objective.
    scope
        What they are bounds of, e.g. ``"discretised (trapezoid, M = 100)"``.
    sentence
        All this in words.
    closed
        The bounds have met, for what the method was asked.
    history
        How they came together, where the method keeps a log.
    """

    lower: float
    upper: float
    scope: str
    sentence: str
    closed: bool = False
    history: tuple[BoundStep, ...] = ()

    @property
    def gap(self) -> float:
        """Relative distance between the bounds, ``(upper - lower) / |upper|``."""
        difference = self.upper - self.lower
        if difference == 0:
            return 0.0
        return difference / abs(self.upper) if self.upper else math.inf


@dataclass(frozen=True)
class Discretisation:
    """What the answer of a discretised problem is worth on the true trajectories.

    Attributes
    ----------
    scheme, steps
        How it was discretised, and the number of mesh steps M.
    objective, true_objective
        Of the discretised answer, on the discretised and on the true trajectories; the latter
        is infinite where these cannot be integrated.
    error
        Largest difference of the two trajectories at the measurements, relative to the largest
        value of each observable.
    shift
        Largest relative difference between the discretised answer and the final one.
    sentence
        All this in words.
    """

    scheme: str
    steps: int
    objective: float
    true_objective: float
    error: float
    shift: float
    sentence: str

    @property
    def fine(self) -> bool:
        """The mesh is fine enough to be believed on its own."""
        return self.error <= AGREES


@dataclass(frozen=True)
class Continuity:
    """How a trajectory through nodes is to be read.

    Attributes
    ----------
    nodes
        How many.
    gap
        The largest discontinuity there, relative to the sizes of the states.
    constraints
        Conditions beside the data that hold.
    fine
        Whether it counts as continuous.
    sentence
        All this in words.
    """

    nodes: int
    gap: float
    constraints: tuple[str, ...]
    fine: bool
    sentence: str


@dataclass(frozen=True)
class Assessment:
    """What is proved of an answer, and on what."""

    local: Local | None = None
    complete: Complete | None = None
    bounds: Bounds | None = None
    discretisation: Discretisation | None = None
    continuity: Continuity | None = None


@dataclass(frozen=True)
class Direction:
    """A direction in which the data do not determine the unknowns.

    Attributes
    ----------
    keys
        The unknowns that take part, the most involved first.
    weights
        Their shares in the direction: relative changes (or absolute ones, for unknowns that
        are zero), of the same length.
    sentence
        In words, e.g. ``"k2 and k5 only as the product k2*k5"``.
    """

    keys: tuple[str, ...]
    weights: tuple[float, ...]
    sentence: str


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How far the data determine the unknowns.

    Attributes
    ----------
    keys
        The unknowns, n of them.
    standard_errors
        Shape (n,), NaN where there is none.
    intervals
        Confidence intervals, shape (n, 2), NaN where there are none; natural units.
    covariance, correlation
        Shape (n, n), NaN in rows of unknowns without standard error.
    level
        Of the intervals, e.g. 0.95.
    degrees_of_freedom
        Of the t distribution; infinite where the noise is given.
    variance
        Estimated residual variance (1 where the noise is given or estimated as unknown).
    rank
        Number of determined directions.
    directions
        Those that are not.
    trouble
        By key, why there is no standard error or why to mistrust it.
    sentence
        All this in words.
    """

    keys: tuple[str, ...]
    standard_errors: Array
    intervals: Array
    covariance: Array
    correlation: Array
    level: float
    degrees_of_freedom: float
    variance: float
    rank: int
    directions: tuple[Direction, ...] = ()
    trouble: dict[str, Trouble] = field(default_factory=dict)
    sentence: str = ""
