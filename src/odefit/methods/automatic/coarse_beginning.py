"""Coarse integrations of searches: their use far from an optimum, and their errors near it.

Far from an optimum residuals are large, and the gain of a step is far above the errors of a coarse
integration. On the published models of Brannmark et al., Elowitz and Leibler, and Fujita et al. as
many searches come to low costs. An evaluation takes 10 to 30 per cent less time at a tolerance of
1e-4 instead of 1e-5, and another 10 to 16 per cent less at 1e-3.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

COARSER = 100.0
"""Ratio of the implicit engines' tolerance at the beginning of a search to the later one."""

MAX_INTEGRATION_ERROR = 1e-4  # relative residuals that may be integration errors

INACCURATE = 1.01
"""Ratio of an end's cost at full accuracy to that of the search above which it counts as changed
by integration errors."""

FINER = 0.01  # ratio of the tolerances of the search after and before that was seen

SHARPENING = SingleShooting(evaluations=100, tolerance=1e-8, step=1e-9, patience=20)
"""The search at full accuracy that shows whether they are."""

SHARPENED = 0.99  # ratio of costs after and before, both at full accuracy, up to which they were


def is_inaccurate(accurate: ForwardMap, end: Start) -> bool:
    """Return whether integration errors of the search have changed the cost of an end."""
    return accurate.cost(end.vector, UNDECIDED) > INACCURATE * end.cost


def coarse(forward: ForwardMap) -> ForwardMap:
    """Return the forward map with which searches begin."""
    return forward.with_accuracy(COARSER * forward.engines.implicit_tolerance, controlled=False)


def run_from_coarse(
    method: SingleShooting, forward: ForwardMap, index: int, start: Array, control: Control
) -> Start:
    """Return the end of a start that begins with a coarse integration.

    A search that has converged continues with the integration of `forward`. Otherwise its end is
    evaluated with that integration, so that costs can be compared.
    """
    begun = method.run(coarse(forward), index, start, control)
    if begun.status is Status.FAILED:
        return begun
    goes_on = begun.status is Status.CONVERGED
    ending = method if goes_on else replace(method, evaluations=1)
    end = ending.run(forward, index, begun.vector, control)
    if end.status is Status.FAILED and begun.status.cut_short:
        return begun  # no time is left for another integration
    if not (goes_on or end.status is Status.FAILED):
        end = replace(end, status=begun.status, message=begun.message)
    return replace(
        end,
        start=begun.start,
        evaluations=begun.evaluations + end.evaluations,
        seconds=begun.seconds + end.seconds,
        failures=dict(Counter(begun.failures) + Counter(end.failures)),
    )
