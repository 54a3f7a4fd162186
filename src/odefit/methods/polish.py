"""The last improvement of any method's best answer, on the integrated trajectories."""

from __future__ import annotations

from odefit.methods.control import Control, interruptible
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.remote_conditions import conditions_over_workers
from odefit.methods.single_shooting import SingleShooting
from odefit.simulation import ForwardMap

POLISH = SingleShooting(evaluations=3000)
"""The local search of the last improvement."""


def polished(forward: ForwardMap, estimate: Estimate, control: Control) -> Start | None:
    """Return the best start of `estimate`, improved until no step gains anything.

    An answer on nodes stays as it is, since a single integration would lead elsewhere; so does
    one from which the improvement fails.
    """
    best = estimate.best
    if best is None or control.interrupted.is_set() or best.nodes is not None:
        return best
    with interruptible(control), conditions_over_workers(forward, control):
        again = POLISH.run(forward, best.index, best.vector, control)
    # A method's own cost may be another than that of the integrated trajectories.
    return best if again.status is Status.FAILED else again
