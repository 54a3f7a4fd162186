"""Directions in which two solutions merge, by second derivatives.

The theory is in :mod:`odefit.assessment.folds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.common.arrays import Array, IntArray
from odefit.common.effects import RANK_TOLERANCE, acting
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap

SMALL = 0.5
"""Largest singular value, relative to the largest, of a direction that may belong to a fold."""

NEARLY_SINGULAR = 1e-4
"""Largest such value of a direction that a search at a fold leaves."""

STEP = 0.05
"""Largest relative change of an unknown in the differences that give second derivatives."""

FINER = 0.25
"""Step of further differences, relative to that of the ones before."""

SETTLED = 0.5
"""Smallest curvature by finer differences, relative to that of the ones before, for which those had
converged. Where outputs are sensitive, as over many periods, a step reaches far beyond the
interval, and higher derivatives dominate."""

MOST_FINER = 4
"""Largest number of finer differences."""

FARTHEST = 3.0
"""Largest relative change of an unknown for which second derivatives are trusted."""

NEAR = 1.5
"""Largest change of the residuals at the fold between two mirror solutions, relative to that at the
limit, for which the fold affects the intervals of each."""

MERGED = 0.05
"""Change of the residuals at the fold, relative to that at the limit, below which two solutions
count as one and no mirror is sought."""

LIKE_A_MIRROR = 0.5
"""Largest change of the residuals at a mirror solution, relative to that at the fold; a model of
another curvature has no mirror solution."""

STILL_AWAY = 0.5
"""Smallest distance of a mirror solution along a fold, relative to that by second derivatives."""

MIRROR_STEPS = 3
"""Largest number of Gauss-Newton steps towards a mirror solution."""

TAKING_PART = 0.02
"""Smallest change of an unknown along a fold, relative to the largest, that takes part in it."""

MOST_UNKNOWNS = 12
"""Largest number of unknowns for which a fit computes profiles."""

ROUNDED_UP = 1.1  # factor on the singular value of a direction, above which others are determined


@dataclass(frozen=True, eq=False)
class Line:
    """A direction in which the n unknowns change, by these relative changes.

    `singular` is its singular value, relative to the largest. It is `merged` if two solutions meet
    there, or so close to each other that they count as one.
    """

    relative: Array
    singular: float
    merged: bool = False

    @property
    def moved(self) -> IntArray:
        """The numbers of the unknowns that move along it."""
        size = np.abs(self.relative)
        return np.flatnonzero(size > TAKING_PART * size.max())


def rank_tolerance(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, level: float
) -> float:
    """Return the relative singular value up to which directions count as not determined.

    Where two solutions merge, the singular value vanishes at the fold alone. A search ends beside
    it, at a distance of rounding, which must not decide on the uncertainty of other unknowns.
    """
    merged: list[float] = []
    reach = reach_of_limit(forward, vector, evaluation, level)
    if math.isfinite(reach):
        between = RANK_TOLERANCE, NEARLY_SINGULAR  # smaller ones count as not determined anyway
        folds, _ = fold_directions(forward, vector, evaluation, reach, between)
        merged = [ROUNDED_UP * fold.singular for fold in folds if fold.merged]
    return max([RANK_TOLERANCE, *merged])


def reach_of_limit(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, level: float
) -> float:
    """Return the change of the residuals at the limit of the deviance; infinite without folds."""
    if forward.nodes is not None or len(vector) > MOST_UNKNOWNS:
        return math.inf
    deviance = Deviance.of(forward, vector, evaluation)
    limit = deviance.limit(level)
    usable = math.isfinite(limit) and deviance.variance > 0
    return math.sqrt(limit * deviance.variance) if usable else math.inf


def fold_directions(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    reach: float,
    between: tuple[float, float] = (0.0, SMALL),
) -> tuple[list[Line], list[Line]]:
    """Return the folds at an optimum, and the directions that are flat to second order, too.

    Residuals may grow by `reach` within the intervals. The singular values of the directions lie
    `between` two numbers, relative to the largest.
    """
    sizes = sizes_at(forward.problem, vector)
    jacobian = evaluation.jacobian
    norms, effective = acting(jacobian, sizes)
    free = np.flatnonzero(~bounds_touched(forward.problem, vector) & effective)
    if len(free) < 2 or len(jacobian) < len(free):
        return [], []
    u, s, vt = np.linalg.svd(jacobian[:, free] / norms[free], full_matrices=False)
    folds, flat = [], []
    small = np.flatnonzero((s >= between[0] * s[0]) & (s < between[1] * s[0]))
    directions = np.zeros((len(small), len(vector)))
    directions[:, free] = vt[small] / norms[free]
    known = s > RANK_TOLERANCE * s[0]
    lost = ~known[small]
    directions[lost] = _by_curvature(forward, vector, evaluation, directions[lost], sizes)
    for k, direction in zip(small, directions, strict=True):
        relative = direction / _natural(vector, sizes)
        step = STEP / np.abs(relative).max()
        # The data tell nothing of which residuals go with which lost direction.
        others = u[:, np.arange(len(s)) != k if known[k] else known]
        second = partial(_second_derivative, forward, vector, evaluation, direction, others)
        bent = second(step)
        if bent is None:
            continue
        farthest = FARTHEST / np.abs(relative).max()
        if s[k] * farthest + 0.5 * float(np.linalg.norm(bent)) * farthest**2 < reach:
            flat.append(Line(relative, s[k] / s[0]))
        near = partial(_is_near, s[k], reach, farthest)
        bent = _settled(bent, second, step, near)
        curvature = float(np.linalg.norm(bent))
        if not near(curvature):
            continue
        barrier = s[k] ** 2 / (2.0 * curvature)
        merged = barrier <= MERGED * reach
        if not merged:
            # At the mirror solution, on one of the sides, first and second order cancel.
            away = -2.0 * s[k] * math.copysign(1.0, float(u[:, k] @ bent)) / curvature
            if not _is_mirror(
                forward, vector, evaluation, away * direction, (relative, others, barrier)
            ):
                continue
        folds.append(Line(relative, s[k] / s[0], merged))
    return folds, flat


def _is_near(value: float, reach: float, farthest: float, curvature: float) -> bool:
    """Return whether a fold with a singular value and a curvature is as near as intervals reach."""
    return (
        curvature > 0
        and value**2 / (2.0 * curvature) <= NEAR * reach
        and math.sqrt(2.0 * reach / curvature) <= farthest
    )


def _settled(
    bent: Array,
    second: Callable[[float], Array | None],
    step: float,
    near: Callable[[float], bool],
) -> Array:
    """Return a second derivative by finer differences, while it is that of a fold nearby."""
    for _ in range(MOST_FINER):
        if not near(float(np.linalg.norm(bent))):
            break
        step *= FINER
        finer = second(step)
        if finer is None:
            break
        if np.linalg.norm(finer) >= SETTLED * np.linalg.norm(bent):
            return finer
        bent = finer
    return bent


def _second_derivative(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    direction: Array,
    others: Array,
    step: float,
) -> Array | None:
    """Return the second difference of the residuals that `others` (columns) cannot follow."""
    moves = (side * step * direction for side in (1.0, -1.0))
    both = [_change(forward, vector, evaluation, move) for move in moves]
    if both[0] is None or both[1] is None:
        return None
    bent = (both[0] + both[1]) / step**2
    return np.asarray(bent - others @ (others.T @ bent))


def _natural(vector: Array, sizes: Array) -> Array:
    """Return the magnitudes of unknowns, which are their sizes where they are zero."""
    return np.asarray(np.where(vector != 0.0, np.abs(vector), sizes))


def _by_curvature(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, directions: Array, sizes: Array
) -> Array:
    """Return other directions of the same space, shape (m, n), parted by their curvature.

    Rounding alone chooses between directions that are flat to first order. Here those that are flat
    to second order, too, are apart from the one that belongs to a fold.
    """
    count = len(directions)
    if count < 2:
        return directions
    unit = directions / np.abs(directions / _natural(vector, sizes)).max(axis=1, keepdims=True)
    bent: dict[tuple[int, int], Array] = {}
    for i in range(count):
        for j in range(i + 1):
            move = STEP * (unit[i] if i == j else unit[i] + unit[j])
            both = [_change(forward, vector, evaluation, side * move) for side in (1.0, -1.0)]
            if both[0] is None or both[1] is None:
                return directions
            bent[i, j] = both[0] + both[1]
    largest = max((bent[i, i] for i in range(count)), key=lambda b: float(np.linalg.norm(b)))
    curvatures = np.zeros((count, count))
    for i, j in bent:
        mixed = bent[i, j] if i == j else 0.5 * (bent[i, j] - bent[i, i] - bent[j, j])
        curvatures[i, j] = curvatures[j, i] = float(mixed @ largest)
    _, vectors = np.linalg.eigh(curvatures)
    return np.asarray(vectors.T @ unit)


def _is_mirror(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    move: Array,
    fold: tuple[Array, Array, float],
) -> bool:
    """Return whether a mirror solution is near `move` from the optimum.

    `fold` has the move relative to the unknowns (up to a factor), the directions of residuals that
    other unknowns can follow (columns), and the change of the residuals there. If the change at
    `move` is not small, Gauss-Newton steps show whether a mirror solution is near.
    """
    relative, others, barrier = fold
    mirror = _evaluated(forward, vector, evaluation, move)
    if mirror is None:
        return False
    change = mirror.residuals - evaluation.residuals
    if np.linalg.norm(change - others @ (others.T @ change)) < LIKE_A_MIRROR * barrier:
        return True
    moving = np.flatnonzero(move)
    scale = np.abs(move[moving])
    at = move.copy()
    for _ in range(MIRROR_STEPS):
        at[moving] -= scale * np.linalg.lstsq(mirror.jacobian[:, moving] * scale, change)[0]
        away = float(np.average(at[moving] / move[moving], weights=relative[moving] ** 2))
        mirror = _evaluated(forward, vector, evaluation, at) if away > STILL_AWAY else None
        if mirror is None:
            return False
        change = mirror.residuals - evaluation.residuals
        if np.linalg.norm(change) < LIKE_A_MIRROR * barrier:
            return True
    return False


def _change(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, move: Array
) -> Array | None:
    """Return the change of the residuals by a move; None if they cannot be computed."""
    evaluated = _evaluated(forward, vector, evaluation, move)
    return None if evaluated is None else np.asarray(evaluated.residuals - evaluation.residuals)


def _evaluated(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, move: Array
) -> Evaluation | None:
    """Return the evaluation after a move from the optimum; None if it fails.

    Unknowns that are positive by their bounds or scale move by factors, for which mirror solutions,
    such as exchanged rates, lie symmetrically about the fold.
    """
    problem = forward.problem
    positive = vector > 0.0
    positive &= np.array(
        [u.parameter.lower >= 0.0 or u.parameter.scale == "log10" for u in problem.unknowns]
    )
    moved = vector + move
    moved[positive] = vector[positive] * np.exp(move[positive] / vector[positive])
    if ((moved < problem.lower) | (moved > problem.upper)).any():
        return None
    evaluated = forward.evaluate(moved, evaluation.choice)
    if not isinstance(evaluated, Evaluation):
        return None
    return evaluated if len(evaluated.residuals) == len(evaluation.residuals) else None
