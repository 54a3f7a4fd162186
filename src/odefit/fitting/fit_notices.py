"""The facts that a fit reports beside its numbers, from its stages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from odefit.assessment.parts import Trouble, Uncertainty
from odefit.fitting.fit_stages import Wishes
from odefit.fitting.solutions import ambiguity
from odefit.methods.estimate import Completeness, Doubt, Estimate, Status
from odefit.methods.fit_quality.goodness_verdict import Goodness
from odefit.methods.fit_quality.misfit import Misfit
from odefit.methods.outliers import Outlier
from odefit.methods.polish import Answer
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.reporting.notices import capital, opinion_notice
from odefit.result_data import Solution
from odefit.result_data.notices import Notice, NoticeKind
from odefit.simulation import ForwardMap
from odefit.simulation.second_opinion import SecondOpinion


def fit_notices(
    problem: Problem,
    control: Control,
    estimate: Estimate,
    wishes: Wishes,
    *,
    answer: Answer | None,
    uncertainty: Uncertainty | None,
    opinion: SecondOpinion | None,
    misfit: Sequence[Notice],
    found_misfit: Misfit | None,
    outliers: Sequence[Outlier],
    unproved: Sequence[str],
    equal: Sequence[Solution],
    near: Sequence[Solution],
    complete: Completeness | None,
    solutions_cut: bool = False,
    unsure: int = 0,
) -> tuple[Notice, ...]:
    """Return the notices for the user of a fit, in the order of its warnings."""
    forward = ForwardMap(problem) if answer is None else answer.forward
    assessed = uncertainty is not None and found_misfit is not None
    unassessed = answer is not None and not assessed and control.cut_off.reached
    second = opinion_notice(opinion)
    return (
        *plain_notices(problem, wishes),
        *_texts(NoticeKind.INTEGRATION, forward.warnings),
        *_texts(NoticeKind.RUN, control.remarks),
        *_texts(NoticeKind.IMPROVEMENT, [answer.warning] if answer and answer.warning else []),
        *([Notice(NoticeKind.NOT_INTEGRATED)] if unintegrated(estimate, answer) else []),
        *([second] if second else []),
        *misfit,
        *_astray(found_misfit),
        *([_weighed_down(outliers)] if outliers else []),
        *_texts(NoticeKind.NO_CERTIFICATE, filter(None, unproved)),
        *([Notice(NoticeKind.NOT_ASSESSED)] if unassessed else []),
        *ambiguity(problem, equal, near, complete),
        *_uncertain_solutions(solutions_cut, unsure),
        *_searched_elsewhere(estimate.doubt, uncertainty),
        *_failed_starts(estimate),
    )


def plain_notices(problem: Problem, wishes: Wishes) -> tuple[Notice, ...]:
    """Return the notices that are known before the search."""
    return (
        *_texts(NoticeKind.PROBLEM, problem.warnings),
        *_texts(NoticeKind.START, wishes.remarks),
        *wishes.smoothness,
    )


def unintegrated(estimate: Estimate, answer: Answer | None) -> bool:
    """Return whether the search found ends, none of which could be integrated."""
    best = estimate.best
    return answer is None and best is not None and math.isfinite(best.objective)


def ending(
    estimate: Estimate,
    last: str,
    misfit: Misfit | None,
    *,
    polish: bool,
    done: bool,
    optimal: bool | None,
    early: bool,
    corroborated: bool,
) -> tuple[Status, str, tuple[Notice, ...]]:
    """Return how a fit ended, its message, and the evidence against its answer.

    `last` is the message of the start that gave the answer. `done` means that no improvement is
    possible, and `early` that the time limit ended the last improvement.
    """
    status, message = estimate.status, estimate.message
    improved = status is Status.NOT_CONVERGED and optimal and estimate.sufficient is not False
    if done and status is Status.TIME_LIMIT:
        # Nothing can be better, so that no limit has kept evidence from the answer.
        status, message = Status.CONVERGED, estimate.finding or message
    elif improved:
        status = Status.CONVERGED
    elif polish and status is Status.CONVERGED and optimal is False and not done:
        status = Status.TIME_LIMIT if early else Status.NOT_CONVERGED
        message = f"{message}; {last}"
    if misfit is None or not misfit.unfit(corroborated):
        return status, message, ()
    # Several routes have reported the size of the residuals.
    message = f"{message}. {capital(misfit.short if estimate.routes else misfit.sentence)}"
    if polish and status is Status.CONVERGED:
        status = Status.NOT_CONVERGED
    numbers = {"ratio": misfit.ratio, "share": misfit.share}
    return status, message, (Notice(NoticeKind.DOES_NOT_FIT, numbers),)


def misfit_notices(
    misfit: Misfit | None, goodness: Goodness | None, corroborated: bool
) -> list[Notice]:
    """Return notices of residuals that do not look like noise, for an acceptable answer."""
    far = () if goodness is None or not goodness.bad else goodness.outliers
    named = misfit is not None and bool(misfit.outliers)
    observables = tuple(dict.fromkeys(o.observable for o in far))
    hint = [Notice(NoticeKind.TRY_ROBUST_NOISE, names=observables)] if far and not named else []
    if misfit is not None and misfit.unfit(corroborated):
        return hint  # the message has the rest
    agreed = corroborated and not far  # named outliers are more specific
    caused = misfit is not None and (misfit.accepted or named or agreed)
    if goodness is not None and goodness.bad and not caused:
        return [Notice(NoticeKind.NOT_NOISE, {"p": goodness.p}, text=goodness.sentence), *hint]
    if misfit is None:
        return hint
    numbers = {"ratio": misfit.ratio, "share": misfit.share}
    places = tuple(o.words for o in misfit.outliers)
    return [Notice(NoticeKind.MISFIT, numbers, places, misfit.sentence), *hint]


def _astray(misfit: Misfit | None) -> Iterator[Notice]:
    """Yield a notice of each curve that stays far from its data."""
    for one in () if misfit is None else misfit.astray:
        runs = {"": one.measured, "curve_": one.curve}
        numbers = {f"{of}{k}": float(v) for of, run in runs.items() for k, v in vars(run).items()}
        numbers["angle"] = float(one.angle)
        names = (one.observable, one.experiment) if one.experiment else (one.observable,)
        yield Notice(NoticeKind.CURVE_ASTRAY, numbers, names)


def _weighed_down(outliers: Sequence[Outlier]) -> Notice:
    """Return a notice of the outliers of a robust fit."""
    names = tuple(f"{o.words} (weight {o.weight:.1g})" for o in outliers)
    return Notice(NoticeKind.OUTLIERS, {"count": float(len(outliers))}, names)


def _uncertain_solutions(cut: bool, unsure: int) -> list[Notice]:
    """Return a notice of a search for other solutions, or a comparison of them, that was ended."""
    if not (cut or unsure):
        return []
    return [Notice(NoticeKind.SOLUTIONS_CUT, {"unsure": float(unsure), "cut": float(cut)})]


def _searched_elsewhere(doubt: Doubt | None, uncertainty: Uncertainty | None) -> list[Notice]:
    """Return a notice of an answer with undetermined unknowns and residuals that may not be noise.

    Unknowns that second derivatives determine (:mod:`odefit.assessment.folds`) do not count.
    """
    trouble = {} if uncertainty is None else uncertainty.trouble
    lost = () if doubt is None else doubt.lost
    lost = tuple(key for key in lost if trouble.get(key) is not Trouble.BY_PROFILE)
    if doubt is None or not lost:
        return []
    numbers = {"starts": float(doubt.starts), "p": doubt.p}
    return [Notice(NoticeKind.SEARCHED_ELSEWHERE, numbers, lost)]


def _failed_starts(estimate: Estimate) -> list[Notice]:
    """Return a notice if some starts failed."""
    failed = [s for s in estimate.starts if s.status is Status.FAILED]
    if not failed or len(failed) == len(estimate.starts):
        return []
    numbers = {"failed": float(len(failed)), "starts": float(len(estimate.starts))}
    return [Notice(NoticeKind.STARTS_FAILED, numbers, text=failed[0].message)]


def _texts(kind: NoticeKind, texts: Iterable[str]) -> list[Notice]:
    """Return notices made from the sentences of another part of the program."""
    return [Notice(kind, text=text) for text in texts]
