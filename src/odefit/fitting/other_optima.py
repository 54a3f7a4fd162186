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
from odefit.assessment.parts import Uncertainty
from odefit.common.arrays import Array
from odefit.fitting.fit_stages import FitState
from odefit.fitting.one_hill import with_hills
from odefit.fitting.optimum_search import HOPEFUL, OptimumSearch, closeness
from odefit.fitting.other_beginnings import other_beginnings, other_motions
from odefit.fitting.other_hills import along_flat_unknowns, candidates, simpler_models
from odefit.fitting.solutions import DISTANCE, MAX_SOLUTIONS
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance, close
from odefit.methods.polish import Answer, answer_by
from odefit.methods.running.control import GRACE_SECONDS, Control, interruptible
from odefit.problem.problem import Problem
from odefit.result_data import Solution
from odefit.simulation import Evaluation
from odefit.simulation.engines.cut_off import CutOffError

REACH = 10.0
"""Largest deviance of a coarse end, relative to the limit, that is worth polishing: polishing
seldom gains more."""

SHARE, LEAST = 0.1, 50
"""Share of the fit's evaluations allowed for polishing other ends, and the number always
allowed."""

SURE = 3.0
"""Largest deviance, relative to the limit, of a place that promises to fit."""

BETTER = 0.1
"""Deviance below that of the answer, relative to the limit, of places that promise a better one."""

MANY_SENSITIVITIES = 1e5
"""Sensitivities of states, in all conditions, above which nothing begins after a time limit."""

SHARE_OF_TIME = 0.6
"""Share of the seconds until integrations are cut off for all optima, after a search that has not
converged."""

UNKNOWN = math.nan, math.nan  # the ends of an interval

ANSWERS = 3
"""Most answers, each better than the one before, from which other optima are looked for."""


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
    control = _limited(state.control, state.estimate)
    known: tuple[Start, ...] = ()
    for _ in range(ANSWERS):
        others = other_optima(answer, state.estimate, level, control, known)
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
    cut = cut and not state.control.interrupted.is_set()
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
    sizes, ignored = closeness(answer)
    vector = answer.start.vector
    return tuple(
        start
        for start in optima
        if deviance.at(start.cost) <= limit
        and not close(start.vector, vector, DISTANCE, sizes, ignored)
    )


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


def without_intervals(state: FitState) -> FitState:
    """Add deviances alone to the solutions that fit, where no time is left to integrate them."""
    several = [s for s in (*state.equal, *state.near) if s.nodes is None]
    uncertainty = state.uncertainty
    if len(several) < 2 or uncertainty is None or several[0] is not state.solutions[0]:
        return state
    forward, best = state.answer.forward, several[0]
    unit = 1.0 if forward.given_noise else uncertainty.variance
    described: dict[int, Solution] = {}
    for s in several:
        rise = (s.objective - best.objective) / unit
        if forward.likelihood and s.log_likelihood is not None and best.log_likelihood is not None:
            rise = 2.0 * (best.log_likelihood - s.log_likelihood)
        intervals = uncertainty.intervals.tolist() if s is best else [UNKNOWN] * len(s.vector)
        pairs = tuple((low, high) for low, high in intervals)
        described[id(s)] = replace(s, deviance=max(rise, 0.0), intervals=pairs)
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
    so that they depend on the answer alone. Other initial values of motions at other speeds follow,
    and places where a flat unknown may differ. Then come simpler models, and ends of the search
    with other such places, both until their share of the evaluations is used up. Each optimum has
    the index of its start; starts at places have further indices. `known` are optima that are kept,
    after an answer that they led to. Differences of unknowns that the data do not determine are
    ignored. An optimum better than the answer is included.
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

    def fits(cost: float) -> bool:
        return deviance.at(cost) <= SURE * limit

    try:
        with interruptible(control):
            places = candidates(forward, best.vector, fits, share, search.control.should_stop)
    except CutOffError:
        return OtherOptima(search.optima, {}, True)
    numbers = itertools.count(1 + max(s.index for s in (*estimate.starts, *known, best)))
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
    moved = [(s.vector, speeds[s.index]) for s in search.optima if s.index in speeds]
    try:
        with interruptible(control):
            drawn = [
                (place, speed)
                for vector, speed in other_motions(forward, best.vector, moved)
                for place in other_beginnings(forward, vector, search.control)
            ]
    except CutOffError:
        return OtherOptima(search.optima, speeds, True)
    for place, speed in drawn:
        speeds[number := next(numbers)] = speed
        if not search.from_place(place, number):
            return OtherOptima(search.optima, speeds, True)
    flat = along_flat_unknowns(forward.problem, best.vector, answer.evaluation.information)
    for place in flat:
        if not search.from_place(place, next(numbers)):
            return OtherOptima(search.optima, speeds, True)
    search.left = max(LEAST, share)
    for place in () if known else simpler_models(forward.problem, best.vector):
        if not search.from_place(place, next(numbers)):
            break
    search.left = max(LEAST, share)
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


def _limited(control: Control, estimate: Estimate) -> Control:
    """Return the control of the search for other optima.

    It is worth the seconds from the limit to the cut-off, of which a part remains for the stages
    that assess the optima.
    """
    if control.deadline is None:
        return control
    limited = control.ending_in(SHARE_OF_TIME * (control.seconds_left + GRACE_SECONDS))
    if estimate.status is not Status.CONVERGED or limited.seconds_left > control.seconds_left:
        return limited
    return control  # a limit that takes this verdict has to be over


def _ends(estimate: Estimate) -> list[Start]:
    """Return the ends worth polishing, with converged ones first, as they need little work."""
    usable = (
        s
        for s in estimate.starts
        if s.status is not Status.FAILED and s.nodes is None and math.isfinite(s.cost)
    )
    return sorted(usable, key=lambda s: (s.status is not Status.CONVERGED, s.cost, s.index))
