"""A proved confidence region, and the refutation of a model, from bounds of its objective.

All values whose objective exceeds the least one by at most the limit of profiles belong to the
region (the likelihood ratio). Branch and bound proves that certain boxes hold none of these values.
So the projection of the other boxes on an unknown contains its whole interval by profile
likelihood, whatever the starts of the profile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.parts import ProvedInterval, ProvedRegion, Refutation
from odefit.assessment.profiles.parts import Profile, ProfilesData
from odefit.common.arrays import Array
from odefit.methods.estimate import Certificate, Start
from odefit.problem.noise import Noise
from odefit.problem.problem import Problem

if TYPE_CHECKING:
    from odefit.methods.branch_and_bound.region_tree import RegionGoal, RegionTree

LIMIT_MARGIN = 1e-9
"""Relative margin of the limit of the deviance, for the accuracy of quantiles."""

REACHING = 1e-9
"""Distance from a bound of an unknown, relative to the distance between its bounds, up to which an
interval ends there."""

MAX_POINTS = 20
"""Largest number of ends of starts around which values that fit are known."""

SAME = 1e-3
"""Relative difference of all unknowns below which two ends of starts are the same."""


def region_goal(
    deviance: Deviance, limit: float, profiles: ProfilesData, starts: Sequence[Start]
) -> RegionGoal:
    """Return the limit of values that fit, as for profiles, and values known to fit."""
    from odefit.methods.branch_and_bound.region_tree import RegionGoal  # imports the enclosures

    limit *= 1 + LIMIT_MARGIN
    known_variance = bool(deviance.estimated) or math.isinf(deviance.degrees)
    # The estimated variance is the least objective over the degrees of freedom.
    constant, ratio = (limit, 0.0) if known_variance else (0.0, limit / deviance.degrees)
    most = deviance.cost(limit)
    intervals = tuple(tuple(_fitting(profile)) for profile in profiles.profiles)
    return RegionGoal(constant, ratio, intervals, _distinct(starts, most, len(profiles.vector)))


def _fitting(profile: Profile) -> Iterator[tuple[float, float]]:
    """Yield the intervals of a profile, open ends at the last value of the profile."""
    if profile.intervals:
        yield from profile.intervals
        return
    ends = profile.values[[0, -1]].tolist()
    low, high = profile.lower, profile.upper
    yield (low if math.isfinite(low) else ends[0], high if math.isfinite(high) else ends[1])


def _distinct(starts: Sequence[Start], most: float, n: int) -> Array:
    """Return ends of starts with a cost of at most `most` that differ, shape (m, n)."""
    points: list[Array] = []
    for start in sorted(starts, key=lambda start: start.cost):
        if not start.cost <= most or len(points) == MAX_POINTS:
            break
        close = [np.allclose(start.vector, point, rtol=SAME, atol=0.0) for point in points]
        if start.nodes is None and not any(close):
            points.append(start.vector)
    return np.array(points).reshape(-1, n)


def proved_region(
    tree: RegionTree,
    problem: Problem,
    profiles: ProfilesData,
    assumed: dict[str, tuple[float, float]],
    measure: str,
) -> ProvedRegion:
    """Return the region proved by the boxes of a search, with the interval of each profile.

    `problem` has finite bounds, of which `assumed` are not its own; `measure` names what the search
    bounds.
    """
    intervals = []
    for k, profile in enumerate(profiles.profiles):
        proved, fitting = tree.intervals(k), tree.fit.intervals(k)
        low, high = float(proved[0, 0]), float(proved[-1, 1])
        bounds = float(problem.lower[k]), float(problem.upper[k])
        slack = REACHING * (bounds[1] - bounds[0])
        several = [(float(a), float(b)) for a, b in proved] if len(proved) > 1 else []
        intervals.append(
            ProvedInterval(
                profile.key,
                low,
                high,
                tuple(several),
                (float(fitting[0, 0]), float(fitting[-1, 1])),
                (profile.lower, profile.upper),
                (low <= bounds[0] + slack, high >= bounds[1] - slack),
            )
        )
    return ProvedRegion(
        profiles.level,
        profiles.limit,
        tree.cut + tree.offset,
        tree.open_nodes == 0,
        tree.evaluated,
        tuple(intervals),
        assumed,
        measure,
    )


def refutation(
    problem: Problem, certificate: Certificate | None, level: float
) -> Refutation | None:
    """Return the refutation of a model by the lower bound of its objective; None without one.

    All standard deviations have to be given, and the bound has to hold in continuous time.
    """
    from scipy.special import chdtrc

    if certificate is None or certificate.discretised or not certificate.rigorous:
        return None
    if not all(prior.gaussian for prior in problem.priors.values()):
        return None
    for condition in problem.conditions:
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            stated = isinstance(noise.sd, int | float) or noise.relative is not None
            if not noise.gaussian or not (stated or series.sds is not None):
                return None
    degrees = problem.size + len(problem.priors) - len(problem.unknowns)
    if degrees < 1:
        return None
    p = float(chdtrc(degrees, certificate.lower))
    if p >= 1 - level:
        return None
    assumed = dict(certificate.assumed)
    return Refutation(certificate.lower, degrees, p, level, assumed)
