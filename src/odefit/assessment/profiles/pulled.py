"""The best fits for the values of a quantity that is pulled.

A residual (g - z)/sigma for the quantity g is added, and z is swept. For any z and sigma, the
minimiser of the sum is the best fit among all unknowns with the same value of g. No constrained
optimiser is needed (C. Kreutz, A. Raue and J. Timmer, Likelihood based observability analysis and
confidence intervals for predictions of dynamic models, 2012, use such residuals for predictions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.assessment.profiles.coordinates import Coordinates
from odefit.assessment.profiles.families import (
    NO_EFFECT,
    Common,
    Model,
    Point,
    bend,
    between,
    unbound,
)
from odefit.common.arrays import Array
from odefit.common.effects import RANK_TOLERANCE, column_norms
from odefit.methods.local.trust_region import bounded_step
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice

STIFFNESS = 10.0
"""The stiffness of the residual that pulls a quantity, relative to the data's."""

PULLS = 3
"""Largest number of minimisations that bring a quantity to the requested value."""

LANDING = 0.2
"""Distance from that value, relative to the step, that is close enough."""


VANISHING = 1e-100
"""Size of a quantity, relative to a standard deviation, below which its derivatives and the typical
sizes of the unknowns determine its size."""


class Pullable(Protocol):
    """A function of the unknowns."""

    @property
    def text(self) -> str:
        """Its name in messages."""

    def at(self, forward: ForwardMap, vector: Array, choice: EngineChoice) -> tuple[float, Array]:
        """Return its value and its derivatives by the unknowns, shape (n,)."""


@dataclass(frozen=True)
class OwnCoordinate:
    """An unknown, or its logarithm to base 10, as a function of the unknowns."""

    index: int
    logarithmic: bool
    text: str = "the unknown"

    def at(self, forward: ForwardMap, vector: Array, choice: EngineChoice) -> tuple[float, Array]:
        """Return its value and its derivatives by the unknowns, shape (n,)."""
        gradient = np.zeros(len(vector))
        value = float(vector[self.index])
        gradient[self.index] = 1 / (math.log(10) * value) if self.logarithmic else 1.0
        return (math.log10(value) if self.logarithmic else value), gradient


class PulledQuantity(Common):
    """The best fits for the values of a pulled quantity; otherwise as `HeldUnknown`."""

    exact = False
    lower, upper = -math.inf, math.inf

    def __init__(
        self,
        forward: ForwardMap,
        quantity: Pullable,
        vector: Array,
        choice: EngineChoice,
        unit: float,
    ) -> None:
        super().__init__(forward, vector, choice, unit)
        self._quantity = quantity
        self._pull = 0.0  # 1/sigma

    def first(self) -> Point | str:
        x = self._optimum
        coordinates = Coordinates.of(self._problem, x, np.full(len(x), math.inf))
        u = coordinates.of_vector(x)
        model = self._model(0.0, u, coordinates)
        self.evaluations += 1
        if model is None:
            return self._failure
        point = self._point(model, u, coordinates)
        self.stiffen(point)
        return point

    def stiffen(self, point: Point) -> None:
        """Choose the strength of the pull."""
        # If the data do not determine the quantity at all, its size is used.
        size = abs(point.at)
        if size < VANISHING * self._sd:
            _, by = self._quantity.at(self._forward, point.vector, point.choice)
            size = float(np.abs(by) @ sizes_at(self._problem, point.vector)) or 1.0
        least = (self._sd / size) ** 2
        self._pull = STIFFNESS * math.sqrt(max(point.curvature, least))

    def point(self, near: Sequence[Point], at: float, gain: float) -> Point | str:
        here = near[-1]
        self._choice = here.choice
        coordinates = Coordinates.of(self._problem, here.vector, here.effects)
        nearest = here
        points = near
        for _ in range(PULLS):
            # At a minimum, slope + pull^2 (g - z) is zero.
            slope = points[-1].slope + points[-1].curvature * (at - points[-1].at)
            centre = at + slope / self._pull**2
            u = self._predicted(points, at, centre, coordinates)

            def evaluate(u: Array, z: float = centre) -> Model | None:
                return self._model(z, u, coordinates)

            still = coordinates.of_vector(points[-1].vector)
            pulled = self._pull * (points[-1].at - centre)
            minimum = self._minimised(
                evaluate,
                coordinates,
                [u, still],
                coordinates.lower,
                coordinates.upper,
                gain,
                points[-1].cost + 0.5 * pulled**2,
            )
            if isinstance(minimum, str):
                return minimum
            model, u = minimum
            nearest = self._point(model, u, coordinates)
            if abs(nearest.at - at) <= LANDING * abs(at - here.at):
                break
            points = [nearest]
        return nearest

    def _point(self, model: Model, u: Array, coordinates: Coordinates) -> Point:
        jacobian = model.full[:-1]
        value, by = self._quantity.at(self._forward, model.vector, model.evaluation.choice)
        factor = coordinates.derivative(model.vector)
        by = by * factor
        gradient = jacobian.T @ model.evaluation.residuals
        free = unbound(u, gradient, coordinates.lower, coordinates.upper)
        tangent = np.zeros(len(u))
        direction, reach = _least_cost_direction(jacobian[:, free], by[free])
        if reach > 0:
            tangent[free] = direction / reach
        along = jacobian @ tangent
        return Point(
            value,
            model.evaluation.cost,
            float(gradient @ tangent),
            float(along @ along),
            model.vector,
            tangent * factor,
            self._effects(model),
            model.evaluation.residuals,
            model.natural,
            model.evaluation.choice,
        )

    def _predicted(
        self, near: Sequence[Point], at: float, centre: float, coordinates: Coordinates
    ) -> Array:
        """Return the predicted coordinates, shape (n,), as for an unknown."""
        interpolated = between(near, at, coordinates)
        if interpolated is not None:
            return interpolated
        here = near[-1]
        u = coordinates.of_vector(here.vector)
        _, by = self._quantity.at(self._forward, here.vector, here.choice)
        rows = np.vstack([here.jacobian, self._pull * by[None, :]])
        u += bounded_step(
            np.append(here.residuals, self._pull * (here.at - centre)),
            rows * coordinates.derivative(here.vector),
            u,
            coordinates.lower,
            coordinates.upper,
            self._slack,
        )
        return np.asarray(u + bend(near, at, coordinates))

    def _model(self, centre: float, u: Array, coordinates: Coordinates) -> Model | None:
        with np.errstate(all="ignore"):
            vector = coordinates.natural(u)
            vector = np.clip(vector, self._problem.lower, self._problem.upper)
            evaluation = self._forward.evaluate(vector, self._choice)
            if isinstance(evaluation, Failure):
                self._choice, self._failure = evaluation.choice, str(evaluation)
                return None
            self._choice = evaluation.choice
            value, gradient = self._quantity.at(self._forward, vector, evaluation.choice)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            self._failure = f"'{self._quantity.text}' is {value:g}"
            return None
        extra = self._pull * (value - centre)
        residuals = np.append(evaluation.residuals, extra)
        full = np.vstack([evaluation.jacobian, self._pull * gradient[None, :]])
        full *= coordinates.derivative(vector)
        cost = evaluation.cost + 0.5 * extra**2
        return Model(cost, residuals, full, full, evaluation.jacobian, evaluation, vector)


def _least_cost_direction(jacobian: Array, by: Array) -> tuple[Array, float]:
    """Return M^-1 by and by' M^-1 by with M = J'J, if `by` lies in the range of M.

    Otherwise they are the part of `by` without cost, and its square: the quantity can move freely.
    """
    norms = column_norms(jacobian)
    norms = np.where(norms > 0, norms, 1.0)
    scaled = by / norms
    wide = jacobian.shape[0] < jacobian.shape[1]
    _, s, vt = np.linalg.svd(jacobian / norms, full_matrices=wide)
    s = np.concatenate([s, np.zeros(vt.shape[0] - len(s))])
    keep = s > RANK_TOLERANCE * max(float(s.max(initial=0.0)), NO_EFFECT)
    parts = vt @ scaled
    loose = parts[~keep]
    if len(loose) and np.linalg.norm(loose) > 1e-6 * max(float(np.linalg.norm(scaled)), 1e-300):
        direction = vt[~keep].T @ loose
        return direction / norms, float(loose @ loose)
    weighted = parts[keep] / s[keep] ** 2
    return (vt[keep].T @ weighted) / norms, float(parts[keep] @ weighted)
