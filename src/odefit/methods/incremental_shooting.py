"""Incremental single shooting: the first part of the data is fitted first, then growing parts.

Over many periods of an oscillation the cost of single shooting has a local optimum for nearly every
start. A small error of a rate becomes a large error of the phase. Over the first period it has few.
The optimum over one period is near the optimum over two, and so on until the horizon is the whole
time span (C. Michalik, R. Hannemann and W. Marquardt, Incremental single shooting - a robust method
for the estimation of parameters in dynamical systems, 2009).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.method import LocalMethod
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import START_SEARCH, SingleShooting
from odefit.problem.variants.thinning import with_horizon
from odefit.simulation import ForwardMap
from odefit.simulation.engines.registry import EngineName

HORIZONS = (
    (1 / 16, 1 / 8, 1 / 4, 1 / 2),
    (1 / 8,),
    (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2),
    (),
)
"""Parts of the time span that starts fit before the whole time span, in turns.

No single choice is best: a short first part may not determine the unknowns, a long one has more
local optima."""

MIN_VALUES_PER_UNKNOWN = 3
"""Number of measured values for each unknown below which a part of the time span is left out."""

INTERMEDIATE = SingleShooting(evaluations=100, tolerance=1e-4, step=1e-5, patience=20)
"""The local search on a part of the time span."""

FINAL = START_SEARCH  # the local search on the whole time span


@dataclass(frozen=True)
class IncrementalShooting(LocalMethod):
    """Single shooting over growing horizons, a local method for :class:`MultiStart`.

    Attributes
    ----------
    horizons
        Parts of the time span that are fitted before the whole, in (0, 1) and increasing; start
        number i takes ``horizons[i % len(horizons)]``. Parts with too few measurements are left
        out.
    intermediate, final
        The local searches on a part and on the whole.
    """

    horizons: tuple[tuple[float, ...], ...] = HORIZONS
    intermediate: SingleShooting = field(default=INTERMEDIATE)
    final: SingleShooting = field(default=FINAL)

    @property
    def name(self) -> str:
        """The name shown in results."""
        return "IncrementalShooting"

    @property
    def controlled(self) -> bool:
        """True if sensitivities are under error control."""
        return False

    @property
    def engine(self) -> EngineName:
        """The engine of the forward map."""
        return self.final.engine

    @property
    def eliminate(self) -> bool:
        """True if unknowns of the observation alone are eliminated, see :class:`SingleShooting`."""
        return self.final.eliminate

    def screening_map(self, forward: ForwardMap, index: int) -> ForwardMap:
        """Return the forward map on which points for start number `index` are compared."""
        return next(iter(self.parts(forward, index)), forward)

    def parts(self, forward: ForwardMap, index: int) -> list[ForwardMap]:
        """Return the forward maps of the parts that start number `index` fits before the whole."""
        horizons = self.horizons[index % len(self.horizons)]
        made = _parts.setdefault(forward, {})
        for fraction in horizons:
            if fraction not in made:
                made[fraction] = forward.of(with_horizon(forward.problem, fraction))
        least = MIN_VALUES_PER_UNKNOWN * len(forward.problem.unknowns)
        return [made[f] for f in horizons if made[f].problem.size >= least]

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Run one start; failed integrations are counted, never raised."""
        vector, evaluations, seconds = start, 0, 0.0
        failures: Counter[str] = Counter()
        for part in self.parts(forward, index):
            if control.should_stop():
                break
            fitted = self.intermediate.run(part, index, vector, control)
            evaluations += fitted.evaluations
            seconds += fitted.seconds
            failures.update(fitted.failures)
            if fitted.status is Status.FAILED or not math.isfinite(fitted.cost):
                break
            vector = fitted.vector
        # A search that has to stop still evaluates its point: the best so far.
        end = self.final.run(forward, index, vector, control)
        return replace(
            end,
            start=start,
            evaluations=end.evaluations + evaluations,
            seconds=end.seconds + seconds,
            failures=failures + Counter(end.failures),
        )


_parts: WeakKeyDictionary[ForwardMap, dict[float, ForwardMap]] = WeakKeyDictionary()
"""Forward maps of the parts by that of the whole, so that all starts of a fit share them."""
