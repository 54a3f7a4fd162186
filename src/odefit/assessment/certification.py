"""A certificate for the answer of any method, by branch and bound, and its confidence region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from odefit.assessment.confidence_region import proved_region, region_goal
from odefit.assessment.parts import ProvedRegion
from odefit.assessment.profiles.parts import ProfilesData
from odefit.assessment.profiles.profiling import optimum_at, profile_all
from odefit.common.errors import InputError
from odefit.methods.bounded_problem import BoundedProblem, GivenBounds
from odefit.methods.estimate import Estimate, Start
from odefit.methods.fit_measure import OBJECTIVE
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import CountedSeconds

CERTIFY_SECONDS = CountedSeconds(60.0)
"""Limit of a certificate if the fit has none, in seconds counted as work."""

REGION_SECONDS = CountedSeconds(120.0)
"""Limit of a confidence region with its certificate if the fit has none, counted as work."""

PROFILE_SHARE = 0.3
"""Largest share of the remaining time for profiles, which show where a region ends."""

MAX_CERTIFIED = 12
"""Largest number of unknowns for which a certificate is attempted."""


@dataclass(frozen=True, eq=False)
class RegionProof:
    """The proof of a confidence region: the estimate of branch and bound, and the profiles."""

    region: ProvedRegion
    estimate: Estimate
    profiles: ProfilesData


def certify_answer(
    problem: Problem,
    start: Start,
    control: Control,
    certificate: str | Path | None = None,
    bounds: GivenBounds = None,
) -> tuple[Estimate | None, str]:
    """Prove how much better other values of the unknowns could be.

    The proof is written to the file `certificate`, if one is given; `bounds` are for unknowns
    without bounds. The result is that of branch and bound from the answer, with its certificate, or
    a reason for its absence.
    """
    reason = _refusal(start, control, "certificate")
    if reason:
        return None, reason
    from odefit.methods.branch_and_bound import BranchAndBound  # this imports the enclosures

    method = BranchAndBound(
        start=tuple(map(float, start.vector)),
        bounds=bounds,
        seconds=CERTIFY_SECONDS,
        certificate=certificate,
    )
    try:
        estimate = method.solve(problem, control.for_part("certificate"))
    except InputError as error:
        return None, f"No certificate: {error}"
    if estimate.certificate is None:
        return None, f"No certificate: {estimate.message}"
    return estimate, ""


def certify_region(
    problem: Problem,
    start: Start,
    starts: Sequence[Start],
    level: float,
    control: Control,
    certificate: str | Path | None = None,
    bounds: GivenBounds = None,
) -> tuple[RegionProof | None, str]:
    """Prove a confidence region of this level, and the bounds of :func:`certify_answer`.

    `starts` are other ends of the search, some of which may fit. Without a region, the result is
    the reason for its absence.
    """
    reason = _refusal(start, control, "confidence region")
    if reason:
        return None, reason
    from odefit.methods.branch_and_bound import BranchAndBound  # this imports the enclosures

    part = control.for_part("confidence region")
    try:
        bounded = BoundedProblem.of(problem, bounds, part, REGION_SECONDS, "auto", squares=False)
        profiles = profile_all(bounded.problem, start.vector, level, part.with_share(PROFILE_SHARE))
        best = optimum_at(bounded.forward, profiles.vector, level)
        goal = region_goal(best.deviance, best.limit, profiles, starts)
        method = BranchAndBound(
            start=tuple(map(float, profiles.vector)),
            bounds=bounds,
            seconds=REGION_SECONDS,
            certificate=certificate,
        )
        estimate, tree = method.solve_with_region(problem, part, goal)
    except InputError as error:
        return None, f"No confidence region: {error}"
    if tree is None:
        return None, f"No confidence region: {estimate.message}"
    bounds_of = estimate.certificate
    measure = OBJECTIVE if bounds_of is None else bounds_of.measure
    region = proved_region(tree, bounded.problem, profiles, bounded.assumed, measure)
    return RegionProof(region, estimate, profiles), ""


def _refusal(start: Start, control: Control, proof: str) -> str:
    """Return the reason why nothing can be proved of an answer; empty without one."""
    count = len(start.vector)
    if start.nodes is not None:
        return f"No {proof}: the answer has no single trajectory from the initial values"
    if count > MAX_CERTIFIED:
        return (
            f"No {proof}: branch and bound is too slow for more than {MAX_CERTIFIED} "
            f"unknowns, and there are {count}"
        )
    if control.should_stop():
        return f"No {proof}: no time was left for it"
    return ""
