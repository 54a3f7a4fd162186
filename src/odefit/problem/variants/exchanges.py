"""Pairs of unknowns with like roles, whose values another solution may have exchanged."""

from __future__ import annotations

import math

import numpy as np

from odefit.common.arrays import Array
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import typical_sizes

UNLIKE = 0.2
"""Smallest relative difference of two unknowns that are worth exchanging."""


def exchanged(problem: Problem, vector: Array, most: int) -> Array:
    """Return values of all unknowns with two of them exchanged, within the bounds, shape (k, n).

    At most `most` pairs are exchanged, the least unlike ones.
    """
    points = []
    for i, j in _exchanges(problem, vector)[:most]:
        point = vector.copy()
        point[[i, j]] = point[[j, i]]
        if ((point >= problem.lower) & (point <= problem.upper)).all():
            points.append(point)
    return np.array(points).reshape(-1, len(vector))


def _exchanges(problem: Problem, vector: Array) -> list[tuple[int, int]]:
    """Return the pairs of unlike values of unknowns of the same kind, the least unlike first.

    Logarithms of rates and sizes count as these, and are exchanged among themselves.
    """
    groups: dict[object, list[int]] = {}
    sizes, vector = typical_sizes(problem).unknowns, vector.copy()
    for i, unknown in enumerate(problem.unknowns):
        exponential = sizes[unknown.kind, unknown.name].exponential
        if unknown.kind != "noise" and (exponential is not None or problem.lower[i] >= 0):
            base = None if exponential is None else exponential[1]
            same = unknown.kind, unknown.experiment, unknown.parameter.unit, base
            groups.setdefault(same, []).append(i)
        if exponential is not None:
            vector[i] = math.exp(min(exponential[1] * vector[i], 700.0))
    pairs: list[tuple[float, int, int]] = []
    for members in groups.values():
        at = np.array(members)
        first, second = (at[k] for k in np.triu_indices(len(at), 1))
        small, large = np.sort(np.abs(vector[np.stack((first, second))]), axis=0)
        unlike = np.abs(vector[first] - vector[second]) > UNLIKE * large
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = large / small  # infinite for a smaller one of zero
        pairs += zip(*(one[unlike].tolist() for one in (factor, first, second)), strict=True)
    return [(i, j) for _, i, j in sorted(pairs)]
