"""The best fits with one unknown held at a value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from odefit.assessment.profiles.coordinates import Coordinates
from odefit.assessment.profiles.families import (
    ASTRAY,
    STALLED,
    Common,
    Model,
    Point,
    bend,
    between,
    unbound,
)
from odefit.assessment.profiles.pulled import OwnCoordinate, PulledQuantity
from odefit.common.arrays import Array, IntArray
from odefit.common.effects import RANK_TOLERANCE, column_norms
from odefit.methods.local.scaling import Scaling
from odefit.methods.local.stopping import Tolerances
from odefit.methods.local.trust_region import bounded_step, minimise, promised_decrease
from odefit.methods.local.variable_projection import VariableProjection
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice


class HeldUnknown(Common):
    """The best fits with unknown number `index` held; `unit` is the variance of the residuals."""

    exact = True

    def __init__(
        self,
        forward: ForwardMap,
        index: int,
        vector: Array,
        choice: EngineChoice,
        unit: float,
    ) -> None:
        super().__init__(forward, vector, choice, unit)
        projection = VariableProjection(forward)
        if index not in projection.remaining:
            projection = VariableProjection(forward, eliminate=False)
        self._projection = projection
        self._index = index
        self._others: IntArray = projection.remaining[projection.remaining != index]
        self._logarithmic = self._problem.unknowns[index].parameter.scale == "log10"
        scaling = Scaling.of(self._problem)
        self.lower = float(scaling.lower[index])
        self.upper = float(scaling.upper[index])

    def first(self) -> Point | str:
        x = self._optimum
        at = math.log10(x[self._index]) if self._logarithmic else float(x[self._index])
        coordinates = Coordinates.of(self._problem, x, np.full(len(x), math.inf))
        return self._solve(at, [coordinates.of_vector(x)], coordinates, self._choice, math.inf)

    def point(self, near: Sequence[Point], at: float, gain: float) -> Point | str:
        here = near[-1]
        coordinates = Coordinates.of(self._problem, here.vector, here.effects)
        starts = [self._predicted(near, at, coordinates), coordinates.of_vector(here.vector)]
        sensible, beside = (here.cost + part * self._sd**2 for part in (ASTRAY, STALLED))
        outcome = self._solve(at, starts, coordinates, here.choice, gain, sensible, beside)
        if isinstance(outcome, str) and math.isfinite(gain):
            # If the others cannot follow at once, the unknown is pulled instead of held.
            pulled = self._pulled(here)
            again = pulled.point([here], at, gain)
            self.evaluations += pulled.evaluations
            self.minimisations += pulled.minimisations
            if not isinstance(again, str) and (again.at - here.at) * (at - here.at) > 0:
                return again
        return outcome

    def coordinate(self, values: Array) -> Array:
        """Return the coordinates of some values of the unknown."""
        return np.log10(values) if self._logarithmic else np.asarray(values)

    def lowest(self, near: Point, at: float, gain: float, evaluations: int) -> float:
        """Return the lowest cost at a value found by a few evaluations; infinite if they fail."""
        coordinates = Coordinates.of(self._problem, near.vector, near.effects)
        start = self._predicted([near], at, coordinates)
        others = self._others
        low, high = coordinates.lower[others], coordinates.upper[others]

        def evaluate(u: Array) -> Model | None:
            return self._model(at, u, start, coordinates)

        tolerances = Tolerances(evaluations=evaluations, patience=evaluations + 1, least=gain)
        minimum = minimise(evaluate, start[others], low, high, tolerances)
        evaluation = minimum.evaluation
        if evaluation is None:
            return math.inf
        # The predicted gain of a further step is counted.
        at_end = evaluation.residuals, evaluation.jacobian, minimum.vector
        return evaluation.cost - promised_decrease(*at_end, low, high)

    def _pulled(self, here: Point) -> PulledQuantity:
        coordinate = OwnCoordinate(self._index, self._logarithmic)
        pulled = PulledQuantity(self._forward, coordinate, here.vector, here.choice, self._sd**2)
        pulled.stiffen(here)
        return pulled

    def _predicted(self, near: Sequence[Point], at: float, coordinates: Coordinates) -> Array:
        """Return the predicted coordinates, shape (n,).

        The step leads to the minimum of the Gauss-Newton model within the bounds; if no bound is
        active, it is the tangent of the implicit function theorem.
        """
        interpolated = between(near, at, coordinates)
        if interpolated is not None:
            return interpolated
        here, others = near[-1], self._others
        u = coordinates.of_vector(here.vector)
        jacobian = here.jacobian * coordinates.derivative(here.vector)
        derivative = here.jacobian[:, self._index] * self._factor(here.vector)
        u[others] += bounded_step(
            here.residuals + derivative * (at - here.at),
            jacobian[:, others],
            u[others],
            coordinates.lower[others],
            coordinates.upper[others],
            self._slack,
        )
        return np.asarray(u + bend(near, at, coordinates))

    def _solve(
        self,
        at: float,
        starts: Sequence[Array],
        coordinates: Coordinates,
        choice: EngineChoice,
        gain: float,
        sensible: float = math.inf,
        beside: float = -math.inf,
    ) -> Point | str:
        self._choice = choice
        others = self._others
        low, high = coordinates.lower[others], coordinates.upper[others]

        def evaluate(u: Array) -> Model | None:
            return self._model(at, u, starts[-1], coordinates)

        parts = [u[others] for u in starts]
        outcome = self._minimised(evaluate, coordinates, parts, low, high, gain, sensible, beside)
        if isinstance(outcome, str):
            return outcome
        model, u = outcome
        gradient = model.full.T @ model.residuals
        column = model.full[:, self._index]
        free = others[unbound(u, gradient[others], low, high)]
        tangent = np.zeros(len(starts[-1]))
        tangent[free] = -_pseudo_solve(model.full[:, free], column)
        along = column + model.full @ tangent
        factor = self._factor(model.vector)
        tangent *= coordinates.derivative(model.vector)
        tangent[self._index] = factor
        return Point(
            at,
            model.cost,
            # At a minimum, the derivative by the unknown itself; errors of the others cancel.
            float(along @ model.residuals),
            float(along @ along),
            model.vector,
            tangent,
            self._effects(model),
            model.residuals,
            model.natural,
            model.evaluation.choice,
        )

    def _factor(self, vector: Array) -> float:
        """Return the derivative of the unknown by the coordinate of the profile."""
        return math.log(10) * float(vector[self._index]) if self._logarithmic else 1.0

    def _model(self, at: float, u: Array, start: Array, coordinates: Coordinates) -> Model | None:
        everything = start.copy()
        everything[self._others] = u
        with np.errstate(all="ignore"):
            vector = coordinates.natural(everything)
            vector = np.clip(vector, self._problem.lower, self._problem.upper)
            vector[self._index] = 10**at if self._logarithmic else at
            evaluation = self._projection.evaluate(vector, self._choice)
        if isinstance(evaluation, Failure):
            self._choice, self._failure = evaluation.choice, str(evaluation)
            return None
        e = evaluation.evaluation
        self._choice = e.choice
        factor = coordinates.derivative(vector)
        factor[self._index] = self._factor(vector)
        natural = np.zeros_like(e.jacobian)
        natural[:, self._projection.remaining] = evaluation.jacobian
        full = natural * factor
        return Model(
            e.cost, e.residuals, full[:, self._others], full, natural, e, evaluation.vector
        )


def _pseudo_solve(matrix: Array, rhs: Array) -> Array:
    """Return the least-squares solution, without directions that the matrix does not determine."""
    norms = column_norms(matrix)
    norms = np.where(norms > 0, norms, 1.0)
    if not matrix.shape[1]:
        return np.zeros(0)
    u, s, vt = np.linalg.svd(matrix / norms, full_matrices=False)
    keep = s > RANK_TOLERANCE * s[0] if len(s) else np.zeros(0, dtype=bool)
    answer = vt[keep].T @ ((u[:, keep].T @ rhs) / s[keep])
    return np.asarray(answer / norms)
