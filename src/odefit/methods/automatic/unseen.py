"""Optima within the noise that no start has reached yet, as far as those that were reached tell.

By Good and Turing, the probability that the next start ends where none has is the share of ends
that only one start has reached (I. J. Good, The population frequencies of species and the
estimation of population parameters, 1953). Where many starts end at optima of their own that fit
within the noise, a lower one may have a basin as small as theirs, however often the best is hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odefit.methods.estimate import Start
from odefit.methods.local.cost_tolerance import CostTolerance

MOST_UNSEEN = 0.15
"""Largest share of ends within the noise that only one start has reached, for enough evidence.

Of 70 problems of `evidence.zoo` 67 had none when their searches ended; of toggle switches of which
one gene is seen at 25 times, each end in three or four was such an end after 250 starts.
"""

LEAST_ALONE = 2  # number of such ends below which they tell nothing: one may be chance


@dataclass(frozen=True)
class Unseen:
    """The number of ends that fit within the noise, and of those at an optimum of their own."""

    ends: int = 0
    alone: int = 0

    @classmethod
    def of(
        cls,
        independent: Sequence[Start],
        alike: Sequence[Start],
        highest: float,
        tolerance: CostTolerance,
    ) -> Unseen:
        """Count the ends of independent starts up to a highest cost.

        Those in `alike` are at the best optimum, whatever their cost.
        """
        best = {s.index for s in alike}
        count = sum(s.index in best for s in independent)
        others = [s for s in independent if s.cost <= highest and s.index not in best]
        alone = sum(len(ends) == 1 for ends in tolerance.optima(others))
        return cls(count + len(others), alone)

    @property
    def many(self) -> bool:
        """True if a lower optimum may well remain among those that no start has reached."""
        return self.alone >= LEAST_ALONE and self.alone > MOST_UNSEEN * self.ends
