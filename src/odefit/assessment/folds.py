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
from dataclasses import replace

import numpy as np

from odefit.assessment.fold_directions import fold_directions, rank_tolerance, reach_of_limit
from odefit.assessment.intervals.uncertainty import assess_uncertainty, weakly_determined
from odefit.assessment.parts import Direction, Trouble, Uncertainty
from odefit.assessment.profiles.linear_checks import checked
from odefit.assessment.profiles.parts import Profile
from odefit.assessment.profiles.profiling import profile_all
from odefit.common.arrays import Array
from odefit.common.effects import RANK_TOLERANCE
from odefit.common.errors import InputError
from odefit.methods.running.control import Control
from odefit.simulation import Evaluation, ForwardMap

CONFIRMED = 0.1
"""Largest difference of an end of a linear interval and one by profile, relative to the width, for
which the profile confirms the linear interval."""

MOST_EVALUATIONS = 1000
"""Number of evaluations after which a side of such a profile ends. The closed sides that were seen
took up to 400; those without an end took thousands, several times as long as the fit."""


MERGING = "interval by profile: two solutions merge here, where linearisation fails"

LED = "interval by profile: it changes a little with what the data do not determine"


def linear_uncertainty(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    level: float,
    conditions: int,
    optimal: bool,
) -> Uncertainty:
    """Return the uncertainty by linearisation, with checked intervals.

    Solutions merge only where the answer is `optimal`. `conditions` are equations besides the data.
    """
    at, tolerance = (forward, vector, evaluation), RANK_TOLERANCE
    if optimal:
        tolerance = rank_tolerance(*at, level)
    uncertainty = assess_uncertainty(*at, level, conditions, tolerance)
    return checked(*at, uncertainty, conditions)


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
    reach = reach_of_limit(forward, vector, evaluation, uncertainty.level)
    if control.should_stop() or not math.isfinite(reach):
        return uncertainty
    folds, flat = fold_directions(forward, vector, evaluation, reach)
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
