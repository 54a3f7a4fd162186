"""The measurement that would distinguish several solutions that fit, as a fact of the fit."""

from __future__ import annotations

import math
from dataclasses import replace

from odefit.common.errors import InputError
from odefit.fitting.fit_stages import FitState
from odefit.result.settling import settling_of
from odefit.result_data.notices import Notice, NoticeKind

MOST = 6
"""Number of solutions, the best first, that the measurement is to distinguish."""

LEAST = 1.0
"""Smallest difference of two predictions, in standard deviations, of a measurement worth making."""


def with_settling(state: FitState) -> FitState:
    """Add the single measurement that distinguishes the solutions best, if one does."""
    several = [s for s in (*state.equal, *state.near) if s.nodes is None][:MOST]
    if len(several) < 2 or state.control.should_stop():
        return state
    variance = math.nan if state.uncertainty is None else state.uncertainty.variance
    if not (math.isfinite(variance) and variance > 0):
        variance = 1.0
    likelihood = several[0].log_likelihood is not None
    try:
        measurement = settling_of(
            state.problem, [s.vector for s in several], variance, likelihood=likelihood
        )
    except InputError:
        return state  # nothing distinguishes them, or the noise allows no such plan
    if measurement.distance < LEAST:
        return state
    numbers = {
        "time": measurement.time,
        "sd": measurement.sd,
        "distance": measurement.distance,
        "assumed": float(measurement.assumed),
        **{f"solution {k}": value for k, value in enumerate(measurement.predictions, 1)},
    }
    names = (measurement.observable, measurement.experiment, measurement.time_unit)
    notice = Notice(NoticeKind.SETTLED_BY, numbers, names)
    return replace(state, notices=(*state.notices, notice))
