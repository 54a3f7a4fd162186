"""Intervals of quantities over time: linear, by profile likelihood, and from samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.functionals.over_time import OverTime
from odefit.assessment.predictions.bands import Interval
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.profiles.profiling import profile_all
from odefit.assessment.sampling.bootstrap import MIN_SAMPLES
from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.running.control import Control
from odefit.simulation import ForwardMap


def linear_intervals(
    forward: ForwardMap, vector: Array, quantities: Sequence[OverTime], level: float
) -> list[Interval]:
    """Return intervals by linearisation at the estimate, see :class:`LinearBands`."""
    bands = LinearBands(forward, vector)
    intervals = []
    for quantity in quantities:
        value, gradient = quantity.at(forward, vector)
        if math.isfinite(value):
            intervals.append(bands.interval(value, gradient, level))
        else:
            intervals.append(Interval(value, math.nan, math.nan, math.nan))
    return intervals


def profiled_intervals(
    forward: ForwardMap,
    vector: Array,
    quantities: Sequence[OverTime],
    level: float,
    control: Control,
) -> list[Interval]:
    """Return intervals by the profile likelihood of each quantity, whose keys differ."""
    linear = linear_intervals(forward, vector, quantities, level)
    open_ = [i for i, one in enumerate(linear) if math.isfinite(one.value)]
    if not open_:
        return linear
    chosen = [quantities[i] for i in open_]
    profiles = profile_all(forward.problem, vector, level, control, (), chosen)
    for i, profile in zip(open_, profiles.profiles, strict=True):
        linear[i] = replace(
            linear[i], low=profile.lower, high=profile.upper, lacking=(), undetermined=()
        )
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
