"""The question of the status: does the answer describe the data? A local optimum may be far off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.fit_quality.limits import (
    FAR_SHARE,
    MAX_ESTIMATED_RATIO,
    MAX_NOISE_RATIO,
    MAX_SYSTEMATIC_RATIO,
    MAX_UNFIT_SHARE,
    STATUS_POINTS,
    STATUS_SIGMAS,
    most_chi_square,
)
from odefit.methods.fit_quality.measured_series import (
    MeasuredSeries,
    measured_series,
    share_left,
)
from odefit.methods.local.cost_tolerance import NEGLIGIBLE_RESIDUAL, CostTolerance
from odefit.methods.outliers import Outlier
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.residuals.noise import known_sds

SWING = 0.1
"""Part of the range of a series about its middle within which no crossing counts."""

TURN = 2 * math.pi
"""A full turn, in radians."""

CIRCULAR = ("sin", "cos", "tan")
"""Functions of an angle."""

MAX_NAMED = 5
"""Number of outliers that a sentence names."""


@dataclass(frozen=True)
class Run:
    """The run of a series: its range, and the number of crossings of its middle."""

    low: float
    high: float
    passes: int

    @classmethod
    def of(cls, values: Array) -> Run:
        """Return the run of values in the order of time; small swings do not count."""
        low, high = float(values.min()), float(values.max())
        clear = np.abs(values - 0.5 * (low + high)) > SWING * (high - low)
        sides = values[clear] > 0.5 * (low + high)
        return cls(low, high, int(np.sum(sides[1:] != sides[:-1])))


@dataclass(frozen=True)
class Astray:
    """A series that the curve of the answer does not approach, with the run of both.

    `angle` is set if an equation takes a sine of the observable, whose values exceed a turn in
    radians by far and swing about zero, as degrees do.
    """

    observable: str
    experiment: str
    measured: Run
    curve: Run
    angle: bool


@dataclass(frozen=True)
class Misfit:
    """An answer whose residuals are more than noise."""

    ratio: float
    """Ratio of the root mean square residual to the noise of the data."""
    share: float
    """Ratio of the weighted sum of squared residuals to that of the data about their means."""
    sentence: str
    short: str
    """The sentence without the ratio."""
    accepted: bool = False
    """True if no better answer exists, as it is proved to be the best, obeys constraints, or misses
    only a few outliers."""
    outliers: tuple[Outlier, ...] = ()
    astray: tuple[Astray, ...] = ()

    def with_outliers(self, outliers: tuple[Outlier, ...]) -> Misfit:
        """Return the misfit explained by a few values, without which noise explains the others."""
        count, some = len(outliers), _listed(outliers)
        alike = "one value looks like an outlier"
        pulls, them = "it pulls", "it"
        if count > 1:
            alike, pulls, them = f"{count} values look like outliers", "they pull", "them"
        sentence = (
            f"{alike}: {some}; noise explains the others. Since {pulls} the estimates, and "
            f"intervals assume no outliers, correct or remove {them}, or give the noise of the "
            'observable loss = "student" in [noise]'
        )
        return replace(self, sentence=sentence, short=sentence, accepted=True, outliers=outliers)

    def unfit(self, corroborated: bool) -> bool:
        """Return whether the answer does not fit; `corroborated` if independent searches agree.

        If they agree, the model is wrong rather than the search, and no better answer exists.
        """
        far = self.share > MAX_UNFIT_SHARE or self.ratio > MAX_SYSTEMATIC_RATIO
        return far and not (self.accepted or corroborated)


def assess_misfit(
    forward: ForwardMap,
    vector: Array,
    evaluation: Evaluation,
    proved: bool = False,
    constrained: bool = False,
    corroborated: bool = False,
) -> Misfit | None:
    """Return the misfit of the answer at `vector`; None if noise may explain its residuals.

    If noise is given, they are compared with it, otherwise with an estimate from the data alone,
    which treats everything that is not smooth as noise. The answer may be `proved` to be the best
    within the bounds, `constrained` by more than the data, or `corroborated` by independent
    searches.
    """
    if CostTolerance.of(forward).negligible(evaluation.cost):
        return None
    trajectories = forward.trajectories(vector, evaluation.choice)
    measured = (
        None
        if isinstance(trajectories, Failure)
        else measured_series(forward, vector, trajectories)
    )
    if measured is None:
        return None
    sds = [_known_sds(one) for one in measured]
    left = about_means = 0.0
    for one, sd in zip(measured, sds, strict=True):
        left += float(np.sum((one.deviations / sd) ** 2))
        about_means += float(np.sum((one.values - one.values.mean()) ** 2 / sd**2))
    share = left / about_means if about_means > 0 else math.inf
    if forward.given_noise and not forward.likelihood:
        spare = max(sum(len(one.times) for one in measured) - len(vector), 1)
        if left <= max(MAX_NOISE_RATIO**2 * spare, most_chi_square(spare, STATUS_SIGMAS)):
            return None
        ratio = math.sqrt(left / spare)
        noise = "the noise that is given"
    else:
        means = [_means(one) for one in measured]
        heavy_tails = forward.likelihood and not forward.gaussian
        if heavy_tails or any(len(times) < STATUS_POINTS for times, _ in means):
            return None
        from odefit.methods.smoothing.noise import noise_level  # imports SciPy

        expected = sum(
            len(sd) * noise_level(*mean) ** 2 / float(np.mean(sd**2))
            for sd, mean in zip(sds, means, strict=True)
        )
        # The integration cannot be more accurate either.
        size = sum(float(one.values @ one.values) for one in measured)
        expected = max(expected, NEGLIGIBLE_RESIDUAL**2 * size)
        ratio = math.sqrt(left / expected) if expected > 0 else 0.0
        least = MAX_ESTIMATED_RATIO if share > MAX_UNFIT_SHARE else MAX_SYSTEMATIC_RATIO
        if ratio <= least or (forward.likelihood and share <= MAX_UNFIT_SHARE):
            return None  # an estimated noise may absorb missing parts of the model
        noise = "the noise of the data"
    large = f"residuals are {ratio:.2g} times as large as {noise}"
    if constrained:
        cause = "the constraints or the model do not fit the data"
    elif proved:
        cause = "it is the best within the bounds, so the model does not describe the data"
    elif corroborated:
        cause = "independent searches found nothing better, so the model is probably wrong"
    else:
        cause = "a better one exists elsewhere, or the model does not describe the data"
    unfit = share > MAX_UNFIT_SHARE
    fits = (
        "does not describe the data" if unfit else "describes the data, but not to within the noise"
    )
    return Misfit(
        ratio=ratio,
        share=share,
        sentence=f"the answer {fits}: {large}; {cause}",
        short=f"the answer {fits}: {cause}",
        accepted=proved or constrained,
        astray=tuple(_astray(forward.problem, measured)),
    )


def _astray(problem: Problem, measured: Sequence[MeasuredSeries]) -> Iterator[Astray]:
    """Yield the series that the curve does not approach."""
    several = len(problem.conditions) > 1
    for one in measured:
        if one.noise.transform is not None or not share_left(one) > FAR_SHARE:
            continue
        runs = Run.of(one.values), Run.of(one.values + one.deviations)
        name = problem.conditions[one.condition].name if several else ""
        angle = runs[0].low < -TURN and runs[0].high > TURN and _is_angle(problem, one.observable)
        yield Astray(one.observable, name, *runs, angle)


def _is_angle(problem: Problem, observable: str) -> bool:
    """Return whether an equation takes the sine or cosine of an observable."""
    state = problem.model.observables[observable].name
    programs = (e.program for e in (*problem.given.ode.values(), *problem.given.algebraic.values()))
    return any(
        name.kind == "name" and name.text == state and call.kind == "call" and call.text in CIRCULAR
        for program in programs
        for name, call in pairwise(program)
    )


def _known_sds(one: MeasuredSeries) -> Array:
    """Return the standard deviations; 1 if they are unknown, the model's if it has them."""
    if not one.noise.law.located:
        return one.sds
    known = known_sds(one.noise, one.series)
    return np.ones(len(one.times)) if known is None else np.where(known > 0, known, math.inf)


def _means(one: MeasuredSeries) -> tuple[Array, Array]:
    """Return distinct finite times, and the mean of the measurements at each."""
    at, which = np.unique(one.times, return_inverse=True)
    means = np.bincount(which, one.values) / np.bincount(which)
    finite = np.isfinite(at)
    return at[finite], means[finite]


def _listed(outliers: Sequence[Outlier]) -> str:
    several = len({o.experiment for o in outliers}) > 1
    names = [f"{o.words} (experiment {o.experiment})" if several else o.words for o in outliers]
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
