"""The evidence of the ends of all starts for the best among them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from odefit.methods.automatic.families import Families
from odefit.methods.automatic.unseen import Unseen
from odefit.methods.estimate import Doubt, Start, Status
from odefit.methods.fit_quality.limits import FAR_SHARE
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.methods.local.cost_tolerance import CostTolerance, reaches
from odefit.methods.running.control import Control

MANY_UNKNOWNS = 50
"""Number of unknowns from which an end of integral matching in closed form suffices alone."""

FAR_STARTS = 40
"""Number of independent starts after which a search ends if none has come near the data."""

FAR_GAIN = 0.9
"""Ratio of the cost of the best end to that of half the starts up to which more starts may come
nearer."""

FEW_VALUES_HITS, FEW_VALUES_CHANCE = 3, 0.1
"""Hits and chance of a better optimum that suffice for a fit with fewer degrees of freedom."""

WHOLE_STARTS = 10
"""Number of independent starts without a hit of the best end from which on ends of selected
searches are weak evidence. These searches continued because their costs were low, and all others
were abandoned.
"""


EXACT_STARTS = 10
"""Number of independent starts after which one end suffices that reproduces more values than there
are unknowns to rounding. Nothing can be better, and a second solution is sought on purpose
afterwards (:mod:`odefit.fitting.fit_stages`).
"""


class Rules(Protocol):
    """The numbers of :class:`odefit.Automatic` that decide when to end."""

    @property
    def hits(self) -> int: ...
    @property
    def certain_hits(self) -> int: ...
    @property
    def doubtful_hits(self) -> int: ...
    @property
    def chance(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence for the best end, which is None if there is no usable one."""

    best: Start | None
    hits: int  # ends at an equal cost; those of one family count once
    fit: NoiseFit  # how its residuals compare with the noise
    enough: bool  # whether the search may end
    count: int  # ends of independent starts
    converged: bool  # whether an independent start ended at the lowest cost
    doubt: Doubt | None = None  # the doubt of the best end although many have reached it
    alike: Sequence[Start] = ()  # the ends that count as the best one
    far: bool = False  # whether the search ends because no start has come near the data
    unseen: Unseen | None = None  # the reason why the search continues, if optima may be unseen

    @classmethod
    def of(
        cls,
        rules: Rules,
        ends: Sequence[Start],
        tolerance: CostTolerance,
        judge: Callable[[Start, int], NoiseFit],
        untried: Callable[[], bool],
        families: Families,
        doubted: Callable[[Sequence[Start], NoiseFit], tuple[Doubt | None, bool]] = lambda *_: (
            None,
            False,
        ),
        unique: Callable[[Start], bool] = lambda _: False,
        in_valley: Callable[[Start, Start], bool] = lambda *_: False,
        level: Callable[[Start, Start], bool] = lambda *_: False,
        highest: Callable[[Start], float] = lambda _: -math.inf,
        overdetermined: bool = False,
    ) -> Evidence:
        """Weigh all ends so far.

        `judge` compares an end, and the number of families that reached it, with the noise.
        `untried` returns whether any routes have no start yet. `doubted` returns the doubt of the
        best of equal ends, and whether to search elsewhere first. `unique` returns whether starts
        of a route can lead to no other end. `in_valley` returns whether the way from an end to the
        best leads downhill, and `level` whether an end counts as the best though it is higher.
        `highest` returns the cost up to which ends fit within the noise of the best.
        `overdetermined` says whether there are more measured values than unknowns.
        """
        best, _ = tolerance.best(ends)
        independent = families.independent(ends)
        if best is None:
            return cls(None, 0, NoiseFit(None), False, len(independent), False)
        alike = [s for s in ends if reaches(s, best, tolerance) or level(s, best)]
        # Nothing can be better than an exact end, so that searches of one family count there, too.
        hits = len((families.begun if best.exact else families.first_of_each)(alike))
        converged = any(s.status is Status.CONVERGED for s in alike)
        fit = NoiseFit(True, freedom=math.inf) if best.exact else judge(best, hits)
        if fit.certain and hits < rules.certain_hits:
            alike = [s for s in ends if s in alike or in_valley(s, best)]
            hits = len(families.first_of_each(alike))
        # Random starts of very many unknowns find nothing, so waiting for one gives no evidence.
        tried = len(independent) > 1 or len(best.vector) >= MANY_UNKNOWNS
        alone = fit.certain and fit.typical and tried and unique(best)
        enough_tried = len(independent) >= EXACT_STARTS
        alone = alone or (best.exact and converged and overdetermined and enough_tried)
        # Searches that were selected to continue agree more easily than starts that were not.
        chosen = len(independent) >= WHOLE_STARTS and not any(s in independent for s in alike)
        if fit.certain:
            enough = hits >= rules.certain_hits or alone
        elif fit.explained:
            enough = hits >= (rules.doubtful_hits if chosen else FEW_VALUES_HITS)
            enough = enough and tolerance.chance_of_better(independent, alike) < FEW_VALUES_CHANCE
        else:
            needed = rules.doubtful_hits if fit.explained is False or chosen else rules.hits
            enough = (
                hits >= needed and tolerance.chance_of_better(independent, alike) < rules.chance
            )
            enough = enough and not (fit.explained is False and untried())
            if fit.outliers:  # the model is right, and no further start will make the others fit
                enough = hits >= rules.hits or len(ends) >= rules.doubtful_hits
        # Along flat valleys starts stop before they converge; polishing improves the answer.
        many = FEW_VALUES_HITS if fit.explained is True else rules.doubtful_hits
        settled = converged or (fit.explained is not False and hits >= many)
        settled = settled or fit.outliers > 0 or alone
        enough = enough and settled
        far = not enough and not untried() and _far(best, ends, independent, fit)
        doubt = unseen = None
        if enough and not fit.outliers:
            doubt, open_ = doubted(alike, fit)
            enough = not open_
            if not (fit.certain or alone or fit.explained is False):
                counts = Unseen.of(independent, alike, highest(best), tolerance)
                enough, unseen = enough and not counts.many, counts if counts.many else None
        return cls(
            *(best, hits, fit, enough or far, len(independent), converged, doubt, alike, far),
            unseen=unseen,
        )

    @property
    def certain(self) -> bool:
        """True if the best end is as good as noise allows, which hardly hides a better optimum."""
        return self.fit.certain

    @property
    def unexplained(self) -> bool:
        """True if no start has ended, or the best end is known not to fit."""
        return self.best is None or self.fit.explained is False

    def status(self, control: Control, enough: bool) -> Status:
        """Return the status of the fit."""
        if self.best is None:
            if control.interrupted.is_set():
                return control.early
            return Status.TIME_LIMIT if control.out_of_time else Status.FAILED
        if self.converged and not self.far and (enough or self.certain):
            return Status.CONVERGED
        if control.interrupted.is_set():
            return control.early
        if control.out_of_time:
            return Status.TIME_LIMIT
        return Status.NOT_CONVERGED


def _far(best: Start, ends: Sequence[Start], independent: Sequence[Start], fit: NoiseFit) -> bool:
    """Return whether many starts have come near no series, and further ones come no nearer."""
    if fit.explained is True or fit.outliers or not fit.share > FAR_SHARE:
        return False
    if len(independent) < FAR_STARTS:
        return False
    before = min((s.cost for s in ends[: len(ends) // 2]), default=math.inf)
    return bool(best.cost >= FAR_GAIN * before > 0)
