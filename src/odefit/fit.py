"""The verb ``fit``: run a method, polish its answer, and assess what the answer is worth."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from odefit.assessment.bad_fits import intervals_of_bad_fit, misfit_warnings, weighed_down
from odefit.assessment.bound_agreement import agreeing_with_bounds
from odefit.assessment.certification import certify_answer
from odefit.assessment.completeness import assess_completeness
from odefit.assessment.continuity import assess_continuity
from odefit.assessment.discretised import assess_agreement, assess_certificate
from odefit.assessment.goodness import assess_goodness
from odefit.assessment.linear_checks import checked, with_curvature
from odefit.assessment.local import assess_local
from odefit.assessment.misfit import Misfit, assess_misfit
from odefit.assessment.parts import (
    INTERVAL_CHOICES,
    Assessment,
    Goodness,
    Local,
    Treatment,
    Uncertainty,
)
from odefit.assessment.uncertainty import assess_uncertainty
from odefit.fit_checks import check_fit
from odefit.fit_early import search, unless_ended
from odefit.fit_log import log_begin, log_end, log_stage
from odefit.methods.best_so_far import with_cause
from odefit.methods.control import (
    Control,
    Method,
    Progress,
    control_of,
    interruptible,
)
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.fit_measure import FitMeasure
from odefit.methods.memory import MemoryWatch, memory_limit
from odefit.methods.outliers import Outlier, robust_outliers, suspected_outliers
from odefit.methods.polish import Answer, answer
from odefit.methods.registry import as_method
from odefit.methods.watch import watched
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError
from odefit.problem.packages import installed_version
from odefit.problem.problem import Problem
from odefit.result import Result, Solution
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.cut_off import NEVER, cutting_off
from odefit.solutions import (
    ambiguity,
    bounded,
    distinct_solutions,
    equal_solutions,
    indistinguishable_solutions,
    solution,
)
from odefit.warm_start import GIVEN_START, StartValues, warm_start

STRUCTURE_SECONDS, STRUCTURE_SHARE, MAX_STRUCTURE_SECONDS = 0.3, 0.2, 2.0
"""The solutions with the same outputs as the answer are counted within so many seconds, this share
of those that the fit took, and so many at most; where there are others, they are searched for
within the latter."""

CONFIDENCE_LEVEL = 0.95
"""Default level of the confidence intervals."""

UNASSESSED = "The fit was ended before its answer was assessed: what is missing was not computed"
"""What is said of an answer whose assessment was ended early."""

VERSIONS = ("odefit", "numpy", "heyoka", "casadi", "numba")
"""Packages on which the numbers of a result depend, and whose versions it holds."""

T = TypeVar("T")


def fit(
    problem: Problem,
    method: Method | type | str | None = None,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    level: float = CONFIDENCE_LEVEL,
    polish: bool | None = None,
    certify: bool = False,
    intervals: Treatment = "as-is",
    start: StartValues | None = None,
    memory: int | str | None = None,
    stop: threading.Event | None = None,
) -> Result:
    """Estimate the unknowns of `problem`, and say what the answer is worth.

    Parameters
    ----------
    problem
        The model, the data, and what is known of the unknowns.
    method
        The method, or its name such as ``"multi-start"``; None for :class:`Automatic`, which
        combines several. What each of these has found is in ``result.routes``.
    seed
        The seed of every random choice; the same seed gives the same result.
    time_limit
        The number of seconds after which the best answer so far is returned, labelled as such.
    executor
        Any :class:`concurrent.futures.Executor` for independent work; without one, local
        processes if they pay.
    jobs
        The largest number of local processes; None for one a core.
    progress
        A function that is called with a :class:`Progress` now and then.
    checkpoint
        A file in which finished work is kept; a fit that finds its own goes on from there.
    level
        The level of the confidence intervals.
    polish
        Whether the best answer is improved once more on the integrated trajectories. If not,
        the answer is the method's own, and so is the status. None leaves it to the method:
        ``IntegralMatching(polish=False)`` is not polished, all others are.
    certify
        Whether branch and bound (:class:`BranchAndBound`) proves, in the time that is left or in
        at most a minute, how much better any other values within the bounds could be. It needs
        finite bounds of all unknowns, and few of these.
    intervals
        What becomes of standard errors and intervals where the residuals are no noise
        (``result.goodness.bad``): they stay ``"as-is"`` below a sentence that says so, are
        ``"scaled"`` by the root of the reduced chi-square, or ``"withheld"``.
    start
        What to go on from: a result, the path of its JSON file, or values in natural units by key.
        The search begins there instead of at the problem's guesses, and the answer is never worse:
        ``result.routes`` tells what the start was worth as it was given. What it does not say of
        the unknowns of this problem, or says in vain, stands in ``result.warnings``.
    memory
        How much memory the fit may use with its processes, as a number of bytes or a text such as
        ``"4GB"``; it ends with the best so far when it uses more. None: it ends before the machine
        or container has none left.
    stop
        An event that another thread sets to end the fit with the best so far.

    Raises
    ------
    InputError
        There is nothing to estimate, there are fewer measurements than unknowns, an argument
        makes no sense, or the derivatives of the residuals cannot fit into memory.

    Examples
    --------
    >>> import odefit
    >>> result = odefit.fit(odefit.library.load("lotka-volterra-f"), seed=1)
    >>> result.status.value
    'converged'
    """
    began = time.perf_counter()
    memory = memory_limit(memory)
    check_fit(problem, seed, time_limit, jobs, level, memory)
    if intervals not in INTERVAL_CHOICES:
        wanted_choices = ", ".join(f'"{choice}"' for choice in INTERVAL_CHOICES)
        raise InputError(f"intervals: expected one of {wanted_choices}, got {intervals!r}")
    seed = int(seed)
    method = as_method(method)
    if polish is None:
        # A method says so where its own answer is the one that is wanted.
        polish = not getattr(method, "answer_is_final", False)
    control = control_of(seed, time_limit, executor, jobs, progress, checkpoint, stop, memory)
    warm = None if start is None else warm_start(problem, start, method)
    remarks = () if warm is None else warm.remarks
    log_begin(problem, method, control, remarks)
    with interruptible(control), watched(control, MemoryWatch(memory)):
        searched = problem if warm is None else warm.searched(problem)
        estimate = search(problem, searched, method, control, polish)
        if warm is not None:
            estimate = warm.beside(problem, method, estimate)
        structure = getattr(method, "examines_structure", False)
        wanted = _Wanted(level, polish, structure, certify, intervals, remarks)
        with cutting_off(NEVER):
            return log_end(_result(problem, method, estimate, control, began, wanted))


def _tell(problem: Problem, control: Control, estimate: Estimate, doing: str) -> None:
    """Report what is done after the search."""
    log_stage(doing)
    if control.report is None or estimate.best is None:
        return
    failed = sum(s.status is Status.FAILED for s in estimate.starts)
    count = len(estimate.starts)
    measure = FitMeasure.of(problem)
    lowest = measure.of_start(estimate.best)
    control.report(Progress(count, failed, lowest, 0, doing, measure=measure.name))


@dataclass(frozen=True)
class _Wanted:
    """What is wanted of a fit beside its estimate, see :func:`fit`."""

    level: float
    polish: bool
    structure: bool
    certify: bool
    intervals: Treatment
    remarks: tuple[str, ...] = ()


def _result(
    problem: Problem,
    method: Method,
    estimate: Estimate,
    control: Control,
    began: float,
    wanted: _Wanted,
) -> Result:
    """Return what an estimate is worth. An interruption ends the stage that it meets."""
    level, polish = wanted.level, wanted.polish
    if polish:
        _tell(problem, control, estimate, "improving the best answer")
    found = unless_ended(
        control,
        lambda: answer(problem, estimate, control, polish),
        lambda: answer(problem, estimate, control, False),
    )
    unproved = ""
    proposed: Sequence[Start] = ()
    if found is not None and wanted.certify and estimate.certificate is None:
        _tell(problem, control, estimate, "proving bounds of the objective")
        first = found, estimate
        found, estimate, proposed, unproved = unless_ended(
            control, lambda: _certified(*first, control, polish), lambda: (*first, (), "")
        )
    if found is not None and estimate.certificate is not None:
        second = found, estimate, proposed or estimate.starts
        found, estimate, unproved = unless_ended(
            control,
            lambda: agreeing_with_bounds(*second, control, polish),
            lambda: (*second[:2], ""),
        )
    forward = ForwardMap(problem) if found is None else found.forward
    solutions: Sequence[Solution] = ()
    equal: Sequence[Solution] = ()
    assessment = Assessment()
    uncertainty = None
    misfit: Misfit | None = None
    outliers: tuple[Outlier, ...] = ()
    goodness: Goodness | None = None
    status, message = estimate.status, estimate.message
    if found is not None:
        best, evaluation = found.start, found.evaluation
        local = assess_local(forward, best.vector, evaluation, estimate.certificate)
        conditions = 0 if best.nodes is None else best.nodes.equations
        uncertainty = unless_ended(
            control,
            lambda: _uncertainty(found, estimate, level, conditions, control),
            lambda: None,
        )
        solutions = unless_ended(
            control,
            lambda: distinct_solutions(found, estimate, uncertainty),
            lambda: (solution(problem, best, evaluation, 1),),
        )
        goodness = unless_ended(
            control,
            lambda: _goodness(found, forward, evaluation),
            lambda: None,
        )
        if uncertainty is not None:
            uncertainty = intervals_of_bad_fit(
                problem, best.vector, uncertainty, goodness, wanted.intervals
            )
        proof = estimate.certificate
        proved = proof is not None and proof.closed
        constrained = best.nodes is not None and bool(best.nodes.constraints)
        misfit = unless_ended(
            control,
            lambda: assess_misfit(forward, best.vector, evaluation, proved, constrained),
            lambda: None,
        )
        if misfit is not None:
            suspects = unless_ended(
                control,
                lambda: suspected_outliers(forward, _ends(estimate, best), control),
                _no_outliers,
            )
            misfit = misfit.with_outliers(suspects) if suspects else misfit
            outliers = suspects
        outliers = outliers or unless_ended(
            control, lambda: robust_outliers(forward, best.vector), _no_outliers
        )
        status, message = _ending(estimate, found, local, misfit, polish, control)
        complete = estimate.completeness
        if (
            wanted.structure
            and complete is None
            and status is Status.CONVERGED
            and _determined(uncertainty)
        ):
            _tell(problem, control, estimate, "counting the solutions of the equations")
            seconds = _structure_seconds(control, time.perf_counter() - began)
            complete, solutions = unless_ended(
                control,
                lambda: indistinguishable_solutions(found, solutions, seconds, control),
                lambda: (None, solutions),
            )
        if complete is not None and complete.known and complete.possible == 1:
            local = assess_local(
                forward, best.vector, evaluation, estimate.certificate, unique=True
            )
        equal = unless_ended(
            control,
            lambda: equal_solutions(forward, solutions, evaluation.choice),
            lambda: solutions[:1],
        )
        assessment = Assessment(
            local=local,
            complete=assess_completeness(complete, len(equal) if bounded(problem) else None),
            bounds=assess_certificate(estimate.certificate),
            discretisation=assess_agreement(estimate.agreement, problem.keys, best.vector),
            continuity=assess_continuity(best.nodes, found.gap),
        )
    if control.interrupted.is_set():
        status = control.early
    if status.cut_short:
        message = with_cause(message, control)
    unassessed = found is not None and (uncertainty is None or misfit is None)
    return Result(
        problem=problem,
        method=method.name,
        status=status,
        message=message,
        solutions=solutions,
        starts=estimate.starts,
        assessment=assessment,
        uncertainty=uncertainty,
        warnings=(
            *problem.warnings,
            *wanted.remarks,
            *forward.warnings,
            *map(_capital, control.remarks),
            *([found.warning] if found is not None and found.warning else []),
            *misfit_warnings(misfit, goodness, _corroborated(estimate)),
            *([weighed_down(outliers)] if outliers and not (misfit and misfit.outliers) else []),
            *([unproved] if unproved else []),
            *([UNASSESSED] if unassessed and control.cut_off.reached else []),
            *ambiguity(problem, equal),
            *_failed(estimate),
        ),
        seconds=time.perf_counter() - began,
        seed=control.seed,
        versions={name: installed_version(name) or "unknown" for name in VERSIONS},
        routes=estimate.routes,
        outliers=outliers,
        goodness=goodness,
    )


def _no_outliers() -> tuple[Outlier, ...]:
    """Return that there are none, as far as is known."""
    return ()


def _ends(estimate: Estimate, best: Start) -> list[Array]:
    """Return the vectors of all ends, the best first."""
    others = sorted(estimate.starts, key=lambda s: s.cost)
    vectors = [best.vector, *(s.vector for s in others)]
    return [v for v in vectors if np.isfinite(v).all()]


def _uncertainty(
    found: Answer, estimate: Estimate, level: float, conditions: int, control: Control
) -> Uncertainty:
    """Return what linearisation says of the errors, with its intervals checked."""
    at = found.forward, found.start.vector, found.evaluation
    uncertainty = assess_uncertainty(*at, level, conditions)
    uncertainty = checked(*at, uncertainty, conditions)
    spent = sum(start.evaluations for start in estimate.starts)
    return with_curvature(*at, uncertainty, spent, control.should_stop)


def _determined(uncertainty: Uncertainty | None) -> bool:
    """Return whether the data determine all unknowns at the answer, which may be a special one."""
    if uncertainty is None or uncertainty.directions:
        return False
    return not {"no effect", "not determined"} & set(uncertainty.trouble.values())


def _corroborated(estimate: Estimate) -> bool:
    """Return whether several methods have ended at the answer."""
    return sum(r.hits > 0 and r.name != GIVEN_START for r in estimate.routes) > 1


def _goodness(found: Answer, forward: ForwardMap, evaluation: Evaluation) -> Goodness | None:
    """Return whether the residuals look like noise; None where they are rounding."""
    if _unbeatable(found):
        return None
    return assess_goodness(forward, found.start.vector, evaluation)


def _unbeatable(found: Answer) -> bool:
    """Return whether the residuals are too small for anything to be better."""
    tolerance = CostTolerance.of(found.forward)
    negligible = tolerance.squares is not None and found.evaluation.cost <= tolerance.absolute
    return found.start.exact or negligible


def _structure_seconds(control: Control, spent: float) -> tuple[float, float]:
    """Return how long solutions with the same outputs may be counted, and searched for."""
    count = min(STRUCTURE_SECONDS + STRUCTURE_SHARE * spent, MAX_STRUCTURE_SECONDS)
    left = math.inf if control.deadline is None else max(control.deadline - time.time(), 0.0)
    return min(count, left), min(MAX_STRUCTURE_SECONDS, left)


def _certified(
    found: Answer, estimate: Estimate, control: Control, polish: bool
) -> tuple[Answer, Estimate, Sequence[Start], str]:
    """Return an answer and its estimate with a certificate, or a sentence on why there is none.

    Where the proof has come across something better, that is the answer. What else it has come
    across is returned as well.
    """
    problem = found.forward.problem
    proof, unproved = certify_answer(problem, found.start, control)
    if proof is None:
        return found, estimate, (), unproved
    better = [s for s in proof.starts if s.cost < found.evaluation.cost]
    starts = [replace(s, index=len(estimate.starts) + i) for i, s in enumerate(better)]
    more = replace(estimate, starts=(*estimate.starts, *starts), certificate=proof.certificate)
    if all(CostTolerance.of(found.forward).same(s, found.start) for s in better):
        return found, replace(more, starts=estimate.starts), proof.starts, ""
    return answer(problem, more, control, polish) or found, more, proof.starts, ""


def _ending(
    estimate: Estimate,
    found: Answer,
    local: Local,
    misfit: Misfit | None,
    polish: bool,
    control: Control,
) -> tuple[Status, str]:
    """Return how the fit ended, and the same in words."""
    status, message = estimate.status, estimate.message
    done = polish and status is Status.TIME_LIMIT and _unbeatable(found)
    if done or (status is Status.NOT_CONVERGED and local.optimal):
        status = Status.CONVERGED
    elif polish and status is Status.CONVERGED and not local.optimal:
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
