"""The verb ``fit``: run a method, polish its answer, and assess what the answer is worth."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from odefit.assessment.parts import INTERVAL_CHOICES, Treatment
from odefit.common.errors import InputError
from odefit.fitting.fit_checks import check_fit
from odefit.fitting.fit_early import search
from odefit.fitting.fit_log import log_begin, log_end
from odefit.fitting.fit_result import result_of
from odefit.fitting.fit_stages import Wanted
from odefit.fitting.warm_start import StartValues, warm_start
from odefit.methods.registry import as_method
from odefit.methods.running.control import Method, Progress, control_of, interruptible
from odefit.methods.running.memory import MemoryWatch, memory_limit
from odefit.methods.running.watch import watched
from odefit.problem.problem import Problem
from odefit.result.result import Result
from odefit.simulation.engines.cut_off import NEVER, cutting_off

CONFIDENCE_LEVEL = 0.95
"""Default level of the confidence intervals."""


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
        wanted = Wanted(level, polish, structure, certify, intervals, remarks)
        with cutting_off(NEVER):
            return log_end(result_of(problem, method, estimate, control, began, wanted))
