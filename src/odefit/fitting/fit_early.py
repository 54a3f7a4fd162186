"""A search that is ended early, and what it then leaves."""

from __future__ import annotations

import time
from dataclasses import replace

from odefit.methods.best_so_far import completed
from odefit.methods.estimate import Cause, Estimate
from odefit.methods.running.control import Control, Interruption, Method
from odefit.problem.problem import Problem
from odefit.simulation.best_seen import BestSeen, noting
from odefit.simulation.engines.cut_off import NEVER, cutting_off

RESERVED_SHARE = 0.1
"""Share of the time limit that is left for the last improvement of the answer."""

RESERVED = 3.0
"""The largest number of seconds that are left for it."""


def search(
    problem: Problem, searched: Problem, method: Method, control: Control, polish: bool
) -> Estimate:
    """Return what a method finds; where it is ended early, the best point is among it.

    Parameters
    ----------
    problem, searched
        The problem, and the same with the guess from which the search goes on.
    method
        The method.
    control
        How the fit is run.
    polish
        Whether the answer is to be improved afterwards, for which time is left.
    """
    seen = BestSeen(problem)
    own = _leaving_time(control, polish)
    try:
        with noting(seen):
            estimate = method.solve(searched, own)
    except MemoryError as error:
        assert isinstance(control.interrupted, Interruption)
        control.interrupted.end(Cause.OUT_OF_MEMORY, str(error))
        estimate = Estimate((), control.early, "the search could not go on")
    if not own.should_stop():
        return estimate
    with cutting_off(NEVER):
        return completed(problem, estimate, seen, own, not polish)


def _leaving_time(control: Control, polish: bool) -> Control:
    """Return the control of a method, which leaves time for the last improvement of its answer."""
    if control.deadline is None or not polish:
        return control
    left = max(control.deadline - time.time(), 0.0)
    return replace(control, deadline=control.deadline - min(RESERVED_SHARE * left, RESERVED))
