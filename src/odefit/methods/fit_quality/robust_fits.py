"""Outliers: values that are further from the model than noise explains, in robust and plain fits.

With a robust loss they are read off the answer. If a plain fit leaves more than the given noise, a
fit with Student's loss from the same point shows whether a few values are the cause. They are those
far from the robust fit, if the noise explains all others. Residuals of the plain fit would not
suffice, as outliers mask each other by pulling the model towards themselves (P. J. Rousseeuw and A.
M. Leroy, Robust Regression and Outlier Detection, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.fit_quality.limits import (
    MAX_IN_RUNS,
    MAX_OUTLIERS,
    MIN_IN_RUNS,
    MIN_SPARE,
    SIGNIFICANCE,
    most_chi_square,
)
from odefit.methods.outliers import Outlier
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.distribution import NoiseDistribution
from odefit.problem.problem import Problem
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.residuals.noise import known_sds
from odefit.simulation.trajectories.trajectory import Trajectory

SAME_COST = 1e-3
"""Relative difference of two costs up to which two points count as one starting point."""

ROBUST_SEARCH = SingleShooting(evaluations=60, tolerance=1e-6, step=1e-6, patience=30)
"""The local search of the robust fit."""

MAX_BEGINNINGS = 2
"""Largest number of points from which robust fits begin."""


def robust_outliers(forward: ForwardMap, vector: Array) -> tuple[Outlier, ...]:
    """Return the outliers among measurements with a loss, in the order of experiments and times."""
    if all(noise.loss is None for noise in forward.problem.noise.values()):
        return ()
    trajectories = forward.trajectories(vector, sensitivities=False)
    return (
        () if isinstance(trajectories, Failure) else tuple(_named(forward, vector, trajectories)[0])
    )


def suspected_outliers(
    forward: ForwardMap, vectors: Sequence[Array], control: Control
) -> tuple[Outlier, ...]:
    """Return the few values that keep a fit with known normal noise from explaining the data.

    Robust fits begin at `vectors`, shape (n,) each, the best first. There are no outliers if noise
    is unknown, or does not explain the other values.
    """
    if forward.likelihood or not forward.given_noise or not forward.gaussian:
        return ()
    if forward.nodes is not None or forward.correlated:
        return ()
    robust = forward.of(_with_student(forward.problem, 1.0))
    for vector in _beginnings(robust, vectors):
        widened = 1.0
        trajectories = forward.trajectories(vector, sensitivities=False)
        if not isinstance(trajectories, Failure):
            distances = _distances(forward, vector, trajectories)
            if distances is not None and np.isfinite(distances).all():
                # First scale by most residuals: far from a fit, all values would be outliers.
                widened = max(1.0, 1.4826 * float(np.median(np.abs(distances))))
        for factor in {widened: None, 1.0: None}:
            if control.should_stop():
                return ()
            robust = forward.of(_with_student(forward.problem, factor))
            end = ROBUST_SEARCH.run(robust, 0, vector, control)
            if math.isfinite(end.cost):
                vector = end.vector
        outliers = _if_few(robust, vector)
        if outliers:
            return outliers
    return ()


def _beginnings(robust: ForwardMap, vectors: Sequence[Array]) -> list[Array]:
    """Return the first of some points, and those that are best when outliers have little weight."""
    costs = [robust.cost(vector) for vector in vectors]
    order = sorted(range(1, len(vectors)), key=lambda i: (costs[i], i))
    chosen, beginnings = [0], [vectors[0]] if vectors else []
    for i in order:
        apart = all(abs(costs[i] - costs[k]) > SAME_COST * abs(costs[k]) for k in chosen)
        if math.isfinite(costs[i]) and apart and len(beginnings) < MAX_BEGINNINGS:
            chosen.append(i)
            beginnings.append(vectors[i])
    return beginnings


def _if_few(robust: ForwardMap, vector: Array) -> tuple[Outlier, ...]:
    """Return the outliers at a robust fit, if they are few and noise explains the others."""
    trajectories = robust.trajectories(vector, sensitivities=False)
    if isinstance(trajectories, Failure):
        return ()
    outliers, others, in_runs = _named(robust, vector, trajectories)
    if in_runs >= max(MIN_IN_RUNS, MAX_IN_RUNS * len(outliers)):
        return ()
    count = len(outliers) + len(others)
    spare = len(others) - len(vector)
    if not 0 < len(outliers) <= max(1.0, MAX_OUTLIERS * count) or spare < MIN_SPARE:
        return ()
    if float(others @ others) > most_chi_square(spare):
        return ()
    return tuple(outliers)


def _with_student(problem: Problem, factor: float) -> Problem:
    """Return the problem with Student's loss, and standard deviations larger by a factor."""
    robust = copy(problem)
    measured = {name for c in problem.conditions for name in c.series}
    noise = {name: problem.noise.get(name, Noise()) for name in measured}
    robust.noise = {name: replace(one, loss="student") for name, one in noise.items()}
    robust.conditions = tuple(
        replace(
            c,
            series={
                name: replace(s, sds=factor * np.asarray(known_sds(noise[name], s)))
                for name, s in c.series.items()
            },
        )
        for c in problem.conditions
    )
    return robust


def _distances(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]
) -> Array | None:
    """Return predictions minus values in standard deviations, all in one array."""
    distances = []
    for block in forward.series_residuals(vector, trajectories):
        if isinstance(block, Failure):
            return None
        distances.append(block.distances)
    return np.concatenate(distances)


def _named(
    forward: ForwardMap, vector: Array, trajectories: Sequence[Trajectory]
) -> tuple[list[Outlier], Array, int]:
    """Return the outliers among values with a loss, and the distances of all others with a loss.

    The third value is the number of outliers next to another one of the same series on the same
    side of the curve.
    """
    from scipy.special import ndtri

    problem = forward.problem
    blocks = forward.series_residuals(vector, trajectories)
    parts = []
    for condition in problem.conditions:
        for name, series in condition.series.items():
            block, noise = next(blocks), problem.noise.get(name, Noise())
            if isinstance(block, Failure):
                return [], np.zeros(0), 0
            if noise.loss is not None:
                unit = normal_unit(noise.law) if known_sds(noise, series) is None else 1.0
                parts.append((condition, name, series, block.distances, unit, noise.law))
    count = sum(len(distances) for _, _, _, distances, _, _ in parts)
    if not count:
        return [], np.zeros(0), 0
    limit = float(ndtri(1 - SIGNIFICANCE / (2 * count)))
    outliers, others, in_runs = [], [], 0
    for condition, name, series, distances, unit, law in parts:
        far = np.abs(distances) > limit * unit
        others.append(distances[~far] / unit)
        side = np.where(far, np.sign(distances), 0.0)
        pairs = side[1:] * side[:-1] > 0
        in_runs += int(np.sum(np.append(pairs, False) | np.insert(pairs, 0, False)))
        weights = law.weights(distances) / law.weights(np.zeros(1))
        outliers += [
            Outlier(
                condition.name,
                name,
                float(condition.times[series.rows[i]]),
                float(series.values[i]),
                float(distances[i]),
                float(weights[i]),
            )
            for i in np.flatnonzero(far)
        ]
    return outliers, np.concatenate(others), in_runs


@cache
def normal_unit(law: NoiseDistribution) -> float:
    """Return the standard deviation of normal values over the scale that a loss estimates.

    It is the scale at which the expectation of u psi(u) is one, the condition for the optimal
    scale.
    """
    from scipy.optimize import brentq

    z = np.linspace(-10.0, 10.0, 4001)
    normal = np.exp(-0.5 * z * z)
    normal /= normal.sum()

    def excess(unit: float) -> float:
        u = unit * z
        return float(normal @ (law.weights(u) * u * u)) - 1.0

    return float(brentq(excess, 0.2, 20.0))
