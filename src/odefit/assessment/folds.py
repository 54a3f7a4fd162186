"""Folds: optima with a singular Jacobian, at which second derivatives determine the intervals.

Two mirror solutions, such as the exchange of two rates, merge where they meet. There the residuals
do not change to first order along one direction v, and linearisation says that it is not
determined. They change to second order, though. Let q be the part of d^2 r/dv^2 that other unknowns
cannot follow, and s the singular value. At a distance h along v the deviance rises by s^2 h^2 + q^2
h^4 / 4 (D. M. Bates and D. G. Watts, Relative curvature measures of nonlinearity, Journal of the
Royal Statistical Society B 42, 1980, 1-25). At an optimum near a fold, the mirror solution is at -2
s/q, and between them the residuals change by s^2/(2 q). If this is within or a little above the
limit of the deviance, intervals come from profiles, which include all orders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.uncertainty import weakly_determined
from odefit.assessment.parts import Direction, Trouble, Uncertainty
from odefit.assessment.profiles.parts import Profile
from odefit.assessment.profiles.profiling import profile_all
from odefit.common.arrays import Array, IntArray
from odefit.common.effects import RANK_TOLERANCE, acting
from odefit.common.errors import InputError
from odefit.methods.local.scaling import bounds_touched
from odefit.methods.running.control import Control
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap

SMALL = 0.5
"""Largest singular value, relative to the largest, of a direction that may belong to a fold."""

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

CONFIRMED = 0.1
"""Largest difference of an end of a linear interval and one by profile, relative to the width, for
which the profile confirms the linear interval."""

MOST_UNKNOWNS = 12
"""Largest number of unknowns for which a fit computes profiles."""

MOST_EVALUATIONS = 1000
"""Number of evaluations after which a side of such a profile ends. The closed sides that were seen
took up to 400; those without an end took thousands, several times as long as the fit."""


MERGING = "interval by profile: two solutions merge here, where linearisation fails"

LED = "interval by profile: it changes a little with what the data do not determine"


@dataclass(frozen=True, eq=False)
class _Line:
    """A direction in which the n unknowns change, by these relative changes."""

    relative: Array

    @property
    def moved(self) -> IntArray:
        """The numbers of the unknowns that move along it."""
        size = np.abs(self.relative)
        return np.flatnonzero(size > TAKING_PART * size.max())


def with_folds(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    uncertainty: Uncertainty,
    control: Control,
    announce: Callable[[], None],
) -> Uncertainty:
    """Return the uncertainty with intervals by profile if the optimum lies at a fold.

    `announce` is called before profiles, which take long, if there are any. Unknowns with an
    open profile keep their linear intervals.
    """
    if forward.nodes is not None or len(vector) > MOST_UNKNOWNS or control.should_stop():
        return uncertainty
    deviance = Deviance.of(forward, vector, evaluation)
    limit = deviance.limit(uncertainty.level)
    if not (math.isfinite(limit) and deviance.variance > 0):
        return uncertainty
    folds, flat = _folds(forward, vector, evaluation, math.sqrt(limit * deviance.variance))
    merging = {uncertainty.keys[int(k)] for fold in folds for k in fold.moved}
    # A direction that is flat to second order leaves an unknown open, whatever a fold determines.
    merging -= {uncertainty.keys[int(k)] for direction in flat for k in direction.moved}
    # Unknowns that a flat direction moves little: the change at the ends of it is not linear.
    led = {key for d in uncertainty.directions for key in d.keys}
    led &= {key for key, kind in uncertainty.trouble.items() if kind is Trouble.NOT_LINEAR}
    keys = [key for key in uncertainty.keys if key in merging | led]
    if not keys:
        return uncertainty
    announce()
    alone = replace(control, report=None, checkpoint=None)
    try:
        profiles = profile_all(
            forward.problem, vector, uncertainty.level, alone, keys, most=MOST_EVALUATIONS
        )
    except InputError:
        return uncertainty
    closed = {
        p.key: p
        for p in profiles.profiles
        if math.isfinite(p.upper - p.lower) and not _as_linear(p, uncertainty)
    }
    return _by_profile(uncertainty, closed, merging) if closed else uncertainty


def _as_linear(profile: Profile, uncertainty: Uncertainty) -> bool:
    """Return whether an unknown has a linear interval without trouble, which its profile confirms.

    It moves along a fold, but so little that linearisation does not fail for it.
    """
    i = uncertainty.keys.index(profile.key)
    lower, upper = uncertainty.intervals[i]
    if profile.key in uncertainty.trouble or not math.isfinite(upper - lower):
        return False
    largest = max(abs(profile.lower - lower), abs(profile.upper - upper))
    return bool(largest <= CONFIRMED * (upper - lower))


def _folds(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, reach: float
) -> tuple[list[_Line], list[_Line]]:
    """Return the folds at an optimum, and the directions that are flat to second order, too.

    Residuals may grow by `reach` within the intervals.
    """
    sizes = sizes_at(forward.problem, vector)
    jacobian = evaluation.jacobian
    norms, effective = acting(jacobian, sizes)
    free = np.flatnonzero(~bounds_touched(forward.problem, vector) & effective)
    if len(free) < 2 or len(jacobian) < len(free):
        return [], []
    u, s, vt = np.linalg.svd(jacobian[:, free] / norms[free], full_matrices=False)
    folds, flat = [], []
    small = np.flatnonzero(s < SMALL * s[0])
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
            flat.append(_Line(relative))
        near = partial(_is_near, s[k], reach, farthest)
        bent = _settled(bent, second, step, near)
        curvature = float(np.linalg.norm(bent))
        if not near(curvature):
            continue
        barrier = s[k] ** 2 / (2.0 * curvature)
        if barrier > MERGED * reach:
            # At the mirror solution, on one of the sides, first and second order cancel.
            away = -2.0 * s[k] * math.copysign(1.0, float(u[:, k] @ bent)) / curvature
            if not _is_mirror(
                forward, vector, evaluation, away * direction, (relative, others, barrier)
            ):
                continue
        folds.append(_Line(relative))
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


def _by_profile(
    uncertainty: Uncertainty, closed: dict[str, Profile], merging: Set[str]
) -> Uncertainty:
    """Return the uncertainty with intervals by profile in place of linear ones.

    `merging` are the unknowns that a fold moves.
    """
    intervals, errors = uncertainty.intervals.copy(), uncertainty.standard_errors.copy()
    trouble, notes = dict(uncertainty.trouble), dict(uncertainty.notes)
    for key, profile in closed.items():
        i = uncertainty.keys.index(key)
        intervals[i] = profile.lower, profile.upper
        if trouble.get(key, Trouble.NOT_LINEAR) is not Trouble.NOT_LINEAR:
            errors[i] = math.nan  # linearisation has no standard error, or a wrong one
        trouble[key] = Trouble.BY_PROFILE
        notes[key] = MERGING if key in merging else LED
    covariance = np.where(np.isnan(errors)[:, None] | np.isnan(errors), np.nan, 1.0)
    left = [d for d in uncertainty.directions if not all(key in closed for key in d.keys)]
    settled: Sequence[Direction] = [d for d in uncertainty.directions if d not in left]
    weak = weakly_determined(uncertainty.trouble)
    sentence = uncertainty.sentence.replace(weak, weakly_determined(trouble))
    for direction in settled:
        sentence = sentence.replace(direction.sentence, "")
    names = ", ".join(key for key in closed if key in merging)
    text = f"At a fold, where two solutions merge: {names}; their intervals are those of profiles."
    text = text if names else ""
    return replace(
        uncertainty,
        intervals=intervals,
        standard_errors=errors,
        covariance=uncertainty.covariance * covariance,
        correlation=uncertainty.correlation * covariance,
        trouble=trouble,
        notes=notes,
        directions=tuple(left),
        rank=uncertainty.rank + len(settled),
        sentence=" ".join(f"{text} {sentence}".split()),
    )
