"""Bands by profile likelihood: right where the model is far from linear in its unknowns.

Each value at a time has a profile of its own (C. Kreutz, A. Raue and J. Timmer, Likelihood based
observability analysis and confidence intervals for predictions of dynamic models, BMC Systems
Biology 6, 2012). For a smooth curve some times are profiled, and how much wider than the linear
band they are is interpolated between them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from odefit.assessment.prediction import Band, LinearBands
from odefit.assessment.profiles.profiling import profile_all
from odefit.common.arrays import Array, IntArray
from odefit.methods.running.control import Control
from odefit.problem.condition import Condition
from odefit.simulation import Failure, ForwardMap

MAX_TIMES = 16
"""Largest number of times at which each output is profiled."""

LEAST_ERROR = 1e-9
"""Standard error, relative to the largest value, below which a value is known: no profile."""


class ProfileBands:
    """Bands whose ends are those of the profile likelihood of each value.

    Raises InputError if the model cannot be integrated at the estimate, or if the answer is on
    shooting nodes.
    """

    def __init__(self, forward: ForwardMap, vector: Array, control: Control | None = None) -> None:
        self._linear = LinearBands(forward, vector)
        self._problem = forward.problem
        self._vector = vector
        self._control = control or Control()

    def bands(self, condition: Condition, times: Array, level: float) -> list[Band] | Failure:
        """Return the bands of all observables and states, see :class:`BandSource`.

        The prediction band joins the ends of the profile and the noise as squares.
        """
        linear = self._linear.uncut(condition, times, level)
        if isinstance(linear, Failure):
            return linear
        at = np.unique(np.linspace(0, len(times) - 1, min(len(times), MAX_TIMES)).round())
        chosen = at.astype(np.intp)
        texts = {}
        for band in linear:
            least = LEAST_ERROR * np.abs(band.values).max(initial=0.0)
            for i in chosen:
                if not band.errors[i] <= least:  # those that are not determined have profiles too
                    text = f"{band.name}[{condition.name}]@{float(times[i])!r}"
                    texts[text] = band.name, i
        found = profile_all(self._problem, self._vector, level, self._control, (), list(texts))
        offsets = {band.name: np.zeros((2, len(times))) for band in linear}
        for profile in found.profiles:
            name, i = texts[profile.text]
            offsets[name][:, i] = profile.lower - profile.estimate, profile.upper - profile.estimate
        return [_widened(band, offsets[band.name], chosen) for band in linear]


def _widened(linear: Band, offsets: Array, chosen: IntArray) -> Band:
    """Return the band with these distances from the values at the chosen times, shape (2, k)."""
    times, half = linear.times, linear.confidence - linear.values
    confidence = np.empty_like(half)
    for k in range(2):
        whole = np.isfinite(half[k]).all() and (half[k][chosen] != 0).any()
        known = half[k][chosen] != 0
        if whole:
            # Relative to the linear band, the distances hardly change with time.
            ratio = offsets[k][chosen][known] / half[k][chosen][known]
            distance = half[k] * np.interp(times, times[chosen][known], ratio)
        else:
            distance = np.interp(times, times[chosen], offsets[k][chosen])
        confidence[k] = linear.values + distance
    with np.errstate(invalid="ignore"):
        noise = (linear.prediction - linear.values) ** 2 - half**2
        reach = np.sqrt((confidence - linear.values) ** 2 + np.maximum(noise, 0.0))
    prediction = linear.values + np.array([[-1.0], [1.0]]) * reach
    return replace(linear, confidence=confidence, prediction=prediction)
