"""When two costs are the same, and when a cost is as good as zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from odefit.methods.estimate import Start, Status
from odefit.simulation import ForwardMap

ZERO_RESIDUAL = 1e-11
"""Residuals this small, relative to the data, cannot be told from rounding of the data file."""

NO_RESIDUAL = 1e-9
"""Residuals this small, relative to the data, are the same as none: no measurement could tell, and
where trajectories are chaotic the integration cannot do better."""

SAME_LEVEL = 1e-4
"""Relative difference of sums of squares that does not count."""

SAME_LIKELIHOOD = 1e-3
"""Difference of log-likelihoods that does not count."""


@dataclass(frozen=True)
class Levels:
    """What differences of the cost of a problem mean.

    Attributes
    ----------
    squares
        Of all measured values, for plain least squares, whose cost cannot be below zero; None
        elsewhere.
    relative, absolute
        Differences up to the larger of the two do not count.
    """

    squares: float | None
    relative: float
    absolute: float

    @classmethod
    def of(cls, forward: ForwardMap) -> Levels:
        """Those of the problem of `forward`."""
        if forward.likelihood:
            return cls(None, 0.0, SAME_LIKELIHOOD)
        if forward.given_noise or any(n.transform for n in forward.problem.noise.values()):
            return cls(None, SAME_LEVEL, 0.0)
        values = [s.values for c in forward.problem.conditions for s in c.series.values()]
        squares = float(sum(v @ v for v in values))
        return cls(squares, SAME_LEVEL, 0.5 * NO_RESIDUAL**2 * squares)

    def zero(self, accuracy: float = 0.0) -> float:
        """A cost that is zero but for rounding, so that none can be lower.

        Minus infinity where the cost has no such bound.

        Parameters
        ----------
        accuracy
            Of the integration, relative.
        """
        if self.squares is None:
            return -math.inf
        return 0.5 * max(ZERO_RESIDUAL, 10 * accuracy) ** 2 * self.squares

    def same(self, a: Start, b: Start) -> bool:
        """Whether the ends of two starts are at one level."""
        if a.exact and b.exact:
            return True
        difference = abs(a.cost - b.cost)
        return difference <= max(self.relative * min(abs(a.cost), abs(b.cost)), self.absolute)

    def best(self, starts: Iterable[Start]) -> tuple[Start | None, int]:
        """The start with the lowest cost, and how many reached its level."""
        usable = [s for s in starts if math.isfinite(s.cost)]
        best = min(usable, key=lambda s: (s.cost, s.index), default=None)
        return best, 0 if best is None else sum(self.same(s, best) for s in usable)

    def chance_of_better(self, starts: Sequence[Start]) -> float:
        """Estimated probability that one more start ends lower than all so far.

        I. J. Good, The population frequencies of species and the estimation of population
        parameters, 1953: the unseen has the share of what was seen once. Ends that have not
        converged are no levels.
        """
        seen: list[list[Start]] = []
        converged = [s for s in starts if s.status is Status.CONVERGED]
        for start in sorted(converged, key=lambda s: (s.cost, s.index)):
            if seen and self.same(start, seen[-1][0]):
                seen[-1].append(start)
            else:
                seen.append([start])
        if not seen:
            return 1.0
        once = sum(len(level) == 1 for level in seen)
        return once / len(starts) / (len(seen) + 1)
