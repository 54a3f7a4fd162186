"""Intervals of small samples whose noise is not normal.

For Laplace noise and the robust losses they come from simulated fits of the linearised model, see
:mod:`odefit.assessment.intervals.simulated_fits`. For the dispersion of counts they come from its
adjusted profile likelihood, see :mod:`odefit.assessment.intervals.dispersions`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from odefit.assessment.intervals.dispersions import AdjustedDispersion, adjusted_dispersions
from odefit.assessment.intervals.simulated_fits import SimulatedFits
from odefit.assessment.parts import Uncertainty
from odefit.common.arrays import Array
from odefit.common.effects import column_norms
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, ForwardMap

NUDGE = 1e-3
"""Relative change of a dispersion that shows how variances depend on it."""

UNCORRECTED = (
    "The noise is not normal, and the intervals are approximations for many values: with few, "
    "they contain the truth less often than stated (a bootstrap shows how the estimates scatter)."
)
"""The sentence on intervals without any small-sample correction."""


def correlation_of(covariance: Array, errors: Array) -> Array:
    """Return the correlation from a covariance, shape (n, n), and standard errors, shape (n,)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(covariance / np.outer(errors, errors))


def with_small_samples(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, uncertainty: Uncertainty
) -> Uncertainty:
    """Return the large-sample uncertainty with intervals corrected for small samples."""
    fits = SimulatedFits.of(forward, vector, evaluation)
    if fits is not None:
        uncertainty = _simulated(forward.problem, vector, uncertainty, fits)
    elif any(s.noise.law.located and not s.noise.gaussian for s in forward.series_rows):
        uncertainty = replace(uncertainty, sentence=f"{uncertainty.sentence} {UNCORRECTED}".strip())
    dispersions = adjusted_dispersions(forward, vector, evaluation, uncertainty.level)
    if not dispersions:
        return uncertainty
    if fits is None and not uncertainty.directions:
        uncertainty = _rescattered(forward.problem, vector, evaluation, uncertainty, dispersions)
    return _dispersed(forward.problem, uncertainty, dispersions)


def _simulated(
    problem: Problem, vector: Array, uncertainty: Uncertainty, fits: SimulatedFits
) -> Uncertainty:
    """Return the uncertainty with the results of simulated fits."""
    level, corrected = uncertainty.level, dict[str, float]()
    intervals, covariance = uncertainty.intervals.copy(), uncertainty.covariance.copy()
    known = np.isfinite(uncertainty.standard_errors)
    unknowns = np.intersect1d(fits.unknowns, np.flatnonzero(known))
    gradients = np.eye(len(vector))[unknowns]
    covariance[np.ix_(unknowns, unknowns)] = fits.covariance(gradients)
    halves = np.zeros(len(vector))
    halves[unknowns] = fits.half_widths(gradients, level)
    intervals[unknowns] = intervals_of(problem, vector, halves, np.ones(len(vector)))[unknowns]
    for index, (factor, low, high, spread) in fits.scales(level).items():
        if known[index]:
            corrected[problem.keys[index]] = float(vector[index] * factor)
            parameter = problem.unknowns[index].parameter
            ends = vector[index] * low, vector[index] * high
            intervals[index] = max(ends[0], parameter.lower), min(ends[1], parameter.upper)
            covariance[index, index] = (vector[index] * factor * spread) ** 2
    kind = "correlated in time" if fits.correlated else "not normal"
    sentence = (
        f"The noise is {kind}: standard errors and intervals come from "
        f"{fits.samples} simulated fits of the linearised model."
    )
    return _with_covariance(uncertainty, covariance, intervals, sentence, corrected)


def _rescattered(
    problem: Problem,
    vector: Array,
    evaluation: Evaluation,
    uncertainty: Uncertainty,
    dispersions: Sequence[AdjustedDispersion],
) -> Uncertainty:
    """Return the uncertainty of the other unknowns for corrected dispersions."""
    known = np.flatnonzero(np.isfinite(uncertainty.standard_errors))
    others = [k for k in known if problem.unknowns[k].kind != "noise"]
    jacobian = evaluation.information[:, known]

    def of(changed: AdjustedDispersion | None = None, factor: float = 1.0) -> Array:
        weighted = jacobian.copy()
        for dispersion in dispersions:
            value = dispersion.estimate * (factor if dispersion is changed else 1.0)
            weighted[dispersion.counts.rows] *= np.sqrt(dispersion.counts.weights(value))[:, None]
        norms = column_norms(weighted)
        inverse = np.linalg.pinv(weighted / norms) / norms[:, None]
        return np.asarray(inverse @ inverse.T)

    covariance = uncertainty.covariance.copy()
    covariance[np.ix_(known, known)] = of()
    spread = np.zeros(len(known))
    for dispersion in dispersions:
        relative = uncertainty.standard_errors[dispersion.index] / vector[dispersion.index]
        both = [np.log(np.diag(of(dispersion, factor))) for factor in (1 + NUDGE, 1 - NUDGE)]
        spread += ((both[0] - both[1]) / (2 * NUDGE) * relative) ** 2
    # A variance whose logarithm has this variance has, by Satterthwaite, these degrees of freedom.
    with np.errstate(divide="ignore"):
        degrees = np.where(spread > 0, 2 / spread, math.inf)
    halves = np.zeros(len(vector))
    quantiles = np.array([quantile_of(uncertainty.level, d) for d in degrees])
    halves[known] = quantiles * np.sqrt(np.diag(covariance)[known])
    intervals = uncertainty.intervals.copy()
    intervals[others] = intervals_of(problem, vector, halves, np.ones(len(vector)))[others]
    return _with_covariance(uncertainty, covariance, intervals, "", {})


def _dispersed(
    problem: Problem, uncertainty: Uncertainty, dispersions: Sequence[AdjustedDispersion]
) -> Uncertainty:
    """Return the uncertainty with the intervals of dispersions."""
    intervals, corrected = uncertainty.intervals.copy(), {}
    for dispersion in dispersions:
        key, parameter = (
            problem.keys[dispersion.index],
            problem.unknowns[dispersion.index].parameter,
        )
        if np.isfinite(uncertainty.standard_errors[dispersion.index]):
            corrected[key] = dispersion.estimate
            ends = max(dispersion.lower, parameter.lower), min(dispersion.upper, parameter.upper)
            intervals[dispersion.index] = ends
    sentence = (
        "The dispersion is estimated: its interval comes from the adjusted profile likelihood, "
        "and standard errors allow for the unknowns that were fitted."
    )
    return _with_covariance(uncertainty, uncertainty.covariance, intervals, sentence, corrected)


def _with_covariance(
    uncertainty: Uncertainty,
    covariance: Array,
    intervals: Array,
    sentence: str,
    corrected: Mapping[str, float],
) -> Uncertainty:
    errors = np.sqrt(np.diag(covariance))
    return replace(
        uncertainty,
        standard_errors=errors,
        intervals=intervals,
        covariance=covariance,
        correlation=correlation_of(covariance, errors),
        sentence=f"{uncertainty.sentence} {sentence}".strip(),
        corrected_noise={**uncertainty.corrected_noise, **corrected},
    )


def intervals_of(problem: Problem, vector: Array, errors: Array, quantiles: Array) -> Array:
    """Return intervals that are symmetric in the unknowns, or in their logarithms for log10."""
    half = quantiles * errors
    intervals = np.column_stack([vector - half, vector + half])
    for i, unknown in enumerate(problem.unknowns):
        if unknown.parameter.scale == "log10" and vector[i] > 0:
            with np.errstate(over="ignore"):
                factor = np.exp(half[i] / vector[i])
            intervals[i] = vector[i] / factor, vector[i] * factor
    return intervals


def quantile_of(level: float, degrees: float) -> float:
    """Return the quantile of Student's t distribution (normal for infinite degrees of freedom).

    It is NaN without degrees of freedom.
    """
    from scipy.special import ndtri, stdtrit

    p = 0.5 + level / 2
    if degrees <= 0:
        return math.nan
    return float(ndtri(p)) if math.isinf(degrees) else float(stdtrit(degrees, p))
