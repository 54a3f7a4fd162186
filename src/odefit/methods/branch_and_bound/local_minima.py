"""Upper bounds of the objective: at a point, or at a local minimum next to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odefit.common.arrays import Array
from odefit.enclosure.arithmetic.rounding import ROUNDING_MARGIN
from odefit.enclosure.residuals import Residuals
from odefit.methods.branch_and_bound.node_evaluator import ResidualEnclosure
from odefit.methods.local.stopping import Tolerances
from odefit.methods.local.trust_region import minimise
from odefit.methods.running.control import GRACE_SECONDS
from odefit.simulation.engines.cut_off import CutOff, cut_off, cutting_off

DIFFERENCE_STEP = 1e-5
"""Half width, relative to the unknowns, of the boxes whose linear terms serve as derivatives."""

MIN_DIFFERENCE_STEP = 1e-9
"""Smallest half width of these boxes, relative to the range of the unknowns."""

TOLERANCES = Tolerances(cost=1e-10, step=1e-10, evaluations=100, patience=40)
"""Tolerances at which the local minimisation ends."""


@dataclass(frozen=True, eq=False)
class Point:
    """The enclosed residuals, shape (R,), and their Jacobian, (R, n), around one point.

    `objective` is an upper bound of the objective at the point.
    """

    cost: float
    residuals: Array
    jacobian: Array
    objective: float


def objective_at(enclosure: ResidualEnclosure, vector: Array) -> float:
    """Return an upper bound of the objective at a point, shape (n,); infinite if unknown."""
    return float(objectives_at(enclosure, vector[None])[0])


def late_objective_at(enclosure: ResidualEnclosure, vector: Array) -> float:
    """Return the same, also for a search that was cut off before, if it takes no longer than usual.

    After a cut-off nothing else would be computed (:mod:`odefit.simulation.engines.cut_off`).
    """
    if not cut_off().reached:
        return objective_at(enclosure, vector)
    late = CutOff()
    timer = threading.Timer(GRACE_SECONDS, late.now)
    timer.start()
    try:
        with cutting_off(late):
            return objective_at(enclosure, vector)
    finally:
        timer.cancel()


def objectives_at(enclosure: ResidualEnclosure, vectors: Array) -> Array:
    """Return upper bounds of the objective at points, shape (m, n); infinite where unknown."""
    return upper_bounds(enclosure(vectors, vectors))


def upper_bounds(residuals: Residuals) -> Array:
    """Return upper bounds of the sums of squares over B boxes, shape (B,); infinite if unknown."""
    with np.errstate(all="ignore"):
        sizes = np.abs(residuals.c).sum(axis=1) + residuals.remainder
        totals = np.einsum("rb,rb->b", sizes, sizes) * ROUNDING_MARGIN
    return np.where(np.isfinite(totals), totals, np.inf)


def linearised(
    enclosure: ResidualEnclosure, vector: Array, lower: Array, upper: Array
) -> Point | None:
    """Return the residuals and their Jacobian at a point, shape (n,); None if unknown."""
    return around(enclosure, vector, lower, upper)[1]


def around(
    enclosure: ResidualEnclosure, vector: Array, lower: Array, upper: Array
) -> tuple[float, Point | None]:
    """Return an upper bound of the objective at a point, shape (n,), and what it is linearised.

    The point and a small box around it are enclosed together, which takes no longer than one.
    """
    span = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    half = np.maximum(DIFFERENCE_STEP * np.abs(vector), MIN_DIFFERENCE_STEP * span)
    enclosed = enclosure(np.stack([vector, vector - half]), np.stack([vector, vector + half]))
    objective = float(upper_bounds(enclosed)[0])
    residuals = enclosed.c[:, 0, 1]
    jacobian = enclosed.c[:, enclosure.monomials.linear, 1] / np.where(half > 0, half, 1.0)
    if not (np.isfinite(enclosed.remainder[:, 1]).all() and np.isfinite(jacobian).all()):
        return objective, None
    return objective, Point(0.5 * float(residuals @ residuals), residuals, jacobian, objective)


def local_minimum(
    enclosure: ResidualEnclosure,
    start: Array,
    lower: Array,
    upper: Array,
    stop: Callable[[], bool],
    enough: float = 0.0,
) -> tuple[Array, float]:
    """Return a local minimum next to `start`, shape (n,), and an upper bound of its objective.

    A start whose objective is `enough` is not improved.
    """
    start = np.clip(start, lower, upper)
    if not enclosure.monomials.linear:
        return start, objective_at(enclosure, start)
    objective, first = around(enclosure, start, lower, upper)
    if objective <= enough:
        return start, objective

    def evaluate(vector: Array) -> Point | None:
        if np.array_equal(vector, start):
            return first
        return linearised(enclosure, vector, lower, upper)

    minimum = minimise(evaluate, start, lower, upper, TOLERANCES, stop)
    end = minimum.evaluation
    if isinstance(end, Point) and end.objective <= objective:
        return minimum.vector, end.objective
    return start, objective
