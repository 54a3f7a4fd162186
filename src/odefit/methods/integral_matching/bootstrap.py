"""Standard errors of a match: the parametric bootstrap.

Data are simulated from the matched unknowns with the noise that the smoothers saw, and matched
again. So errors include what smoothing loses, where those of the least squares fit do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from odefit.methods.integral_matching.matching import Match
from odefit.problem.algebras import Array
from odefit.problem.condition import Condition
from odefit.problem.errors import InputError
from odefit.problem.noise import Noise
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
    truth = _simulated(problem, match, forward)
    rng = np.random.default_rng(seed)
    vectors = []
    for _ in range(samples):
        try:
            found = again(_resampled(problem, truth, rng), match.vector)
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


_Series = tuple[Array, Array, str | None]
"""Predicted values, standard deviations, and the scale on which these are."""


def _simulated(
    problem: Problem, match: Match, forward: ForwardMap
) -> list[tuple[Condition, dict[str, _Series]]]:
    found = []
    for number, condition in enumerate(problem.conditions):
        trajectory = forward.trajectory(match.vector, condition.name, sensitivities=False)
        if isinstance(trajectory, Failure):
            raise InputError(f"standard errors of a match: it has no trajectory: {trajectory}")
        predicted = forward.predictions(condition, match.vector, trajectory)
        smoothed = {n: s for p in match.pieces if p.condition == number for n, s in p.sds.items()}
        own = {}
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            value = predicted[name].array(len(condition.times))[series.rows]
            transform = noise.transform
            if series.sds is not None:
                sd = series.sds
            elif noise.relative is not None:
                sd = noise.relative * np.abs(value)
            elif isinstance(noise.sd, float):
                sd = np.full(len(value), noise.sd)
            else:
                # Where no smoother saw it: what the trajectory leaves.
                rest = float(np.sqrt(np.mean((series.values - value) ** 2)))
                sd, transform = np.full(len(value), smoothed.get(name, rest)), None
            own[name] = (value, sd, transform)
        found.append((condition, own))
    return found


def _resampled(
    problem: Problem,
    truth: list[tuple[Condition, dict[str, _Series]]],
    rng: np.random.Generator,
) -> Problem:
    experiments = {e.name: e for e in problem.experiments}
    drawn: dict[str, Mapping[str, Array]] = {}
    for condition, series in truth:
        for name, (value, sd, transform) in series.items():
            noise = sd * rng.normal(size=len(value))
            if transform is None:
                values = value + noise
            else:
                values = value * (np.exp(noise) if transform == "log" else 10.0**noise)
    raise NotImplementedError
