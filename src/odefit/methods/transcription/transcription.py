"""Direct transcription: discretise all equations, and give a nonlinear program to a solver.

M. Fernandez de Dios et al., Parameter estimation in ODEs: assessing the potential of local and
global solvers. A global solver first gets local answers; it adds its own bounds, and then its
answer is checked on the integrated trajectories.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from odefit.common.errors import InputError
from odefit.common.option_checks import number, whole
from odefit.discretisation.formulations import Baseline, Formulation
from odefit.discretisation.instance import Instance, StateGuess, data_variation
from odefit.discretisation.mesh import Mesh, as_mesh
from odefit.discretisation.refinement import AdaptiveMesh
from odefit.discretisation.schemes import Scheme, as_scheme
from odefit.methods.estimate import Certificate, Estimate, Status
from odefit.methods.method import Method
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control, Progress, interruptible
from odefit.methods.solvers.guarded_solve import solve_isolated, start_early
from odefit.methods.solvers.local_search import LocalSearch, as_start, measure_agreement
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.registry import solver
from odefit.methods.solvers.solver import (
    Answer,
    Limits,
    Outcome,
    Report,
    Solver,
    penalised_objective,
)
from odefit.methods.starts import check_start, chosen
from odefit.problem.problem import Problem
from odefit.problem.variants.features import refuse_integrated_features
from odefit.simulation import ForwardMap
from odefit.simulation.engines.registry import EngineName

LOCAL_SHARE = 0.25  # share of a global solver's time for the local search before it


@dataclass(frozen=True)
class Transcription(Method):
    """Discretise the problem, and solve it by a local or a global solver.

    Attributes
    ----------
    scheme
        One of :data:`SCHEMES` by name, or an object such as ``Collocation(5, "legendre")``.
    mesh
        An :class:`AdaptiveMesh`, :class:`UniformMesh`, :class:`DataMesh` or :class:`GivenMesh`; a
        whole number M stands for ``UniformMesh(M)``. A global solver uses the initial adaptive
        mesh, without refinement.
    formulation
        :class:`Baseline`, :class:`ExtraTol` or :class:`SoftCons`.
    solver
        By name (``"ipopt"``, ``"scip"``, ...) or an object such as ``Ipopt(tolerance=1e-10)``.
    states
        Initial guess of the states: interpolated ``"data"``, a ``"simulation"`` with the start
        values of the unknowns (data if it fails), or ``"zero"``. With ``"data"``, a first start
        given by the user begins with its simulation.
    start
        Start values of unknowns by name, such as those of another method's result. Names other than
        unknowns are ignored; unknowns without a value have the problem's guess.
    polish
        Whether each answer is improved on the integrated trajectories. Without it, the answers and
        costs are those of the discretised problem.
    shooting
        Whether each start is also improved on the integrated trajectories directly from its own
        point, and the better of the two ends kept: they fail at different problems.
    starts
        Number of starts of a local solver; None lets the evidence decide, see :class:`MultiStart`.
    screening
        Number of points of which each start takes the best, judged by their integrated
        trajectories; with 1, nothing is integrated before the solver begins.
    seconds
        Time limit of a global solver, if the fit has none.
    gap, absolute_gap
        The gap at which a global solver may stop: relative difference of its bounds, or absolute
        difference over the sum of squares of the data about their means.
    engine
        Integrator of the integrated trajectories: ``"auto"`` recognises stiffness.

    Raises
    ------
    InputError
        An option has an unusable value, or, from :meth:`solve`, the solver is not installed.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("harmonic")
    >>> odefit.fit(problem, odefit.Transcription(scheme="trapezoid", mesh=230)).status.value
    'converged'
    """

    start_option: ClassVar[str] = "start"
    scheme: Scheme | str = "radau"
    mesh: Mesh | AdaptiveMesh | int = field(default_factory=AdaptiveMesh)
    formulation: Formulation = field(default_factory=Baseline)
    solver: Solver | str = field(default_factory=lambda: Ipopt(iterations=300))
    states: StateGuess = "data"
    start: Mapping[str, float] | None = None
    polish: bool = True
    shooting: bool = True
    starts: int | None = None
    screening: int = 64
    seconds: float = 600.0
    gap: float = 1e-3
    absolute_gap: float = 1e-6
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        settings: dict[str, Any] = {}
        settings["scheme"] = as_scheme(self.scheme, "Transcription")
        if not isinstance(self.mesh, AdaptiveMesh):
            settings["mesh"] = as_mesh(self.mesh, "Transcription")
        if isinstance(self.solver, str):
            settings["solver"] = solver(self.solver)
        if self.states not in ("data", "simulation", "zero"):
            raise InputError(
                f'states: expected "data", "simulation" or "zero", got {self.states!r}'
            )
        if self.starts is not None:
            whole(self.starts, "Transcription, starts")
        whole(self.screening, "Transcription, screening")
        number(self.seconds, "Transcription, seconds", least=math.ulp(0.0))
        number(self.gap, "Transcription, gap", least=0.0)
        number(self.absolute_gap, "Transcription, absolute_gap", least=0.0)
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        for name, verb in (
            ("formulation", "constraints"),
            ("solver", "solve"),
        ):
            if not hasattr(getattr(self, name), verb):
                raise InputError(
                    f"Transcription, {name}: expected an object such as those of "
                    f"odefit.methods.transcription, got {getattr(self, name)!r}"
                )
        check_start(self.start, "Transcription")

    @property
    def name(self) -> str:
        """The name shown in results."""
        return f"Transcription({self._local.name})"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Return the estimate, which depends on the seed, never on the number of workers."""
        refuse_integrated_features(problem, "direct transcription")
        local = self._local
        absent = local.solver.missing()
        if absent is not None:
            raise InputError(absent)
        if local.solver.scope == "global":
            return self._solve_globally(problem, control)
        if control.executor is None:
            start_early(local.solver)
        search = self.search(problem)
        estimate = search.solve(problem, control)
        best = estimate.best
        if best is None or control.interrupted.is_set():
            return estimate
        with interruptible(control):
            agreement = local.agreement_near(search.forward(problem), best.vector, control)
        return replace(estimate, agreement=agreement)

    def _solve_globally(self, problem: Problem, control: Control) -> Estimate:
        """Return a global solver's answer, with its bounds and its agreement with trajectories.

        Local answers come first. The solver runs in a separate process.
        """
        began = time.perf_counter()
        local, solver = self._local, self._local.solver
        forward = ForwardMap(problem, local.engine)
        d = local.discretisation(forward)
        instance = Instance(d, local.formulation)
        with interruptible(control):
            seconds = self._seconds_left(control)
            share = control.ending_in(LOCAL_SHARE * seconds)
            warm, true = mesh_search(
                local,
                forward,
                d,
                share,
                starts=self.starts,
                screening=self.screening,
                first=self._first(problem),
            )
            start = np.zeros(len(problem.unknowns))
            if warm is not None and warm.unknowns is not None:
                start = warm.unknowns
                instance = replace(instance, values=warm.values, unknowns=warm.unknowns)
            absolute_gap = self.absolute_gap * data_variation(d)
            limits = Limits(self._seconds_left(control), 1, self.gap, absolute_gap)
            report = _bound_report(solver, control)
            answer = solve_isolated(
                solver,
                instance,
                limits,
                report,
                # Also if it does not stop by itself in time.
                stop=lambda: control.interrupted.is_set() or control.cut_off.reached,
                memory=control.memory or 0,
            )
            if answer.unknowns is None and warm is not None:
                answer = replace(
                    warm,
                    outcome=answer.outcome,
                    lower_bound=answer.lower_bound,
                    message=f"{answer.message}; the answer is that of {Ipopt().name}",
                )
            end = as_start(forward, d, answer, solver.name, self.polish, 0, start, control, began)
        agreement = measure_agreement(forward, d, answer) if answer.values is not None else None
        # After the time limit nothing is polished: the local search may have a better answer.
        ends = (end, true) if self.polish and true is not None else (end,)
        certificate = self._certificate(instance, answer, limits)
        status = _status(answer, control)
        return Estimate(ends, status, end.message, certificate, agreement=agreement)

    def _seconds_left(self, control: Control) -> float:
        """Return the remaining time, or the method's time limit without a deadline."""
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
            solver=self._local.solver.name,
            negligible=limits.absolute_gap,
            discretised=True,
        )

    def search(self, problem: Problem) -> MultiStart:
        """Return the search from many starts by which a local solver is used."""
        refuse_integrated_features(problem, "direct transcription")
        return MultiStart(
            self._local,
            starts=self.starts,
            screening=self.screening,
            first=self._first(problem),
        )

    def _first(self, problem: Problem) -> tuple[float, ...] | None:
        """Return the given start values, n values."""
        return None if self.start is None else tuple(chosen(problem, self.start).tolist())

    @property
    def _local(self) -> LocalSearch:
        """The local search of one start."""
        assert not isinstance(self.scheme, str)
        assert not isinstance(self.mesh, int)
        assert not isinstance(self.solver, str)
        return LocalSearch(
            scheme=self.scheme,
            mesh=self.mesh,
            formulation=self.formulation,
            solver=self.solver,
            states=self.states,
            guessed=self.start is not None,
            polish=self.polish,
            shooting=self.shooting,
            engine=self.engine,
        )


def _bound_report(solver: Solver, control: Control) -> Report | None:
    """Return the function that reports the solver's bound to the user; None without reports."""
    if control.report is None:
        return None
    show = control.report

    def report(objective: float, bound: float) -> None:
        message = f"{solver.name}: no objective is below {bound:.5g}"
        show(Progress(0, 0, objective, 0, message))

    return report


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
