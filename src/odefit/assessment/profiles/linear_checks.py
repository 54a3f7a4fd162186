"""Checks of linear intervals: bounds, curvature, and intervals without information.

Linearisation fixes an unknown at its bound, and replaces the model by its tangent within the
interval. Both can be checked at little cost. One check is how far the unknown could leave its bound
before the fit becomes too bad. The other is the deviance at the ends of the interval, after a refit
of one or two steps. The latter measures, at the relevant places, what the curvature measures of D.
M. Bates and D. G. Watts (Relative curvature measures of nonlinearity, 1980) represent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.released import released
from odefit.assessment.parts import Trouble, Uncertainty
from odefit.assessment.profiles.held import HeldUnknown
from odefit.common.arrays import Array
from odefit.common.effects import acting
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.blocks import Blocks

MAX_SHIFT = 0.5
"""Change of an estimate when another one leaves its bound, relative to the half-width of its
interval, above which that interval is withheld."""

MAX_FACTOR = 1e3
"""Factor between an estimate and the ends of its interval above which the interval is
uninformative."""

CROOKED = (0.8, 4.0)
"""Range of the root of the deviance at the ends of a linear interval, relative to the one expected,
outside of which the interval is unreliable. An end that fits worse than expected is too far out and
errs on the safe side, so that it may deviate more than an end too close to the estimate."""

CROOKED_BY_KINKS = (0.55, 4.0)
"""The same range with Laplace noise: each measurement is a kink of the deviance, which scatters
about its parabola."""

REFIT_EVALUATIONS = 3
"""Largest number of evaluations of a refit at the end of a linear interval."""

GAIN = 0.05
"""Decrease of the deviance, relative to its limit, below which evaluations end."""

MOST_EVALUATIONS = 80
"""Number of evaluations for the checks of a small model, however short the fit was."""

MOST_EQUATIONS = 300
"""Number of equations of states and sensitivities up to which a model counts as small."""

SHARE_OF_FIT = 0.1
"""Number of evaluations for the checks of any other model, relative to those of the fit."""


def checked(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    uncertainty: Uncertainty,
    conditions: int = 0,
) -> Uncertainty:
    """Return the uncertainty without intervals that require others to stay at a bound.

    Intervals end at the bounds, and those without information are withheld. `conditions` is the
    number of equations that hold besides the data.
    """
    problem = forward.problem
    tied = _tied(forward, vector, evaluation, uncertainty, conditions)
    errors, intervals = uncertainty.standard_errors.copy(), uncertainty.intervals.copy()
    covariance, correlation = uncertainty.covariance.copy(), uncertainty.correlation.copy()
    trouble, notes = dict(uncertainty.trouble), dict(uncertainty.notes)
    for i, key in enumerate(problem.keys):
        parameter = problem.unknowns[i].parameter
        if i in tied:
            others = _listed([problem.keys[k] for k in tied[i]])
            trouble[key] = Trouble.TIED_TO_A_BOUND
            notes[key] = (
                f"no interval: determined only together with {others}, which "
                f"{'is' if len(tied[i]) == 1 else 'are'} at a bound; a profile can tell more"
            )
            errors[i] = math.nan
            intervals[i] = math.nan
            covariance[i, :] = covariance[:, i] = math.nan
            correlation[i, :] = correlation[:, i] = math.nan
            continue
        low, high = np.clip(intervals[i], parameter.lower, parameter.upper)
        wide = parameter.scale == "log10" and vector[i] > 0
        if wide and intervals[i, 1] > MAX_FACTOR * vector[i]:
            trouble[key] = Trouble.WEAKLY_DETERMINED
            notes[key] = "no interval: hardly determined near the estimate; a profile can tell more"
            low = high = math.nan
        intervals[i] = low, high
    return replace(
        uncertainty,
        standard_errors=errors,
        intervals=intervals,
        covariance=covariance,
        correlation=correlation,
        trouble=trouble,
        notes=notes,
    )


def with_curvature(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    uncertainty: Uncertainty,
    evaluations: int,
    stop: Callable[[], bool],
) -> Uncertainty:
    """Return the uncertainty with a flag at linear intervals whose ends fit worse or better.

    Intervals of corrected standard deviations come from another distribution. The check is skipped
    if it would take a considerable share of the fit's `evaluations`.
    """
    problem = forward.problem
    keys = [
        i
        for i, u in enumerate(problem.unknowns)
        if np.isfinite(uncertainty.intervals[i]).all()
        and u.kind != "noise"
        and u.key not in {*uncertainty.trouble, *uncertainty.corrected_noise}
    ]
    needed = len(keys) * (2 * REFIT_EVALUATIONS - 1)
    equations = len(problem.model.states) * (1 + len(problem.keys)) * len(problem.conditions)
    small = equations <= MOST_EQUATIONS and needed <= MOST_EVALUATIONS
    if not (small or needed <= SHARE_OF_FIT * evaluations) or forward.nodes is not None:
        return uncertainty
    deviance = Deviance.of(forward, vector, evaluation)
    limit = deviance.limit(uncertainty.level)
    if not (math.isfinite(limit) and deviance.variance > 0):
        return uncertainty
    kinked = any(s.noise.law.kinked for s in forward.series_rows)
    least, most = CROOKED_BY_KINKS if kinked else CROOKED
    trouble, notes = dict(uncertainty.trouble), dict(uncertainty.notes)
    blocks = Blocks.around(forward, vector)
    for i in keys:
        if stop():
            return uncertainty
        block = None if blocks is None else blocks.of(i)
        if block is None:
            family = HeldUnknown(forward, i, vector, evaluation.choice, deviance.variance)
            low, high = _roots(family, uncertainty.intervals[i], deviance, limit)
        else:
            alone = deviance.with_noise_held(block.at_answer.cost)
            place = int(np.flatnonzero(block.places == i)[0])
            at = block.forward, place, vector[block.places], block.at_answer.choice
            family = HeldUnknown(*at, alone.variance)
            expected = deviance.root(limit) ** 2
            low, high = _roots(family, uncertainty.intervals[i], alone, expected)
        if not (least <= low <= most and least <= high <= most):
            key = problem.keys[i]
            trouble[key] = Trouble.NOT_LINEAR
            notes[key] = (
                "the linear interval cannot be trusted, as the model bends within it; a profile "
                "can tell more"
            )
    return replace(
        uncertainty,
        trouble=trouble,
        notes=notes,
    )


def _roots(
    family: HeldUnknown, interval: Array, deviance: Deviance, limit: float
) -> tuple[float, float]:
    """Return the roots of the deviance at both ends, relative to their expectations."""
    first = family.first()
    if isinstance(first, str):
        return math.nan, math.nan
    ends = family.coordinate(interval)
    middle = first.at
    gain = 0.5 * GAIN * limit * deviance.variance
    half = float(np.max(np.abs(ends - middle)))  # a bound may have cut off the other one
    roots = []
    for end in ends:
        if half == 0 or abs(end - middle) < 1e-3 * half:
            roots.append(1.0)
            continue
        cost = family.lowest(first, float(end), gain, REFIT_EVALUATIONS)
        expected = deviance.root(limit) * abs(end - middle) / half
        roots.append(deviance.root(deviance.at(cost)) / expected if cost < math.inf else math.inf)
    return roots[0], roots[1]


def _tied(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    uncertainty: Uncertainty,
    conditions: int,
) -> dict[int, list[int]]:
    """Return the unknowns whose intervals require others to stay at their bounds.

    An unknown at a bound is released, and moved inwards as far as the limit of the deviance allows.
    All others that follow it by more than a part of their intervals are tied to it.
    """
    touched = bounds_touched(forward.problem, vector)
    known = np.flatnonzero(np.isfinite(uncertainty.standard_errors))
    if not touched.any() or not len(known):
        return {}
    deviance = Deviance.of(forward, vector, evaluation, conditions)
    limit = deviance.limit(uncertainty.level)
    if not (math.isfinite(limit) and deviance.variance > 0):
        return {}
    half = deviance.root(limit) * uncertainty.standard_errors[known]
    allowed = limit * deviance.variance
    tied: dict[int, list[int]] = {}
    # Unknowns without an error follow, too: their combinations may be determined.
    _, effective = acting(evaluation.information, sizes_at(forward.problem, vector))
    followers = np.flatnonzero(~touched & effective)
    for left in released(forward, vector, evaluation, followers, allowed):
        moved = np.abs(left.direction[known]) * left.distance
        for k in known[moved > MAX_SHIFT * half]:
            tied.setdefault(int(k), []).append(left.index)
    return tied


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
