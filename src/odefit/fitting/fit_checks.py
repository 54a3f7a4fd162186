"""What a fit refuses before it begins."""

from __future__ import annotations

from numbers import Integral

from odefit.common.errors import InputError, counted
from odefit.common.option_checks import check_level, check_time_limit
from odefit.methods.running.memory import in_words, machine_memory
from odefit.problem.problem import Problem

COPIES = 6
"""Arrays as large as the Jacobian of all residuals that a step of the search holds at a time."""


def check_fit(
    problem: Problem,
    seed: int,
    time_limit: float | None,
    jobs: int | None,
    level: float,
    memory: int | None = None,
) -> None:
    """Refuse a fit that cannot be.

    Parameters
    ----------
    problem, seed, time_limit, jobs, level
        As :func:`odefit.fit` takes them.
    memory
        The memory limit in bytes; None for what the machine has.

    Raises
    ------
    InputError
        There is nothing to estimate, an argument makes no sense, or memory cannot suffice.
    """
    if not problem.unknowns:
        raise InputError(
            "there is nothing to estimate: every parameter and initial value is fixed or known"
        )
    if problem.size + len(problem.priors) < len(problem.unknowns):
        raise InputError(
            f"{counted(problem.size, 'measurement')} cannot determine "
            f"{counted(len(problem.unknowns), 'unknown')}; "
            "fix some of them (fixed = ...), give priors, or add data"
        )
    if not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed: expected a whole number, not negative, got {seed!r}")
    check_time_limit(time_limit)
    if jobs is not None and not (isinstance(jobs, Integral) and jobs > 0):
        raise InputError(f"jobs: expected a positive whole number, got {jobs!r}")
    check_level(level)
    check_size(problem, memory)


def forecast(problem: Problem) -> float:
    """Return the bytes that a step of a search needs at least.

    Residuals have derivatives by all unknowns, and each condition's trajectory has the
    sensitivities of all its states at all its times.
    """
    unknowns, states = len(problem.unknowns), len(problem.model.states)
    jacobian = 8.0 * (problem.size + len(problem.priors)) * unknowns
    trajectories = 8.0 * states * unknowns * sum(len(c.times) for c in problem.conditions)
    return COPIES * jacobian + trajectories


def check_size(problem: Problem, memory: int | None) -> None:
    """Refuse a problem whose Jacobian does not fit into memory.

    Raises
    ------
    InputError
        It does not.
    """
    needed = forecast(problem)
    machine = machine_memory()
    if memory is None and machine is None:
        return
    there = min(
        float("inf") if memory is None else memory,
        float("inf") if machine is None else machine.total,
    )
    if needed <= there:
        return
    whose = "the limit that was given" if memory is not None and there == memory else "this machine"
    raise InputError(
        f"{counted(problem.size, 'measurement')} of {counted(len(problem.unknowns), 'unknown')} "
        f"need about {in_words(needed)} of memory for the derivatives of the residuals, and "
        f"{whose} has {in_words(there)}; thin the data, fix unknowns (fixed = ...), or fit "
        "experiments apart"
    )
