"""Other optima that fit within the noise, which the data cannot distinguish from the answer.

A search ends most of its starts coarsely, and polishes only the best. This module polishes further
ends that may come within the limit of the likelihood ratio. A separate optimum found so, with other
values of the unknowns, is another solution that fits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from odefit.assessment.fitting_solutions import fitting_solutions
from odefit.assessment.intervals.deviance import Deviance
from odefit.assessment.intervals.sandwich import treated
from odefit.assessment.local import assess_local
from odefit.assessment.parts import Uncertainty
from odefit.common.arrays import Array, BoolArray
from odefit.common.effects import undetermined
from odefit.fitting.fit_stages import FitState
from odefit.fitting.one_hill import with_hills
from odefit.fitting.other_hills import candidates
from odefit.fitting.places import Candidate
from odefit.fitting.solutions import DISTANCE, MAX_SOLUTIONS
from odefit.methods.bounded_problem import with_bounds
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance, close
from odefit.methods.polish import Answer, answer_by
from odefit.methods.running.control import Control, interruptible
from odefit.methods.single_shooting import SingleShooting
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import expected_sizes, sizes_at
from odefit.result_data import Solution
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.blocks import Blocks
from odefit.simulation.engines.cut_off import CutOffError
from odefit.simulation.engines.engine_choice import UNDECIDED

NEAR = 1e-2
"""Ends whose unknowns all differ by less than this lead to the same optimum."""

REACH = 10.0
"""Largest deviance of a coarse end, relative to the limit, that is worth polishing: polishing
seldom gains more."""

SHARE, LEAST = 0.1, 50
"""Share of the fit's evaluations allowed for polishing other ends, and the number always
allowed."""

MOST = 60
"""Evaluations for one end."""

HOPEFUL = 30.0
"""Largest deviance, relative to the limit, that a place may predict or keep after some steps."""

SURE = 3.0
"""Largest deviance, relative to the limit, of a place that promises to fit."""

BETTER = 0.1
"""Deviance below that of the answer, relative to the limit, of places that promise a better one."""

MANY_SENSITIVITIES = 1e5
"""Sensitivities of states, in all conditions, above which nothing begins after a time limit."""

ANSWERS = 3
"""Most answers, each better than the one before, from which other optima are looked for."""

FIRST = 15
"""Evaluations of the first steps from a place."""

NOISE_HELD = 2.0
"""Deviance with the noise held, relative to the limit, from which it may come within the limit when
the noise follows."""


def with_other_ends(state: FitState) -> bool:
    """Return whether other ends of the search may be further answers.

    If the answer reproduces the data and no noise is given, no other end fits within it.
    """
    if state.outcome is None or not state.wishes.polish or state.estimate.completeness is not None:
        return False
    return state.answer.forward.given_noise or not state.unbeatable


def with_other_optima(state: FitState) -> FitState:
    """Polish other ends that may fit within the noise; a better one becomes the answer.

    Of motions that fit equally well the slowest one is the answer, whichever the search has found.
    Places where other optima lie follow from the answer, and so from a new one as well.
    """
    level, answer, cut = state.wishes.level, state.answer, False
    known: tuple[Start, ...] = ()
    for _ in range(ANSWERS):
        others = other_optima(answer, state.estimate, level, state.control, known)
        cut = cut or others.cut
        polished = others.optima
        first = _preferred(answer, others)
        if first is None:
            break
        new = answer_by(answer.forward, first, state.estimate, state.control, True)
        if not isinstance(new, Answer):
            break
        polished = known = _within_noise(new, (*polished, answer.start), level)
        answer = new
    cut = cut and state.control.out_of_time and not state.control.interrupted.is_set()
    return replace(state, outcome=answer, polished=polished, solutions_cut=cut)


def _preferred(answer: Answer, others: OtherOptima) -> Start | None:
    """Return the optimum that is better than the answer, or as good and slowest, if any."""
    tolerance = CostTolerance.of(answer.forward)
    lowest = next(iter(others.optima), answer.start)
    if lowest.cost < answer.start.cost and not tolerance.same(lowest, answer.start):
        return lowest
    slower = [
        s
        for s in others.optima
        if others.speeds.get(s.index, 1.0) < 1.0 and tolerance.same(s, answer.start)
    ]
    return min(slower, key=lambda s: others.speeds[s.index], default=None)


def _within_noise(answer: Answer, optima: Sequence[Start], level: float) -> tuple[Start, ...]:
    """Return the optima besides an answer whose deviance from it is within the limit.

    Optima within the limit of one answer may lie far outside that of a better one, and the one that
    led to the better one may be the same optimum.
    """
    deviance = Deviance.of(answer.forward, answer.start.vector, answer.evaluation)
    limit = deviance.limit(level)
    sizes, ignored = _closeness(answer)
    vector = answer.start.vector
    return tuple(
        start
        for start in optima
        if deviance.at(start.cost) <= limit
        and not close(start.vector, vector, DISTANCE, sizes, ignored)
    )


def _closeness(answer: Answer) -> tuple[Array, BoolArray]:
    """Return the expected sizes of unknowns, and the directions that the data do not determine."""
    problem = answer.forward.problem
    at = sizes_at(problem, answer.start.vector)
    return expected_sizes(problem), undetermined(answer.evaluation.information, at)


def near_solutions(state: FitState, equal: Sequence[Solution]) -> tuple[Solution, ...]:
    """Return the polished solutions that fit less well than the best ones."""
    vectors = [start.vector for start in state.polished]
    return tuple(
        s
        for s in state.solutions
        if s not in equal and any(np.array_equal(s.vector, v) for v in vectors)
    )


def several_fit(state: FitState) -> bool:
    """Return whether several solutions fit."""
    return len(state.equal) + len(state.near) > 1


def with_fitting(state: FitState) -> FitState:
    """Add deviances, weights and intervals to the solutions that fit, one for each hill."""
    state = with_hills(state)
    several = [s for s in (*state.equal, *state.near) if s.nodes is None]
    if len(several) < 2 or state.uncertainty is None or several[0] is not state.solutions[0]:
        return state
    forward, vector, evaluation = state.at_answer

    def adapted(x: Array, at: Evaluation, uncertainty: Uncertainty) -> Uncertainty:
        wishes = state.goodness, state.wishes.intervals
        return treated(forward, x, at, uncertainty, *wishes)

    at_best = vector, evaluation, state.uncertainty
    known = fitting_solutions(forward, at_best, [s.vector for s in several[1:]], adapted)
    described = {
        id(s): replace(
            s,
            deviance=fitting.deviance,
            weight=fitting.weight,
            intervals=tuple((float(low), float(high)) for low, high in fitting.intervals),
        )
        for s, fitting in zip(several, known, strict=True)
        if fitting is not None
    }
    return replace(state, solutions=tuple(described.get(id(s), s) for s in state.solutions))


@dataclass(frozen=True)
class OtherOptima:
    """Optima besides an answer, the lowest first.

    `speeds` of their motions relative to the answer are by the number of the start; `cut` is true
    if a limit or an interruption left out some.
    """

    optima: tuple[Start, ...]
    speeds: Mapping[int, float]
    cut: bool


def _many_sensitivities(problem: Problem) -> bool:
    """Return whether sensitivities take too long to be integrated after a time limit."""
    count = len(problem.conditions) * len(problem.model.states) * len(problem.unknowns)
    return count > MANY_SENSITIVITIES


def other_optima(
    answer: Answer,
    estimate: Estimate,
    level: float,
    control: Control,
    known: Sequence[Start] = (),
) -> OtherOptima:
    """Return optima besides the answer whose deviance is within the limit.

    Places that follow from the answer and promise to fit come first, whatever the search has cost,
    so that they depend on the answer alone; then ends of the search, and other such places, until
    their share of the evaluations is used up. Each optimum has the index of its start; starts at
    places have further indices. `known` are optima that are kept, after an answer that they led to.
    Differences of unknowns that the data do not determine are ignored. An optimum better than the
    answer is included.
    """
    forward, best = answer.forward, answer.start
    deviance = Deviance.of(forward, best.vector, answer.evaluation)
    limit = deviance.limit(level)
    if not (math.isfinite(limit) and deviance.variance > 0) or best.nodes is not None:
        return OtherOptima((), {}, False)
    large = _many_sensitivities(forward.problem)
    if control.interrupted.is_set() or (large and control.out_of_time):
        return OtherOptima(tuple(known), {}, True)
    share = SHARE * sum(start.evaluations for start in estimate.starts)
    search = OptimumSearch(answer, deviance, limit, control, known)
    # What follows directly from the answer is worth the seconds from the limit to the cut-off.
    search.control = control if large else replace(control, deadline=None)

    def fits(cost: float) -> bool:
        return deviance.at(cost) <= SURE * limit

    try:
        with interruptible(control):
            places = candidates(forward, best.vector, fits, share, search.control.should_stop)
    except CutOffError:
        return OtherOptima(search.optima, {}, True)
    numbers = itertools.count(1 + max((s.index for s in (*estimate.starts, *known)), default=0))
    better = [p for p in places if deviance.at(p.cost) < -BETTER * limit]
    others = sorted((p for p in places if fits(p.cost)), key=lambda p: p.speed)
    sure = [*better, *(p for p in others if p not in better)][:MAX_SOLUTIONS]
    speeds: dict[int, float] = {}
    for k, place in enumerate(sure):
        speeds[number := next(numbers)] = place.speed
        if not search.from_place(place, number):
            return OtherOptima(search.optima, speeds, True)
        optima = OtherOptima(search.optima, speeds, False)
        last = k + 1 >= len(better) and (place in better or place.speed < 1.0)
        if last and _preferred(answer, optima) is not None:
            return optima  # faster motions take longer, and follow from the new answer
    search.control, search.left = control, max(LEAST, share)
    for end in () if known else _ends(estimate):
        height = deviance.at(end.cost)
        if height > (limit if end.status is Status.CONVERGED else REACH * limit):
            continue
        if not search.follow(end.vector, end.index):
            break
    for place in places:
        hopeful = place.held is not None or deviance.at(place.cost) <= HOPEFUL * limit
        if place not in sure and hopeful and not search.from_place(place, next(numbers)):
            break
    return OtherOptima(search.optima, speeds, search.cut)


class OptimumSearch:
    """Polishes ends and places within `left` evaluations of the model."""

    def __init__(
        self,
        answer: Answer,
        deviance: Deviance,
        limit: float,
        control: Control,
        known: Sequence[Start],
    ) -> None:
        self.left = math.inf
        self.polished: list[Start] = list(known)
        self._forward, self.control = answer.forward, control
        self._deviance, self._limit = deviance, limit
        self._objective = answer.evaluation.objective
        self._sizes, self._ignored = _closeness(answer)
        self._blocks = Blocks.around(answer.forward, answer.start.vector)
        self._tried: list[Array] = [answer.start.vector, *(s.vector for s in known)]
        self._known: list[Array] = list(self._tried)
        self.cut = False  # whether the control has ended it

    @property
    def over(self) -> bool:
        """True if no evaluations are left, or the run is to end."""
        if self.left <= 0:
            return True
        self.cut = self.cut or self.control.should_stop()
        return self.cut

    @property
    def optima(self) -> tuple[Start, ...]:
        """The optima found so far, the lowest first."""
        return tuple(sorted(self.polished, key=lambda s: (s.cost, s.index)))

    def from_place(self, place: Candidate, index: int) -> bool:
        """Follow a place with an expected optimum for as long as its cost stays as predicted."""
        begun = self._run(place.vector, index, FIRST, place.held)
        if begun is None:
            return False
        if begun.status is Status.FAILED or self._deviance.at(begun.cost) > HOPEFUL * self._limit:
            return not self.over
        return self.follow(begun.vector, index)

    def follow(self, vector: Array, index: int) -> bool:
        """Polish an end, and keep it if it is another optimum; return whether to continue."""
        if self.over:
            return False
        if self._close(vector, self._tried, NEAR):
            return True
        self._tried.append(vector)
        polished = self._run(vector, index, MOST)
        if polished is None:
            return False
        joined = self._blocks is not None and self._blocks.noise
        limit = NOISE_HELD * self._limit if joined else self._limit
        if polished.status is Status.FAILED or self._deviance.at(polished.cost) > limit:
            return True
        if joined:
            polished = self._run(polished.vector, index, MOST, whole=True)
            if polished is None:
                return False
            if self._deviance.at(polished.cost) > self._limit:
                return True
        self._tried.append(polished.vector)
        if self._close(polished.vector, self._known, DISTANCE):
            return True
        evaluation = self._forward.evaluate(polished.vector, UNDECIDED)
        if isinstance(evaluation, Evaluation) and (
            assess_local(self._forward, polished.vector, evaluation).optimal
        ):
            self.polished.append(
                replace(
                    polished,
                    status=Status.CONVERGED,
                    cost=evaluation.cost,
                    objective=evaluation.objective,
                )
            )
            self._known.append(polished.vector)
        return True

    def _run(
        self, vector: Array, index: int, most: int, held: int | None = None, *, whole: bool = False
    ) -> Start | None:
        """Return the end of a search with limited evaluations; None if it was cut off.

        The unknown number `held`, if any, stays where it is. Where the vector differs from the
        answer in one block of experiments, the search is for these alone, unless for the `whole`.
        """
        if self.over:
            return None
        blocks = self._blocks
        block = None if blocks is None or whole else blocks.only(vector)
        if blocks is None or block is None:
            end = self._searched(self._forward, vector, index, most, held)
            self.left -= 0 if end is None else end.evaluations
            return end
        places = block.places
        inside = None if held is None else int(np.flatnonzero(places == held)[0])
        end = self._searched(block.forward, vector[places], index, most, inside)
        if end is None:
            return None
        self.left -= end.evaluations / len(blocks.blocks)
        at = block.at_answer
        return replace(
            end,
            start=blocks.with_values(block, end.start),
            vector=blocks.with_values(block, end.vector),
            cost=self._deviance.minimum - at.cost + end.cost,
            objective=self._objective - at.objective + end.objective,
        )

    def _searched(
        self, forward: ForwardMap, vector: Array, index: int, most: int, held: int | None
    ) -> Start | None:
        problem = forward.problem
        if held is not None:
            bounds = np.column_stack([problem.lower, problem.upper])
            bounds[held] = vector[held]
            forward = forward.of(with_bounds(problem, bounds))
        search = SingleShooting(evaluations=int(min(self.left, most)) + 1)
        try:
            with interruptible(self.control):
                return search.run(forward, index, vector, self.control)
        except CutOffError:
            self.cut = True
            return None

    def _close(self, vector: Array, others: Sequence[Array], distance: float) -> bool:
        return any(close(vector, x, distance, self._sizes, self._ignored) for x in others)


def _ends(estimate: Estimate) -> list[Start]:
    """Return the ends worth polishing, with converged ones first, as they need little work."""
    usable = (
        s
        for s in estimate.starts
        if s.status is not Status.FAILED and s.nodes is None and math.isfinite(s.cost)
    )
    return sorted(usable, key=lambda s: (s.status is not Status.CONVERGED, s.cost, s.index))
