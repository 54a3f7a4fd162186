"""When two costs count as equal, and when a cost counts as zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from odefit.methods.estimate import Start, Status
from odefit.simulation import ForwardMap

RESIDUAL_ROUNDING = 1e-11
"""Residuals this small, relative to the data, cannot be told from rounding in the data file."""

NEGLIGIBLE_RESIDUAL = 1e-9
"""Residuals this small, relative to the data, count as none: no measurement could tell, and where
trajectories are chaotic the integration cannot do better."""

RELATIVE_COST_TOLERANCE = 1e-4
"""Relative difference of two costs that does not count where the noise is known or not given."""

LOG_LIKELIHOOD_TOLERANCE = 1e-3
"""Difference of two log-likelihoods that does not count where the noise is estimated."""


@dataclass(frozen=True)
class CostTolerance:
    """Which differences of the cost of a problem count as none.

    Attributes
    ----------
    squares
        Sum of squares of all measured values, for plain least squares, whose cost cannot be
        below zero; None where the noise is given or estimated.
    relative, absolute
        Differences up to the larger of the two do not count.
    """

    squares: float | None
    relative: float
    absolute: float

    @classmethod
    def of(cls, forward: ForwardMap) -> CostTolerance:
        """Return the tolerance that suits the noise model of the problem of `forward`."""
        if forward.likelihood:
            return cls(None, 0.0, LOG_LIKELIHOOD_TOLERANCE)
        if forward.given_noise or any(n.transform for n in forward.problem.noise.values()):
            return cls(None, RELATIVE_COST_TOLERANCE, 0.0)
        values = [s.values for c in forward.problem.conditions for s in c.series.values()]
        squares = float(sum(v @ v for v in values))
        return cls(squares, RELATIVE_COST_TOLERANCE, 0.5 * NEGLIGIBLE_RESIDUAL**2 * squares)

    def zero(self, accuracy: float = 0.0) -> float:
        """Return the largest cost that counts as zero, so that no start can end lower.

        It is minus infinity where the cost has no lower bound of zero.

        Parameters
        ----------
        accuracy
            Relative accuracy of the integration.
        """
        if self.squares is None:
            return -math.inf
        return 0.5 * max(RESIDUAL_ROUNDING, 10 * accuracy) ** 2 * self.squares

    def same(self, a: Start, b: Start) -> bool:
        """Whether two starts ended at costs that count as equal."""
        if a.exact and b.exact:
            return True
        difference = abs(a.cost - b.cost)
        return difference <= max(self.relative * min(abs(a.cost), abs(b.cost)), self.absolute)

    def best(self, starts: Iterable[Start]) -> tuple[Start | None, int]:
        """Return the start with the lowest cost, and how many starts ended at an equal cost."""
        usable = [s for s in starts if math.isfinite(s.cost)]
        best = min(usable, key=lambda s: (s.cost, s.index), default=None)
        return best, 0 if best is None else sum(self.same(s, best) for s in usable)

    def chance_of_better(self, starts: Sequence[Start]) -> float:
        """Estimate the probability that one more start ends lower than all so far.

        By Good and Turing, a cost that was not seen yet has the share of those that were seen
        once; any cost of a converged start, the new one included, may be the lowest (I. J. Good,
        The population frequencies of species and the estimation of population parameters, 1953).
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
        once = sum(len(equal) == 1 for equal in seen)
        return once / len(starts) / (len(seen) + 1)
