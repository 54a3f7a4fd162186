"""When two costs are the same, and when a cost is as good as zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from odefit.methods.estimate import Start, Status
from odefit.simulation import ForwardMap

ZERO_RESIDUAL = 1e-11
"""Residuals this small, relative to the data, cannot be told from rounding of the data file."""

SAME_LEVEL = 1e-4
"""Relative difference of sums of squares that does not count."""

SAME_LIKELIHOOD = 1e-3
"""Difference of log-likelihoods that does not count."""


@dataclass(frozen=True)
class Levels:
    """What differences of the cost of a problem mean.

    Attributes
    ----------
    zero
        A cost that is zero but for rounding, so that none can be lower; minus infinity where
        the cost is a negative log-likelihood, which has no such bound.
    relative, absolute
        Differences up to the larger of the two do not count.
    """

    zero: float
    relative: float
    absolute: float

    @classmethod
    def of(cls, forward: ForwardMap) -> Levels:
        """Those of the problem of `forward`."""
        if forward.likelihood:
            return cls(-math.inf, 0.0, SAME_LIKELIHOOD)
        if forward.given_noise or any(n.transform for n in forward.problem.noise.values()):
            return cls(0.0, SAME_LEVEL, 0.0)
        values = [s.values for c in forward.problem.conditions for s in c.series.values()]
        zero = 0.5 * ZERO_RESIDUAL**2 * float(sum(v @ v for v in values))
        return cls(zero, SAME_LEVEL, zero)

    def same(self, a: float, b: float) -> bool:
        """Whether two costs are one level."""
        return abs(a - b) <= max(self.relative * min(abs(a), abs(b)), self.absolute)

    def best(self, starts: Iterable[Start]) -> tuple[float, int]:
        """The lowest cost, and how many starts reached it."""
        costs = [s.cost for s in starts if math.isfinite(s.cost)]
        best = min(costs, default=math.inf)
        return best, sum(self.same(c, best) for c in costs)

    def chance_of_better(self, starts: Sequence[Start]) -> float:
        """Estimated probability that one more start ends lower than all so far.

        I. J. Good, The population frequencies of species and the estimation of population
        parameters, 1953: the unseen has the share of what was seen once. Ends that have not
        converged are no levels.
        """
        seen: list[list[float]] = []
        for cost in sorted(s.cost for s in starts if s.status is Status.CONVERGED):
            if seen and self.same(cost, seen[-1][0]):
                seen[-1].append(cost)
            else:
                seen.append([cost])
        if not seen:
            return 1.0
        once = sum(len(level) == 1 for level in seen)
        return once / len(starts) / (len(seen) + 1)
