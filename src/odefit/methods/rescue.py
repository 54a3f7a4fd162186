"""The best so far of a start that has ended without an answer of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.running.control import Control
from odefit.simulation import Evaluation, ForwardMap


def rescued(forward: ForwardMap, lost: Start, vectors: Iterable[Array], control: Control) -> Start:
    """Return a start at the best of the unknowns that it has come by, on integrated trajectories.

    `lost` is the start without an answer, and `vectors` are the unknowns, shape (n,) each. Where
    none can be integrated it stays as it was.
    """
    best: tuple[Array, Evaluation] | None = None
    with np.errstate(all="ignore"):
        for vector in vectors:
            inside = np.clip(vector, forward.problem.lower, forward.problem.upper)
            found = forward.evaluate_cost(inside)
            if not isinstance(found, Evaluation) or not np.isfinite(found.cost):
                continue
            if best is None or found.cost < best[1].cost:
                best = inside, found
    if best is None:
        return lost
    vector, evaluation = best
    zero = CostTolerance.of(forward).zero(forward.accuracy(evaluation.choice))
    return replace(
        lost,
        vector=vector,
        objective=evaluation.objective,
        cost=evaluation.cost,
        exact=evaluation.cost <= zero,
        status=stopped(control),
        nodes=None,
    )


def stopped(control: Control) -> Status:
    """Return the status of a start that has not converged."""
    return control.early
