"""Does the answer describe the data? A local optimum may be far from doing so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.local.cost_tolerance import NEGLIGIBLE_RESIDUAL, CostTolerance
from odefit.methods.outliers import Outlier
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import transformed
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.residuals.noise import known_sds
from odefit.simulation.residuals.residual_groups import SeriesResiduals
from odefit.simulation.trajectories.trajectory import Trajectory

MAX_UNFIT_SHARE = 0.05
"""Sum of squared residuals over that of the data about their means above which an answer does not
describe the data, unless their noise is as large."""

MAX_NOISE_RATIO = 2.0
"""Root mean square of the residuals over the noise that is given up to which it explains them."""

MAX_ESTIMATED_RATIO = 4.0
"""Root mean square of the residuals over the noise that is estimated from the data, up to which
that explains them: real residuals are seldom independent, a model of real data is seldom exact."""

MAX_SYSTEMATIC_RATIO = 10.0
"""Root mean square of the residuals over the noise above which an answer does not describe the
data, however small its residuals are beside these."""

MAX_CORROBORATED_SHARE = 0.25
"""Share of the sum of squares that residuals may have where several independent methods have ended
at the same optimum: then it is rather the model that is not that of the data."""

MIN_POINTS = 16
"""Points of a series below which nothing is said of its noise unless it is given."""

MAX_NAMED = 5
"""Number of outliers that a sentence names."""

MAX_CHANCE_DEVIATIONS = 6.0
"""Standard deviations by which chi-square may exceed its mean."""


@dataclass(frozen=True)
class Misfit:
    """An answer whose residuals are more than noise.

    Attributes
    ----------
    ratio
        Root mean square of the residuals over the noise of the data.
    share
        Sum of squared residuals over that of the data about their means, weighted.
    sentence
        All this in words.
    short
        The same without the ratio.
    accepted
        Whether nothing better can be had, as the answer is proved to be the best, obeys
        constraints, or misses a few outliers alone.
    outliers
        These outliers.
    """

    ratio: float
    share: float
    sentence: str
    short: str
    accepted: bool = False
    outliers: tuple[Outlier, ...] = ()

    def with_outliers(self, outliers: tuple[Outlier, ...]) -> Misfit:
        """Return the same as the work of a few values, which are named.

        Parameters
        ----------
        outliers
            The values, without which noise explains the residuals.
        """
        count, some = len(outliers), _listed(outliers)
        alike = "one value looks like an outlier"
        pulls, them = "it pulls", "it"
        if count > 1:
            alike, pulls, them = f"{count} values look like outliers", "they pull", "them"
        said = (
            f"{alike}: {some}; noise explains the others, but {pulls} the estimates, and intervals "
            f"assume that there are none; correct or remove {them}, or give the noise of the "
            'observable loss = "student" in [noise]'
        )
        return replace(self, sentence=said, short=said, accepted=True, outliers=outliers)

    def unfit(self, corroborated: bool) -> bool:
        """Say whether the answer is none: it does not describe the data.

        Parameters
        ----------
        corroborated
            Whether several methods have ended there.
        """
        if self.accepted or (corroborated and self.share <= MAX_CORROBORATED_SHARE):
            return False
        return self.share > MAX_UNFIT_SHARE or self.ratio > MAX_SYSTEMATIC_RATIO


def assess_misfit(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    proved: bool = False,
    constrained: bool = False,
) -> Misfit | None:
    """Return what speaks against the answer at `vector`; None if noise may explain its residuals.

    Where noise is given, they are compared with it, elsewhere with an estimate of the noise from
    the data alone, which takes what is not smooth for noise.

    Parameters
    ----------
    forward, vector, evaluation
        The problem, the unknowns of the answer, shape (n,), and what the problem is there.
    proved
        Whether the answer is proved to be the best within the bounds.
    constrained
        Whether the answer had to obey constraints beside the data.
    """
    tolerance = CostTolerance.of(forward)
    if tolerance.squares is not None and evaluation.cost <= tolerance.absolute:
        return None
    found = forward.trajectories(vector, evaluation.choice)
    if isinstance(found, Failure):
        return None
    series = _measured(forward, vector, found)
    if series is None:
        return None
    given = forward.given_noise and not forward.likelihood
    left = sum(float(np.sum(s.weighted**2)) for s in series)
    about_means = sum(float(np.sum((s.values - s.values.mean()) ** 2 / s.sds**2)) for s in series)
    share = left / about_means if about_means > 0 else math.inf
    if given:
        count = sum(len(s.values) for s in series)
        spare = max(count - len(vector), 1)
        chance = spare + MAX_CHANCE_DEVIATIONS * math.sqrt(2 * spare)
        if left <= max(MAX_NOISE_RATIO**2 * spare, chance):
            return None
        ratio = math.sqrt(left / spare)
        noise = "the noise that is given"
    else:
        heavy_tails = forward.likelihood and not forward.gaussian
        if heavy_tails or any(len(s.times) < MIN_POINTS for s in series):
            return None
        from odefit.methods.smoothing.noise import noise_level  # SciPy comes along

        expected = sum(
            len(s.values) * noise_level(s.times, s.means) ** 2 / float(np.mean(s.sds**2))
            for s in series
        )
        # The integration cannot do better than that either.
        size = sum(float(s.values @ s.values) for s in series)
        expected = max(expected, NEGLIGIBLE_RESIDUAL**2 * size)
        ratio = math.sqrt(left / expected) if expected > 0 else 0.0
        least = MAX_ESTIMATED_RATIO if share > MAX_UNFIT_SHARE else MAX_SYSTEMATIC_RATIO
        if ratio <= least or (forward.likelihood and share <= MAX_UNFIT_SHARE):
            return None  # a noise that is estimated may stand for what the model leaves out
        noise = "the noise of the data"
    unfit = share > MAX_UNFIT_SHARE
    large = f"residuals are {ratio:.2g} times as large as {noise}"
    if constrained:
        cause = "the constraints or the model are not those of the data"
    elif proved:
        cause = "it is the best within the bounds, so the model is not that of the data"
    else:
        cause = "a better one exists elsewhere, or the model is not that of the data"
    fits = "does not describe the data" if unfit else "describes the data, but not up to its noise"
    return Misfit(
        ratio,
        share,
        f"the answer {fits}: {large}; {cause}",
        f"the answer {fits}: {cause}",
        proved or constrained,
    )


def _listed(outliers: Sequence[Outlier]) -> str:
    several = len({o.experiment for o in outliers}) > 1
    names = [f"{o.words} (experiment {o.experiment})" if several else o.words for o in outliers]
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


@dataclass(frozen=True, eq=False)
class _Measured:
    """A series on the scale of its noise model.

    Attributes
    ----------
    times, means
        Distinct times, and the mean of what was measured then.
    values, sds, weighted
        Measured values, standard deviations (1 where they are unknown), and residuals over these.
    """

    times: Array
    means: Array
    values: Array
    sds: Array
    weighted: Array


def _measured(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]
) -> list[_Measured] | None:
    blocks = forward.series_residuals(vector, trajectories)
    found = []
    for condition in forward.problem.conditions:
        for name, series in condition.series.items():
            block = next(blocks)
            if isinstance(block, Failure):
                return None
            noise = forward.problem.noise.get(name, Noise())
            found.append(_of_series(series, noise, block, condition.times[series.rows]))
    return found


def _of_series(series: Series, noise: Noise, block: SeriesResiduals, times: Array) -> _Measured:
    values = transformed(series.values, noise.transform)
    known = known_sds(noise, series)
    n = len(values)
    difference = block.pearson * block.sds
    sds = np.ones(n) if known is None else np.where(known > 0, known, math.inf)
    if not noise.law.located:  # standard deviations are those that the model predicts
        sds = block.sds
    at, which = np.unique(times, return_inverse=True)
    means = np.bincount(which, values) / np.bincount(which)
    finite = np.isfinite(at)
    at, means = at[finite], means[finite]
    return _Measured(at, means, values, sds, difference / sds)
