"""Coarse integrations of searches: their use far from an optimum, and their errors near it.

Far from an optimum residuals are large, and the gain of a step is far above the errors of a coarse
integration. On the published models of Brannmark et al., Elowitz and Leibler, and Fujita et al. as
many searches come to low costs. An evaluation takes 10 to 30 per cent less time at a tolerance of
1e-4 instead of 1e-5, and another 10 to 16 per cent less at 1e-3.

If integration errors exceed the differences between equal costs, ends of one optimum do not agree,
and a search never has enough evidence. Then the ends are improved at full accuracy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.methods.local.cost_tolerance import CostTolerance, coarser, exact_at
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import SingleShooting
from odefit.simulation import ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

COARSER = 100.0
"""Ratio of the implicit engines' tolerance at the beginning of a search to the later one."""

MAX_INTEGRATION_ERROR = 1e-4  # relative residuals that may be integration errors

INACCURATE = 0.01
"""Rise of an end's cost at full accuracy above which it counts as changed by integration errors.

It is relative to half the sum of squares. The cost itself may be negative, if the noise is given or
estimated.
"""

FINER = 0.01  # ratio of the tolerances of the search after and before that was seen

SHARPENING = SingleShooting(evaluations=100, tolerance=1e-8, step=1e-9, patience=20)
"""The search at full accuracy that shows whether they are."""

SHARPENED = 0.01  # relative decrease at full accuracy from which on they were


UNEQUAL = 3
"""Number of other ends, at costs close to the best one but not equal, from which on integration
errors are suspected."""

WAITING = 8  # starts that may be under way at the old accuracy when a finer one is chosen


def is_inaccurate(accurate: ForwardMap, end: Start) -> bool:
    """Return whether integration errors of the search have changed the cost of an end."""
    rise = accurate.cost(end.vector, UNDECIDED) - end.cost
    return rise > 0.5 * INACCURATE * end.objective


def coarse(forward: ForwardMap) -> ForwardMap:
    """Return the forward map with which searches begin."""
    return forward.with_accuracy(COARSER * forward.engines.implicit_tolerance, controlled=False)


def run_from_coarse(
    method: SingleShooting,
    forward: ForwardMap,
    index: int,
    start: Array,
    control: Control,
    *,
    interior: bool | None = None,
) -> Start:
    """Return the end of a start that begins with a coarse integration.

    A search that has converged continues with the integration of `forward`. Otherwise its end is
    evaluated with that integration, so that costs can be compared.
    """
    begun = method.run(coarse(forward), index, start, control, interior=interior)
    if begun.status is Status.FAILED:
        return begun
    goes_on = begun.status is Status.CONVERGED
    ending = method if goes_on else replace(method, evaluations=1)
    end = ending.run(forward, index, begun.vector, control, interior=interior)
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


@dataclass(frozen=True, eq=False)
class Dull:
    """An end to be improved; `exact` if it only seems to reproduce the data to rounding.

    Where costs of ends are `blurred` by integration errors, it takes its cost at full accuracy.
    """

    end: Start
    exact: bool
    blurred: bool


class Sharpening:
    """Decides which ends are improved, and how accurately later starts are integrated.

    `share` is the ratio of the tolerance of later starts to the usual one.
    """

    def __init__(self, accurate: ForwardMap, tolerance: CostTolerance) -> None:
        self._accurate, self._tolerance = accurate, tolerance
        self.share = 1.0
        self._refined = 0  # number of the first start at the present accuracy
        self._examined: Start | None = None
        self._costs: dict[int, tuple[Start, float]] = {}

    def next(self, ends: Sequence[Start], judge: Callable[[Start, int], NoiseFit]) -> Dull | None:
        """Return the end to be improved next, if any.

        `judge` compares an end with the noise. An end that counts as exact must be exact at full
        accuracy. Until the best end is, the last end is examined.
        """
        best, _ = self._tolerance.best(ends)
        if best is not None and not best.exact and ends[-1].exact:
            best = ends[-1]
        if best is None or best.nodes is not None:
            return None
        if not best.exact and self._blurred(best, ends):
            if best.index >= self._refined:
                self._refine(ends)
            self._examined = best
            return Dull(best, False, True)
        if best is self._examined:
            return None
        self._examined = best
        if best.exact:
            seeming = not exact_at(self._accurate, best.vector)
            return Dull(best, True, False) if seeming else None
        if best is not ends[-1] or (fit := judge(best, 1)).explained is not False:
            return None
        if is_inaccurate(self._accurate, best):
            self._refine(ends)
        elif not fit.relative < MAX_INTEGRATION_ERROR:
            return None
        return Dull(best, False, False)

    def improved(self, dull: Dull, end: Start) -> Start | None:
        """Return the end that takes the place of another, from which a search led to `end`.

        Returns None if it is not better.
        """
        before = self._cost(dull.end)
        squares = 0.5 * dull.end.objective + before - dull.end.cost
        better = end.cost < before - (0.0 if dull.blurred else SHARPENED * squares)
        if not (better or dull.exact or dull.blurred):
            return None
        sharper = end if better else replace(dull.end, exact=False)
        if dull.blurred and not better:
            sharper = replace(sharper, cost=before)
        total = dull.end.evaluations + end.evaluations
        self._examined = sharper = replace(sharper, start=dull.end.start, evaluations=total)
        if dull.blurred:
            self._costs[sharper.index] = sharper, sharper.cost
        return sharper

    def _blurred(self, best: Start, ends: Sequence[Start]) -> bool:
        """Return whether errors of the best cost may explain that other ends are not equal."""
        near = coarser(self._tolerance)
        close = [s for s in ends if s.status is Status.CONVERGED and near.same(s, best)]
        if sum(not self._tolerance.same(s, best) for s in close) < UNEQUAL:
            return False
        accurate = replace(best, cost=self._cost(best))
        return math.isfinite(accurate.cost) and not self._tolerance.same(accurate, best)

    def _cost(self, end: Start) -> float:
        """Return the cost of an end at full accuracy, which is computed once."""
        if end.index not in self._costs or self._costs[end.index][0] is not end:
            self._costs[end.index] = end, self._accurate.cost(end.vector, UNDECIDED)
        return self._costs[end.index][1]

    def _refine(self, ends: Sequence[Start]) -> None:
        self.share *= FINER
        self._refined = len(ends) + WAITING
