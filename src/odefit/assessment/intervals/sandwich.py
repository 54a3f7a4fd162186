"""Standard errors of a fit with independent noise if the noise is correlated in time.

The estimate stays that of least squares, B e for noise e and B the pseudoinverse of the Jacobian.
Its covariance is the sandwich B S B' with the covariance S of the noise (H. White, Econometrica 48,
1980, 817-838). Products of residuals estimate S too small from a few dozen values, and intervals
then cover 70 to 87 %. So S is that of an Ornstein-Uhlenbeck process for each observable. Its
correlation time maximises the restricted likelihood (Patterson and Thompson, Biometrika 58, 1971,
545-554). The degrees of freedom are Satterthwaite's (Biometrics Bulletin 2, 1946, 110-114).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.assessment.intervals.correlated_regressions import Chains
from odefit.assessment.intervals.degrees_of_freedom import chi_square_interval
from odefit.assessment.intervals.small_samples import correlation_of, intervals_of, quantile_of
from odefit.assessment.intervals.uncertainty import intervals_of_bad_fit
from odefit.assessment.parts import Treatment, Trouble, Uncertainty
from odefit.common.arrays import Array, IntArray
from odefit.common.effects import column_space
from odefit.methods.fit_quality.goodness_verdict import Goodness, degrees_in_words
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.noise import WHITE_GAPS
from odefit.problem.variants.sizes import sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.residuals.series_rows import SeriesRows

FEWEST = 3
"""Smallest number of residuals of an observable, beyond the unknowns that they determine."""

WITHOUT = 2.0
"""Ratio of a correlation time to the least that is searched up to which no correlation is seen."""


@dataclass(frozen=True, eq=False)
class ObservableNoise:
    """The noise of an observable, estimated from its residuals.

    Attributes
    ----------
    name
        The observable.
    rows
        The rows of its residuals, in the order of `chains`, shape (m,).
    chains
        Their distances in time, with candidate correlation times.
    number
        The number of the most likely of these times.
    variance
        The variance, in units of the noise at the answer.
    degrees
        Its degrees of freedom.
    """

    name: str
    rows: IntArray
    chains: Chains
    number: int
    variance: float
    degrees: float

    @property
    def time(self) -> float | None:
        """The correlation time; None if no correlation is seen."""
        time = float(self.chains.times[self.number])
        return time if time > WITHOUT * float(self.chains.times[0]) else None


def treated(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    uncertainty: Uncertainty,
    goodness: Goodness | None,
    choice: Treatment,
) -> Uncertainty:
    """Return the uncertainty with the treatment of errors and intervals that the user requests."""
    if choice == "sandwich":
        return with_correlated_noise(forward, vector, evaluation, uncertainty)
    return intervals_of_bad_fit(forward.problem, vector, uncertainty, goodness, choice)


def with_correlated_noise(
    forward: ForwardMap, vector: Array, evaluation: Evaluation, uncertainty: Uncertainty
) -> Uncertainty:
    """Return the uncertainty with errors and intervals for noise that is correlated in time.

    They are unchanged, and the reason is given, if noise is not normal, if some of its standard
    deviations are expressions, or if there are too few residuals.
    """
    reason = _unsuitable(forward, uncertainty)
    noises = [] if reason else _noises(forward, vector, evaluation)
    if noises is None:
        reason = "the residuals are too few"
    if reason or not noises:
        reason = reason or "nothing is measured"
        sentence = f"Standard errors and intervals are as without correlation in time: {reason}."
        return replace(uncertainty, sentence=f"{uncertainty.sentence} {sentence}".strip())
    return _with_noises(forward, vector, evaluation, uncertainty, noises)


def _unsuitable(forward: ForwardMap, uncertainty: Uncertainty) -> str:
    """Return why the sandwich cannot be computed, or an empty text."""
    blocks = forward.series_rows
    if forward.nodes is not None:
        return "the trajectory restarts at shooting nodes"
    if not all(block.gaussian for block in blocks):
        return "they need normal noise without limits of detection"
    if any(b.lag_rows is not None or (b.condition, b.name) in forward.correlated for b in blocks):
        return "the noise model has one already"
    if any(b.estimates_spread and b.noise.spread != "estimate" for b in blocks):
        return "standard deviations that are expressions in unknowns are not supported"
    if uncertainty.directions or forward.problem.model.unknown_functions:
        return "the data do not determine all unknowns"
    return ""


def _noises(
    forward: ForwardMap, vector: Array, evaluation: Evaluation
) -> list[ObservableNoise] | None:
    """Return the noise of each observable; None if one has too few residuals."""
    problem, groups = forward.problem, dict[str, list[SeriesRows]]()
    for block in forward.series_rows:
        groups.setdefault(block.name, []).append(block)
    means = [k for k, u in enumerate(problem.unknowns) if u.kind != "noise"]
    free = np.array([k for k in means if not bounds_touched(problem, vector)[k]], dtype=np.intp)
    sizes, noises = sizes_at(problem, vector)[free], []
    for name, blocks in groups.items():
        times = [problem.conditions[b.condition].times[b.series.rows] for b in blocks]
        rows = np.concatenate([np.arange(b.rows.start, b.rows.stop) for b in blocks])
        basis = column_space(evaluation.information[np.ix_(rows, free)], sizes)
        if len(rows) - basis.shape[1] < FEWEST:
            return None
        chains = _chains(times)
        number = _most_likely(chains, basis, evaluation.residuals[rows])
        # The variance from plain residuals M e, M = I - Q Q': their expected sum of squares is the
        # trace of M S, and their spread follows from that of (M S)^2.
        basis, left = basis[chains.order], evaluation.residuals[rows][chains.order]
        left = left - basis @ (basis.T @ left)
        times_basis = correlated(chains, number, basis)
        inner = basis.T @ times_basis
        trace = len(rows) - float(np.trace(inner))
        squares = _sum_of_squares(chains, number) + float(np.sum(inner**2))
        squares -= 2.0 * float(np.sum(times_basis**2))
        variance = float(left @ left) / trace
        ordered = rows[chains.order]
        noises.append(ObservableNoise(name, ordered, chains, number, variance, trace**2 / squares))
    return noises


def _chains(times: Sequence[Array]) -> Chains:
    """Return series with correlation times from none to the longest span."""
    gaps = np.concatenate([np.diff(np.unique(t[np.isfinite(t)])) for t in times])
    span = max((float(np.ptp(t[np.isfinite(t)])) for t in times if np.isfinite(t).any()), default=0)
    if not len(gaps):
        return Chains.of(times, 1.0, (1.0, 1.0), None)  # nothing depends on anything before it
    bounds = float(gaps.min()) / WHITE_GAPS, span
    return Chains.of(times, math.sqrt(bounds[0] * bounds[1]), bounds, 0)


def _most_likely(chains: Chains, basis: Array, residuals: Array) -> int:
    """Return the number of the time of the highest restricted likelihood of residuals.

    It depends only on the part of residuals outside the span of `basis`, shape (m, rank).
    """
    costs = []
    for number in range(len(chains.times)):
        white, logs = chains.whitened(basis.T, number)
        left, _ = chains.whitened(residuals, number)
        q, r = np.linalg.qr(white.T)
        left = left - q @ (q.T @ left)
        freedom = len(residuals) - basis.shape[1]
        costs.append(
            0.5 * freedom * math.log(max(float(left @ left), 1e-300))
            + logs
            + float(np.sum(np.log(np.abs(np.diag(r)))))
        )
    return int(np.argmin(costs))


def correlated(chains: Chains, number: int, values: Array) -> Array:
    """Return the correlation matrix of a time times values in the order of the chains, (m, k)."""
    factors = np.exp(-chains.distances / chains.times[number])
    forth, back = values.copy(), values.copy()
    for k in range(1, len(values)):
        forth[k] += factors[k] * forth[k - 1]
    for k in range(len(values) - 2, -1, -1):
        back[k] += factors[k + 1] * back[k + 1]
    return np.asarray(forth + back - values)


def _sum_of_squares(chains: Chains, number: int) -> float:
    """Return the sum of the squares of all correlations."""
    factors = np.exp(-2.0 * chains.distances / chains.times[number])
    before, total = 0.0, float(len(factors))
    for factor in factors.tolist():
        before = factor * (before + 1.0)
        total += 2.0 * before
    return total


def _with_noises(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    uncertainty: Uncertainty,
    noises: Sequence[ObservableNoise],
) -> Uncertainty:
    problem, level = forward.problem, uncertainty.level
    kinds = np.array([u.kind == "noise" for u in problem.unknowns])
    touched = bounds_touched(problem, vector)
    free = np.flatnonzero(~kinds & ~touched)
    # Standard deviations act on rows of their own, which change nothing to first order.
    jacobian = evaluation.information[:, free].copy()
    for block in forward.series_rows:
        if block.sd_rows is not None:
            jacobian[block.sd_rows] = 0.0
    sizes = sizes_at(problem, vector)[free]
    inverse = sizes[:, None] * np.linalg.pinv(jacobian * sizes)
    rest = np.ones(len(jacobian), dtype=bool)
    parts, degrees = [], []
    for noise in noises:
        rest[noise.rows] = False
        rows = inverse[:, noise.rows].T
        parts.append(noise.variance * (rows.T @ correlated(noise.chains, noise.number, rows)))
        degrees.append(noise.degrees)
    priors = inverse[:, rest]
    parts.append(uncertainty.variance * (priors @ priors.T))
    degrees.append(math.inf)
    every = np.array([np.diag(part) for part in parts])
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = every.sum(axis=0) ** 2 / np.sum(every**2 / np.array(degrees)[:, None], axis=0)
    known = np.isfinite(uncertainty.standard_errors)
    covariance = np.full_like(uncertainty.covariance, np.nan)
    covariance[np.ix_(free, free)] = sum(parts)
    covariance[~known, :] = covariance[:, ~known] = np.nan
    each = np.full(len(vector), math.inf)
    each[free] = freedom
    errors = np.sqrt(np.diag(covariance))
    quantiles = np.array([quantile_of(level, d) for d in each])
    intervals = intervals_of(problem, vector, errors, quantiles)
    by_profile = [t is Trouble.BY_PROFILE for t in map(uncertainty.trouble.get, problem.keys)]
    intervals[by_profile] = uncertainty.intervals[by_profile]
    corrected = dict(uncertainty.corrected_noise)
    numbers = {u.name: k for k, u in enumerate(problem.unknowns) if u.kind == "noise"}
    shared = [b.noise.unknown(b.name) for b in {b.name: b for b in forward.series_rows}.values()]
    of_name = {n.name: n for n in noises}
    for block in forward.series_rows:
        unknown = block.noise.unknown(block.name)
        k = numbers.get(unknown) if block.estimates_spread else None
        if k is None or not known[k]:
            continue
        if shared.count(unknown) > 1:
            errors[k], intervals[k] = uncertainty.standard_errors[k], uncertainty.intervals[k]
            continue
        noise = of_name[block.name]
        value = float(vector[k]) * math.sqrt(noise.variance)
        each[k] = noise.degrees
        errors[k] = value / math.sqrt(2.0 * noise.degrees)
        covariance[k, k] = errors[k] ** 2
        intervals[k] = chi_square_interval(value, noise.degrees, level)
        corrected[problem.keys[k]] = value
    withheld = ~np.isfinite(uncertainty.intervals).all(axis=1)
    intervals = np.clip(intervals, problem.lower[:, None], problem.upper[:, None])
    intervals[withheld] = np.nan
    fewest = float(each[free][known[free]].min(initial=math.inf))
    return replace(
        uncertainty,
        standard_errors=errors,
        intervals=intervals,
        covariance=covariance,
        correlation=correlation_of(covariance, errors),
        degrees_of_freedom=fewest,
        degrees_by_key=dict(zip(problem.keys, each.tolist(), strict=True)),
        corrected_noise=corrected,
        treatment="sandwich",
        sentence=f"{uncertainty.sentence} {_sentence(noises, fewest)}".strip(),
    )


def _sentence(noises: Sequence[ObservableNoise], degrees: float) -> str:
    seen = [f"{n.time:.3g} for {n.name}" for n in noises if n.time is not None]
    fewest = f", with at least {degrees_in_words(round(degrees))}" if math.isfinite(degrees) else ""
    if not seen:
        return (
            "Standard errors and intervals come from the residuals and their correlation in time, "
            f"of which none is seen{fewest}."
        )
    return (
        "Standard errors and intervals allow for noise that is correlated in time: the correlation "
        f"time is {', '.join(seen)}{fewest}."
    )
