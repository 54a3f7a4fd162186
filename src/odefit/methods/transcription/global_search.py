"""A global solver: local answers first, then its own bounds, then the true trajectories."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.instance import Instance
from odefit.discretisation.scales import spread
from odefit.methods.control import Control, Progress, interruptible
from odefit.methods.estimate import Certificate, Estimate, Status
from odefit.methods.solvers.agreement import measure_agreement
from odefit.methods.solvers.isolation import isolated
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Report, cost
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap

if TYPE_CHECKING:
    from odefit.methods.transcription.transcription import Transcription

LOCAL_SHARE = 0.25
"""Of a global solver's time that the local search before it may take."""


def solve_global(method: Transcription, problem: Problem, control: Control) -> Estimate:
    """The solver's answer, its bounds, and what the true trajectories say of it.

    Raises
    ------
    InputError
        The model has something that the solver cannot take.
    """
    began = time.perf_counter()
    forward = ForwardMap(problem, method.engine)
    d = method.discretisation(forward)
    instance = Instance(d, method.formulation)
    with interruptible(control):
        seconds = method.limits(control).seconds
        seconds = method.seconds if seconds is None else seconds
        share = replace(control, deadline=time.time() + LOCAL_SHARE * seconds)
        warm, true = mesh_search(method, forward, d, share)
        start = np.zeros(len(problem.unknowns))
        if warm is not None and warm.unknowns is not None:
            start = warm.unknowns
            instance = replace(instance, values=warm.values, unknowns=warm.unknowns)
        limits = _limits(method, d, control)
        answer = isolated(
            method.solver_object,
            instance,
            limits,
            _report(method, control),
            control.interrupted,
        )
        if answer.unknowns is None and warm is not None:
            answer = replace(
                warm,
                outcome=answer.outcome,
                lower_bound=answer.lower_bound,
                message=f"{answer.message}; the answer is that of {Ipopt().name}",
            )
        end = method.end(forward, d, 0, start, answer, control, began)
    agreement = measure_agreement(forward, d, answer) if answer.values is not None else None
    # After the time limit nothing is polished any more: the local search may know better.
    ends = (end, true) if method.polish and true is not None else (end,)
    return Estimate(
        ends,
        _status(answer, control),
        end.message,
        _certificate(method, instance, answer, limits),
        agreement,
    )


def _certificate(
    method: Transcription, instance: Instance, answer: Answer, limits: Limits
) -> Certificate | None:
    """The bounds, of the formulation's own objective."""
    if answer.lower_bound is None or not math.isfinite(answer.lower_bound):
        return None
    upper = math.inf
    if answer.values is not None and answer.unknowns is not None:
        upper = cost(instance, answer.values, answer.unknowns)
    lower = min(answer.lower_bound, upper)
    d = instance.discretisation
    strict = method.formulation.name == "Baseline"
    form = "" if strict else f", {method.formulation.name}"
    return Certificate(
        lower,
        upper,
        f"discretised ({d.described()}{form})",
        closed=math.isfinite(upper) and limits.met(upper, lower),
        solver=method.solver_object.name,
        negligible=limits.absolute_gap,
    )


def _limits(method: Transcription, d: Discretisation, control: Control) -> Limits:
    seconds = method.limits(control).seconds
    return Limits(
        method.seconds if seconds is None else seconds,
        1,
        method.gap,
        method.absolute_gap * spread(d),
    )


def _report(method: Transcription, control: Control) -> Report | None:
    if control.report is None:
        return None
    tell = control.report

    def report(objective: float, bound: float) -> None:
        said = f"{method.solver_object.name}: no objective is below {bound:.5g}"
        tell(Progress(0, 0, objective, 0, said))

    return report


def _status(answer: Answer, control: Control) -> Status:
    if answer.unknowns is None:
        return Status.FAILED
    if answer.outcome is Outcome.SOLVED:
        return Status.CONVERGED
    if control.interrupted.is_set():
        return Status.INTERRUPTED
    if control.out_of_time:
        return Status.TIME_LIMIT
    return Status.NOT_CONVERGED
