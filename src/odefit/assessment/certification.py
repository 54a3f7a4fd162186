"""A certificate for the answer of any method, by branch and bound."""

from __future__ import annotations

from pathlib import Path

from odefit.common.errors import InputError
from odefit.methods.estimate import Estimate, Start
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.simulation.engines.cut_off import CountedSeconds

CERTIFY_SECONDS = CountedSeconds(60.0)
"""Limit of a certificate if the fit has none, in seconds counted as work."""

MAX_CERTIFIED = 12
"""Largest number of unknowns for which a certificate is attempted."""


def certify_answer(
    problem: Problem, start: Start, control: Control, certificate: str | Path | None = None
) -> tuple[Estimate | None, str]:
    """Prove how much better other values of the unknowns could be.

    The proof is written to the file `certificate`, if one is given. The result is that of branch
    and bound from the answer, with its certificate, or a reason for its absence.
    """
    count = len(start.vector)
    if start.nodes is not None:
        return None, "No certificate: the answer has no single trajectory from the initial values"
    if count > MAX_CERTIFIED:
        return None, (
            f"No certificate: branch and bound is too slow for more than {MAX_CERTIFIED} "
            f"unknowns, and there are {count}"
        )
    if control.should_stop():
        return None, "No certificate: no time was left for it"
    from odefit.methods.branch_and_bound import BranchAndBound  # this imports the enclosures

    method = BranchAndBound(
        start=tuple(map(float, start.vector)), seconds=CERTIFY_SECONDS, certificate=certificate
    )
    try:
        estimate = method.solve(problem, control.for_part("certificate"))
    except InputError as error:
        return None, f"No certificate: {error}"
    if estimate.certificate is None:
        return None, f"No certificate: {estimate.message}"
    return estimate, ""
