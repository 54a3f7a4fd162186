"""Sides of profiles to be traced, their optimum, and the tracing of one side."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.profiles.families import Family, Point
from odefit.assessment.profiles.held import HeldUnknown
from odefit.assessment.profiles.on_nodes import HeldOnNodes, is_narrow, suits_nodes
from odefit.assessment.profiles.parts import End, Side
from odefit.assessment.profiles.pulled import PulledQuantity
from odefit.assessment.profiles.quantities import AnyQuantity
from odefit.assessment.profiles.tracing import GAIN, trace
from odefit.common.arrays import Array
from odefit.methods.local.scaling import Scaling
from odefit.methods.running.control import Control, RemoteControl
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.cut_off import cut_off
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice

MAX_OF_OTHERS = 1000
"""Number of evaluations of the model after which a side from another valley ends."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum from which profiles begin.

    `noise` holds limits of the lower and the upper side, by number, of unknowns that are factors of
    a standard deviation, and `quantities` the values of other quantities, by name.
    """

    problem: Problem
    vector: Array
    deviance: Deviance
    limit: float
    noise: dict[int, tuple[float, float]]
    quantities: dict[str, float] = field(default_factory=dict)

    def first(self, task: Task) -> float:
        """Return the coordinate of a task at the optimum."""
        if task.quantity is not None:
            return self.quantities.get(task.key, math.nan)
        return float(Scaling.of(self.problem).coordinates(self.vector)[task.index])

    def limit_of(self, task: Task) -> float:
        """Return the limit of the deviance on one side of a profile."""
        lower, upper = self.noise.get(task.index, (self.limit, self.limit))
        return lower if task.sign < 0 else upper


@dataclass(frozen=True)
class Task:
    """One side of one profile: of an unknown by its number, or of a quantity.

    It begins at the optimum, or at `start`, an optimum of another valley. From there it is traced
    outwards, or back to the value at the optimum if it is `inward`. With a `fit`, a point of that
    curve, the task is one more point, at the coordinate `at`, instead of a side. A side ends after
    `most` evaluations, None for the usual number.
    """

    key: str
    sign: int
    index: int
    quantity: AnyQuantity | None
    start: tuple[float, ...] = ()
    inward: bool = False
    at: float | None = None
    fit: tuple[float, ...] = ()
    most: int | None = None

    @property
    def side(self) -> Task:
        """The side itself, from the optimum."""
        return replace(self, start=(), inward=False, at=None, fit=())

    @property
    def curve(self) -> Task:
        """The curve of a point."""
        return replace(self, at=None, fit=())


def traced_side(best: Optimum, forward: ForwardMap, task: tuple[Task, RemoteControl]) -> Side:
    """Trace a side in a worker process, which caches the compiled model."""
    with task[1].running() as control:
        return side_of(forward, best, task[0], control)


def side_of(forward: ForwardMap, best: Optimum, task: Task, control: Control) -> Side:
    """Return one side of a profile, not affected by integrations that were cut off."""
    with np.errstate(all="ignore"):  # an overflow is infinite, and not a point of a profile
        side = _whole_side(forward, best, task, control)
    return replace(side, end="stopped") if side.end == "failed" and cut_off().reached else side


def _whole_side(forward: ForwardMap, best: Optimum, task: Task, control: Control) -> Side:
    n, vector = len(best.vector), np.array(task.fit or task.start or best.vector)
    evaluation = forward.evaluate(vector, UNDECIDED)
    if isinstance(evaluation, Failure):
        return side_without_points(n, "failed", str(evaluation))
    unit, choice = best.deviance.variance, evaluation.choice
    if task.at is not None:
        return _one_point(forward, best, task, task.at, choice, control)

    def traced(family: Family, logarithmic: bool) -> Side:
        first = family.first()
        if isinstance(first, str):
            return side_without_points(n, "stopped" if control.should_stop() else "failed", first)
        limit = best.limit_of(task)
        stop = control.should_stop
        most = MAX_OF_OTHERS if task.start else task.most
        sign, edge = task.sign, None
        if task.inward:
            sign, edge = -sign, float(Scaling.of(best.problem).coordinates(best.vector)[task.index])
        side = trace(family, first, sign, best.deviance, limit, logarithmic, stop, most, edge)
        return _with_first(side, first, best.deviance) if task.start else side

    if task.quantity is not None:
        return traced(PulledQuantity(forward, task.quantity, vector, choice, unit), False)
    logarithmic = best.problem.unknowns[task.index].parameter.scale == "log10"
    nodes = forward.nodes is None and suits_nodes(best.problem)
    tried = None
    if not task.start and not begins_on_nodes(forward, best, evaluation):
        tried = traced(HeldUnknown(forward, task.index, vector, choice, unit), logarithmic)
        if tried.end not in ("failed", "points") or not nodes:
            return tried
    on_nodes = HeldOnNodes(forward, task.index, vector, choice, unit, control.should_stop)
    side = traced(on_nodes, logarithmic)
    if side.end == "better":
        side = replace(side, better=on_nodes.best())
    elif tried is None and not task.start:
        side = _with_optima(side, on_nodes, best)
        if control.should_stop():  # optima needed to check limits may be missing
            side = replace(side, end="stopped", limit=math.nan)
    # Those of the first point count, too: a fit of another profile takes hundreds.
    counts = on_nodes.evaluations, on_nodes.minimisations
    side = replace(side, evaluations=counts[0], minimisations=counts[1])
    if tried is None:
        return side
    result = tried if side.end in ("failed", "points") else side
    return replace(
        result,
        evaluations=tried.evaluations + side.evaluations,
        minimisations=tried.minimisations + side.minimisations,
    )


def begins_on_nodes(forward: ForwardMap, best: Optimum, at: Evaluation | Failure) -> bool:
    """Return whether sides are traced on nodes from the beginning, as their valley is narrow.

    The optimum has been evaluated `at` its vector.
    """
    if forward.nodes is not None or isinstance(at, Failure) or not suits_nodes(best.problem):
        return False
    return is_narrow(at, best.vector, best.deviance.variance)


def _one_point(
    forward: ForwardMap,
    best: Optimum,
    task: Task,
    at: float,
    choice: EngineChoice,
    control: Control,
) -> Side:
    """Return one more point of a curve, from another point of it."""
    deviance, stop = best.deviance, control.should_stop
    fit = np.array(task.fit)
    on_nodes = HeldOnNodes(forward, task.index, fit, choice, deviance.variance, stop)
    point: Point | str = on_nodes.first()
    if isinstance(point, Point):
        gain = 0.5 * GAIN * best.limit * deviance.variance
        point = on_nodes.point([point], at, gain)
    if isinstance(point, Point):
        side = _with_first(side_without_points(len(fit), "points", ""), point, deviance)
    else:
        side = side_without_points(len(fit), "stopped" if stop() else "failed", str(point))
    counts = on_nodes.evaluations, on_nodes.minimisations
    return replace(side, evaluations=counts[0], minimisations=counts[1])


def _with_optima(side: Side, on_nodes: HeldOnNodes, best: Optimum) -> Side:
    """Return a side with the optima to which it leads."""
    highest = best.deviance.minimum + 0.5 * best.limit * best.deviance.variance
    gain = 0.5 * GAIN * best.limit * best.deviance.variance
    return replace(side, optima=on_nodes.optima(highest, gain))


def _with_first(side: Side, first: Point, deviance: Deviance) -> Side:
    """Return a side that begins at a fit other than the estimate, as its first point."""
    return replace(
        side,
        at=np.concatenate([[first.at], side.at]),
        deviances=np.concatenate([[deviance.at(first.cost)], side.deviances]),
        slopes=np.concatenate([[2 / deviance.variance * first.slope], side.slopes]),
        vectors=np.concatenate([first.vector[None, :], side.vectors]),
    )


def side_without_points(n: int, end: End, reason: str) -> Side:
    """Return a side without points."""
    none, vectors = np.zeros(0), np.zeros((0, n))
    return Side(none, none, none, vectors, math.nan, end, reason, none, 0, 0)
