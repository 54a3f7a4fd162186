"""Incremental single shooting: the first part of the data is fitted first, then ever more of it.

Over many periods of an oscillation the cost of single shooting has a local optimum for nearly every
start, since a small error of a rate becomes a large one of the phase. Over the first period it has
few. Its optimum there is near enough for twice the time, and so on until the horizon is the whole
time span (C. Michalik, R. Hannemann and W. Marquardt, Incremental single shooting - a robust method
for the estimation of parameters in dynamical systems, 2009).

Where conditions trigger events, a trajectory has no derivative by the threshold of an event that it
does not reach, and a late event depends on all earlier ones. The first event shows in a short part
of the data, the second in a little more: such parts grow slowly (:data:`SLOWLY`), and where one is
fitted worse than the part before, unknowns are tried at values over their whole ranges.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array
from odefit.methods.estimate import Start, Status
from odefit.methods.local.decompositions import singular_value_decomposition
from odefit.methods.local.variable_projection import VariableProjection
from odefit.methods.method import LocalMethod
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import START_SEARCH, SingleShooting
from odefit.methods.starts import lowest, sample
from odefit.problem.variants.sizes import sizes_at
from odefit.problem.variants.thinning import with_horizon
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.registry import EngineName

HORIZONS = (
    (1 / 16, 1 / 8, 1 / 4, 1 / 2),
    (1 / 8,),
    (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2),
    (),
)
"""Parts of the time span that starts fit before the whole, in turns.

No single choice is best: a short first part may not determine the unknowns, a long one has more
local optima."""

MIN_VALUES_PER_UNKNOWN = 3
"""Number of measured values for each unknown below which a part of the time span is left out."""

GROWTH = 1.3
"""Length of a part that grows slowly over that of the part before."""

SLOWLY = (tuple(GROWTH**-k for k in range(20, 0, -1)),)
"""Parts that grow slowly, for :attr:`IncrementalShooting.horizons`."""

WORSE = 2.0
"""Mean square of the residuals of a part over that of the part before, from which on unknowns are
tried at other values; they are of the first part."""

GAIN = 0.8  # cost after a trial over that before, up to which another one follows
MAX_TRIALS = 2  # largest number of trials of one part

SINGLE_POINTS, JOINT_POINTS = 48, 200
"""Numbers of points of a trial: that single unknowns share, each with four at least, and in which
all move."""

MOST_MOVED = 1.0  # largest standard deviation along a direction, relative to the unknowns' sizes

LEAST_SCALE = -3.0  # decimal logarithm of the least such deviation where data leave one open

MOST_REFINED = 3  # largest number of points of a trial from which searches begin

DESIGN = 3 * 10**7
"""Number of the design of points of the first trial; see :func:`odefit.methods.starts.sample`."""

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
    trials
        Whether unknowns are tried at other values where a part is fitted worse than the one before;
        a first part then needs few measurements.
    intermediate, final
        The local searches on a part and on the whole.
    """

    horizons: tuple[tuple[float, ...], ...] = HORIZONS
    trials: bool = False
    intermediate: SingleShooting = field(default=INTERMEDIATE)
    final: SingleShooting = field(default=FINAL)

    @property
    def name(self) -> str:
        """The name that results show."""
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
        wanted = self.horizons[index % len(self.horizons)]
        made = _parts.setdefault(forward, {})
        for fraction in wanted:
            if fraction not in made:
                made[fraction] = forward.of(with_horizon(forward.problem, fraction))
        unknowns = len(forward.problem.unknowns)
        least = unknowns + 1 if self.trials else MIN_VALUES_PER_UNKNOWN * unknowns
        found: list[ForwardMap] = []
        for part in (made[f] for f in wanted):
            shorter = bool(found) and part.problem.size <= found[-1].problem.size
            if not (self.trials and shorter) and part.problem.size >= least:
                found.append(part)
        return found

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Run one start; a failed integration is counted, never raised."""
        vector, evaluations, seconds = start, 0, 0.0
        failures: Counter[str] = Counter()
        parts = self.parts(forward, index)
        before: tuple[ForwardMap, Array, float] | None = None
        for part in (*parts, forward) if self.trials and parts else parts:
            if control.should_stop():
                break
            fitted = self.intermediate.run(part, index, vector, control)
            if self.trials and _is_worse(fitted, part, before):
                fitted = self._after_trials(part, fitted, before, control)
            evaluations += fitted.evaluations
            seconds += fitted.seconds
            failures.update(fitted.failures)
            if fitted.status is Status.FAILED or not math.isfinite(fitted.cost):
                break
            vector = fitted.vector
            before = part, vector, fitted.cost
        # A search that is told to stop still evaluates where it is: that is the best so far.
        end = self.final.run(forward, index, vector, control)
        return replace(
            end,
            start=start,
            evaluations=end.evaluations + evaluations,
            seconds=end.seconds + seconds,
            failures=failures + Counter(end.failures),
        )

    def _after_trials(
        self,
        part: ForwardMap,
        fitted: Start,
        before: tuple[ForwardMap, Array, float] | None,
        control: Control,
    ) -> Start:
        """Return a better end on a part, from other values of its unknowns.

        Each unknown is tried by itself, and all together as far as the part `before` leaves open.
        """
        projection = VariableProjection(part, self.intermediate.eliminate)
        for trial in range(MAX_TRIALS):
            block = DESIGN + MAX_TRIALS * fitted.index + trial
            least = fitted.cost
            count = max(SINGLE_POINTS // len(projection.kept), 4)
            drawn = sample(part.problem, block, JOINT_POINTS, control.seed)
            tries = []
            for k in projection.kept:
                points = np.tile(fitted.vector, (count, 1))
                points[:, k] = sample(part.problem, block, count, control.seed)[:, k]
                tries.append(points)
            if before is not None:
                rng = np.random.default_rng([control.seed, block])
                tries.append(self._left_open(before, drawn, rng))
            lowests = [lowest(projection, points, control) for points in tries]
            tried = [(cost, i, point) for i, (point, cost) in enumerate(lowests)]
            for _, _, point in sorted(tried)[:MOST_REFINED]:
                again = self.intermediate.run(part, fitted.index, point, control)
                fitted = replace(
                    min(again, fitted, key=lambda s: s.cost),
                    evaluations=again.evaluations + fitted.evaluations,
                    seconds=again.seconds + fitted.seconds,
                )
            if not fitted.cost < GAIN * least or control.should_stop():
                break
        return fitted

    def _left_open(
        self, before: tuple[ForwardMap, Array, float], drawn: Array, rng: np.random.Generator
    ) -> Array:
        """Return points that fit a part about as well as its end does, shape (k, n).

        Unknowns without effect on it, such as the threshold of an event that it does not reach, are
        as `drawn`, or in every second point near where they were; the others are normally
        distributed with the covariance of the linearised fit. Every second time, what that leaves
        open moves by one of several orders of magnitude: events come between other measurements.
        """
        part, vector, cost = before
        projection = VariableProjection(part, self.intermediate.eliminate)
        at = projection.evaluate(vector)
        points = drawn.copy()
        if isinstance(at, Failure):
            return points
        acts = at.jacobian.any(axis=0)
        moved, sizes = projection.kept[acts], sizes_at(part.problem, vector)
        _, s, directions = singular_value_decomposition(at.jacobian[:, acts] * sizes[moved])
        freedom = max(part.problem.size - len(moved), 1)
        spread = 1.0 if part.likelihood else math.sqrt(2.0 * cost / freedom)
        scales = 10.0 ** rng.uniform(LEAST_SCALE, 0.0, (len(drawn), 1))
        scales[1::2] = 1.0
        lengths = np.minimum(spread / np.maximum(s, 1e-300), MOST_MOVED * scales)
        normal = rng.standard_normal((len(drawn), len(s))) * lengths
        near = vector + sizes * scales * rng.standard_normal(drawn.shape)
        points[::2] = near[::2]
        points[:, moved] = vector[moved] + sizes[moved] * (normal @ directions)
        return np.clip(points, part.problem.lower, part.problem.upper)


def _is_worse(
    fitted: Start, part: ForwardMap, before: tuple[ForwardMap, Array, float] | None
) -> bool:
    """Return whether a part is fitted worse than the part before."""
    if before is None:
        return True
    mean = before[2] / before[0].problem.size
    most = mean + 0.5 * math.log(WORSE) if part.likelihood else WORSE * mean
    return fitted.cost > most * part.problem.size


_parts: WeakKeyDictionary[ForwardMap, dict[float, ForwardMap]] = WeakKeyDictionary()
"""Forward maps of the parts by that of the whole, so that every start of a fit uses the same."""
