"""Intervals of quantities over time: linear, by profile likelihood, and from samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.farthest_values import Curves, FarthestValues
from odefit.assessment.functionals.over_time import OverTime
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.outputs import evaluated
from odefit.assessment.predictions.band_checks import EXCEEDED, ROUNDING, can_be_checked
from odefit.assessment.predictions.bands import Interval, NoBand
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.profiles.profiling import profile_all
from odefit.assessment.sampling.bootstrap import MIN_SAMPLES
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.running.control import Control
from odefit.simulation import ForwardMap


def linear_intervals(
    forward: ForwardMap,
    solutions: Sequence[tuple[Array, float]],
    quantities: Sequence[OverTime],
    level: float,
    *,
    check: bool = True,
) -> list[Interval]:
    """Return intervals by linearisation, see :class:`LinearBands`.

    The `solutions` that fit have their deviance from the best, the first one. Intervals contain
    those of all, and the values between. With `check`, those that bend are withheld.
    """
    to_limit = _to_limit(forward, solutions[0][0], level)
    fitting = [(vector, rise) for vector, rise in solutions if not rise > to_limit[1]]
    bands = [LinearBands(forward, vector, rise) for vector, rise in fitting]
    joined = []
    for quantity in quantities:
        intervals = []
        for (vector, _), source in zip(fitting, bands, strict=True):
            value, gradient = quantity.at(forward, vector)
            one = Interval(value, math.nan, math.nan, math.nan)
            if math.isfinite(value):
                one = source.interval(value, gradient, level)
                may_bend = check and source.may_bend
                if may_bend and _reaches_further(forward, vector, quantity, one, to_limit):
                    one = _bent(one, source.held)
            intervals.append(one)
        joined.append(_joined(intervals))
    return joined


def _to_limit(forward: ForwardMap, best: Array, level: float) -> tuple[Deviance, float]:
    """Return the deviance from the best solution, and its limit at a level."""
    deviance = Deviance.of(forward, best, evaluated(forward, best))
    return deviance, deviance.limit(level)


def _farthest(
    forward: ForwardMap, vector: Array, quantity: OverTime, to_limit: tuple[Deviance, float]
) -> FarthestValues:
    """Return the search for the farthest values of a quantity that fit."""

    def number(x: Array) -> Curves:
        value, gradient = quantity.at(forward, x)
        return {quantity.key: np.array([value])}, {quantity.key: gradient[None]}

    return FarthestValues(forward, number, np.zeros(1, dtype=np.intp), (vector,), *to_limit)


def _reaches_further(
    forward: ForwardMap,
    vector: Array,
    quantity: OverTime,
    interval: Interval,
    to_limit: tuple[Deviance, float],
) -> bool:
    """Return whether values far outside a linear interval fit the data.

    The limit is that of the deviance from the best solution.
    """
    half = np.array([interval.value - interval.low, interval.high - interval.value])
    if not (np.isfinite(half).all() and half.max() > 0 and can_be_checked(forward, *to_limit)):
        return False
    values = _farthest(forward, vector, quantity, to_limit)
    for side, sign in enumerate((-1, 1)):
        values.end(quantity.key, 0, sign)
        farthest = values.high if sign > 0 else values.low
        if values.better is not None:
            return False  # the estimate is no optimum, which others tell
        away = sign * (float(farthest[quantity.key][0]) - interval.value)
        if away > EXCEEDED * half[side] + ROUNDING * abs(interval.value):
            return True
    return False


def _bent(interval: Interval, held: Sequence[str]) -> Interval:
    """Return a number without its interval, for unknowns `held` at a bound if there are any."""
    return replace(
        interval,
        error=math.nan,
        low=math.nan,
        high=math.nan,
        lacking=(*interval.lacking, NoBand.BENT if held else NoBand.NOT_LINEAR),
        at_bounds=interval.at_bounds or tuple(held),
    )


def _joined(intervals: Sequence[Interval]) -> Interval:
    """Return the interval that contains those of all solutions; NaN if one has none."""
    if len(intervals) == 1:
        return intervals[0]
    lacking = [reason for one in intervals for reason in one.lacking]
    if not all(math.isfinite(one.value) for one in intervals[1:]):
        lacking.append(NoBand.ELSEWHERE)
    return replace(
        intervals[0],
        low=float(np.min([one.low for one in intervals])),
        high=float(np.max([one.high for one in intervals])),
        lacking=tuple(dict.fromkeys(lacking)),
        undetermined=tuple(dict.fromkeys(key for one in intervals for key in one.undetermined)),
        at_bounds=tuple(dict.fromkeys(key for one in intervals for key in one.at_bounds)),
        solutions=len(intervals),
    )


def profiled_intervals(
    forward: ForwardMap,
    solutions: Sequence[tuple[Array, float]],
    quantities: Sequence[OverTime],
    level: float,
    control: Control,
) -> list[Interval]:
    """Return intervals by the profile likelihood of each quantity, whose keys differ.

    They begin at all `solutions`, as :func:`linear_intervals` takes them.
    """
    vector, others = solutions[0][0], [x for x, _ in solutions[1:]]
    linear = linear_intervals(forward, solutions, quantities, level, check=False)
    open_ = [i for i, one in enumerate(linear) if math.isfinite(one.value)]
    if not open_:
        return linear
    chosen = [quantities[i] for i in open_]
    profiles = profile_all(forward.problem, vector, level, control, (), chosen, others)
    for i, profile in zip(open_, profiles.profiles, strict=True):
        ends = [profile.lower, profile.upper]
        for side in np.flatnonzero(np.isnan(ends)):
            at = forward, vector, quantities[i], _to_limit(forward, vector, level)
            end = _farthest(*at).end(quantities[i].key, 0, 2 * int(side) - 1)
            ends[side] = end.value if end.settled else math.nan
        lacking = (NoBand.NOT_COMPUTED,) if np.isnan(ends).any() else ()
        errorless = () if math.isfinite(linear[i].error) else linear[i].lacking
        low, high = ends
        linear[i] = replace(linear[i], low=low, high=high, lacking=lacking, errorless=errorless)
    return linear


def sampled_intervals(
    forward: ForwardMap,
    vector: Array,
    quantities: Sequence[OverTime],
    level: float,
    samples: Array,
) -> list[Interval]:
    """Return percentiles of the quantities among samples of the unknowns, shape (k, n).

    Samples in which a quantity is not defined are left out. Raises InputError for too few samples.
    """
    if len(samples) < MIN_SAMPLES:
        raise InputError(
            f"intervals need at least {MIN_SAMPLES} samples, and there are {len(samples)}"
        )
    intervals = []
    for quantity in quantities:
        value, _ = quantity.at(forward, vector)
        each = np.array([quantity.at(forward, sample)[0] for sample in samples])
        each = each[np.isfinite(each)]
        if len(each) < MIN_SAMPLES:
            intervals.append(Interval(value, math.nan, math.nan, math.nan))
            continue
        low, high = np.quantile(each, [0.5 - level / 2, 0.5 + level / 2])
        intervals.append(Interval(value, float(each.std(ddof=1)), float(low), float(high)))
    return intervals
