"""A global solver: local answers first, then its own bounds, then the integrated trajectories."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from odefit.discretisation.instance import Instance
from odefit.discretisation.scales import data_variation
from odefit.methods.estimate import Certificate, Estimate, Status
from odefit.methods.running.control import Control, Progress, interruptible
from odefit.methods.solvers.agreement import measure_agreement
from odefit.methods.solvers.isolation import solve_isolated
from odefit.methods.solvers.local_search import LocalSearch, as_start
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Report, penalised_objective
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap

LOCAL_SHARE = 0.25  # share of a global solver's time that the local search before it may take


@dataclass(frozen=True)
class GlobalSearch:
    """A discretised problem, solved by a global solver in a process of its own."""

    # discretised problem, with the global solver, and how the local search before it proceeds
    local: LocalSearch
    # they have the meaning of those of :class:`~odefit.methods.multi_start.MultiStart`
    starts: int | None
    screening: int
    first: tuple[float, ...] | None
    # they have the meaning of those of :class:`~odefit.methods.transcription.Transcription`
    seconds: float
    gap: float
    absolute_gap: float

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Return the solver's answer, its bounds, and what the integrated trajectories say of it.

        Raises InputError if the model has something that the solver cannot take.
        """
        began = time.perf_counter()
        local, solver = self.local, self.local.solver
        forward = ForwardMap(problem, local.engine)
        d = local.discretisation(forward)
        instance = Instance(d, local.formulation)
        with interruptible(control):
            seconds = self._seconds(control)
            share = replace(control, deadline=time.time() + LOCAL_SHARE * seconds)
            warm, true = mesh_search(
                local,
                forward,
                d,
                share,
                starts=self.starts,
                screening=self.screening,
                first=self.first,
            )
            start = np.zeros(len(problem.unknowns))
            if warm is not None and warm.unknowns is not None:
                start = warm.unknowns
                instance = replace(instance, values=warm.values, unknowns=warm.unknowns)
            absolute_gap = self.absolute_gap * data_variation(d)
            limits = Limits(self._seconds(control), 1, self.gap, absolute_gap)
            report = self._report(control)
            answer = solve_isolated(
                solver, instance, limits, report, _End(control), memory=control.memory or 0
            )
            if answer.unknowns is None and warm is not None:
                answer = replace(
                    warm,
                    outcome=answer.outcome,
                    lower_bound=answer.lower_bound,
                    message=f"{answer.message}; the answer is that of {Ipopt().name}",
                )
            end = as_start(forward, d, answer, solver.name, local.polish, 0, start, control, began)
        agreement = measure_agreement(forward, d, answer) if answer.values is not None else None
        # After the time limit nothing is polished any more: the local search may know better.
        ends = (end, true) if local.polish and true is not None else (end,)
        return Estimate(
            ends,
            _status(answer, control),
            end.message,
            self._certificate(instance, answer, limits),
            agreement,
        )

    def _seconds(self, control: Control) -> float:
        """Return the time that is left, or that of the method without a deadline."""
        seconds = Limits.until(control).seconds
        return self.seconds if seconds is None else seconds

    def _certificate(
        self, instance: Instance, answer: Answer, limits: Limits
    ) -> Certificate | None:
        """Return the bounds of the formulation's own objective."""
        if answer.lower_bound is None or not math.isfinite(answer.lower_bound):
            return None
        upper = math.inf
        if answer.values is not None and answer.unknowns is not None:
            upper = penalised_objective(instance, answer.values, answer.unknowns)
        lower = min(answer.lower_bound, upper)
        d, formulation = instance.discretisation, instance.formulation.name
        form = "" if formulation == "Baseline" else f", {formulation}"
        return Certificate(
            lower,
            upper,
            f"discretised ({d.described()}{form})",
            closed=math.isfinite(upper) and limits.met(upper, lower),
            solver=self.local.solver.name,
            negligible=limits.absolute_gap,
        )

    def _report(self, control: Control) -> Report | None:
        if control.report is None:
            return None
        tell = control.report

        def report(objective: float, bound: float) -> None:
            said = f"{self.local.solver.name}: no objective is below {bound:.5g}"
            tell(Progress(0, 0, objective, 0, said))

        return report


@dataclass(frozen=True)
class _End:
    """Whether the solver's process is ended: also where it does not stop by itself in time."""

    control: Control

    def is_set(self) -> bool:
        return self.control.interrupted.is_set() or self.control.cut_off.reached


def _status(answer: Answer, control: Control) -> Status:
    if answer.unknowns is None:
        return Status.FAILED
    if answer.outcome is Outcome.SOLVED:
        return Status.CONVERGED
    if control.interrupted.is_set():
        return control.early
    if control.out_of_time:
        return Status.TIME_LIMIT
    return Status.NOT_CONVERGED
