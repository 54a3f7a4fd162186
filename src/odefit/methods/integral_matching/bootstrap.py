"""Standard errors of a match by the parametric bootstrap.

Data are simulated from the matched unknowns with the noise that the smoothers estimate, and matched
again. The errors thus include the loss by smoothing, which errors of a least-squares fit do not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.methods.integral_matching.matching import Match
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import Transform
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap

MIN_SAMPLES = 10  # smallest number of matched samples for a covariance


@dataclass(frozen=True, eq=False)
class MatchErrors:
    """The scatter of a match under repeated measurement.

    Attributes
    ----------
    errors
        Standard errors by name of the unknown.
    covariance
        Covariance of the unknowns, shape (n, n).
    bias
        Mean of the samples minus the match, by name; smoothing causes it.
    vectors
        The unknowns of each sample, shape (samples - failures, n).
    failures
        Number of samples that could not be matched.
    """

    errors: Mapping[str, float]
    covariance: Array
    bias: Mapping[str, float]
    vectors: Array
    failures: int


def bootstrap(
    problem: Problem,
    match: Match,
    rematch: Callable[[Problem, Array], Match],
    samples: int,
    seed: int,
    forward: ForwardMap,
) -> MatchErrors:
    """Return the scatter of the matches of simulated data sets.

    `rematch` matches a problem, starting from a vector of unknowns. Raises InputError if the match
    has no trajectory, or too few samples can be matched.
    """
    simulated = _simulated(problem, match, forward)
    rng = np.random.default_rng(seed)
    vectors = []
    for _ in range(samples):
        try:
            rematched = rematch(_resampled(problem, simulated, rng), match.vector)
        except InputError:
            continue
        if np.isfinite(rematched.cost):
            vectors.append(rematched.vector)
    if len(vectors) < MIN_SAMPLES:
        raise InputError(
            f"standard errors of a match: only {len(vectors)} of {samples} samples could be "
            f"matched, {MIN_SAMPLES} are needed; ask for more samples"
        )
    every = np.array(vectors)
    covariance = np.atleast_2d(np.cov(every, rowvar=False))
    bias = every.mean(axis=0) - match.vector
    return MatchErrors(
        errors=dict(zip(problem.keys, np.sqrt(np.diag(covariance)).tolist(), strict=True)),
        covariance=covariance,
        bias=dict(zip(problem.keys, bias.tolist(), strict=True)),
        vectors=every,
        failures=samples - len(vectors),
    )


@dataclass(frozen=True, eq=False)
class _SimulatedSeries:
    """A series without noise, and its standard deviations on the scale of `transform`."""

    series: Series
    predicted: Array
    sd: Array
    transform: Transform | None
    counts: bool

    def with_noise(self, rng: np.random.Generator) -> Series:
        """Return the series with random noise."""
        noise = self.sd * rng.normal(size=len(self.sd))
        if self.transform is None:
            values = self.predicted + noise
            values = np.maximum(np.round(values), 0.0) if self.counts else values
        else:
            values = self.predicted * (np.exp(noise) if self.transform == "log" else 10.0**noise)
        return replace(self.series, values=values)


def _simulated(
    problem: Problem, match: Match, forward: ForwardMap
) -> list[dict[str, _SimulatedSeries]]:
    """Return the series on the trajectory of a match, by condition and observable."""
    trajectories = []
    for condition in problem.conditions:
        trajectory = forward.trajectory(match.vector, condition.name, sensitivities=False)
        if isinstance(trajectory, Failure):
            raise InputError(f"standard errors of a match: it has no trajectory: {trajectory}")
        trajectories.append(trajectory)
    blocks = forward.series_residuals(match.vector, trajectories)
    simulated: list[dict[str, _SimulatedSeries]] = []
    for number, condition in enumerate(problem.conditions):
        own_segments = [s for s in match.segments if s.condition == number]
        smoothed = {name: sd for segment in own_segments for name, sd in segment.sds.items()}
        condition_series = {}
        for name, series in condition.series.items():
            block = next(blocks)
            if isinstance(block, Failure):
                raise InputError(f"standard errors of a match: {block}")
            noise = problem.noise.get(name, Noise())
            sd, transform = block.sds, noise.transform
            if series.sds is None and noise.relative is None and noise.sd in (None, "estimate"):
                # If a series was not smoothed, its residuals estimate its noise.
                rest = float(np.sqrt(np.mean((series.values - block.predicted) ** 2)))
                sd, transform = np.full(len(sd), smoothed.get(name, rest)), None
            condition_series[name] = _SimulatedSeries(
                series, block.predicted, sd, transform, noise.counts
            )
        simulated.append(condition_series)
    return simulated


def _resampled(
    problem: Problem, simulated: list[dict[str, _SimulatedSeries]], rng: np.random.Generator
) -> Problem:
    """Return the problem with simulated series and random noise as its data."""
    sampled = copy.copy(problem)
    sampled.conditions = tuple(
        replace(c, series={name: one.with_noise(rng) for name, one in series.items()})
        for c, series in zip(problem.conditions, simulated, strict=True)
    )
    return sampled
