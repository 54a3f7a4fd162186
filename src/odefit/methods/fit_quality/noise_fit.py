"""The question of the search: are residuals as small as the noise, given or estimated?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, fdtrc

from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.expressions.expressions import Expression
from odefit.methods.estimate import Start
from odefit.methods.fit_quality.limits import (
    MAX_NOISE,
    MIN_NOISE,
    MIN_PATTERN_CHANCE,
    MIN_PATTERN_CHANCE_ESTIMATED,
    MIN_POINTS_FOR_PATTERN,
    SEARCH_POINTS,
    SEARCH_RATIO,
    TYPICAL_SIGMAS,
    most_chi_square,
)
from odefit.methods.fit_quality.measured_series import (
    MeasuredSeries,
    measured_series,
    share_left,
)
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory

MIN_FREEDOM = 50  # degrees of freedom above which noise alone does not hide a worse local optimum

MIN_SLOWER = 4
"""Smallest number of residuals for each cosine of the slow part."""

SLOW_PARTS = (4, 10, 25, 60)
"""Numbers of the slowest cosines of residuals that are tested."""


@dataclass(frozen=True)
class NoiseFit:
    """Sizes of residuals relative to the noise."""

    explained: bool | None
    """True if noise alone explains them; None if nothing is known of the noise."""
    chi_square: float = math.nan
    """The weighted sum of squares of the measurements whose noise is given."""
    values: int = 0
    """The number of these measurements."""
    ratio: float = math.nan
    """The largest ratio of the root mean square residual of a series to its noise, if that is
    estimated from the data."""
    freedom: float = 0.0
    """The number of compared residuals minus the number of unknowns."""
    pattern: float = 1.0
    """The probability that noise has slow parts as large as those of the residuals."""
    stiff: bool = False
    """True if the equations are stiff there."""
    relative: float = math.nan
    """The largest ratio of the root mean square residual of a series to its largest value."""
    outliers: int = 0
    """The number of values that keep noise from explaining the residuals, if they are few."""
    share: float = 0.0
    """The smallest ratio of the sum of squared residuals of a series to that of its values about
    their mean: near 1 if no curve follows its data."""

    @property
    def certain(self) -> bool:
        """True if noise explains them, and they are so many that noise hides no worse optimum."""
        return self.explained is True and self.freedom >= MIN_FREEDOM

    @property
    def typical(self) -> bool:
        """True if the noise is given, and the residuals are as large as it makes them on average.

        A worse optimum that the wider limits of `explained` admit is seldom typical.
        """
        usual = self.chi_square <= most_chi_square(max(self.freedom, 0.0), TYPICAL_SIGMAS)
        stated = self.values > 0 and math.isnan(self.ratio)
        return stated and usual and self.pattern >= MIN_PATTERN_CHANCE_ESTIMATED

    @property
    def sentence(self) -> str:
        """The comparison of the residuals with the noise, in words.

        It is the beginning of a sentence, or empty if nothing is known.
        """
        sentences = []
        if self.values:
            # A chi-square below this limit only satisfies the search; the assessment tests whether
            # it agrees with the noise.
            excess = self.chi_square > most_chi_square(self.values)
            sentences.append(
                f"chi-square is {self.chi_square:.4g} for {counted(self.values, 'value')}"
                + (", more than the noise explains" if excess else "")
            )
        if not math.isnan(self.ratio):
            if self.ratio <= SEARCH_RATIO:
                sentences.append("the residuals are as small as the scatter of the data")
            else:
                sentences.append(f"residuals are {self.ratio:.2g} times the scatter of the data")
        if sentences and self.pattern < MIN_PATTERN_CHANCE:
            sentences.append("the residuals vary slowly in time, as noise seldom does")
        return "; ".join(sentences)


class NoiseLevels:
    """The noise of each series of a problem, as far as it is given or can be estimated."""

    def __init__(self, forward: ForwardMap) -> None:
        self._forward = forward
        self._estimated: dict[tuple[int, str], float | None] = {}

    def fit(self, end: Start) -> NoiseFit:
        """Compare the residuals at the end of a start with the noise."""
        forward, problem, vector = self._forward, self._forward.problem, end.vector
        if end.nodes is not None:
            forward = ForwardMap(problem, nodes=end.nodes)
        trajectories: list[Trajectory] = []
        for condition in problem.conditions:
            trajectory = forward.trajectory(vector, condition.name, sensitivities=False)
            if isinstance(trajectory, Failure):
                return NoiseFit(None)
            trajectories.append(trajectory)
        measured = measured_series(forward, vector, trajectories)
        if measured is None:
            return NoiseFit(None)
        chi_square, values, compared = 0.0, 0, 0
        ratios, parts, shares, largest = [], [], [], 0.0
        for one in measured:
            known = _is_given(one)
            level = None if known else self._level(one)
            deviations = one.deviations
            if level is not None and _varies(one):
                # Scatter that varies along the series is compared in its own units.
                level, deviations = _noise_of(one.times, one.residuals), one.residuals
            if known or level is not None:
                parts.append(slow_parts(one.residuals, 1.0 if known else None))
            shares.append(share_left(one))
            largest = max(largest, _rms(one.deviations) / (_largest(one.series.values) or 1.0))
            if known:
                chi_square += float(one.residuals @ one.residuals)
                values += len(one.times)
            elif level is not None:
                compared += len(one.times)
                ratios.append(_rms(deviations) / level if level > 0 else 0.0)
        pattern = slow_pattern(parts)
        verdicts = [chi_square <= most_chi_square(values)] if values else []
        verdicts += [r <= SEARCH_RATIO for r in ratios]
        # If no noise is given, such small residuals are integration errors alone.
        smooth = not values and largest <= MIN_NOISE
        least = MIN_PATTERN_CHANCE_ESTIMATED if ratios else MIN_PATTERN_CHANCE
        usual = smooth or pattern >= least
        return NoiseFit(
            explained=all(verdicts) and usual if verdicts else None,
            chi_square=chi_square,
            values=values,
            ratio=max(ratios, default=math.nan),
            freedom=values + compared - len(problem.unknowns),
            pattern=pattern,
            stiff=any(t.choice.stiff for t in trajectories),
            relative=largest,
            share=min(shares, default=0.0),
        )

    def _level(self, one: MeasuredSeries) -> float | None:
        """Return the noise of a series, estimated once, on the scale of its noise model."""
        key = one.condition, one.observable
        if key not in self._estimated:
            self._estimated[key] = _estimate(one.times, one.values)
        return self._estimated[key]


def slow_parts(residuals: Array, variance: float | None = None) -> Array:
    """Return the slow parts of residuals, which for noise have chi-square distributions.

    The cosine transform of independent residuals of equal variance has independent coefficients of
    that variance, so that the sum of squares of the first k has a chi-square distribution. A misfit
    is slow: its squares are in few coefficients. `residuals` are in the order of time, shape (n,),
    and `variance` is their variance if they are noise; None estimates it from their fast half.

    For each k of :data:`SLOW_PARTS` the result is the sum of squares over the variance; NaN if
    there are too few residuals. If the variance is estimated, it is the chi-square as improbable as
    the ratio of the two sums of squares.
    """
    n = len(residuals)
    unknown = np.full(len(SLOW_PARTS), math.nan)
    if n < MIN_POINTS_FOR_PATTERN or not np.isfinite(residuals).all():
        return unknown
    # The cosine transform by the Fourier transform of the residuals and their mirror image.
    mirrored = np.concatenate([residuals, residuals[::-1]])
    phase = np.exp(-0.5j * np.pi * np.arange(n) / n)
    squares = np.real(np.fft.fft(mirrored)[:n] * phase) ** 2 / (2 * n)
    squares[0] /= 2
    fast = squares[n // 2 :]
    scale = float(np.mean(fast)) if variance is None else variance
    if not scale > 0:
        return unknown
    parts = np.minimum(SLOW_PARTS, n)
    sums = np.cumsum(squares / scale)[parts - 1]
    if variance is None:
        sums = chdtri(parts, fdtrc(parts, len(fast), sums / parts))
    return np.where(parts * MIN_SLOWER <= n, sums, math.nan)


def slow_pattern(parts: Sequence[Array]) -> float:
    """Return the probability of slow parts as large in noise, in one series or in all together.

    That is the smallest probability of any of the :func:`slow_parts`, times their number
    (Bonferroni), at most 1.
    """
    table = np.array(parts).reshape(len(parts), len(SLOW_PARTS))
    known = np.isfinite(table) | np.isposinf(table)
    counts = known.sum(axis=0)
    single = chdtrc(np.array(SLOW_PARTS), np.where(known, table, 0.0))
    several = np.where(known, table, 0.0).sum(axis=0)
    together = chdtrc(np.maximum(counts, 1) * np.array(SLOW_PARTS), several)
    compared = known.sum() + np.sum(counts > 1)
    smallest = min(single.min(initial=1.0), together.min(initial=1.0))
    return float(min(1.0, max(compared, 1) * smallest))


def _is_given(one: MeasuredSeries) -> bool:
    known = one.series.sds_given or one.noise.relative is not None
    return known or not one.noise.law.has_spread or isinstance(one.noise.spread, float)


def _varies(one: MeasuredSeries) -> bool:
    """Return whether the noise of a series depends on the observable through unknowns."""
    return isinstance(one.noise.spread, Expression) or not one.noise.law.located


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _largest(values: Array) -> float:
    return float(np.abs(values).max())


def _noise_of(times: Array, values: Array) -> float:
    """Return the noise of the values at distinct finite times."""
    from odefit.methods.smoothing.noise import noise_level

    unique, first = np.unique(times[np.isfinite(times)], return_index=True)
    return noise_level(unique, values[np.isfinite(times)][first])


def _estimate(times: Array, values: Array) -> float | None:
    """Return the noise of a series; None if it cannot be separated from the signal."""
    finite = np.isfinite(times)
    if len(np.unique(times[finite])) < SEARCH_POINTS or not np.isfinite(values[finite]).all():
        return None
    level = _noise_of(times, values)
    if level > MAX_NOISE * float(np.std(values[finite])):
        return None
    return max(level, MIN_NOISE * _largest(values[finite]), math.ulp(0.0))
