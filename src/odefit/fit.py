"""The verb ``fit``: run a method, polish its answer, and assess what the answer is worth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from numbers import Integral
from pathlib import Path

import numpy as np

from odefit.assessment.completeness import assess_completeness
from odefit.assessment.continuity import assess_continuity
from odefit.assessment.discretised import assess_agreement, assess_certificate
from odefit.assessment.local import assess_local
from odefit.assessment.parts import Assessment, Uncertainty
from odefit.assessment.uncertainty import assess_uncertainty
from odefit.methods.control import Control, Method, Progress
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Estimate, Start, Status
from odefit.methods.polish import polished
from odefit.methods.registry import make_method
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError
from odefit.problem.problem import Problem
from odefit.result import Result, Solution
from odefit.result_data import values_at
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engine_choice import UNDECIDED, EngineChoice

MAX_SOLUTIONS = 20
"""Largest number of distinct solutions that a result lists, the best first."""

SOLUTION_DISTANCE = 1e-2
"""Relative difference of an unknown up to which the ends of two starts are one solution."""

COUNTED_SOLUTION_DISTANCE = 1e-5
"""The same difference where a method counts solutions and so tells them apart."""

CONFIDENCE_LEVEL = 0.95
"""Default level of the confidence intervals."""

VERSIONS = ("odefit", "numpy", "heyoka", "casadi", "numba")
"""Packages on which the numbers of a result depend, and whose versions it holds."""


def fit(
    problem: Problem,
    method: Method | None = None,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: str | Path | None = None,
    level: float = CONFIDENCE_LEVEL,
    polish: bool | None = None,
) -> Result:
    """Estimate the unknowns of `problem`, and say what the answer is worth.

    Parameters
    ----------
    problem
        The model, the data, and what is known of the unknowns.
    method
        The method; None for :class:`MultiStart` of :class:`SingleShooting`, with as many starts as
        the evidence asks for.
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

    Raises
    ------
    InputError
        There is nothing to estimate, there are fewer measurements than unknowns, or an
        argument makes no sense.

    Examples
    --------
    >>> import odefit
    >>> result = odefit.fit(odefit.library.load("lotka-volterra-f"), seed=1)
    >>> result.status.value
    'converged'
    """
    began = time.perf_counter()
    _check(problem, seed, time_limit, jobs, level)
    seed = int(seed)
    method = method or make_method()
    if polish is None:
        # A method says so where its own answer is the one that is wanted.
        polish = not getattr(method, "answer_is_final", False)
    control = Control(
        seed,
        None if time_limit is None else time.time() + time_limit,
        executor,
        jobs,
        progress,
        None if checkpoint is None else Path(checkpoint),
    )
    estimate = method.solve(problem, control)
    forward = ForwardMap(problem)
    best = polished(forward, estimate, control) if polish else estimate.best
    solutions: Sequence[Solution] = ()
    equal: Sequence[Solution] = ()
    assessment = Assessment()
    uncertainty = None
    status, message = estimate.status, estimate.message
    if best is not None:
        evaluation, gap = _evaluated(forward, best, estimate)
        if isinstance(evaluation, Evaluation):
            if best.nodes is not None:
                forward = ForwardMap(problem, nodes=best.nodes)
            local = assess_local(forward, best.vector, evaluation, estimate.certificate)
            conditions = 0 if best.nodes is None else best.nodes.equations
            uncertainty = assess_uncertainty(forward, best.vector, evaluation, level, conditions)
            solutions = _solutions(forward, best, estimate, uncertainty)
            equal = _equal(forward, solutions, evaluation.choice)
            assessment = Assessment(
                local=local,
                complete=assess_completeness(
                    estimate.completeness,
                    len(equal) if _bounded(problem) else None,
                ),
                bounds=assess_certificate(estimate.certificate),
                discretisation=assess_agreement(estimate.agreement, problem.keys, best.vector),
                continuity=assess_continuity(best.nodes, gap),
            )
            if status is Status.NOT_CONVERGED and local.optimal:
                status = Status.CONVERGED
            elif polish and status is Status.CONVERGED and not local.optimal:
                status = Status.NOT_CONVERGED
                message = f"{message}; {best.message}"
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
            *forward.warnings,
            *_ambiguity(problem, equal),
            *_failed(estimate),
        ),
        seconds=time.perf_counter() - began,
        seed=seed,
        versions=_versions(),
    )


def _check(
    problem: Problem, seed: int, time_limit: float | None, jobs: int | None, level: float
) -> None:
    if not problem.unknowns:
        raise InputError(
            "there is nothing to estimate: every parameter and initial value is fixed or known"
        )
    priors = sum(u.parameter.prior is not None for u in problem.unknowns)
    if problem.size + priors < len(problem.unknowns):
        raise InputError(
            f"{problem.size} measurements cannot determine {len(problem.unknowns)} unknowns; "
            "fix some of them (fixed = ...), give priors, or add data"
        )
    if not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed: expected a whole number, not negative, got {seed!r}")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit: expected a positive number of seconds, got {time_limit!r}")
    if jobs is not None and not (isinstance(jobs, Integral) and jobs > 0):
        raise InputError(f"jobs: expected a positive whole number, got {jobs!r}")
    if not 0 < level < 1:
        raise InputError(f"level: expected a number between 0 and 1, got {level!r}")


def _solutions(
    forward: ForwardMap, best: Start, estimate: Estimate, uncertainty: Uncertainty
) -> tuple[Solution, ...]:
    """Return the distinct ends of starts, the best first.

    Where the data leave directions undetermined, all ends of equal cost are one solution, since
    it is chance which of them a start hits; not so for a method that counts the solutions.
    """
    tolerance = CostTolerance.of(forward)
    ridge = bool(uncertainty.directions) or "no effect" in uncertainty.trouble.values()
    ridge = ridge and estimate.completeness is None
    closeness = SOLUTION_DISTANCE if estimate.completeness is None else COUNTED_SOLUTION_DISTANCE
    ends = sorted(
        (s for s in estimate.starts if s.status is Status.CONVERGED and math.isfinite(s.cost)),
        key=lambda s: (s.cost, s.index),
    )
    distinct: list[Start] = [best]
    hits = [0]
    for end in ends:
        for k, other in enumerate(distinct):
            level = tolerance.same(end, other)
            if level and (ridge or _close(end.vector, other.vector, closeness)):
                hits[k] += 1
                break
        else:
            distinct.append(end)
            hits.append(1)
    found = []
    choice = UNDECIDED
    for start, count in list(zip(distinct, hits, strict=True))[:MAX_SOLUTIONS]:
        evaluation, _ = _evaluated(forward, start, estimate, choice)
        choice = evaluation.choice
        if isinstance(evaluation, Evaluation):
            parameters, initial = values_at(forward.problem, start.vector)
            found.append(
                Solution(
                    start.vector,
                    parameters,
                    initial,
                    evaluation.objective,
                    evaluation.log_likelihood,
                    max(count, 1),
                    start.nodes,
                )
            )
    return tuple(found)


def _evaluated(
    forward: ForwardMap, start: Start, estimate: Estimate, choice: EngineChoice = UNDECIDED
) -> tuple[Evaluation | Failure, float]:
    """Evaluate the end of a start; return the largest discontinuity there if it is on nodes."""
    if start.nodes is None:
        return forward.evaluate(start.vector, choice), 0.0
    assert estimate.evaluate_nodes is not None, "a method that ends on nodes evaluates them"
    found = estimate.evaluate_nodes(forward.problem, start.vector, start.nodes)
    return (found, math.nan) if isinstance(found, Failure) else found


def _close(a: Array, b: Array, closeness: float) -> bool:
    scale = np.maximum(np.abs(a), np.abs(b))
    return bool(np.all(np.abs(a - b) <= closeness * scale + 1e-12))


def _bounded(problem: Problem) -> bool:
    return bool(np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any())


def _equal(
    forward: ForwardMap, solutions: Sequence[Solution], choice: EngineChoice
) -> list[Solution]:
    """Return the solutions that fit as well as the best."""
    tolerance = CostTolerance.of(forward)
    best = min((_cost(forward, s) for s in solutions), default=math.inf)
    zero = max(tolerance.zero(forward.accuracy(choice)), tolerance.absolute, 0.0)
    return [
        s
        for s in solutions
        if _cost(forward, s) - best <= max(tolerance.relative * abs(best), zero)
    ]


def _ambiguity(problem: Problem, equal: Sequence[Solution]) -> list[str]:
    """Return a warning if several solutions fit equally well."""
    if len(equal) < 2:
        return []
    vectors = np.array([s.vector for s in equal])
    spread = np.ptp(vectors, axis=0) > SOLUTION_DISTANCE * np.abs(vectors).max(axis=0)
    names = ", ".join(k for k, differs in zip(problem.keys, spread, strict=True) if differs)
    if not names:
        return []
    return [
        (
            f"{len(equal)} different solutions fit equally well; they differ in {names}. "
            "The estimates shown are those of one of them; all are in the list of solutions"
        )
    ]


def _cost(forward: ForwardMap, solution: Solution) -> float:
    if forward.likelihood and solution.log_likelihood is not None:
        return -solution.log_likelihood
    return 0.5 * solution.objective


def _failed(estimate: Estimate) -> list[str]:
    """Return a warning if some starts failed."""
    failed = [s for s in estimate.starts if s.status is Status.FAILED]
    if not failed or len(failed) == len(estimate.starts):
        return []
    return [f"{len(failed)} of {len(estimate.starts)} starts failed, e.g. {failed[0].message}"]


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
