"""Local solvers that ship with CasADi, with exact sparse derivatives.

Their ``solve`` runs in the calling process. Methods call
:func:`~odefit.methods.solvers.guarded_solve.solve_locally` instead, which survives a crash.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import casadi as ca
import numpy as np

from odefit.common.errors import InputError
from odefit.discretisation.instance import Instance
from odefit.methods.solvers.nonlinear_program import NonlinearProgram, nonlinear_program
from odefit.methods.solvers.solver import Answer, Limits, Outcome, Progress, make_answer
from odefit.simulation.engines.casadi_engine import OUTPUT_LOCK

OUTCOMES = {
    "Solve_Succeeded": Outcome.SOLVED,
    "Solved_To_Acceptable_Level": Outcome.SOLVED,
    "Feasible_Point_Found": Outcome.SOLVED,
    "Maximum_Iterations_Exceeded": Outcome.LIMIT,
    "Maximum_CpuTime_Exceeded": Outcome.LIMIT,
    "Maximum_WallTime_Exceeded": Outcome.LIMIT,
    "User_Requested_Stop": Outcome.LIMIT,
    "Infeasible_Problem_Detected": Outcome.INFEASIBLE,
    # BONMIN
    "SUCCESS": Outcome.SOLVED,
    "LIMIT_EXCEEDED": Outcome.LIMIT,
    "USER_INTERRUPT": Outcome.LIMIT,
    "INFEASIBLE": Outcome.INFEASIBLE,
    # Uno
    "Converged with feasible KKT point": Outcome.SOLVED,
    "Converged with infeasible stationary point": Outcome.INFEASIBLE,
}
"""Outcomes by the status that a solver returns; all others are failures, except limits that CasADi
recognises."""

REPORT_SECONDS = 0.2
"""Seconds between two reported iterates."""


@dataclass(frozen=True)
class Ipopt:
    """IPOPT, an interior-point method (Wächter and Biegler, 2006).

    Attributes
    ----------
    tolerance
        Tolerance of the optimality conditions, IPOPT's ``tol``.
    iterations
        Largest number of iterations.
    scaled
        Whether variables, constraints and objective are first brought to similar sizes, known
        from the data and the bounds.
    options
        Any other options, without the prefix ``ipopt.``.

    Raises
    ------
    InputError
        An option is used that IPOPT does not know.
    """

    tolerance: float = 1e-8
    iterations: int = 3000
    scaled: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "Ipopt"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        """Return None: the solver comes with CasADi."""
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Return the local optimum found from the start, or from zero without one."""
        return self.follow(instance, limits, None)

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        """Solve, calling `progress` from time to time with the last iterate."""
        nlp = nonlinear_program(instance.discretisation, instance.formulation, self.scaled)
        options: dict[str, Any] = {
            "tol": self.tolerance,
            "max_iter": self.iterations,
            "print_level": 0,
            "sb": "yes",
            # An ordering that detects dense rows, caused by the unknowns: 4 times faster at 36,900
            # points.
            "mumps_pivot_order": 6,
            # The scaling that MUMPS chooses may leave pivots so small that they are delayed until
            # the matrix is dense. A factorisation then takes minutes, without any check of the time
            # limit: 48 s instead of 1.7 s on a Lotka-Volterra system with 1,501 measurements. Usual
            # problems are as fast with either.
            "mumps_scaling": 8,
            **self.options,
        }
        if limits.seconds is not None:
            options["max_wall_time"] = max(limits.seconds, 1e-3)
        settings = _derivatives(nlp) | _prefixed("ipopt", options)
        if limits.stop is not None or progress is not None:
            # It needs a name: CasADi does not keep the object alive.
            callback = _IterationCallback(nlp, limits.stop, progress)
            settings["iteration_callback"] = callback
        return _run("ipopt", self.name, settings, nlp, instance)


WARM_START_IPOPT = Ipopt(
    iterations=300, options={"mu_init": 1e-7, "bound_push": 1e-9, "bound_frac": 1e-9}
)
"""IPOPT for a warm start close to the solution: its default barrier would push the iterates away,
on FitzHugh-Nagumo to another local optimum."""


@dataclass(frozen=True)
class Bonmin:
    """BONMIN (Bonami et al., 2008), which runs IPOPT on problems without integers.

    Its IPOPT has its own settings, which makes it a different local solver.

    Attributes
    ----------
    options
        Options of BONMIN and its IPOPT, without the prefix ``bonmin.``.

    Raises
    ------
    InputError
        An option is used that BONMIN does not know.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "Bonmin"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        """Return None: the solver comes with CasADi."""
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Return the local optimum found from the start, or from zero without one."""
        return self.follow(instance, limits, None)

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        """Solve; BONMIN does not report progress, and cannot be asked to stop."""
        nlp = nonlinear_program(instance.discretisation, instance.formulation)
        options: dict[str, Any] = {"print_level": 0, "sb": "yes", **self.options}
        if limits.seconds is not None:
            # the first for BONMIN, the second for its IPOPT
            options["time_limit"] = options["max_wall_time"] = max(limits.seconds, 1e-3)
        settings = _derivatives(nlp) | _prefixed("bonmin", options)
        answer = _run("bonmin", self.name, settings, nlp, instance)
        late = limits.seconds is not None and answer.seconds >= limits.seconds
        if answer.outcome is Outcome.FAILED and late:  # BONMIN calls that an error
            return replace(answer, outcome=Outcome.LIMIT)
        return answer


@dataclass(frozen=True)
class Uno:
    """Uno (Vanaret and Leyffer, 2024), here an SQP method with a filter.

    It uses CasADi's own derivatives; with thousands of points it is slow.

    Attributes
    ----------
    options
        Options of Uno, which ignores those that it does not know.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "Uno"
    scope: Literal["local"] = "local"

    def missing(self) -> str | None:
        """Return None: the solver comes with CasADi."""
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Return the local optimum found from the start, or from zero without one."""
        return self.follow(instance, limits, None)

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        """Solve; Uno does not report progress, and cannot be asked to stop."""
        nlp = nonlinear_program(instance.discretisation, instance.formulation)
        options: dict[str, Any] = {"logger": "SILENT", **self.options}
        if limits.seconds is not None:
            options["time_limit"] = max(limits.seconds, 1e-3)
        return _run("uno", self.name, _prefixed("uno", options), nlp, instance)


class _IterationCallback(ca.Callback):
    """A callback between iterations that may stop IPOPT; Python then also sees Ctrl-C."""

    def __init__(
        self, nlp: NonlinearProgram, stop: Callable[[], bool] | None, progress: Progress | None
    ) -> None:
        ca.Callback.__init__(self)
        w, g = nlp.size, len(nlp.lower_g)
        self._sizes = {"x": w, "f": 1, "g": g, "lam_x": w, "lam_g": g, "lam_p": 0}
        self._nlp, self._stop, self._progress = nlp, stop, progress
        self._reported = time.monotonic()
        self.construct("stop", {})

    def get_n_in(self) -> int:
        return int(ca.nlpsol_n_out())

    def get_n_out(self) -> int:
        return 1

    def get_sparsity_in(self, i: int) -> Any:
        return ca.Sparsity.dense(self._sizes[ca.nlpsol_out(i)])

    def eval(self, arguments: Any) -> list[int]:
        now = time.monotonic()
        if self._progress is not None and now - self._reported >= REPORT_SECONDS:
            self._reported = now
            self._progress(*self._nlp.unpack(np.asarray(arguments[0]).ravel()), None)
        return [int(self._stop is not None and self._stop())]


def _derivatives(nlp: NonlinearProgram) -> dict[str, Any]:
    """Return the options that make CasADi use the derivatives of the nonlinear program."""
    return {
        "grad_f": nlp.gradient,
        "jac_g": nlp.jacobian,
        "hess_lag": nlp.hessian,
        "no_nlp_grad": True,
        "calc_lam_p": False,
    }


def _prefixed(plugin: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{plugin}.{name}": value for name, value in options.items()}


def _run(
    plugin: str, name: str, settings: Mapping[str, Any], nlp: NonlinearProgram, instance: Instance
) -> Answer:
    w = ca.MX.sym("w", nlp.size)
    problem = {"x": w, "f": nlp.objective(w, ca.MX(0, 1)), "g": nlp.equations(w)}
    quiet = {"print_time": False, "error_on_fail": False, "show_eval_warnings": False}
    refused = f"{name}: an option is not accepted: "
    try:
        solver = ca.nlpsol("solver", plugin, problem, {**quiet, **settings})
    except RuntimeError as error:
        raise InputError(refused + _last_line(error)) from error
    start = np.clip(nlp.assembly.start(instance) / nlp.scale, nlp.lower, nlp.upper)
    began = time.perf_counter()
    try:
        with _silence(plugin):
            result = solver(
                x0=start,
                lbx=nlp.lower,
                ubx=nlp.upper,
                lbg=nlp.lower_g,
                ubg=nlp.upper_g,
            )
    except RuntimeError as error:
        words = _last_line(error)
        if f"No such {plugin.upper()} option" in words:  # BONMIN checks them only now
            raise InputError(refused + words) from error
        seconds = time.perf_counter() - began
        return make_answer(instance, Outcome.FAILED, None, None, None, seconds, words)
    seconds = time.perf_counter() - began
    stats = solver.stats()
    words = str(stats.get("return_status", ""))
    limited = stats.get("unified_return_status") == "SOLVER_RET_LIMITED"
    outcome = OUTCOMES.get(words, Outcome.LIMIT if limited else Outcome.FAILED)
    values, unknowns = nlp.unpack(np.asarray(result["x"]).ravel())
    iterations = int(stats.get("iter_count", -1))
    return make_answer(
        instance, outcome, values, unknowns, None, seconds, words.replace("_", " "), iterations
    )


@contextlib.contextmanager
def _silence(plugin: str) -> Iterator[None]:
    """Hide output that solvers other than IPOPT write through Python, which no option turns off."""
    if plugin == "ipopt":
        yield
        return
    with OUTPUT_LOCK, contextlib.redirect_stdout(io.StringIO()):
        yield


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
