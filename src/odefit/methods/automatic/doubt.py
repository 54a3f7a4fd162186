"""Doubts of the best end: residuals that are not noise, or unknowns without effect."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import RANK_TOLERANCE, acting
from odefit.methods.automatic.families import Families
from odefit.methods.automatic.neighbours import MOST_EXCHANGES, NeighbourSearch
from odefit.methods.automatic.profile_search import ProfileSearch
from odefit.methods.automatic.route_table import (
    ELSEWHERE,
    HALVING,
    ITERATED,
    POPULATIONS,
    SHOOTING,
    TWO_STAGES,
)
from odefit.methods.automatic.routes import ElsewhereRoute, SearchRoute
from odefit.methods.automatic.valleys import MAX_RISE
from odefit.methods.estimate import Doubt, Start
from odefit.methods.fit_quality.goodness import CLEARLY_GOOD, assess_goodness
from odefit.methods.fit_quality.limits import SIGNIFICANCE
from odefit.methods.fit_quality.noise_fit import NoiseFit
from odefit.methods.incremental_shooting import FINAL
from odefit.methods.local.cost_tolerance import CostTolerance, close
from odefit.methods.local.scaling import bounds_touched
from odefit.problem.variants.exchanges import exchanged
from odefit.problem.variants.features import switches
from odefit.problem.variants.sizes import expected_sizes, sizes_at
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED

STARTS = 16
"""Number of starts elsewhere without finding a better end after which the best end is the
answer."""

AGREEING = 2
"""Number of starts elsewhere that end at the same optimum and so remove the doubt of an end where
all unknowns act."""

POPULATION_STARTS = 6
"""Number of starts of populations without a better end after which the best end is the answer if
conditions trigger events."""

WEAK_HITS, WEAK_MORE = 5, 2
"""Number of starts that have to agree if noise explains few values and an unknown is lost, and the
number added for each further unknown. Starts that hold these must find nothing better, either.
"""

LOST_SHARE = 0.5  # share of lost unknowns from which a start follows the profiles of the others

MISSING_HITS = 15
"""Number of independent starts that have to agree if residuals have a pattern and no start can go
elsewhere, as many as where the noise is known and too small."""

FEW_UNKNOWNS = 12
"""Number of unknowns up to which these starts, or exchanges of unknowns, are required."""

DRAWS = 999
"""Number of simulated sets of residuals for a doubt; the answer has its own test, with more."""

NEAR = 1e-3  # relative difference of unknowns up to which two ends are the same

SHOOTING_ALONE = (SHOOTING, TWO_STAGES, ELSEWHERE, HALVING, ITERATED)
"""Routes of one family, whose searches follow a trajectory from its beginning."""


class Doubts:
    """The doubts of the best ends of a search, each of which is examined once."""

    def __init__(
        self,
        forward: ForwardMap,
        routes: Sequence[SearchRoute],
        tolerance: CostTolerance,
        families: Families,
    ) -> None:
        self._forward, self._tolerance, self._families = forward, tolerance, families
        self._elsewhere = next(r for r in routes if isinstance(r, ElsewhereRoute))
        self._populations = next(r for r in routes if r.row is POPULATIONS)
        self._shooting = [r for r in routes if r.row in SHOOTING_ALONE]
        self._last: tuple[Start, Doubt | None] | None = None
        self._routes, self._lost, self._weak = routes, False, 0  # _weak: lost unknowns of the best
        self._seen: set[int] = set()
        self._known: list[tuple[Array, BoolArray]] = []  # ends, and which unknowns are lost there
        self._sizes = expected_sizes(forward.problem)

    def of(self, alike: Sequence[Start], fit: NoiseFit) -> tuple[Doubt | None, bool]:
        """Return the doubt of the best of equal ends, and whether to search elsewhere first.

        `fit` compares it with the noise.

        If all unknowns act, the doubt is removed by methods of another family, or starts elsewhere,
        that end there. If some are lost, all kinds of starts may end at the same optimum, and only
        many starts without a better end remove the doubt. Once unknowns were lost, starts return to
        all such ends, even if a better one is known. If conditions trigger events, populations
        replace all these starts, and run before any end counts.
        """
        best, explained = min(alike, key=lambda s: (s.cost, s.index)), fit.explained is True
        if self._last is None or not self._tolerance.same(best, self._last[0]):
            self._last = best, doubt_of(self._forward, best, explained)
            self._weak = 0
            if self._populations.closed and best.nodes is None and not (best.exact or fit.certain):
                self._look_closely(best, self._last[1], fit.explained is not False)
        doubt = self._last[1]
        if not self._populations.closed:
            return self._beside_populations(doubt, {s.index for s in alike})
        if doubt is not None and doubt.lost:
            self._lost = True
        if self._lost:
            self._hold(best, explained)
        if doubt is None or not (doubt.lost or self._elsewhere.wide):
            hits = len(self._families.first_of_each(alike))
            few = self._weak > 0 and hits < WEAK_HITS + WEAK_MORE * (self._weak - 1)
            few = few or (doubt is not None and hits < MISSING_HITS)
            return doubt, few or not self._elsewhere.done
        numbers = {s.index for s in alike}
        starts = len(self._elsewhere.starts)
        agreeing = sum(s.index in numbers - self.led.keys() for s in self._elsewhere.starts)
        shot = {s.index for r in self._shooting for s in r.starts}
        removed = not doubt.lost and (agreeing >= AGREEING or not numbers <= shot)
        open_ = not (removed or starts >= STARTS) or not self._elsewhere.done
        return replace(doubt, starts=starts), open_

    def _beside_populations(
        self, doubt: Doubt | None, numbers: Container[int]
    ) -> tuple[Doubt | None, bool]:
        starts = self._populations.starts
        agreeing = sum(s.index in numbers for s in starts)
        lost = doubt is not None and bool(doubt.lost)
        open_ = len(starts) < POPULATION_STARTS and (lost or agreeing < AGREEING)
        return None if doubt is None else replace(doubt, starts=len(starts)), open_

    @property
    def led(self) -> Mapping[int, Start]:
        """Ends around which searches began, by the numbers of the ends that these reached."""
        return self._elsewhere.led

    def _look_closely(self, best: Start, doubt: Doubt | None, possible: bool) -> None:
        """Let starts search around a best end that may be the answer, and may hide a better one."""
        forward = self._forward
        if switches(forward.problem, forward.field):
            self._elsewhere.look_around(NeighbourSearch(FINAL, best))
        few = len(best.vector) <= FEW_UNKNOWNS
        misses = doubt is not None or not possible
        if few and misses and len(exchanged(forward.problem, best.vector, MOST_EXCHANGES)):
            self._elsewhere.look_around(NeighbourSearch(FINAL, best, exchange=True))
        if few and not misses:
            evaluation = forward.evaluate(best.vector, UNDECIDED)
            if isinstance(evaluation, Evaluation):
                lost = _names(forward, lost_unknowns(forward, best.vector, evaluation))
                self._elsewhere.hold(best, lost)
                self._weak = len(lost)
                if len(lost) >= LOST_SHARE * len(best.vector):
                    self._elsewhere.look_around(ProfileSearch(FINAL, best))

    def _hold(self, best: Start, explained: bool) -> None:
        """Let starts return to all ends about as good as the best at which unknowns are lost."""
        known = self._forward.likelihood or self._forward.given_noise
        highest = best.cost + (MAX_RISE if known else best.cost)
        for end in (s for r in self._routes for s in r.starts):
            if end.cost <= highest and end.index not in self._seen:
                self._seen.add(end.index)
                if any(close(end.vector, v, NEAR, self._sizes, lost) for v, lost in self._known):
                    continue  # the same unknowns are lost
                doubt = doubt_of(self._forward, end, explained)
                names = () if doubt is None else doubt.lost
                lost = np.array([key in names for key in self._forward.problem.keys])
                self._known.append((end.vector, lost))
                self._elsewhere.hold(end, names)


def doubt_of(forward: ForwardMap, end: Start, explained: bool) -> Doubt | None:
    """Return the reason to doubt an end; None if nothing does.

    If unknowns are lost, residuals must look clearly like noise. A correct model may leave some of
    them without effect, too, but then the residuals have no pattern. If equations switch or have
    kinks, an unknown without effect makes even an end doubtful that noise has `explained`: beyond
    the kink another optimum may fit better.
    """
    switching = switches(forward.problem, forward.field)
    if end.exact or end.nodes is not None or (explained and not switching):
        return None
    with np.errstate(all="ignore"):
        evaluation = forward.evaluate(end.vector, UNDECIDED)
        if not isinstance(evaluation, Evaluation):
            return None
        if switching:
            _, acts = acting(evaluation.jacobian, sizes_at(forward.problem, end.vector))
            if not acts.all():
                return Doubt(_names(forward, ~acts), 1.0)
        if explained:
            return None
        goodness = assess_goodness(forward, end.vector, evaluation, DRAWS)
        if goodness is None or goodness.p >= CLEARLY_GOOD:
            return None
        lost = lost_unknowns(forward, end.vector, evaluation)
    if not lost.any() and goodness.p >= SIGNIFICANCE:
        return None
    return Doubt(_names(forward, lost), goodness.p)


def _names(forward: ForwardMap, chosen: BoolArray) -> tuple[str, ...]:
    return tuple(k for k, is_so in zip(forward.problem.keys, chosen, strict=True) if is_so)


def lost_unknowns(forward: ForwardMap, vector: Array, evaluation: Evaluation) -> BoolArray:
    """Return the unknowns that are at a bound, or that the measurements do not determine.

    These have no effect, are free along a direction, or have errors beyond their own size.
    """
    problem, jacobian = forward.problem, evaluation.jacobian
    sizes = sizes_at(problem, vector)
    norms, effective = acting(jacobian, sizes)
    touched = bounds_touched(problem, vector)
    lost = touched | ~effective
    free = np.flatnonzero(~lost)
    if len(free):
        _, s, directions = np.linalg.svd(jacobian[:, free] / norms[free], full_matrices=False)
        s = np.maximum(s, RANK_TOLERANCE * s[0])
        spare = max(len(jacobian) - len(free), 1)
        noise = float(np.sqrt(evaluation.residuals @ evaluation.residuals / spare))
        errors = noise * np.linalg.norm(directions.T / s, axis=1) / norms[free]
        lost[free] = ~(errors <= sizes[free])
    return lost
