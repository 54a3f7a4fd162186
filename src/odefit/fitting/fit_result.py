"""The result of a fit: the answer of its search, assessed stage by stage."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import numpy as np

from odefit.assessment.bound_agreement import agreeing_with_bounds
from odefit.assessment.certification import certify_answer, certify_region
from odefit.assessment.completeness import assess_completeness
from odefit.assessment.confidence_region import refutation
from odefit.assessment.continuity import assess_continuity
from odefit.assessment.discretised import assess_agreement, assess_certificate
from odefit.assessment.folds import linear_uncertainty, with_folds
from odefit.assessment.intervals.sandwich import treated
from odefit.assessment.local import assess_local
from odefit.assessment.parts import Assessment
from odefit.assessment.profiles.linear_checks import with_curvature
from odefit.common.packages import numeric_versions
from odefit.fitting.fit_notices import (
    ending,
    fit_notices,
    misfit_notices,
    plain_notices,
    unintegrated,
)
from odefit.fitting.fit_stages import (
    STAGES,
    FitState,
    Wishes,
    answered,
    assessed,
    carried_out,
    countable,
    report,
    stage,
    stage_on_jacobian,
)
from odefit.fitting.mirrors import with_mirrors
from odefit.fitting.other_optima import (
    near_solutions,
    several_fit,
    with_fitting,
    with_other_ends,
    with_other_optima,
    without_intervals,
)
from odefit.fitting.proofs import uncertified, with_proof, with_region, without_region
from odefit.fitting.settling import with_settling
from odefit.fitting.solutions import (
    distinct_solutions,
    equal_solutions,
    indistinguishable_solutions,
    number_within,
    solution,
)
from odefit.methods.best_so_far import with_cause
from odefit.methods.estimate import Estimate, Status
from odefit.methods.fit_quality.goodness import assess_goodness
from odefit.methods.fit_quality.misfit import assess_misfit
from odefit.methods.fit_quality.robust_fits import robust_outliers, suspected_outliers
from odefit.methods.method import Method
from odefit.methods.polish import Answer, answer, answer_by
from odefit.methods.running.control import Control
from odefit.problem.problem import Problem
from odefit.reporting.notices import notice_sentence
from odefit.result.result import Result
from odefit.result_data import ResultData, Solution, values_at
from odefit.result_data.notices import Notice, NoticeKind
from odefit.simulation.second_opinion import better_map, second_opinion


def _plain_answer(state: FitState) -> FitState:
    return replace(state, outcome=answer(state.problem, state.estimate, state.control, False))


@stage(
    "answer",
    "outcome",
    needs=lambda s: s.wishes.polish,
    otherwise=_plain_answer,
    doing="improving the best answer",
)
def _answer(state: FitState) -> FitState:
    return replace(state, outcome=answer(state.problem, state.estimate, state.control, True))


stage("answer", "outcome", needs=lambda s: not s.wishes.polish, otherwise=_plain_answer)(
    _plain_answer
)


@stage(
    "answer as it was found",
    *("solutions", "status"),
    needs=lambda s: unintegrated(s.estimate, s.outcome),
)
def _as_found(state: FitState) -> FitState:
    """Add the best end of the search as it is, without any assessment."""
    best, status = state.estimate.best, state.status
    assert best is not None
    values = values_at(state.problem, best.vector)
    end = Solution(best.vector, *values, best.objective, None, 1, best.nodes)
    if status is Status.CONVERGED:
        status = Status.NOT_CONVERGED
    return replace(state, solutions=(end,), status=status)


@stage(
    "confidence region",
    *("outcome", "estimate", "proposed", "unproved", "region", "no_region", "profiles"),
    needs=without_region,
    doing="proving a confidence region",
)
def _region(state: FitState) -> FitState:
    """Add a proved confidence region with its profiles, or the reason why it is missing."""
    wishes, start = state.wishes, state.answer.start
    file = wishes.certificate if uncertified(state) else None
    ends = start, state.estimate.starts, wishes.level, state.control
    proof, reason = certify_region(state.problem, *ends, file, wishes.bounds)
    return replace(state, no_region=reason) if proof is None else with_region(state, proof)


@stage(
    "certificate",
    *("outcome", "estimate", "proposed", "unproved"),
    needs=uncertified,
    doing="proving bounds of the objective",
)
def _certificate(state: FitState) -> FitState:
    """Add bounds of the objective, or the reason why they are missing."""
    wishes = state.wishes
    proof, unproved = certify_answer(
        state.problem, state.answer.start, state.control, wishes.certificate, wishes.bounds
    )
    return replace(state, unproved=unproved) if proof is None else with_proof(state, proof)


@stage(
    "second opinion",
    *("outcome", "opinion"),
    needs=lambda s: s.outcome is not None and s.outcome.start.nodes is None,
)
def _second_opinion(state: FitState) -> FitState:
    """Add the opinion of an engine of another family, which integrates if others agree with it."""
    answer = state.answer
    opinion = second_opinion(answer.forward, answer.start.vector, used=answer.trajectories)
    better = better_map(answer.forward, opinion)
    if better is not None:
        again = answer_by(better, answer.start, state.estimate, state.control, state.wishes.polish)
        answer = again if isinstance(again, Answer) else answer
    return replace(state, outcome=answer, opinion=opinion)


@stage(
    "agreement with the bounds",
    *("outcome", "estimate", "unproved"),
    needs=lambda s: answered(s) and s.estimate.certificate is not None,
)
def _agreeing_bounds(state: FitState) -> FitState:
    """Integrate an answer again if it contradicts the bounds proved for it."""
    starts = state.proposed or state.estimate.starts
    answer, estimate, unproved = agreeing_with_bounds(
        state.answer, state.estimate, starts, state.control, state.wishes.polish
    )
    unproved = unproved or state.unproved
    return replace(state, outcome=answer, estimate=estimate, unproved=unproved)


@stage_on_jacobian("other optima", *("outcome", "polished"), needs=with_other_ends)
def _other_optima(state: FitState) -> FitState:
    return with_other_optima(state)


@stage_on_jacobian("local optimality", "local", needs=answered)
def _local(state: FitState) -> FitState:
    return replace(state, local=assess_local(*state.at_answer, state.estimate.certificate))


@stage_on_jacobian("uncertainty", "uncertainty", needs=answered)
def _uncertainty(state: FitState) -> FitState:
    """Add standard errors by linearisation, with checked intervals."""
    nodes = state.answer.start.nodes
    conditions = 0 if nodes is None else nodes.equations
    how = state.wishes.level, conditions, state.optimal
    return replace(state, uncertainty=linear_uncertainty(*state.at_answer, *how))


@stage_on_jacobian("curvature", "uncertainty", needs=assessed)
def _curvature(state: FitState) -> FitState:
    """Add measures of nonlinearity, which are worth the seconds from the limit to the cut-off."""
    assert state.uncertainty is not None
    spent = sum(start.evaluations for start in state.estimate.starts)
    stop = state.control.interrupted.is_set
    uncertainty = with_curvature(*state.at_answer, state.uncertainty, spent, stop)
    return replace(state, uncertainty=uncertainty)


@stage_on_jacobian("folds", "uncertainty", needs=lambda s: assessed(s) and s.optimal)
def _folds(state: FitState) -> FitState:
    """Add intervals by profile where solutions merge, which happens only at optima."""
    assert state.uncertainty is not None
    known, doing = (*state.at_answer, state.uncertainty, state.control), "profiling at a fold"
    return replace(state, uncertainty=with_folds(*known, lambda: report(state, doing)))


def _best_solution(state: FitState) -> FitState:
    answer = state.answer
    return replace(state, solutions=(solution(state.problem, answer.start, answer.evaluation, 1),))


@stage_on_jacobian("distinct solutions", "solutions", needs=answered, otherwise=_best_solution)
def _solutions(state: FitState) -> FitState:
    solutions = distinct_solutions(state.answer, state.estimate, state.uncertainty, state.polished)
    return replace(state, solutions=solutions)


@stage_on_jacobian("goodness of fit", "goodness", needs=lambda s: answered(s) and not s.unbeatable)
def _goodness(state: FitState) -> FitState:
    return replace(state, goodness=assess_goodness(*state.at_answer))


@stage("wanted intervals", "uncertainty", needs=assessed)
def _wanted_intervals(state: FitState) -> FitState:
    assert state.uncertainty is not None
    known = *state.at_answer, state.uncertainty, state.goodness, state.wishes.intervals
    return replace(state, uncertainty=treated(*known))


@stage_on_jacobian("misfit", "misfit", needs=answered)
def _misfit(state: FitState) -> FitState:
    proof, nodes = state.estimate.certificate, state.answer.start.nodes
    proved = proof is not None and proof.closed
    constrained = nodes is not None and bool(nodes.constraints)
    known = proved, constrained, state.corroborated
    return replace(state, misfit=assess_misfit(*state.at_answer, *known))


@stage_on_jacobian(
    "suspected outliers", *("misfit", "outliers"), needs=lambda s: s.misfit is not None
)
def _suspects(state: FitState) -> FitState:
    """Add the values that do not look like noise."""
    assert state.misfit is not None
    others = sorted(state.estimate.starts, key=lambda s: s.cost)
    ends = [v for s in (state.answer.start, *others) if np.isfinite(v := s.vector).all()]
    suspects = suspected_outliers(state.answer.forward, ends, state.control)
    misfit = state.misfit.with_outliers(suspects) if suspects else state.misfit
    return replace(state, misfit=misfit, outliers=suspects)


@stage_on_jacobian("outliers", "outliers", needs=lambda s: answered(s) and not s.outliers)
def _outliers(state: FitState) -> FitState:
    return replace(state, outliers=robust_outliers(*state.at_answer[:2]))


@stage("status", *("status", "message", "reasons"), needs=answered)
def _ending(state: FitState) -> FitState:
    estimate, answer, polish = state.estimate, state.answer, state.wishes.polish
    done = polish and state.unbeatable
    optimal = None if state.local is None else state.local.optimal  # None: not known
    early = answer.start.status is Status.TIME_LIMIT and state.control.out_of_time
    at = estimate, answer.start.message, state.misfit
    status, message, reasons = ending(
        *at,
        polish=polish,
        done=done,
        optimal=optimal,
        early=early,
        corroborated=state.corroborated,
    )
    if state.solutions_cut and status is Status.CONVERGED:
        status = state.control.early  # a limit has kept evidence from the answer
    return replace(state, status=status, message=message, reasons=reasons)


@stage("known count of solutions", "complete", needs=answered)
def _known_count(state: FitState) -> FitState:
    return replace(state, complete=state.complete or state.estimate.completeness)


@stage(
    "count of solutions",
    *("complete", "solutions", "polished", "copies"),
    needs=countable,
    doing="counting the solutions of the equations",
)
def _count(state: FitState) -> FitState:
    complete, solutions = indistinguishable_solutions(state.answer, state.solutions, state.control)
    return with_mirrors(replace(state, complete=complete, solutions=solutions), state.solutions)


def _unique(state: FitState) -> bool:
    complete = state.complete
    return answered(state) and complete is not None and complete.known and complete.possible == 1


@stage_on_jacobian("local optimality of the only solution", "local", needs=_unique)
def _only_local(state: FitState) -> FitState:
    certificate = state.estimate.certificate
    return replace(state, local=assess_local(*state.at_answer, certificate, unique=True))


@stage_on_jacobian(
    "equal solutions",
    *("equal", "near"),
    needs=answered,
    otherwise=lambda s: replace(s, equal=s.solutions[:1]),
)
def _equal(state: FitState) -> FitState:
    answer = state.answer
    equal = equal_solutions(answer.forward, state.solutions, answer.evaluation.choice)
    return replace(state, equal=tuple(equal), near=near_solutions(state, equal))


FITTING = "solutions", "equal", "near", "uncertainty", "unsure"
stage("solutions that fit", *FITTING, needs=several_fit, otherwise=without_intervals)(with_fitting)


@stage("assessment", "assessment", needs=answered)
def _assessment(state: FitState) -> FitState:
    answer, estimate, problem = state.answer, state.estimate, state.problem
    inside = number_within(problem, state.equal, state.complete)
    assessment = Assessment(
        local=state.local,
        complete=assess_completeness(state.complete, inside),
        bounds=assess_certificate(estimate.certificate),
        discretisation=assess_agreement(estimate.agreement, problem.keys, answer.start.vector),
        continuity=assess_continuity(answer.start.nodes, answer.gap),
        region=state.region if estimate.certificate is not None else None,
        refutation=refutation(problem, estimate.certificate, state.wishes.level),
    )
    return replace(state, assessment=assessment)


@stage(
    "warnings",
    "notices",
    otherwise=lambda s: replace(s, notices=plain_notices(s.problem, s.wishes)),
)
def _notices(state: FitState) -> FitState:
    notices = fit_notices(
        state.problem,
        state.control,
        state.estimate,
        state.wishes,
        answer=state.outcome,
        uncertainty=state.uncertainty,
        opinion=state.opinion,
        misfit=misfit_notices(state.misfit, state.goodness, state.corroborated),
        found_misfit=state.misfit,
        outliers=() if state.misfit and state.misfit.outliers else state.outliers,
        unproved=(state.unproved, state.no_region),
        equal=state.equal,
        near=state.near,
        complete=state.complete,
        solutions_cut=state.solutions_cut,
        unsure=state.unsure,
    )
    return replace(state, notices=notices)


stage_on_jacobian("measurement that settles", "notices", needs=several_fit)(with_settling)


def result_of(
    problem: Problem,
    method: Method,
    estimate: Estimate,
    control: Control,
    began: float,
    wishes: Wishes,
) -> Result:
    """Return the assessment of an estimate.

    The fit began at `began`, in seconds of :func:`time.perf_counter`. An early end ends the current
    stage.
    """
    state = carried_out(
        STAGES,
        FitState(
            problem=problem,
            control=control,
            estimate=estimate,
            wishes=wishes,
            status=estimate.status,
            message=estimate.message,
        ),
    )
    status, message, reasons = state.status, state.message, state.reasons
    if control.interrupted.is_set():
        status = control.early
    if status.cut_short:
        message = with_cause(message, state.estimate.told, control)
    if status.cut_short and control.cause is not None:
        reasons = (*reasons, Notice(NoticeKind.ENDED_EARLY, names=(control.cause.value,)))
    failures = (
        Notice(NoticeKind.STAGE_FAILED, names=(f.stage, f.error), text=f.reason)
        for f in state.failed_stages
    )
    notices = (*state.notices, *failures)
    common = {f.name for f in fields(FitState)} & {f.name for f in fields(ResultData)}
    values = {name: getattr(state, name) for name in common} | dict(state.results)
    values |= {
        "method": method.name,
        "status": status,
        "message": message,
        "reasons": reasons,
        "starts": state.estimate.starts,
        "routes": state.estimate.routes,
        "notices": notices,
        "warnings": tuple(map(notice_sentence, notices)),
        "seconds": time.perf_counter() - began,
        "seed": control.seed,
        "versions": dict(numeric_versions()),
    }
    return Result(**values)
