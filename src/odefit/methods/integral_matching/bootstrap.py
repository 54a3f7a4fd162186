"""Standard errors of a match: the parametric bootstrap.

Data are simulated from the matched unknowns with the noise that the smoothers saw, and matched
again. So errors include what smoothing loses, where those of the least squares fit do not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from odefit.methods.integral_matching.matching import Match
from odefit.problem.arrays import Array
from odefit.problem.condition import Series
from odefit.problem.errors import InputError
from odefit.problem.noise import Noise, Transform
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap

LEAST = 10
"""Samples that have to be matched for a covariance."""


@dataclass(frozen=True, eq=False)
class MatchErrors:
    """How a match scatters when the data are measured again.

    Attributes
    ----------
    errors
        Standard error by name of the unknown.
    covariance
        Of the unknowns, shape (n, n).
    bias
        Mean of the samples less the match, by name: what smoothing distorts.
    vectors
        The samples, shape (samples - failures, n).
    failures
        Samples that could not be matched.
    """

    errors: Mapping[str, float]
    covariance: Array
    bias: Mapping[str, float]
    vectors: Array
    failures: int


def bootstrap(
    problem: Problem,
    match: Match,
    again: Callable[[Problem, Array], Match],
    samples: int,
    seed: int,
    forward: ForwardMap,
) -> MatchErrors:
    """Match `samples` simulated data sets.

    Parameters
    ----------
    again
        Matches a problem from a vector of unknowns.

    Raises
    ------
    InputError
        The trajectory of the match does not exist, or too few samples can be matched.
    """
    truths = _simulated(problem, match, forward)
    rng = np.random.default_rng(seed)
    vectors = []
    for _ in range(samples):
        try:
            found = again(_resampled(problem, truths, rng), match.vector)
        except InputError:
            continue
        if np.isfinite(found.cost):
            vectors.append(found.vector)
    if len(vectors) < LEAST:
        raise InputError(
            f"standard errors of a match: only {len(vectors)} of {samples} samples could be "
            f"matched, {LEAST} are needed; ask for more samples"
        )
    every = np.array(vectors)
    covariance = np.atleast_2d(np.cov(every, rowvar=False))
    bias = every.mean(axis=0) - match.vector
    return MatchErrors(
        dict(zip(problem.keys, np.sqrt(np.diag(covariance)).tolist(), strict=True)),
        covariance,
        dict(zip(problem.keys, bias.tolist(), strict=True)),
        every,
        samples - len(vectors),
    )


@dataclass(frozen=True, eq=False)
class _Truth:
    """What a series would be without noise, and its noise on the scale of `transform`."""

    series: Series
    predicted: Array
    sd: Array
    transform: Transform | None

    def drawn(self, rng: np.random.Generator) -> Series:
        noise = self.sd * rng.normal(size=len(self.sd))
        if self.transform is None:
            values = self.predicted + noise
        else:
            values = self.predicted * (np.exp(noise) if self.transform == "log" else 10.0**noise)
        return replace(self.series, values=values)


def _simulated(problem: Problem, match: Match, forward: ForwardMap) -> list[dict[str, _Truth]]:
    trajectories = []
    for condition in problem.conditions:
        trajectory = forward.trajectory(match.vector, condition.name, sensitivities=False)
        if isinstance(trajectory, Failure):
            raise InputError(f"standard errors of a match: it has no trajectory: {trajectory}")
        trajectories.append(trajectory)
    blocks = forward.blocks(match.vector, trajectories)
    found: list[dict[str, _Truth]] = []
    for number, condition in enumerate(problem.conditions):
        smoothed = {n: s for p in match.pieces if p.condition == number for n, s in p.sds.items()}
        own = {}
        for name, series in condition.series.items():
            block = next(blocks)
            if isinstance(block, Failure):
                raise InputError(f"standard errors of a match: {block}")
            noise = problem.noise.get(name, Noise())
            sd, transform = block.sd.array(len(series.values)), noise.transform
            if series.sds is None and noise.relative is None and noise.sd in (None, "estimate"):
                # Where no smoother saw it: what the trajectory leaves.
                rest = float(np.sqrt(np.mean((series.values - block.predicted) ** 2)))
                sd, transform = np.full(len(sd), smoothed.get(name, rest)), None
            own[name] = _Truth(series, block.predicted, sd, transform)
        found.append(own)
    return found


def _resampled(
    problem: Problem, truths: list[dict[str, _Truth]], rng: np.random.Generator
) -> Problem:
    sampled = copy.copy(problem)
    sampled.conditions = tuple(
        replace(c, series={name: truth.drawn(rng) for name, truth in own.items()})
        for c, own in zip(problem.conditions, truths, strict=True)
    )
    return sampled
