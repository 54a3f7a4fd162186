"""Constrained minimisers: the best fit for each value of one quantity.

An unknown is held (:mod:`odefit.assessment.profiles.held`), any other quantity is pulled
(:mod:`odefit.assessment.profiles.pulled`). This module contains their common parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from odefit.assessment.profiles.coordinates import Coordinates
from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import column_norms
from odefit.methods.local.stopping import Tolerances
from odefit.methods.local.trust_region import SecondOrderPart, minimise, promised_decrease
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import EngineChoice

MAX_EVALUATIONS = 100
"""Largest number of evaluations of one corrector."""

SLACK = 2e-3
"""Rise of the cost, in variances of the residuals, that is allowed for a shorter prediction."""

STALLED = 0.05
"""Predicted decrease of the cost, in variances of the residuals, at which no refit may end."""

PATIENCE, SLOW = 20, 10.0
"""Number of evaluations in which a refit must gain, and that gain as a multiple of the smallest.
Along a bent valley each step promises more than it gains, and would be followed for long."""

LEFT = 50.0
"""Predicted decrease, as a multiple of the smallest gain, at which a slow refit may end."""

ASTRAY = 8.0
"""Rise of the cost, in variances of the residuals, above which a prediction is compared with the
previous point."""

FIRST_EFFECT = 1.0
"""Effect of the first step of a refit, in standard deviations, that is allowed in any case."""

NO_EFFECT = 1e-100
"""Singular value of a Jacobian with columns of unit length, or of no length, that counts as 0."""


@dataclass(frozen=True, eq=False)
class Point:
    """The best fit at one value of a quantity, in the coordinate of the profile.

    `slope` is the derivative of the lowest cost, `curvature` its second one in the Gauss-Newton
    model. `tangent` holds the derivatives of all unknowns by the coordinate, from the implicit
    function theorem with the Gauss-Newton matrix. `effects` holds the effects of a change of each
    alone by a factor e, in standard deviations. `steps` counts the steps of the minimisation if
    evaluations do not measure its difficulty.
    """

    at: float
    cost: float
    slope: float
    curvature: float
    vector: Array
    tangent: Array
    effects: Array
    residuals: Array
    jacobian: Array
    choice: EngineChoice
    steps: int | None = None


class Final(str):
    """A reason for a missing point that also applies to all nearby points."""


class Family(Protocol):
    """The best fits for all values of a quantity."""

    evaluations: int
    minimisations: int

    @property
    def lower(self) -> float:
        """The smallest value of the coordinate."""

    @property
    def upper(self) -> float:
        """Its largest value."""

    @property
    def exact(self) -> bool:
        """True if points lie exactly at the requested values."""

    def first(self) -> Point | str:
        """Return the point of the optimum, or why it is missing."""

    def point(self, near: Sequence[Point], at: float, gain: float) -> Point | str:
        """Return the point at a value (or near it for a pulled quantity), or a reason.

        The start is predicted from one or two points of the family, the nearest last. A decrease of
        the cost by `gain` is too small for another step.
        """


def between(near: Sequence[Point], at: float, coordinates: Coordinates) -> Array | None:
    """Return the coordinates at a value between two points, by cubics; None if it is outside."""
    if len(near) < 2 or not (at - near[0].at) * (at - near[1].at) < 0:
        return None
    low, high = near
    width = high.at - low.at
    s = (at - low.at) / width
    u, v = (coordinates.of_vector(p.vector) for p in near)
    du, dv = (width * p.tangent / coordinates.derivative(p.vector) for p in near)
    return np.asarray(
        u * (1 + 2 * s) * (1 - s) ** 2
        + du * s * (1 - s) ** 2
        + v * s**2 * (3 - 2 * s)
        + dv * s**2 * (s - 1)
    )


def bend(near: Sequence[Point], at: float, coordinates: Coordinates) -> Array:
    """Return the contribution of the change of the tangent since the previous point to a step."""
    here = near[-1]
    if len(near) < 2 or near[-2].at == here.at:
        return np.zeros(len(here.vector))
    before = near[-2]
    tangent = here.tangent / coordinates.derivative(here.vector)
    old = before.tangent / coordinates.derivative(before.vector)
    bend = 0.5 * (at - here.at) ** 2 * (tangent - old) / (here.at - before.at)
    # The change of a tangent is meaningless if a bound has begun or ceased to hold.
    return np.where((here.tangent != 0) & (before.tangent != 0), bend, 0.0)


@dataclass(frozen=True, eq=False)
class Model:
    """A cost with its Gauss-Newton model in the coordinates of the minimisation."""

    cost: float
    residuals: Array
    jacobian: Array
    full: Array
    natural: Array
    evaluation: Evaluation
    vector: Array


class Common:
    """The parts that both families share: counted evaluations, and the engine of the next one."""

    def __init__(
        self, forward: ForwardMap, vector: Array, choice: EngineChoice, unit: float
    ) -> None:
        self.evaluations = self.minimisations = 0
        self._forward = forward
        self._problem = forward.problem
        self._optimum = np.clip(vector, forward.problem.lower, forward.problem.upper)
        self._choice = choice
        self._sd = math.sqrt(unit)
        self._failure = ""
        self._slack = SLACK * unit
        self._kinds = b""
        self._second = SecondOrderPart(0)

    def _minimised(
        self,
        evaluate: Callable[[Array], Model | None],
        coordinates: Coordinates,
        starts: Sequence[Array],
        lower: Array,
        upper: Array,
        gain: float,
        sensible: float = math.inf,
        beside: float = -math.inf,
    ) -> tuple[Model, Array] | str:
        """Return the minimum from the first start, or from a better one if the first is astray.

        Where the start costs at most `beside`, no shorter step makes a refit converge. Second
        derivatives are those of the refits before in the same `coordinates`.
        """
        kinds = coordinates.logarithm.tobytes() + coordinates.reciprocal.tobytes()
        if kinds != self._kinds:
            self._kinds, self._second = kinds, SecondOrderPart(len(lower))
        known: dict[bytes, Model | None] = {}

        def once(u: Array) -> Model | None:
            key = u.tobytes()
            if key in known:
                return known[key]
            self.evaluations += 1
            return evaluate(u)

        best, lowest = starts[0], math.inf
        for start in starts:
            inside = np.clip(start, lower, upper)
            evaluated = known[inside.tobytes()] = once(inside)
            cost = math.inf if evaluated is None else evaluated.cost
            if cost < lowest:
                best, lowest = inside, cost
            if lowest <= sensible:
                break
        step = self._first_step(starts, known.get(best.tobytes()))
        tolerances = self._tolerances(gain)
        minimum = minimise(
            once, best, lower, upper, tolerances, first_step=step, second=self._second
        )
        self.minimisations += math.isfinite(gain)
        model = minimum.evaluation
        if not isinstance(model, Model):
            return self._failure or minimum.message
        left = 0.0 if minimum.converged else math.inf
        if math.isfinite(gain):
            left = promised_decrease(model.residuals, model.jacobian, minimum.vector, lower, upper)
        if not minimum.converged and left > tolerances.promised:
            reason = f"a refit did not converge: {minimum.message}"
            return Final(reason) if lowest <= beside else reason
        if left > STALLED * self._sd**2:
            # No step is short enough to gain the predicted decrease: the end would be wrong.
            return "a refit stalled before its optimum"
        return model, minimum.vector

    def _first_step(self, starts: Sequence[Array], model: Model | None) -> Array | None:
        """Return a step as long as the first one of a refit may be; None for the usual length.

        It is that of the prediction. But a prediction may hardly move the others, which says
        nothing of how far they have to move.
        """
        step = starts[0] - starts[-1]
        if not step.any():
            return None
        effect = (
            0.0 if model is None else float(np.linalg.norm(column_norms(model.jacobian) * step))
        )
        least = FIRST_EFFECT * self._sd
        return step * (least / effect) if 0 < effect < least else step

    def _tolerances(self, gain: float) -> Tolerances:
        return Tolerances(
            cost=1e-13,
            step=1e-10,
            evaluations=MAX_EVALUATIONS,
            patience=PATIENCE,
            least=gain,
            stall=SLOW * gain,
            promised=min(STALLED * self._sd**2, LEFT * gain),
        )

    def _effects(self, model: Model) -> Array:
        """Return the effects of a change of each unknown alone by a factor e, shape (n,).

        The data may determine two unknowns together and neither alone. Logarithms suit both then,
        although their standard errors are large.
        """
        return np.asarray(column_norms(model.evaluation.jacobian * model.vector) / self._sd)


def unbound(x: Array, gradient: Array, low: Array, high: Array) -> BoolArray:
    """Return the components that are not held at a bound."""
    return np.asarray(~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))))
