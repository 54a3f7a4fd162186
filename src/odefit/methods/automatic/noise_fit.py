"""Whether residuals are as small as the noise of the data, given or estimated from the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, fdtrc

from odefit.common.arrays import Array
from odefit.common.errors import counted
from odefit.methods.estimate import Start
from odefit.problem.condition import Condition, Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.trajectories.trajectory import Trajectory

MAX_SIGMAS = 3.0
"""Standard deviations of its chi-square distribution that an objective may be above its mean."""

MIN_POINTS = 100
"""Number of times of a series below which its noise cannot be told from its signal."""

MAX_NOISE = 0.3
"""Noise of a series, over the spread of its values, above which its signal is not resolved."""

MAX_RATIO = 1.5
"""Root mean square of residuals over the estimated noise up to which they count as noise."""

MIN_NOISE = 1e-9
"""Smallest noise of a series, relative to its largest value: no integration is more accurate."""

MIN_PATTERN_CHANCE = 0.01
"""Probability that noise has slow parts like those of the residuals, below which they are a
pattern. It is also the share of right answers that are taken for doubtful ones: for these the
search takes up to a hundred times as long."""

MIN_PATTERN_CHANCE_ESTIMATED = 0.2
"""Probability below which slow parts are a pattern where noise is estimated from the data: the size
of the residuals says less then, and a worse optimum may have hardly larger ones."""

MIN_POINTS_FOR_PATTERN = 100
"""Number of residuals of a series below which no pattern is looked for: few residuals of mere noise
have one too often."""

MIN_SLOWER = 4
"""Number of residuals for each cosine of the slow part, at least."""

SLOW_PARTS = (4, 10, 25, 60)
"""Numbers of the slowest cosines of residuals that are looked at."""


@dataclass(frozen=True)
class NoiseFit:
    """How large residuals are beside the noise.

    Attributes
    ----------
    explained
        Whether noise alone explains them; None where nothing is known of the noise.
    chi_square, values
        The weighted sum of squares of the measurements whose noise is given, and their number.
    ratio
        The largest root mean square of the residuals of a series over its noise, where that is
        estimated from the data.
    freedom
        The number of residuals that were compared, less that of the unknowns.
    pattern
        The probability that noise has slow parts as large as those of the residuals.
    stiff
        Whether the equations are stiff there.
    relative
        The largest root mean square of the residuals of a series over its largest value.
    outliers
        The number of values that keep noise from explaining the residuals, where they are few.
    """

    explained: bool | None
    chi_square: float = math.nan
    values: int = 0
    ratio: float = math.nan
    freedom: float = 0.0
    pattern: float = 1.0
    stiff: bool = False
    relative: float = math.nan
    outliers: int = 0

    @property
    def sentence(self) -> str:
        """How the residuals compare with the noise, in words.

        It is the beginning of a sentence; it is empty if nothing is known.
        """
        said = []
        if self.values:
            # A chi-square below this limit is no more than the search asks for: whether it is
            # what the noise says, the assessment finds with the test that it names.
            excess = self.chi_square > most_chi_square(self.values)
            said.append(
                f"chi-square is {self.chi_square:.4g} for {counted(self.values, 'value')}"
                + (", more than the noise explains" if excess else "")
            )
        if not math.isnan(self.ratio):
            if self.ratio <= MAX_RATIO:
                said.append("the residuals are as small as the scatter of the data")
            else:
                said.append(f"residuals are {self.ratio:.2g} times the scatter of the data")
        if said and self.pattern < MIN_PATTERN_CHANCE:
            said.append("the residuals have a slow pattern, which noise seldom has")
        return "; ".join(said)


def most_chi_square(freedom: float) -> float:
    """Return the largest chi-square that counts as noise, for these degrees of freedom."""
    return freedom + MAX_SIGMAS * math.sqrt(2 * freedom)


class NoiseLevels:
    """The noise of each series of a problem, as far as it is given or can be estimated.

    Parameters
    ----------
    forward
        The forward map of the problem.
    """

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
            found = forward.trajectory(vector, condition.name, sensitivities=False)
            if isinstance(found, Failure):
                return NoiseFit(None)
            trajectories.append(found)
        chi_square, values, compared = 0.0, 0, 0
        ratios, parts, largest = [], [], 0.0
        residuals = forward.series_residuals(vector, trajectories)
        for i, condition in enumerate(problem.conditions):
            for name, series in condition.series.items():
                block = next(residuals)
                if isinstance(block, Failure):
                    return NoiseFit(None)
                size = len(series.values)
                weighted = block.pearson
                noise = problem.noise.get(name, Noise())
                known = _is_given(noise, series)
                level = None if known else self._level(i, condition, name, noise)
                if known or level is not None:
                    parts.append(slow_parts(weighted, 1.0 if known else None))
                deviations = weighted * block.sds
                rms = float(np.sqrt(np.mean(deviations**2)))
                largest = max(largest, rms / (float(np.abs(series.values).max()) or 1.0))
                if known:
                    chi_square += float(weighted @ weighted)
                    values += size
                elif level is not None:
                    compared += size
                    ratios.append(rms / level)
        pattern = slow_pattern(parts)
        verdicts = [chi_square <= most_chi_square(values)] if values else []
        verdicts += [r <= MAX_RATIO for r in ratios]
        # Where no noise is given, so small residuals are errors of the integration alone.
        smooth = not values and largest <= MIN_NOISE
        least = MIN_PATTERN_CHANCE_ESTIMATED if ratios else MIN_PATTERN_CHANCE
        usual = smooth or pattern >= least
        explained = all(verdicts) and usual if verdicts else None
        freedom = values + compared - len(problem.unknowns)
        ratio = max(ratios, default=math.nan)
        stiff = any(t.choice.stiff for t in trajectories)
        return NoiseFit(explained, chi_square, values, ratio, freedom, pattern, stiff, largest)

    def _level(self, i: int, condition: Condition, name: str, noise: Noise) -> float | None:
        """Return the noise of a series, estimated once, on the scale of its noise model."""
        key = (i, name)
        if key not in self._estimated:
            series = condition.series[name]
            with np.errstate(all="ignore"):
                values = transformed(series.values, noise.transform)
            self._estimated[key] = _estimate(condition.times[series.rows], values)
        return self._estimated[key]


def slow_parts(residuals: Array, variance: float | None = None) -> Array:
    """Return the slow parts of residuals, which for noise have chi-square distributions.

    The cosine transform of independent residuals of equal variance has independent coefficients of
    that variance, so that the sum of squares of the first k has a chi-square distribution. A misfit
    is slow: its squares are in few coefficients.

    Parameters
    ----------
    residuals
        Weighted residuals in the order of time, shape (n,).
    variance
        Their variance if they are noise; None to take it from their fast half.

    Returns
    -------
    numpy.ndarray
        For each k of :data:`SLOW_PARTS`, the sum of squares over the variance; NaN where there are
        too few residuals. If the variance is estimated, it is the chi-square as improbable as the
        ratio of the two sums of squares.
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
    """Return the probability that noise has slow parts as large, in one series or in all together.

    Parameters
    ----------
    parts
        The :func:`slow_parts` of each series.

    Returns
    -------
    float
        The smallest probability of a part, times the number of parts (Bonferroni), at most 1.
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


def _is_given(noise: Noise, series: Series) -> bool:
    known = series.sds_given or noise.relative is not None
    return known or not noise.law.has_spread or isinstance(noise.spread, float)


def _estimate(times: Array, values: Array) -> float | None:
    """Return the noise of a series; None where it cannot be told from the signal."""
    times, values = times[np.isfinite(times)], values[np.isfinite(times)]
    unique, first = np.unique(times, return_index=True)
    if len(unique) < MIN_POINTS or not np.isfinite(values).all():
        return None
    from odefit.methods.smoothing.noise import noise_level

    level = noise_level(unique, values[first])
    if level > MAX_NOISE * float(np.std(values)):
        return None
    return max(level, MIN_NOISE * float(np.abs(values).max()), math.ulp(0.0))
