"""Bands by profile likelihood, valid for strongly nonlinear models.

Each value at a time has a profile of its own (C. Kreutz, A. Raue and J. Timmer, Likelihood based
observability analysis and confidence intervals for predictions of dynamic models, BMC Systems
Biology 6, 2012), of which only the ends are needed. For a smooth curve the ends are computed at
some times, and their ratio to the linear band is interpolated between these.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from odefit.assessment.farthest_values import CurvesOfCondition, FarthestValues
from odefit.assessment.predictions.bands import Band, NoBand
from odefit.assessment.predictions.prediction import LinearBands
from odefit.assessment.profiles.profiling import MAX_ADOPTIONS, optimum_at
from odefit.common.arrays import Array, IntArray
from odefit.common.errors import counted
from odefit.methods.polish import POLISH
from odefit.methods.running.control import Control, Progress, running
from odefit.problem.condition import Condition
from odefit.simulation import Failure, ForwardMap

MAX_TIMES = 16
"""Largest number of times at which the ends of each band are computed."""

LEAST_ERROR = 1e-9
"""Standard error, relative to the largest value, below which a value is known and has no width."""

MAX_ROUNDS = 3
"""Number of times that ends are recomputed from points that refute them."""

REFUTED = 0.01
"""Part of its distance from the estimate by which a point beyond an end refutes it."""


class ProfileBands:
    """Bands whose ends come from the profile likelihood of each value.

    Raises InputError if the model cannot be integrated at the estimate, or if the answer is on
    shooting nodes. If the estimate is not the best solution that fits, deviances refer to `best`.
    """

    def __init__(
        self,
        forward: ForwardMap,
        vector: Array,
        control: Control | None = None,
        best: Array | None = None,
    ) -> None:
        self._linear = LinearBands(forward, vector)
        self._forward = forward
        self._vector = vector
        self._best = vector if best is None else best
        self._control = control or Control()

    def bands(
        self, condition: Condition, times: Array, level: float, names: Collection[str] | None = None
    ) -> list[Band] | Failure:
        """Return the bands of observables and states, see :class:`BandSource`.

        The prediction band joins the ends of the profile and the noise as squares. The fits are
        compared with the best that is found on the way.
        """
        linear = self._linear.uncut(condition, times, level, names)
        if isinstance(linear, Failure):
            return linear
        at = np.unique(np.linspace(0, len(times) - 1, min(len(times), MAX_TIMES)).round())
        chosen = at.astype(np.intp)
        best = self._best
        with running(self._control):
            for _ in range(MAX_ADOPTIONS + 1):
                optimum = optimum_at(self._forward, best, level)
                names_of = [band.name for band in linear]
                values = FarthestValues(
                    self._forward,
                    CurvesOfCondition(self._forward, condition, (times, chosen), names_of),
                    chosen,
                    (self._vector,) if best is self._best else (best, self._vector),
                    optimum.deviance,
                    optimum.limit,
                )
                profiled = [self._profiled(band, values, condition) for band in linear]
                if values.better is None or self._control.should_stop():
                    break
                best = POLISH.run(self._forward, 0, values.better, self._control).vector
        return [replace(band, better=best is not self._best) for band in profiled]

    def _profiled(self, linear: Band, values: FarthestValues, condition: Condition) -> Band:
        """Return the band of one curve."""
        name, chosen = linear.name, values.chosen
        ends = np.tile(linear.values[chosen], (2, 1))
        unsettled = np.zeros(ends.shape, dtype=bool)
        least = LEAST_ERROR * np.abs(linear.values).max(initial=0.0)
        # Those that are not determined have ends, too.
        known = linear.errors[chosen] <= least
        todo = [(side, int(k)) for side in range(2) for k in np.flatnonzero(~known)]
        total = len(todo)
        for _ in range(MAX_ROUNDS):
            for done, (side, k) in enumerate(todo):
                if values.better is not None:
                    return linear
                if self._control.should_stop():
                    unsettled[side, k] = True
                    continue
                end = values.end(name, k, 2 * side - 1)
                ends[side, k], unsettled[side, k] = end.value, not end.settled
                if self._control.report is not None:
                    text = f"{name} in {condition.name}: {done + 1} of {counted(total, 'end')}"
                    self._control.report(
                        Progress(values.evaluations, 0, np.inf, 0, text, "evaluation")
                    )
            outer = np.stack([values.low[name], values.high[name]])[:, chosen]
            beyond = np.abs(outer - linear.values[chosen]) > (1 + REFUTED) * np.abs(
                ends - linear.values[chosen]
            )
            beyond &= ~known
            ends[0] = np.fmin(ends[0], outer[0])
            ends[1] = np.fmax(ends[1], outer[1])
            todo = [(int(side), int(k)) for side, k in np.argwhere(beyond)]
            if not todo:
                break
        inner = np.stack([values.low[name], values.high[name]])
        confidence = _widened(linear, ends - linear.values[chosen], chosen)
        confidence[0] = np.fmin(confidence[0], inner[0])
        confidence[1] = np.fmax(confidence[1], inner[1])
        return replace(
            linear,
            confidence=confidence,
            prediction=self._linear.prediction_about(linear, confidence),
            unfinished=int(unsettled.sum()),
            lacking=(NoBand.NOT_COMPUTED,) if np.isnan(confidence).any() else (),
            errorless=() if np.isinf(ends).any() else linear.lacking,
            widening=(),
            undetermined=linear.undetermined
            if np.isinf(ends).any() or np.isnan(linear.errors).any()
            else (),
        )


def _widened(linear: Band, offsets: Array, chosen: IntArray) -> Array:
    """Return the ends of a band with these distances from the values at the chosen times."""
    times, half = linear.times, linear.confidence - linear.values
    confidence = np.empty_like(half)
    for k in range(2):
        whole = np.isfinite(half[k]).all() and (half[k][chosen] != 0).any()
        known = half[k][chosen] != 0
        if whole:
            # Relative to the linear band, the distances hardly change with time.
            ratio = offsets[k][known] / half[k][chosen][known]
            distance = half[k] * np.interp(times, times[chosen][known], ratio)
        else:
            distance = np.interp(times, times[chosen], offsets[k])
        confidence[k] = linear.values + distance
        endless = np.interp(times, times[chosen], np.isinf(offsets[k]).astype(float)) > 0
        confidence[k][endless] = math.copysign(math.inf, 2 * k - 1)
    return confidence
