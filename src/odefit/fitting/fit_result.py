"""The result of a fit: what its search has found, assessed stage by stage."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from odefit.assessment.bound_agreement import agreeing_with_bounds
from odefit.assessment.certification import certify_answer
from odefit.assessment.completeness import assess_completeness
from odefit.assessment.continuity import assess_continuity
from odefit.assessment.discretised import assess_agreement, assess_certificate
from odefit.assessment.fit_quality.bad_fits import (
    intervals_of_bad_fit,
    misfit_warnings,
    weighed_down,
)
from odefit.assessment.fit_quality.goodness import assess_goodness
from odefit.assessment.fit_quality.misfit import Misfit, assess_misfit
from odefit.assessment.intervals.uncertainty import assess_uncertainty
from odefit.assessment.local import assess_local
from odefit.assessment.parts import Assessment, Local, Uncertainty
from odefit.assessment.profiles.linear_checks import checked, with_curvature
from odefit.common.arrays import Array
from odefit.common.packages import installed_version
from odefit.fitting.fit_stages import FitState, Stage, Wanted, carried_out
from odefit.fitting.solutions import (
    ambiguity,
    bounded,
    distinct_solutions,
    equal_solutions,
    indistinguishable_solutions,
    solution,
)
from odefit.fitting.warm_start import GIVEN_START
from odefit.methods.best_so_far import with_cause
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.outliers import robust_outliers, suspected_outliers
from odefit.methods.polish import Answer, answer, answer_by
from odefit.methods.running.control import Control, Method
from odefit.problem.problem import Problem
from odefit.reporting.second_opinions import told as opinion_told
from odefit.result.result import Result
from odefit.result_data import Solution, StageFailure, values_at
from odefit.simulation import ForwardMap
from odefit.simulation.second_opinion import better_map, second_opinion

COUNT_WORK, SEARCH_WORK = 2.5e7, 1e8
"""Operations, see :mod:`odefit.structure.series.deadline`, that the count of the solutions with the
same outputs as the answer may take; and where there are others, count and search for them
together."""

UNASSESSED = "The fit was ended before its answer was assessed: what is missing was not computed"
"""What is said of an answer whose assessment was ended early."""

UNINTEGRATED = (
    "No end of the search can be integrated at full accuracy: the answer is the best one as the "
    "search has left it, and nothing is known of its errors"
)
"""What is said of an answer that was not integrated again."""

VERSIONS = ("odefit", "numpy", "heyoka", "casadi", "numba")
"""Packages on which the numbers of a result depend, and whose versions it holds."""


def result_of(
    problem: Problem,
    method: Method,
    estimate: Estimate,
    control: Control,
    began: float,
    wanted: Wanted,
) -> Result:
    """Return what an estimate is worth.

    Parameters
    ----------
    problem, method, estimate
        What was fitted, by which method, and what that has found.
    control
        Limits of the fit. What ends it early ends the stage that it meets.
    began
        When the fit began, in seconds of :func:`time.perf_counter`.
    wanted
        What is asked of the answer.
    """
    first = FitState(problem, control, wanted, began, estimate, estimate.status, estimate.message)
    state = carried_out(STAGES, first)
    status, message = state.status, state.message
    if control.interrupted.is_set():
        status = control.early
    if status.cut_short:
        message = with_cause(message, state.estimate.told, control)
    return Result(
        problem=problem,
        method=method.name,
        status=status,
        message=message,
        solutions=state.solutions,
        starts=state.estimate.starts,
        assessment=state.assessment,
        uncertainty=state.uncertainty,
        warnings=(*state.warnings, *map(failure_warning, state.failures)),
        seconds=time.perf_counter() - began,
        seed=control.seed,
        versions={name: installed_version(name) or "unknown" for name in VERSIONS},
        routes=state.estimate.routes,
        outliers=state.outliers,
        goodness=state.goodness,
        failed_stages=state.failures,
    )


# The stages -------------------------------------------------------------------------------------


def _with_answer(state: FitState) -> FitState:
    polish = state.wanted.polish
    return replace(state, found=answer(state.problem, state.estimate, state.control, polish))


def _with_plain_answer(state: FitState) -> FitState:
    return replace(state, found=answer(state.problem, state.estimate, state.control, False))


def _with_certificate(state: FitState) -> FitState:
    found, estimate, proposed, unproved = _certified(
        state.answer, state.estimate, state.control, state.wanted.polish
    )
    return replace(state, found=found, estimate=estimate, proposed=proposed, unproved=unproved)


def _with_second_opinion(state: FitState) -> FitState:
    """Add what an engine of another family says; where others agree with it, it integrates."""
    found = state.answer
    opinion = second_opinion(found.forward, found.start.vector, used=found.trajectories)
    better = better_map(found.forward, opinion)
    if better is not None:
        again = answer_by(better, found.start, state.estimate, state.control, state.wanted.polish)
        found = again if isinstance(again, Answer) else found
    return replace(state, found=found, opinion=opinion)


def _with_agreeing_bounds(state: FitState) -> FitState:
    """Let an answer that contradicts the bounds proved for it be integrated anew."""
    found, estimate, unproved = agreeing_with_bounds(
        state.answer,
        state.estimate,
        state.proposed or state.estimate.starts,
        state.control,
        state.wanted.polish,
    )
    return replace(state, found=found, estimate=estimate, unproved=unproved or state.unproved)


def _single(state: FitState) -> bool:
    """Return whether the answer is a single trajectory from the initial values."""
    return state.found is not None and state.found.start.nodes is None


def _with_local(state: FitState, unique: bool = False) -> FitState:
    at = state.answer.forward, state.answer.start.vector, state.answer.evaluation
    return replace(state, local=assess_local(*at, state.estimate.certificate, unique=unique))


def _with_uncertainty(state: FitState) -> FitState:
    """Add what linearisation says of the errors, with its intervals checked."""
    found = state.answer
    at = found.forward, found.start.vector, found.evaluation
    conditions = 0 if found.start.nodes is None else found.start.nodes.equations
    uncertainty = assess_uncertainty(*at, state.wanted.level, conditions)
    uncertainty = checked(*at, uncertainty, conditions)
    return replace(state, uncertainty=uncertainty)


def _with_curvature(state: FitState) -> FitState:
    """Add what is not linear there."""
    assert state.uncertainty is not None
    found = state.answer
    at = found.forward, found.start.vector, found.evaluation
    spent = sum(start.evaluations for start in state.estimate.starts)
    uncertainty = with_curvature(*at, state.uncertainty, spent, state.control.should_stop)
    return replace(state, uncertainty=uncertainty)


def _with_solutions(state: FitState) -> FitState:
    found = distinct_solutions(state.answer, state.estimate, state.uncertainty)
    return replace(state, solutions=found)


def _with_best_solution(state: FitState) -> FitState:
    found = state.answer
    return replace(state, solutions=(solution(state.problem, found.start, found.evaluation, 1),))


def _with_goodness(state: FitState) -> FitState:
    """Add whether the residuals look like noise, unless they are rounding."""
    found = state.answer
    if _unbeatable(found):
        return state
    goodness = assess_goodness(found.forward, found.start.vector, found.evaluation)
    return replace(state, goodness=goodness)


def _with_wanted_intervals(state: FitState) -> FitState:
    assert state.uncertainty is not None
    uncertainty = intervals_of_bad_fit(
        state.problem,
        state.answer.start.vector,
        state.uncertainty,
        state.goodness,
        state.wanted.intervals,
    )
    return replace(state, uncertainty=uncertainty)


def _with_misfit(state: FitState) -> FitState:
    found, proof = state.answer, state.estimate.certificate
    best = found.start
    proved = proof is not None and proof.closed
    constrained = best.nodes is not None and bool(best.nodes.constraints)
    misfit = assess_misfit(found.forward, best.vector, found.evaluation, proved, constrained)
    return replace(state, misfit=misfit)


def _with_suspects(state: FitState) -> FitState:
    """Add values that keep noise from explaining the residuals."""
    assert state.misfit is not None
    ends = _ends(state.estimate, state.answer.start)
    suspects = suspected_outliers(state.answer.forward, ends, state.control)
    misfit = state.misfit.with_outliers(suspects) if suspects else state.misfit
    return replace(state, misfit=misfit, outliers=suspects)


def _with_outliers(state: FitState) -> FitState:
    found = state.answer
    return replace(state, outliers=robust_outliers(found.forward, found.start.vector))


def _with_ending(state: FitState) -> FitState:
    status, message = _ending(
        state.estimate,
        state.answer,
        state.local,
        state.misfit,
        state.wanted.polish,
        state.control,
    )
    return replace(state, status=status, message=message)


def _countable(state: FitState) -> bool:
    """Return whether the solutions of the equations are counted."""
    return (
        state.found is not None
        and state.wanted.structure
        and state.estimate.completeness is None
        and state.status is Status.CONVERGED
        and _determined(state.uncertainty)
    )


def _with_count(state: FitState) -> FitState:
    complete, solutions = indistinguishable_solutions(
        state.answer, state.solutions, (COUNT_WORK, SEARCH_WORK), state.control
    )
    return replace(state, complete=complete, solutions=solutions)


def _complete(state: FitState) -> FitState:
    """Add what the method itself knows of the number of solutions."""
    return replace(state, complete=state.complete or state.estimate.completeness)


def _unique(state: FitState) -> bool:
    complete = state.complete
    only = complete is not None and complete.known and complete.possible == 1
    return state.found is not None and only


def _with_equal(state: FitState) -> FitState:
    found = state.answer
    equal = equal_solutions(found.forward, state.solutions, found.evaluation.choice)
    return replace(state, equal=tuple(equal))


def _with_assessment(state: FitState) -> FitState:
    found, estimate, problem = state.answer, state.estimate, state.problem
    inside = len(state.equal) if bounded(problem) else None
    assessment = Assessment(
        local=state.local,
        complete=assess_completeness(state.complete, inside),
        bounds=assess_certificate(estimate.certificate),
        discretisation=assess_agreement(estimate.agreement, problem.keys, found.start.vector),
        continuity=assess_continuity(found.start.nodes, found.gap),
    )
    return replace(state, assessment=assessment)


def _unintegrated(state: FitState) -> bool:
    """Return whether no end of the search could be integrated, though it has found some."""
    best = state.estimate.best
    return state.found is None and best is not None and math.isfinite(best.objective)


def _as_found(state: FitState) -> FitState:
    """Add the best end as the search has left it, of which nothing else is known."""
    best, status = state.estimate.best, state.status
    assert best is not None
    values = values_at(state.problem, best.vector)
    own = Solution(best.vector, *values, best.objective, None, 1, best.nodes)
    if status is Status.CONVERGED:
        status = Status.NOT_CONVERGED
    return replace(state, solutions=(own,), status=status)


def _with_warnings(state: FitState) -> FitState:
    problem, control, estimate, found = state.problem, state.control, state.estimate, state.found
    forward = ForwardMap(problem) if found is None else found.forward
    misfit, outliers = state.misfit, state.outliers
    unassessed = found is not None and (state.uncertainty is None or misfit is None)
    warnings = (
        *problem.warnings,
        *state.wanted.remarks,
        *forward.warnings,
        *map(_capital, control.remarks),
        *([found.warning] if found is not None and found.warning else []),
        *([UNINTEGRATED] if _unintegrated(state) else []),
        *([sentence] if (sentence := opinion_told(state.opinion)) else []),
        *misfit_warnings(misfit, state.goodness, _corroborated(estimate)),
        *([weighed_down(outliers)] if outliers and not (misfit and misfit.outliers) else []),
        *([state.unproved] if state.unproved else []),
        *([UNASSESSED] if unassessed and control.cut_off.reached else []),
        *ambiguity(problem, state.equal),
        *_failed(estimate),
    )
    return replace(state, warnings=warnings)


def _plainly_warned(state: FitState) -> FitState:
    return replace(state, warnings=(*state.problem.warnings, *state.wanted.remarks))


def _answered(state: FitState) -> bool:
    return state.found is not None


def _assessed(state: FitState) -> bool:
    return state.found is not None and state.uncertainty is not None


STAGES = (
    Stage(
        "answer",
        _with_answer,
        lambda s: s.wanted.polish,
        _with_plain_answer,
        "improving the best answer",
    ),
    Stage("answer", _with_plain_answer, lambda s: not s.wanted.polish, _with_plain_answer),
    Stage("answer as it was found", _as_found, _unintegrated),
    Stage(
        "certificate",
        _with_certificate,
        lambda s: _answered(s) and s.wanted.certify and s.estimate.certificate is None,
        doing="proving bounds of the objective",
    ),
    Stage("second opinion", _with_second_opinion, _single),
    Stage(
        "agreement with the bounds",
        _with_agreeing_bounds,
        lambda s: _answered(s) and s.estimate.certificate is not None,
    ),
    Stage("local optimality", _with_local, _answered),
    Stage("uncertainty", _with_uncertainty, _answered),
    Stage("curvature", _with_curvature, _assessed),
    Stage("distinct solutions", _with_solutions, _answered, _with_best_solution),
    Stage("goodness of fit", _with_goodness, _answered),
    Stage("wanted intervals", _with_wanted_intervals, _assessed),
    Stage("misfit", _with_misfit, _answered),
    Stage("suspected outliers", _with_suspects, lambda s: s.misfit is not None),
    Stage("outliers", _with_outliers, lambda s: _answered(s) and not s.outliers),
    Stage("status", _with_ending, _answered),
    Stage("known count of solutions", _complete, _answered),
    Stage(
        "count of solutions",
        _with_count,
        _countable,
        doing="counting the solutions of the equations",
    ),
    Stage("local optimality of the only solution", lambda s: _with_local(s, unique=True), _unique),
    Stage("equal solutions", _with_equal, _answered, lambda s: replace(s, equal=s.solutions[:1])),
    Stage("assessment", _with_assessment, _answered),
    Stage("warnings", _with_warnings, otherwise=_plainly_warned),
)
"""The stages of a fit after its search, in their order."""


def _ends(estimate: Estimate, best: Start) -> list[Array]:
    """Return the vectors of all ends, the best first."""
    others = sorted(estimate.starts, key=lambda s: s.cost)
    vectors = [best.vector, *(s.vector for s in others)]
    return [v for v in vectors if np.isfinite(v).all()]


def _determined(uncertainty: Uncertainty | None) -> bool:
    """Return whether the data determine all unknowns at the answer, which may be a special one."""
    if uncertainty is None or uncertainty.directions:
        return False
    return not any(trouble.lost for trouble in uncertainty.trouble.values())


def _corroborated(estimate: Estimate) -> bool:
    """Return whether several methods have ended at the answer."""
    return sum(r.hits > 0 and r.name != GIVEN_START for r in estimate.routes) > 1


def _unbeatable(found: Answer) -> bool:
    """Return whether the residuals are too small for anything to be better."""
    tolerance = CostTolerance.of(found.forward)
    negligible = tolerance.squares is not None and found.evaluation.cost <= tolerance.absolute
    return found.start.exact or negligible


def _certified(
    found: Answer, estimate: Estimate, control: Control, polish: bool
) -> tuple[Answer, Estimate, tuple[Start, ...], str]:
    """Return an answer and its estimate with a certificate, or a sentence on why there is none.

    Where the proof has come across something better, that is the answer. What else it has come
    across is returned as well.
    """
    problem = found.forward.problem
    proof, unproved = certify_answer(problem, found.start, control)
    if proof is None:
        return found, estimate, (), unproved
    proposed = tuple(proof.starts)
    better = [s for s in proposed if s.cost < found.evaluation.cost]
    starts = [replace(s, index=len(estimate.starts) + i) for i, s in enumerate(better)]
    more = replace(estimate, starts=(*estimate.starts, *starts), certificate=proof.certificate)
    if all(CostTolerance.of(found.forward).same(s, found.start) for s in better):
        return found, replace(more, starts=estimate.starts), proposed, ""
    return answer(problem, more, control, polish) or found, more, proposed, ""


def _ending(
    estimate: Estimate,
    found: Answer,
    local: Local | None,
    misfit: Misfit | None,
    polish: bool,
    control: Control,
) -> tuple[Status, str]:
    """Return how the fit ended, and the same in words."""
    status, message = estimate.status, estimate.message
    done = polish and status is Status.TIME_LIMIT and _unbeatable(found)
    optimal = None if local is None else local.optimal  # None: that is not known
    if done or (status is Status.NOT_CONVERGED and optimal):
        status = Status.CONVERGED
    elif polish and status is Status.CONVERGED and optimal is False:
        early = found.start.status is Status.TIME_LIMIT and control.out_of_time
        status = Status.TIME_LIMIT if early else Status.NOT_CONVERGED
        message = f"{message}; {found.start.message}"
    if misfit is not None and misfit.unfit(_corroborated(estimate)):
        # Several routes have told how large the residuals are.
        said = misfit.short if estimate.routes else misfit.sentence
        message = f"{message}. {_capital(said)}"
        if polish and status is Status.CONVERGED:
            status = Status.NOT_CONVERGED
    return status, message


def _failed(estimate: Estimate) -> list[str]:
    """Return a warning if some starts failed."""
    failed = [s for s in estimate.starts if s.status is Status.FAILED]
    if not failed or len(failed) == len(estimate.starts):
        return []
    return [f"{len(failed)} of {len(estimate.starts)} starts failed, e.g. {failed[0].message}"]


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"


def failure_warning(failure: StageFailure) -> str:
    """Return a warning of a stage that has failed."""
    reason = f" ({failure.reason})" if failure.reason else ""
    return (
        f"A stage of the fit failed because of a mistake in odefit, {failure.stage}: "
        f"{failure.error}{reason}. What it would have told is missing, and the estimates stand. "
        "The traceback is in the log (--log FILE); please report it"
    )
