"""Searches on a smaller problem that has the same cost as the whole one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from odefit.common.arrays import Array
from odefit.methods.estimate import Estimate, Start
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.problem.variants.reduction import Reduced, reduced
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.best_seen import best_seen
from odefit.simulation.engines.engine_choice import UNDECIDED


def fitted_reduced(
    problem: Problem, solve: Callable[[Problem, Control], Estimate], control: Control
) -> Estimate:
    """Return the estimate that `solve` finds for the smaller problem, for the whole one.

    The whole problem is solved if nothing makes it smaller. It is solved as well if the states that
    were removed cannot be integrated at the answer; this is not checked if the search was ended
    early, because large models take seconds. The same holds if the answer consists of several
    trajectories, because initial values of these states are missing for the later ones.
    """
    smaller = reduced(problem)
    if smaller is None:
        return solve(problem, control)
    seen = best_seen()
    if seen is not None:
        seen.equivalent(smaller.problem)
    estimate = solve(smaller.problem, control)
    best = estimate.best
    if best is None or not smaller.removed:
        usable = True
    elif best.nodes is not None:
        usable = False
    else:
        usable = control.should_stop() or _solvable(problem, best.vector)
    if not usable:
        return solve(problem, control.for_part("whole problem"))
    return replace(estimate, starts=tuple(_whole(s, smaller) for s in estimate.starts))


def _solvable(problem: Problem, vector: Array) -> bool:
    return not isinstance(ForwardMap(problem).evaluate_cost(vector, UNDECIDED), Failure)


def _whole(start: Start, smaller: Reduced) -> Start:
    """Return a start with the nodes of all conditions; without those that lack states."""
    if start.nodes is None:
        return start
    if smaller.removed:
        return replace(start, nodes=None)
    times, values = (
        [of[place] for place in smaller.places] for of in (start.nodes.times, start.nodes.values)
    )
    return replace(start, nodes=replace(start.nodes, times=times, values=values))
