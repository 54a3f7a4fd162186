"""The best fits with one unknown held, on shooting nodes, for narrow and long valleys.

Each point joins its intervals: it is the best fit of the problem itself, without gaps. Nodes are
placed at the data, and wherever deviations grow much. If the trajectory follows an unstable
solution for so long that rounding of the unknowns alone moves it, there is no point: one
integration could not follow it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from odefit.assessment.profiles.continuity import Curvature, Joint, JointProblem, Straightened
from odefit.assessment.profiles.families import Final, Point
from odefit.assessment.profiles.joined import JoinedMinimum, Minimiser
from odefit.common.arrays import Array, IntArray
from odefit.methods.local.scaling import Scaling
from odefit.problem.binding import scalar_value
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.features import integrated_features
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice
from odefit.simulation.nodes import node_names
from odefit.simulation.trajectories.trajectory import Trajectory

NARROW = 1e5
"""Effect of a change by a factor e, in standard deviations, above which fits are on nodes."""

UNSTABLE = 1e14
"""Effect of a change of the unknowns by a factor e above which rounding moves the trajectory."""

CLOSE = 0.02
"""Step, relative to the distance from the estimate, up to which no shorter one is tried."""

MAX_REFINEMENTS = 6
"""Largest number of times that intervals are halved at one point."""

FIRST_GAIN = 1e-5
"""Decrease of the cost, in variances of the residuals, that counts as zero at the optimum."""

STOPPED = "the refit was stopped before its optimum"
"""The reason for a missing point if time was up."""

DIFFERENCE = 1e-3
"""Step of the unknown, in its coordinate, for the change of the Lagrangian with it."""


def suits_nodes(problem: Problem) -> bool:
    """Return whether trajectories of a problem can restart at nodes."""
    with_data = all(np.any(c.times > c.t0) for c in problem.conditions)
    return with_data and not integrated_features(problem, on_nodes=True)


def is_narrow(evaluation: Evaluation, vector: Array, unit: float) -> bool:
    """Return whether the valley of the best fits is narrow at an optimum."""
    effects = evaluation.jacobian * vector
    return bool(np.linalg.norm(effects, 2) > NARROW * math.sqrt(unit))


@dataclass(frozen=True, eq=False, kw_only=True)
class NodePoint(Point):
    """The best fit at one value of an unknown, on nodes.

    `nodes` and `nodes_tangent` are coordinates of the nodes, shape (K, N), and their derivatives by
    that of the profile; `units` suit its neighbourhood. `bend` holds second derivatives of the
    Lagrangian, None if they could not be computed. `stiffness` is the effect of a change of the
    unknowns by a factor e on one integration.
    """

    problem: JointProblem
    units: Array
    nodes: Array
    nodes_tangent: Array
    bend: Curvature | None
    stiffness: float


class HeldOnNodes:
    """The best fits with one unknown held, on nodes; arguments as those of `HeldUnknown`.

    When `stop` returns True, there is no further point, only a reason.
    """

    exact = True

    def __init__(
        self,
        forward: ForwardMap,
        index: int,
        vector: Array,
        choice: EngineChoice,
        unit: float,
        stop: Callable[[], bool],
    ) -> None:
        self.evaluations = self.minimisations = 0
        self._stop = stop
        self._forward, self._problem, self._index = forward, forward.problem, index
        self._optimum = np.clip(vector, forward.problem.lower, forward.problem.upper)
        self._choice, self._unit = choice, unit
        self._everything: IntArray = np.arange(len(vector))
        self._others: IntArray = self._everything[self._everything != index]
        self._logarithmic = self._problem.unknowns[index].parameter.scale == "log10"
        scaling = Scaling.of(self._problem)
        self.lower, self.upper = float(scaling.lower[index]), float(scaling.upper[index])
        self._origin = self._at(self._optimum)
        self._reached: list[NodePoint] = []

    def _at(self, vector: Array) -> float:
        value = float(vector[self._index])
        return math.log10(value) if self._logarithmic else value

    def first(self) -> NodePoint | str:
        """Return the point of the optimum, or why it is missing."""
        x = self._optimum
        times = []
        for c in self._problem.conditions:
            inner = np.unique(c.times[(c.times > c.t0) & (c.times < c.times[-1])])
            times.append(np.concatenate([[c.t0], inner]))
        units = np.maximum(np.abs(x), 1e-300)
        for _ in range(MAX_REFINEMENTS):
            problem = JointProblem(self._forward, times, x)
            states = []
            for condition, t in zip(self._problem.conditions, times, strict=True):
                trajectory = self._forward.trajectory(x, condition.name, t, sensitivities=False)
                if isinstance(trajectory, Failure):
                    return str(trajectory)
                states.append(self._with_switched(condition, trajectory))
            coordinates = Straightened.of(self._problem, units)
            unknowns, nodes = coordinates.of_vector(x), problem.of_nodes(np.concatenate(states))
            at = self._evaluated(problem, coordinates, unknowns, nodes)
            if isinstance(at, str):
                return at
            units = problem.units(at, coordinates)
            finer = problem.finer(at)
            if finer is None:
                break
            times = finer
        coordinates = Straightened.of(self._problem, units)
        minimiser = self._minimiser(problem, coordinates, self._others)
        gain = FIRST_GAIN * self._unit
        minimum = self._converged(minimiser.minimise(coordinates.of_vector(x), nodes, gain, None))
        if isinstance(minimum, str):
            return minimum
        stiffness = problem.stiffness(minimum.at)
        return self._point(self._origin, problem, coordinates, minimum, minimum.steps, stiffness)

    def _with_switched(self, condition: Condition, trajectory: Trajectory) -> Array:
        """Return the values of nodes: the states, and the constants that events assign."""
        columns = [*trajectory.states.T]
        names = node_names(self._forward.field, self._problem.conditions)
        for name in names[trajectory.states.shape[1] :]:
            if name in trajectory.switched:
                columns.append(trajectory.switched[name][0])
            else:  # events of other conditions assign it
                value = scalar_value(name, condition.scalars, self._optimum).value
                columns.append(np.full(len(trajectory.times), value))
        return np.column_stack(columns)

    def point(self, near: Sequence[Point], at: float, gain: float) -> NodePoint | str:
        """Return the point at a value, or a reason; see :class:`Family`."""
        points = [p for p in near if isinstance(p, NodePoint)]
        here = points[-1]
        self._choice = here.choice
        problem, coordinates = here.problem, Straightened.of(self._problem, here.units)
        unknowns, nodes = self._predicted(points, at, coordinates)
        minimiser = self._minimiser(problem, coordinates, self._others)
        outcome = self._converged(minimiser.minimise(unknowns, nodes, gain, here.bend))
        self.minimisations += 1
        steps = 0 if isinstance(outcome, str) else outcome.steps
        for _ in range(MAX_REFINEMENTS):
            if isinstance(outcome, str):
                return outcome
            finer = problem.finer(outcome.at)
            if finer is None:
                break
            refined = JointProblem(self._forward, finer, outcome.at.vector)
            self.evaluations += 1
            carried = refined.carried(problem, outcome.at, coordinates)
            if isinstance(carried, str):
                return carried
            problem = refined
            minimiser = self._minimiser(problem, coordinates, self._others)
            outcome = self._converged(minimiser.minimise(outcome.at.unknowns, carried, gain, None))
        if isinstance(outcome, str):
            return outcome
        stiffness = problem.stiffness(outcome.at)
        if stiffness > UNSTABLE:
            reason = (
                "the best fits follow an unstable solution from there on: a change of the "
                f"unknowns by {1 / stiffness:.0e} moves their trajectories by a standard "
                "deviation, so no integration from the initial values can follow them"
            )
            far = abs(at - here.at) > CLOSE * abs(at - self._origin)
            return reason if far else Final(reason)
        return self._point(at, problem, coordinates, outcome, steps, stiffness)

    def best(self) -> Array:
        """Return the best fit reached from the lowest point so far, shape (n,).

        No unknown is held. At least one point must exist.
        """
        point = min(self._reached, key=lambda p: p.cost)
        released = self._released(point, FIRST_GAIN * self._unit)
        return point.vector if released is None else released

    def optima(self, highest: float, gain: float) -> Array:
        """Return the optima of all unknowns reached from this side, shape (k, n).

        Refits with nothing held begin at the outermost point and at each minimum of the curve whose
        cost is at most `highest`. There they show whether a side has passed into another valley.
        """
        points = sorted(self._reached, key=lambda p: abs(p.at - self._origin))[1:]
        points = [p for p in points if p.cost <= highest]
        costs = [p.cost for p in points]
        begun = [
            p
            for k, p in enumerate(points)
            if k == len(points) - 1 or (k > 0 and costs[k - 1] > costs[k] <= costs[k + 1])
        ]
        released = [self._released(p, gain) for p in begun]
        self.minimisations += len(begun)
        return np.array([f for f in released if f is not None]).reshape(-1, len(self._optimum))

    def _released(self, point: NodePoint, gain: float) -> Array | None:
        """Return the best fit reached from a point with nothing held, or None."""
        coordinates = Straightened.of(self._problem, point.units)
        minimiser = self._minimiser(point.problem, coordinates, self._everything)
        unknowns = coordinates.of_vector(point.vector)
        outcome = self._converged(minimiser.minimise(unknowns, point.nodes, gain, None))
        return None if isinstance(outcome, str) else outcome.at.vector

    # ------------------------------------------------------------------------------------------

    def _evaluated(
        self, problem: JointProblem, coordinates: Straightened, unknowns: Array, nodes: Array
    ) -> Joint | str:
        self.evaluations += 1
        evaluated = problem.evaluate(coordinates, unknowns, nodes, self._choice)
        if not isinstance(evaluated, str):
            self._choice = evaluated.choice
        return evaluated

    def _converged(self, minimum: JoinedMinimum | str) -> JoinedMinimum | str:
        """Return a minimum, or a reason: the best point so far is not on the profile."""
        return STOPPED if isinstance(minimum, JoinedMinimum) and minimum.stopped else minimum

    def _minimiser(
        self, problem: JointProblem, coordinates: Straightened, others: IntArray
    ) -> Minimiser:
        def evaluate(unknowns: Array, nodes: Array) -> Joint | str:
            return self._evaluated(problem, coordinates, unknowns, nodes)

        return Minimiser(problem, coordinates, others, evaluate, self._stop)

    def _predicted(
        self, points: Sequence[NodePoint], at: float, coordinates: Straightened
    ) -> tuple[Array, Array]:
        """Return the predicted coordinates of unknowns and nodes, to second order."""
        here, h = points[-1], at - points[-1].at
        unknowns, nodes = coordinates.of_vector(here.vector), here.nodes.copy()
        if here.tangent.any():
            slope = here.tangent / coordinates.derivative(here.vector)
            unknowns += h * slope
            nodes += h * here.nodes_tangent
            before = points[-2] if len(points) > 1 else here
            if before.at != here.at and before.problem is here.problem:
                old = before.tangent / coordinates.derivative(before.vector)
                factor = 0.5 * h * h / (here.at - before.at)
                both = (here.tangent != 0) & (before.tangent != 0)
                unknowns += np.where(both, factor * (slope - old), 0.0)
                nodes += factor * (here.nodes_tangent - before.nodes_tangent)
        value_column = np.full(len(unknowns), 10**at if self._logarithmic else at)
        unknowns = np.clip(unknowns, coordinates.lower, coordinates.upper)
        unknowns[self._index] = coordinates.of_vector(value_column)[self._index]
        return unknowns, nodes

    def _point(
        self,
        at: float,
        problem: JointProblem,
        coordinates: Straightened,
        minimum: JoinedMinimum,
        steps: int,
        stiffness: float,
    ) -> NodePoint:
        """Return the point of a minimum, with the derivatives of the curve of minima."""
        here, tangents, near = minimum.at, minimum.tangents, minimum.near
        n, vector = len(here.vector), here.vector
        minimiser = self._minimiser(problem, coordinates, self._others)
        bend = minimiser.curvature(here, tangents, near, minimum.multipliers)
        derivative = math.log(10) * float(vector[self._index]) if self._logarithmic else 1.0
        factor = derivative / coordinates.derivative(vector)[self._index]
        column = here.by_coordinate[:, self._index] * factor
        condition = here.gaps_by_coordinate[:, self._index] * factor
        # First a step that satisfies the conditions, then the one of these that stays at a minimum.
        along = tangents.unmoved(tangents.correction(condition), near)
        basis = tangents.within(near)
        rows = tangents.rows @ basis
        matrix = rows.T @ rows
        gradient = rows.T @ (column + tangents.rows @ along)
        if bend is not None:
            shift = np.zeros(n)
            shift[self._index] = DIFFERENCE * factor
            beside = minimiser.moved(here, tangents, DIFFERENCE * along, shift)
            if not isinstance(beside, str):
                matrix = matrix + bend.on(basis)
                change = minimiser.lagrangian(beside, tangents, minimum.multipliers)
                change -= minimiser.lagrangian(here, tangents, minimum.multipliers)
                gradient = basis.T @ change / DIFFERENCE
        values, vectors = np.linalg.eigh(matrix)
        significant = values > 1e-8 * max(float(values.max(initial=0.0)), 1e-300)
        parts = (vectors[:, significant].T @ gradient) / values[significant]
        along = along - basis @ (vectors[:, significant] @ parts)
        response = column + tangents.rows @ along
        full = np.zeros(here.by_coordinate.shape[1])
        full[tangents.columns] = along
        tangent = full[:n] * coordinates.derivative(vector)
        tangent[self._index] = derivative
        nodes_tangent = np.zeros_like(here.nodes)
        nodes_tangent[problem.inner] = full[n:].reshape(len(problem.inner), -1)
        units = problem.units(here, coordinates)
        node_point = NodePoint(
            at,
            here.cost,
            # At a minimum, the derivative of the Lagrangian by the unknown alone.
            float(column @ here.residuals + condition @ minimum.multipliers),
            float(response @ response),
            vector,
            tangent,
            np.abs(vector) / units,
            here.residuals,
            here.by_coordinate[:, :n] / coordinates.derivative(vector),
            here.choice,
            steps,
            problem=problem,
            units=units,
            nodes=here.nodes,
            nodes_tangent=nodes_tangent,
            bend=bend,
            stiffness=stiffness,
        )
        self._reached.append(node_point)
        return node_point
