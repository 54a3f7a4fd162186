"""The verb ``fit``: check the request, run a method, and go through the stages after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Literal

from odefit.assessment.parts import INTERVAL_CHOICES, Treatment
from odefit.certificates.statement import statement_of
from odefit.common.errors import InputError, counted
from odefit.common.option_checks import check_level, check_time_limit
from odefit.fitting.fit_result import result_of
from odefit.fitting.fit_stages import Wishes
from odefit.fitting.smoothness import chosen_smoothness
from odefit.fitting.warm_start import StartValues, warm_start
from odefit.methods.best_so_far import completed
from odefit.methods.estimate import Cause, Estimate
from odefit.methods.method import Method
from odefit.methods.registry import as_method
from odefit.methods.running.control import (
    Control,
    Interruption,
    Progress,
    control_of,
    interruptible,
    watched,
)
from odefit.methods.running.memory import MemoryWatch, in_words, machine_memory, memory_limit
from odefit.methods.running.run_log import LOGGER
from odefit.problem.condition import AT_T0
from odefit.problem.habits import FIT_HABITS, not_a_problem, with_habits
from odefit.problem.problem import Problem
from odefit.result.result import Result
from odefit.simulation.best_seen import BestSeen, noting
from odefit.simulation.engines.cut_off import NEVER, cutting_off

CONFIDENCE_LEVEL = 0.95
"""Default level of the confidence intervals."""

COPIES = 6
"""Number of arrays as large as the Jacobian of all residuals that a search step holds."""

RESERVED_SHARE, RESERVED = 0.1, 5.0
"""Share of the time limit, and most seconds, reserved for the stages after the search."""


@with_habits(FIT_HABITS)
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
    certify: bool | Literal["region"] = False,
    certificate: str | Path | None = None,
    intervals: Treatment = "as-is",
    start: StartValues | None = None,
    memory: int | str | None = None,
    stop: threading.Event | None = None,
) -> Result:
    """Estimate the unknowns of `problem`, and assess the answer.

    Parameters
    ----------
    problem
        The model, the data, and the knowledge of the unknowns.
    method
        The method, or its name such as ``"multi-start"``; None for :class:`Automatic`, which
        combines several. ``result.routes`` has the outcome of each of these.
    seed
        The seed of every random choice; the same seed gives the same result.
    time_limit
        Seconds after which the best answer so far is returned and labelled so.
    executor
        Any :class:`concurrent.futures.Executor` for independent work; by default local processes
        where they save time.
    jobs
        The largest number of local processes; by default one for each core.
    progress
        A function that is called from time to time with a :class:`Progress`.
    checkpoint
        A file that stores finished work; a fit that finds its own checkpoint continues from there.
    level
        The level of the confidence intervals.
    polish
        Whether the best answer is improved once more on integrated trajectories. If not, answer and
        status are those of the method. None leaves the choice to the method:
        ``IntegralMatching(polish=False)`` is not polished, the others are.
    certify
        Whether branch and bound (:class:`BranchAndBound`) proves, in the remaining time or at most
        a minute, how much better other values within the bounds could be. It needs few unknowns,
        all with finite bounds. ``"region"`` also proves a box around the whole confidence region of
        this `level`, in two minutes at most: ``result.assessment.region``.
    certificate
        A file to which that proof is written, for ``odefit verify``; it implies `certify`.
    intervals
        The treatment of standard errors and intervals where the residuals do not look like noise
        (``result.goodness.bad``). They stay ``"as-is"`` with a warning, are ``"scaled"`` by the
        root of the reduced chi-square, or ``"withheld"``. A ``"sandwich"`` allows for noise that is
        correlated in time, however the residuals look; estimates stay as they are.
    start
        A result to continue from, the path of its JSON file, or values in natural units by key. The
        search begins there instead of at the problem's guesses, and the answer is never worse:
        ``result.routes`` has the objective of the given start. ``result.warnings`` names unknowns
        without a value in it, and values that are not used.
    memory
        The memory limit of the fit and its processes, in bytes or as a text such as ``"4GB"``;
        beyond it, the fit ends with the best so far. By default the fit ends before the memory of
        the machine or container is exhausted.
    stop
        An event that another thread sets to end the fit with the best so far.

    Returns
    -------
    The answer with its assessment. A search without an acceptable answer raises nothing:
    ``status`` and ``message`` say how it ended.

    Raises
    ------
    InputError
        There is nothing to estimate, there are fewer measurements than unknowns, an argument is
        invalid, or the derivatives of the residuals cannot fit into memory.

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
        choices = ", ".join(f'"{choice}"' for choice in INTERVAL_CHOICES)
        raise InputError(f"intervals: expected one of {choices}, got {intervals!r}")
    if certify not in (True, False, "region"):
        raise InputError(f'certify: expected True, False or "region", got {certify!r}')
    seed = int(seed)
    method = as_method(method)
    if certificate is not None:
        statement_of(problem)  # refuses problems for which no certificate exists, before the search
        method = method.with_certificate(certificate)
    if polish is None:
        polish = not method.answer_is_final
    control = control_of(seed, time_limit, executor, jobs, progress, checkpoint, stop, memory)
    warm = None if start is None else warm_start(problem, start, method)
    remarks = () if warm is None else warm.remarks
    limit = "no time limit" if time_limit is None else f"time limit {time_limit:.3g} s"
    LOGGER.info("fit of %r by %s, seed %d, %s", problem, method.name, seed, limit)
    for remark in remarks:
        LOGGER.warning("%s", remark)
    with interruptible(control), watched(control, MemoryWatch(memory)):
        chosen = chosen_smoothness(problem, None if warm is None else warm.vector, control)
        problem = chosen.problem
        searched = chosen.searched(problem if warm is None else warm.searched(problem))
        estimate = search(problem, searched, method, control, polish)
        if warm is not None:
            estimate = warm.beside(problem, method, estimate)
        structure = method.examines_structure
        wishes = Wishes(
            level=level,
            polish=polish,
            structure=structure,
            certify=bool(certify) or certificate is not None,
            certificate=certificate,
            region=certify == "region",
            bounds=getattr(method, "bounds", None),
            intervals=intervals,
            given_start=warm is not None,
            remarks=remarks,
            smoothness=chosen.notices,
        )
        with cutting_off(NEVER):
            result = result_of(problem, method, estimate, control, began, wishes)
    _log_end(result)
    return result


# The checks -------------------------------------------------------------------------------------


def check_fit(
    problem: Problem,
    seed: int,
    time_limit: float | None,
    jobs: int | None,
    level: float,
    memory: int | None = None,
) -> None:
    """Refuse invalid arguments of :func:`fit` by an :class:`InputError`."""
    if not isinstance(problem, Problem):
        raise not_a_problem("fit", problem)
    if not problem.unknowns:
        raise InputError(
            "there is nothing to estimate: every parameter and initial value is fixed or known; a "
            "number alone is a fixed value, and { guess = 0.5 } or bounds let it vary"
        )
    if problem.size + len(problem.priors) < len(problem.unknowns):
        raise InputError(
            f"{counted(problem.size, 'measurement')} cannot determine "
            f"{counted(len(problem.unknowns), 'unknown')}; "
            "fix some of them (fixed = ...), give priors, or add data"
        )
    if not problem.priors and not any(c.evolves for c in problem.conditions):
        raise InputError(AT_T0)
    if not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed: expected a whole number, not negative, got {seed!r}")
    check_time_limit(time_limit)
    if jobs is not None and not (isinstance(jobs, Integral) and jobs > 0):
        raise InputError(f"jobs: expected a positive whole number, got {jobs!r}")
    check_level(level)
    check_size(problem, memory)


def forecast(problem: Problem) -> float:
    """Return the fewest bytes that a step of a search needs.

    These hold the residuals' derivatives by all unknowns, and the sensitivities of all states at
    all times of each condition.
    """
    unknowns, states = len(problem.unknowns), len(problem.model.states)
    jacobian = 8.0 * (problem.size + len(problem.priors)) * unknowns
    trajectories = 8.0 * states * unknowns * sum(len(c.times) for c in problem.conditions)
    return COPIES * jacobian + trajectories


def check_size(problem: Problem, memory: int | None) -> None:
    """Refuse a problem whose Jacobian does not fit into memory, by an :class:`InputError`."""
    needed, machine = forecast(problem), machine_memory()
    limits = [] if memory is None else [(float(memory), "the limit that was given")]
    limits += [] if machine is None else [(float(machine.total), "this machine")]
    available, whose = min(limits, key=lambda limit: limit[0], default=(float("inf"), ""))
    if needed > available:
        raise InputError(
            f"{counted(problem.size, 'measurement')} and "
            f"{counted(len(problem.unknowns), 'unknown')} need about {in_words(needed)} of memory "
            f"for the derivatives of the residuals, and {whose} has {in_words(available)}; thin "
            "the data, fix unknowns (fixed = ...), or fit experiments separately"
        )


# The search -------------------------------------------------------------------------------------


def search(
    problem: Problem, searched: Problem, method: Method, control: Control, polish: bool
) -> Estimate:
    """Return the estimate of a method; if it ends early, its starts include the best point.

    `searched` is the problem with the guess from which the search continues. With `polish`, time is
    reserved for improving the answer afterwards.
    """
    seen, limited = BestSeen(problem), control
    if control.deadline is not None and polish:
        reserved = min(RESERVED_SHARE * control.seconds_left, RESERVED)
        limited = replace(control, deadline=control.deadline - reserved)
    try:
        with noting(seen):
            estimate = method.solve(searched, limited)
    except MemoryError as error:
        assert isinstance(control.interrupted, Interruption)
        control.interrupted.end(Cause.OUT_OF_MEMORY, str(error))
        estimate = Estimate((), control.early, "the search could not continue")
    if not limited.should_stop():
        return estimate
    with cutting_off(NEVER):
        return completed(problem, estimate, seen, limited, not polish)


def _log_end(result: Result) -> None:
    """Log the end of a fit."""
    for route in result.routes:
        LOGGER.info(
            "%s: starts %d, failed %d, at the best %d, objective %.6g, %.3g s: %s",
            route.name,
            route.starts,
            route.failed,
            route.hits,
            route.objective,
            route.seconds,
            route.message,
        )
    for warning in result.warnings:
        LOGGER.warning("%s", warning)
    LOGGER.info(
        "the fit ended after %.3g s: %s, objective %.10g: %s",
        result.seconds,
        result.status.value,
        result.objective,
        result.message,
    )
