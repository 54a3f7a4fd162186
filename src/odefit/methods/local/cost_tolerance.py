"""Tolerances within which two costs count as equal, and a cost as zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.methods.estimate import Start, Status
from odefit.problem.condition import Series
from odefit.problem.noise import Noise
from odefit.problem.noise_distributions.registry import log_of_base
from odefit.problem.problem import Problem
from odefit.problem.variants.data_scales import data_sizes
from odefit.problem.variants.sizes import typical_sizes
from odefit.simulation import Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED, EngineChoice
from odefit.simulation.residuals.noise import known_sds

RESIDUAL_ROUNDING = 1e-11
"""Size of residuals, relative to the data, that cannot be distinguished from rounding in the data
file."""

NEGLIGIBLE_RESIDUAL = 1e-9
"""Size of residuals, relative to the data, that counts as zero: no measurement could resolve it,
and the integration of chaotic trajectories is not more accurate."""

UNKNOWN_ROUNDING = 16 * float(np.finfo(float).eps)
"""Relative change of the unknowns that counts as a change of their last digits. The integration of
a chaotic trajectory adds as much, in some units more than in others."""

MAX_ROUNDING = 1e-6
"""Size of residuals, relative to the data, above which they never count as rounding of the
unknowns. Otherwise the last digits would explain any residuals of a wrong, chaotic answer."""

RELATIVE_COST_TOLERANCE = 1e-4  # of two equal costs if the noise is known or not given
LOG_LIKELIHOOD_TOLERANCE = 1e-3  # of two equal costs if the noise is estimated


ROUNDED = 1e-12
"""Difference of an unknown near zero, relative to its typical size, that may be rounding."""

COARSER_RELATIVE, COARSER_ABSOLUTE = 100.0, 300.0
"""Ratio of the tolerances between ends used as bases to those between equal ends: 1 per cent of a
sum of squares, a third of a unit of the log-likelihood. In flat valleys starts stop at many costs
above one optimum; without it all bases would lie in one valley."""

SAME_VALUES = 1e-4
"""Relative difference of every unknown up to which two ends are the same optimum, whatever the
accuracy with which their costs were computed."""


@dataclass(frozen=True)
class CostTolerance:
    """The differences of a problem's cost that count as zero."""

    # sum of squares of all measured values over their standard deviations (1 if none are given;
    # under a logarithm, a relative change counts), for costs that cannot be negative; None if a
    # standard deviation depends on unknowns
    squares: float | None
    # differences up to the larger of the two are neglected
    relative: float
    absolute: float

    @classmethod
    def of(cls, forward: ForwardMap) -> CostTolerance:
        """Return the tolerance that suits the noise model of the problem of `forward`."""
        if forward.likelihood:
            return cls(None, 0.0, LOG_LIKELIHOOD_TOLERANCE)
        squares = _weighted_squares(forward.problem)
        return cls(squares, RELATIVE_COST_TOLERANCE, 0.5 * NEGLIGIBLE_RESIDUAL**2 * squares)

    def zero(self, accuracy: float = 0.0) -> float:
        """Return the largest cost that counts as zero, so that no start can end lower.

        It is minus infinity if the cost can be negative. `accuracy` is the relative accuracy of the
        integration.
        """
        if self.squares is None:
            return -math.inf
        return 0.5 * max(RESIDUAL_ROUNDING, 10 * accuracy) ** 2 * self.squares

    def negligible(self, cost: float) -> bool:
        """Return whether a cost is that of residuals without significance."""
        return self.squares is not None and cost <= self.absolute

    def exact(self, cost: float, accuracy: float, jacobian: Array, vector: Array) -> bool:
        """Return whether the data are reproduced to rounding.

        If trajectories amplify errors, the last digit of the unknowns changes more than the last
        digit of the data: no residuals can then be smaller than this change. The Jacobian, shape
        (r, k), and the unknowns are in natural units.
        """
        if self.squares is None:
            return False
        most = 0.5 * MAX_ROUNDING**2 * self.squares
        rounding = min(rounding_of_unknowns(jacobian, vector), most)
        return cost <= max(self.zero(accuracy), rounding)

    def noise(self, cost: float, accuracy: float, jacobian: Array, vector: Array) -> float:
        """Return the difference of costs caused by integration errors."""
        if self.squares is None:
            return 0.0
        most = 0.5 * MAX_ROUNDING**2 * self.squares
        error = 0.5 * max(RESIDUAL_ROUNDING, accuracy) ** 2 * self.squares
        error = max(error, min(rounding_of_unknowns(jacobian, vector), most))
        # |r + e|^2/2 is |r|^2/2 + r'e + |e|^2/2, and r'e is |r||e| at most.
        return 2 * math.sqrt(max(cost, 0.0) * error) + error

    def same(self, a: Start, b: Start) -> bool:
        """Return whether two starts ended at costs that count as equal."""
        if a.exact and b.exact:
            return True
        difference = abs(a.cost - b.cost)
        return difference <= max(self.relative * min(abs(a.cost), abs(b.cost)), self.absolute)

    def best(self, starts: Iterable[Start]) -> tuple[Start | None, int]:
        """Return the start with the lowest cost, and how many starts ended at an equal cost."""
        usable = [s for s in starts if math.isfinite(s.cost)]
        best = min(usable, key=lambda s: (s.cost, s.index), default=None)
        return best, 0 if best is None else sum(self.same(s, best) for s in usable)

    def optima(self, ends: Iterable[Start], lowest: Sequence[Start] = ()) -> list[list[Start]]:
        """Return the ends of each optimum, whose costs are equal, in the order of their costs.

        Those in `lowest` are at one optimum, the first, whatever their costs.
        """
        groups = [list(lowest)] if lowest else []
        for end in sorted(ends, key=lambda s: (s.cost, s.index)):
            if groups and self.same(end, groups[-1][0]):
                groups[-1].append(end)
            else:
                groups.append([end])
        return groups

    def chance_of_better(self, starts: Sequence[Start], alike: Sequence[Start] = ()) -> float:
        """Estimate the probability that one more start ends lower than all so far.

        By Good and Turing, the probability of a cost not yet seen is the share of those seen once.
        Any cost of a converged start, the new one included, may be the lowest (I. J. Good, The
        population frequencies of species and the estimation of population parameters, 1953). The
        starts in `alike`, at the lowest cost, count as one, even if they stopped before it.
        """
        lowest = {s.index for s in alike}
        first = [s for s in starts if s.index in lowest]
        converged = [s for s in starts if s.status is Status.CONVERGED and s.index not in lowest]
        seen = self.optima(converged, first)
        if not seen:
            return 1.0
        once = sum(len(equal) == 1 for equal in seen)
        return once / len(starts) / (len(seen) + 1)


def coarser(tolerance: CostTolerance) -> CostTolerance:
    """Return the tolerance within which costs of one flat valley are equal."""
    return replace(
        tolerance,
        relative=COARSER_RELATIVE * tolerance.relative,
        absolute=COARSER_ABSOLUTE * tolerance.absolute,
    )


def exact_at(forward: ForwardMap, vector: Array) -> bool:
    """Return whether the data are reproduced to rounding, as `forward` integrates.

    A search at a coarser accuracy cannot decide that: it treats everything below its accuracy as
    rounding.
    """
    at = forward.evaluate(vector, UNDECIDED)
    if isinstance(at, Failure):
        return False
    accuracy = forward.accuracy(at.choice)
    return CostTolerance.of(forward).exact(at.cost, accuracy, at.jacobian, vector)


def rounding_of_unknowns(jacobian: Array, vector: Array) -> float:
    """Return the cost of residuals caused by the last digits of the unknowns, in natural units."""
    with np.errstate(all="ignore"):
        rounding = 0.5 * UNKNOWN_ROUNDING**2 * float(np.sum((jacobian * vector) ** 2))
    return rounding if math.isfinite(rounding) else 0.0


def noiseless_rows(
    forward: ForwardMap, vector: Array, choice: EngineChoice, relative: float = NEGLIGIBLE_RESIDUAL
) -> BoolArray:
    """Return which residuals of measurements belong to an observable without noise, shape (r,).

    Its noise is estimated, and all its values are reproduced to rounding, or up to `relative` of
    their size.
    """
    parts = [(r.rows, r.sd_rows, r.lag_rows) for r in forward.series_rows]
    ends = [part.stop for three in parts for part in three if part is not None]
    noiseless = np.zeros(max(ends, default=0), dtype=bool)
    rows = [r for r in forward.series_rows if r.estimates_spread and r.noise.law.located]
    if not rows:
        return noiseless
    along = forward.trajectories(vector, choice, sensitivities=False)
    if isinstance(along, Failure):
        return noiseless
    errors = np.full(len(noiseless), np.nan)
    for block in forward.series_residuals(vector, along):
        if isinstance(block, Failure):
            return noiseless
        errors[block.rows] = block.distances * block.sds
    limit = max(relative, 10 * forward.accuracy(choice))
    noisy = {
        r.name
        for r in forward.series_rows
        if not r.estimates_spread or r.series.censored is not None
    }
    for r in rows:
        sizes = _sizes(forward.problem, r.name, r.noise, r.series, typical=True)
        if not np.linalg.norm(errors[r.rows]) <= limit * np.linalg.norm(sizes):
            noisy.add(r.name)
    for r in rows:
        if r.name not in noisy and r.sd_rows is not None:
            noiseless[r.rows] = noiseless[r.sd_rows] = True
            if r.lag_rows is not None:
                noiseless[r.lag_rows] = True
    return noiseless


_known: WeakKeyDictionary[Problem, float] = WeakKeyDictionary()


def _weighted_squares(problem: Problem) -> float:
    """Return the squares of all measured values, or those of typical values if all are zero."""
    squares = _known.get(problem)
    if squares is None:
        squares = _squares(problem, typical=False) or _squares(problem, typical=True)
        _known[problem] = squares
    return squares


def _squares(problem: Problem, *, typical: bool) -> float:
    total = 0.0
    for condition in problem.conditions:
        for name, series in condition.series.items():
            noise = problem.noise.get(name, Noise())
            sds = known_sds(noise, series)
            sizes = _sizes(problem, name, noise, series, typical=typical)
            if sds is not None:
                total += float(np.sum((sizes[sds > 0] / sds[sds > 0]) ** 2))
    return total


def _sizes(problem: Problem, name: str, noise: Noise, series: Series, *, typical: bool) -> Array:
    """Return the magnitudes of measured values on the scale of their noise, shape (n,).

    With `typical`, the size of a state replaces measurements of it that are all zero.
    """
    if noise.transform is not None:
        return np.full(len(series.values), 1.0 / log_of_base(noise.transform))
    sizes = np.abs(series.values)
    state = problem.model.observables[name].name
    if not typical or sizes.any() or not noise.law.located or state not in problem.model.states:
        return sizes
    return np.full(len(sizes), data_sizes(problem).get(name, typical_sizes(problem).states[state]))


def same_values(a: Start, b: Start) -> bool:
    """Return whether two starts ended at the same unknowns, both on single trajectories."""
    if a.nodes is not None or b.nodes is not None:
        return False
    scale = np.maximum(np.abs(a.vector), np.abs(b.vector))
    return bool(np.all(np.abs(a.vector - b.vector) <= SAME_VALUES * scale))


def reaches(end: Start, best: Start, tolerance: CostTolerance) -> bool:
    """Return whether a start ended at the optimum of the best, by its cost or its values."""
    if not math.isfinite(end.cost):
        return False
    if tolerance.same(end, best):
        return True
    return end.status is Status.CONVERGED and same_values(end, best)


def close(
    a: Array, b: Array, closeness: float, sizes: Array, ignored: BoolArray | None = None
) -> bool:
    """Return whether values of unknowns are the same up to a relative difference, shape (n,).

    `sizes` are the typical sizes of the unknowns, by which rounding is judged; `ignored` unknowns
    may differ.
    """
    scale = np.maximum(np.abs(a), np.abs(b))
    same = np.abs(a - b) <= np.maximum(closeness * scale, ROUNDED * sizes)
    return bool(np.all(same if ignored is None else same | ignored))
