"""Local solvers that ship with CasADi, on exact sparse derivatives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import casadi as ca
import numpy as np

from odefit.methods.transcription.program import Program, program
from odefit.methods.transcription.solver import Answer, Instance, Limits, Outcome, answer
from odefit.problem.algebras import Array
from odefit.problem.errors import InputError

OUTCOMES = {
    "Solve_Succeeded": Outcome.SOLVED,
    "Solved_To_Acceptable_Level": Outcome.SOLVED,
    "Feasible_Point_Found": Outcome.SOLVED,
    "Maximum_Iterations_Exceeded": Outcome.LIMIT,
    "Maximum_CpuTime_Exceeded": Outcome.LIMIT,
    "Maximum_WallTime_Exceeded": Outcome.LIMIT,
    "User_Requested_Stop": Outcome.LIMIT,
    "Infeasible_Problem_Detected": Outcome.INFEASIBLE,
}
"""What IPOPT's words mean; all others are failures."""


@dataclass(frozen=True)
class Ipopt:
    """IPOPT, an interior-point method (Wächter and Biegler, 2006).

    Attributes
    ----------
    tolerance
        Of the optimality conditions, IPOPT's ``tol``.
    iterations
        At most.
    options
        Any others, without the prefix ``ipopt.``.

    Raises
    ------
    InputError
        When it is used with an option that IPOPT does not know.
    """

    tolerance: float = 1e-8
    iterations: int = 3000
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "Ipopt"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        """It comes with CasADi."""
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Improve the instance's start (all zero, moved within bounds, without one)."""
        nlp = program(instance.discretisation, instance.formulation)
        return self.improve(nlp, instance, limits)

    def improve(self, nlp: Program, instance: Instance, limits: Limits) -> Answer:
        """As :meth:`solve`, with the program built already."""
        options: dict[str, Any] = {
            "tol": self.tolerance,
            "max_iter": self.iterations,
            "print_level": 0,
            "sb": "yes",
            # Ordering that looks for dense rows, which the unknowns make: 4 times faster at
            # 36,900 points.
            "mumps_pivot_order": 6,
            **self.options,
        }
        if limits.seconds is not None:
            options["max_wall_time"] = max(limits.seconds, 1e-3)
        settings = {
            "grad_f": nlp.gradient,
            "jac_g": nlp.jacobian,
            "hess_lag": nlp.hessian,
            "no_nlp_grad": True,
            "calc_lam_p": False,
            "print_time": False,
            "error_on_fail": False,
        }
        settings |= {f"ipopt.{name}": value for name, value in options.items()}
        w = ca.MX.sym("w", nlp.size)
        problem = {"x": w, "f": nlp.objective(w, ca.MX(0, 1)), "g": nlp.equations(w)}
        try:
            solver = ca.nlpsol("solver", "ipopt", problem, settings)
        except RuntimeError as error:
            raise InputError(f"Ipopt: an option is not accepted: {_last_line(error)}") from error
        return _run(solver, nlp, instance)


def _run(solver: Any, nlp: Program, instance: Instance) -> Answer:
    began = time.perf_counter()
    try:
        found = solver(
            x0=_start(nlp, instance),
            lbx=nlp.lower,
            ubx=nlp.upper,
            lbg=nlp.constraints.lower,
            ubg=nlp.constraints.upper,
        )
    except RuntimeError as error:
        seconds = time.perf_counter() - began
        return answer(
            instance, Outcome.FAILED, None, None, None, seconds, _last_line(error)
        )
    seconds = time.perf_counter() - began
    stats = solver.stats()
    words = str(stats.get("return_status", ""))
    outcome = OUTCOMES.get(words, Outcome.FAILED)
    values, unknowns = nlp.unpack(np.asarray(found["x"]).ravel())
    iterations = int(stats.get("iter_count", -1))
    return answer(
        instance, outcome, values, unknowns, None, seconds, words.replace("_", " "), iterations
    )


def _start(nlp: Program, instance: Instance) -> Array:
    d = instance.discretisation
    values = instance.values
    if values is None:
        values = np.zeros((d.points, len(d.variables)))
    unknowns = instance.unknowns
    if unknowns is None:
        unknowns = np.zeros(len(d.problem.unknowns))
    w = nlp.pack(values, np.clip(unknowns, d.problem.lower, d.problem.upper))
    return np.clip(w, nlp.lower, nlp.upper)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
