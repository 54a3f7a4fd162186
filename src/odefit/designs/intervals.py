"""Intervals expected from measurements, planned before they are made."""

from __future__ import annotations

import math

import numpy as np

from odefit.assessment.intervals.small_samples import intervals_of, quantile_of
from odefit.assessment.profiles.quantities import Quantity
from odefit.common.arrays import Array
from odefit.common.effects import RANK_TOLERANCE, column_norms
from odefit.designs.information import InformationMap
from odefit.designs.knowledge import Knowledge
from odefit.designs.parts import Measurement, PlannedInterval, Run
from odefit.designs.request import Request
from odefit.problem.problem import Problem

OUTSIDE = 1e-6
"""Part of a gradient outside the determined directions above which a quantity has no finite
error."""


class Determined:
    """The directions that rows of information determine, from one decomposition of the rows.

    `rows`, shape (r, n), have the information as their squares.
    """

    def __init__(self, rows: Array) -> None:
        self._any = len(rows) > 0
        if not self._any:
            return
        self._norms = column_norms(rows)
        self._units = np.where(self._norms > 0, self._norms, 1.0)
        # The triangular factor of the rows, of n rows, has the same information.
        scaled = rows / self._units
        if len(scaled) > scaled.shape[1]:
            scaled = np.linalg.qr(scaled)[1]
        _, s, self._vt = np.linalg.svd(scaled, full_matrices=True)
        self._s = np.concatenate([s, np.zeros(rows.shape[1] - len(s))])
        self._known = self._s > RANK_TOLERANCE * self._s.max(initial=0.0)

    def errors(self, gradients: Array) -> Array:
        """Return the standard errors of quantities, infinite if the rows do not determine them.

        `gradients`, shape (n, s), are the derivatives of the quantities.
        """
        if not self._any:
            return np.full(gradients.shape[1], math.inf)
        scaled, known = gradients / self._units[:, None], self._known
        errors = np.sqrt(np.sum((self._vt[known] @ scaled / self._s[known, None]) ** 2, axis=0))
        outside = np.linalg.norm(self._vt[~known] @ scaled, axis=0)
        outside = outside > OUTSIDE * np.linalg.norm(scaled, axis=0)
        missing = (np.abs(gradients) * (self._norms == 0)[:, None]).any(axis=0)
        return np.where(outside | missing, math.inf, errors)


def design_rows(
    information: InformationMap,
    runs: tuple[Run, ...],
    measurements: tuple[Measurement, ...],
    vector: Array,
) -> Array:
    """Return rows whose squares are the information of measurements, shape (r, n)."""
    blocks = [np.zeros((0, len(vector)))]
    times = [np.unique([m.time for m in measurements if m.run == k]) for k in range(len(runs))]
    informations = information.of(runs, times, vector)
    for m in measurements:
        at = int(np.searchsorted(times[m.run], m.time))
        for name in m.observables:
            of_measurement = informations[m.run].rows[at, information.observables.index(name)]
            blocks.append(math.sqrt(m.count) * of_measurement)
    return np.concatenate(blocks)


def planned_intervals(
    request: Request,
    known: Knowledge,
    information: InformationMap,
    runs: tuple[Run, ...],
    measurements: tuple[Measurement, ...],
    before: Array,
) -> tuple[PlannedInterval, ...]:
    """Return the interval of each quantity without and with some measurements.

    `before` are the rows of the existing information.
    """
    problem, vector = request.problem, known.estimate
    after = np.concatenate([before, design_rows(information, runs, measurements, vector)])
    unknown_noise = known.variance is None and not information.forward.given_noise
    old = problem.size if known.existing else 0
    new = sum(m.count * len(m.observables) for m in measurements)
    values, gradients = request.quantities.at(information.forward, vector)
    errors = [Determined(rows).errors(gradients) for rows in (before, after)]
    degrees = [
        _degrees(information, rows, count) for rows, count in ((before, old), (after, old + new))
    ]
    quantiles = [quantile_of(request.level, d) for d in degrees]
    intervals = []
    for k, (name, item) in enumerate(
        zip(request.quantities.names, request.quantities.items, strict=True)
    ):
        ends = []
        for error, quantile in zip(errors, quantiles, strict=True):
            ends.append(
                _interval(problem, item, vector, float(values[k]), float(error[k]), quantile)
            )
        if unknown_noise:
            ends = [e if math.isinf(e[1]) else (math.nan, math.nan) for e in ends]
        profiled = False
        if isinstance(item, int):
            of_fit, profiled = _of_result(known, name, item, request.level)
            ends[0] = of_fit or ends[0]
        intervals.append(
            PlannedInterval(
                name, float(values[k]), ends[0], ends[1], float(errors[0][k]),
                float(errors[1][k]), profiled,
            )
        )  # fmt: skip
    return tuple(intervals)


def _degrees(information: InformationMap, rows: Array, count: int) -> float:
    """Return the degrees of freedom of the noise estimate; infinite if the noise is given."""
    forward = information.forward
    estimated = any(u.kind == "noise" for u in forward.problem.unknowns)
    if forward.given_noise and not estimated:
        return math.inf
    norms = column_norms(rows)
    used = int(np.count_nonzero(norms))
    noise = sum(u.kind == "noise" for u in forward.problem.unknowns)
    return float(count - max(used - noise, 0))


def _interval(
    problem: Problem,
    item: int | Quantity,
    vector: Array,
    value: float,
    error: float,
    quantile: float,
) -> tuple[float, float]:
    if math.isinf(error):
        return -math.inf, math.inf
    if isinstance(item, int):
        errors = np.zeros(len(vector))
        errors[item] = error
        low, high = intervals_of(problem, vector, errors, np.full(len(vector), quantile))[item]
        return float(low), float(high)
    return value - quantile * error, value + quantile * error


def _of_result(
    known: Knowledge, name: str, index: int, level: float
) -> tuple[tuple[float, float] | None, bool]:
    """Return the interval of an unknown in a result, and whether it comes from its profile."""
    profiles, uncertainty = known.profiles, known.uncertainty
    if profiles is not None and profiles.level == level:
        for profile in profiles.profiles:
            ends = profile.lower, profile.upper
            if profile.key == name and not any(math.isnan(e) for e in ends):
                return ends, True
    if uncertainty is not None and uncertainty.level == level:
        low, high = map(float, uncertainty.intervals[index])
        if math.isfinite(low) and math.isfinite(high):
            return (low, high), False
    return None, False
