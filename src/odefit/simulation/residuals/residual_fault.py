"""Why the residuals of a series cannot be used, in words."""

from __future__ import annotations

import numpy as np

from odefit.expressions.algebras import Dual
from odefit.problem.condition import Condition
from odefit.problem.noise import Noise
from odefit.simulation.engines.failure import Failure
from odefit.simulation.residuals.noise import SeriesResiduals


def residual_fault(
    noise: Noise, block: SeriesResiduals, condition: Condition, name: str, predicted: Dual
) -> Failure | None:
    """Return why the residuals of an observable in a condition are unusable, if they are.

    Parameters
    ----------
    noise, block
        The noise model, and the residuals.
    condition, name
        The condition, and the name of the observable.
    predicted
        The observable at the times of the condition.
    """
    rows = condition.series[name].rows
    sd = block.sd.array(len(rows))
    wrong = np.flatnonzero(~np.isfinite(block.residuals.array(len(rows))) | ~(sd > 0))
    if not len(wrong):
        partials = block.residuals.partials.values()
        if all(np.isfinite(p).all() for p in partials):
            return None
        return Failure(condition.name, condition.t0, f"the derivatives of '{name}' are not finite")
    i = wrong[0]
    time = float(condition.times[rows[i]])
    value = predicted.array(len(condition.times))[rows[i]]
    if not np.isfinite(value):
        return Failure(condition.name, time, f"observable '{name}' is {value}")
    if not sd[i] > 0:
        return Failure(condition.name, time, f"the standard deviation of '{name}' is {sd[i]:g}")
    if noise.counts:
        reason = f"observable '{name}' is {value:g}: the mean of counts must be positive"
    else:
        reason = f"observable '{name}' is {value:g}: it has no logarithm"
    return Failure(condition.name, time, reason)
