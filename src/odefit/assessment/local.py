"""The test whether an answer is a local optimum on the true (integrated) trajectories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import cached_property

import numpy as np

from odefit.assessment.parts import Local
from odefit.common.arrays import Array, BoolArray, IntArray
from odefit.common.effects import RANK_TOLERANCE, column_norms
from odefit.methods.estimate import Certificate
from odefit.methods.local.cost_tolerance import CostTolerance, noiseless_rows
from odefit.methods.local.kinks import lowest_mean
from odefit.methods.local.scaling import Scaling, bounds_touched
from odefit.methods.local.trust_region import promised_decrease
from odefit.problem.problem import Problem
from odefit.problem.variants.features import kinks
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, Failure, ForwardMap

OPTIMALITY_TOLERANCE = 1e-3
"""Largest distance to the minimum of the local quadratic model, in standard errors, at an
optimum."""

CHANGES = (1e-2, 1e-1, 1.0)
"""Changes of unknowns, relative to their sizes, that must not lower the cost along a direction that
the data do not determine. For example, along a Hill exponent that grows without bound the local
model promises a decrease that no step achieves."""

MOST_OPEN = 10  # largest number of such directions that are examined

BEYOND = 1e-6  # step across a kink, relative to the sizes of the unknowns, at most
BEGINNING = 1e-3  # the same, relative to the step for which derivatives promise a gain

KINK_TOLERANCE = 1e-2
"""Distance to the minimum along a kink, in standard errors, that counts as zero: searches end there
because their steps become negligible."""

MOST_SIDES = 8  # largest number of sides of a kink, or of several that meet, that are examined

LEVEL = (
    "A local optimum on the integrated trajectories, as far as the data determine one: in "
    "directions that they do not determine, the fit no longer improves."
)

AT_KINK = (
    "A local optimum on the integrated trajectories, at a kink: the equations switch there, and on "
    "both sides the fit gets worse."
)


def assess_local(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    certificate: Certificate | None = None,
    *,
    unique: bool = False,
) -> Local:
    """Return whether first-order conditions hold at `vector` with its bounds, and the curvature.

    The sentence also reports what a certificate in continuous time proves about other optima, and
    whether others may fit as well, unless the answer is known to be `unique`. The distance to the
    minimum of the local quadratic model is measured by the decrease that it promises: root(2
    decrease), over the residual standard deviation. In that unit it is the length of the remaining
    step in standard errors (the norm of the projected gradient in the metric of the covariance). An
    answer is also an optimum in the following cases. Its residuals are zero to the accuracy of the
    integration. The promised decrease is below the error of the objective at that accuracy. The
    decrease is promised only along directions that the data do not determine, and fails there. Or
    the answer lies in a kink from which the objective rises on both sides.
    """
    problem = forward.problem
    scaling = Scaling.of(problem)
    tolerance = CostTolerance.of(forward)
    sure = np.zeros(len(evaluation.residuals), dtype=bool)
    if tolerance.squares is None:
        rows = noiseless_rows(forward, vector, evaluation.choice)
        sure[: len(rows)] = rows
    # Values without noise determine their unknowns exactly, and carry no other information.
    free = ~np.any(evaluation.jacobian[sure] != 0.0, axis=0)
    jacobian = (evaluation.jacobian * scaling.derivative(vector))[~sure][:, free]
    promised = promised_decrease(
        evaluation.residuals[~sure],
        jacobian,
        scaling.coordinates(vector)[free],
        scaling.lower[free],
        scaling.upper[free],
    )
    spare = max(problem.size - len(vector), 1)
    variance = 1.0 if forward.given_noise else evaluation.objective / spare
    accuracy = forward.accuracy(evaluation.choice)
    at = evaluation.cost, accuracy, evaluation.jacobian, vector
    exact = tolerance.exact(*at) or (
        tolerance.squares is None and len(rows) > 0 and bool(rows.all())
    )
    negligible = tolerance.negligible(evaluation.cost)
    distance = math.sqrt(2 * max(promised, 0.0) / variance) if variance > 0 else 0.0
    norms = column_norms(jacobian)
    scaled = jacobian / np.where(norms > 0, norms, 1.0)
    values = np.linalg.svd(scaled, compute_uv=False) if scaled.size else np.ones(1)
    curvature = float(values[-1] / values[0]) if values[0] > 0 else 0.0
    near = distance <= OPTIMALITY_TOLERANCE
    optimal = exact or negligible or near or promised <= tolerance.noise(*at)
    around = _Around(forward, vector, evaluation, ~sure, free, variance)
    level = not optimal and around.is_level()
    kink = not optimal and not level and around.is_at_kink()
    optimal = optimal or level or kink
    if level or kink:
        sentence = LEVEL if level else AT_KINK
    else:
        sentence = _sentence(exact or negligible, optimal, near, distance, unique)
    if (exact or negligible) and all_zero(problem):
        sentence = (
            "All measured values are zero. The model reproduces them to rounding, and so it does "
            "at other values: the estimates and intervals are those of one of many answers."
        )
    if exact and tolerance.squares is None:
        sentence += " The estimated noise is the size of the errors of rounding and integration."
    if optimal and not (exact or negligible):
        sentence += f" {_elsewhere(problem.keys, vector, evaluation.objective, certificate)}"
    return Local(optimal, distance, OPTIMALITY_TOLERANCE, curvature, sentence)


@dataclass(frozen=True, eq=False)
class _Around:
    """The surroundings of an answer whose first derivatives do not show an optimum.

    The unknowns are scaled by their sizes, without those held by a bound; rows and unknowns of
    values without noise are left out.
    """

    forward: ForwardMap
    vector: Array
    evaluation: Evaluation
    noisy: BoolArray  # rows
    free: BoolArray  # unknowns that rows without noise do not determine
    variance: float

    @cached_property
    def sizes(self) -> Array:
        return sizes_at(self.forward.problem, self.vector)

    @cached_property
    def moving(self) -> IntArray:
        problem, vector = self.forward.problem, self.vector
        gradient = self.evaluation.jacobian[self.noisy].T @ self.evaluation.residuals[self.noisy]
        lower = vector - problem.lower < problem.upper - vector
        outwards = np.where(lower, gradient, -gradient) >= 0
        return np.flatnonzero(self.free & ~(bounds_touched(problem, vector) & outwards))

    def _rows(self, evaluation: Evaluation) -> tuple[Array, Array]:
        """Return the residuals and their derivatives by the scaled free unknowns."""
        jacobian = (evaluation.jacobian * self.sizes)[self.noisy][:, self.moving]
        return evaluation.residuals[self.noisy], jacobian

    def _moved(self, changes: Array) -> Array:
        """Return the unknowns after changes of the scaled free ones."""
        moved = self.vector.copy()
        moved[self.moving] += changes * self.sizes[self.moving]
        return np.clip(moved, self.forward.problem.lower, self.forward.problem.upper)

    def is_level(self) -> bool:
        """Return whether the predicted gain lies only in undetermined directions and fails there.

        Along such a direction a change by the sizes of the unknowns is smaller than the noise.
        """
        residuals, jacobian = self._rows(self.evaluation)
        if not jacobian.size or not np.isfinite(jacobian).all():
            return False
        least = 0.5 * OPTIMALITY_TOLERANCE**2 * self.variance
        u, s, directions = np.linalg.svd(jacobian, full_matrices=False)
        open_ = s < math.sqrt(self.variance)
        if open_.all() or open_.sum() > MOST_OPEN:
            return False
        if 0.5 * float(np.sum((u.T @ residuals)[~open_] ** 2)) > least:
            return False
        changes = [sign * c * d for d in directions[open_] for c in CHANGES for sign in (1, -1)]
        choice, most = self.evaluation.choice, self.evaluation.cost - least
        return all(self.forward.cost(self._moved(c), choice) >= most for c in changes)

    def is_at_kink(self) -> bool:
        """Return whether the cost has a kink here with its minimum in it.

        The step that promises a gain raises the cost from the beginning, and some mean of the
        gradients on all sides is zero (F. H. Clarke, Optimization and nonsmooth analysis, 1983).
        """
        residuals, jacobian = self._rows(self.evaluation)
        possible = kinks(self.forward.problem, self.forward.field)
        if not possible or not jacobian.size or not np.isfinite(jacobian).all():
            return False
        u, s, directions = np.linalg.svd(jacobian, full_matrices=False)
        s = np.maximum(s, RANK_TOLERANCE * s[0])
        # In these coordinates the length of a gradient is that of its step in standard errors.
        gradients = np.array([u.T @ residuals])
        for _ in range(MOST_SIDES):
            level = np.zeros(len(gradients))
            mean: Array = lowest_mean(gradients @ gradients.T, level) @ gradients
            if np.linalg.norm(mean) <= KINK_TOLERANCE * math.sqrt(self.variance):
                return len(gradients) > 1
            step = -directions.T @ (mean / s)
            part = min(BEYOND / max(float(np.abs(step).max()), 1e-300), BEGINNING)
            beyond = self.forward.evaluate(self._moved(part * step), self.evaluation.choice)
            if isinstance(beyond, Failure) or not beyond.cost > self.evaluation.cost:
                return False
            further, slopes = self._rows(beyond)
            gradients = np.vstack([gradients, directions @ (slopes.T @ further) / s])
        return False


def all_zero(problem: Problem) -> bool:
    """Return whether every measured value is zero."""
    return not any(s.values.any() for c in problem.conditions for s in c.series.values())


def _sentence(exact: bool, optimal: bool, near: bool, distance: float, unique: bool) -> str:
    where = "on the integrated trajectories"
    if exact:
        return (
            f"The model reproduces the data to rounding {where}: no values can fit better"
            f"{'' if unique else ', but others may fit as well'}."
        )
    if optimal and not near:
        return (
            f"A local optimum {where}, as far as their accuracy shows: a further step would "
            "gain less than the errors of the integration."
        )
    if optimal:
        return (
            f"A local optimum {where}: further steps would change the estimates by less than "
            f"{OPTIMALITY_TOLERANCE:g} standard errors."
        )
    return (
        f"Not a local optimum {where}: further steps would change the estimates by up to "
        f"{distance:.2g} standard errors."
    )


def _elsewhere(
    keys: Sequence[str], vector: Array, objective: float, certificate: Certificate | None
) -> str:
    """Return a sentence on other optima."""
    c = certificate
    known = c is not None and c.closed and not c.discretised
    if c is None or not known or not _inside(keys, vector, c):
        return "Whether a better one exists elsewhere is not proved."
    excess = max(objective - c.lower, 0.0)
    if c.upper - c.lower <= c.negligible or excess >= objective:
        size = f"{_up(excess):g}"
    else:
        size = f"{_up(100 * excess / objective):g}%"
    return (
        "No other values within the bounds of the unknowns have an objective lower by more than "
        f"{size}."
    )


def _inside(keys: Sequence[str], vector: Array, certificate: Certificate) -> bool:
    """Tell whether the answer is in the certificate's box."""
    at = dict(zip(keys, vector.tolist(), strict=True))
    return all(a <= at[key] <= b for key, (a, b) in certificate.assumed.items())


def _up(value: float) -> float:
    """Return the value rounded up to two digits."""
    return float(Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(value)))
