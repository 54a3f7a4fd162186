"""Direct transcription: discretise everything, hand a nonlinear program to a solver.

M. Fernandez de Dios et al., Parameter estimation in ODEs: assessing the potential of local and
global solvers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, Formulation
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import DataMesh, Mesh, UniformMesh
from odefit.discretisation.scales import spread
from odefit.discretisation.schemes import SCHEMES, Scheme
from odefit.discretisation.starting import States, from_data, near
from odefit.methods.control import Control, interruptible
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Agreement, Estimate, Start, Status
from odefit.methods.multi_start import MultiStart
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.solvers.agreement import measure_agreement
from odefit.methods.solvers.nlpsol import NEARBY, Ipopt
from odefit.methods.solvers.solver import Answer, Limits, Solver
from odefit.methods.starts import chosen, guess
from odefit.methods.transcription.refinement import AdaptiveMesh, carried_over, refined, step_errors
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError, one_of
from odefit.problem.option_checks import number, whole
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines import EngineName

CONTRADICTED = 1.05
"""True objective over the discretised one from which the mesh is not believed."""

CONTRADICTED_LIKELIHOOD = 0.1
"""The same as a difference of log-likelihoods."""

SHARPER = 1e-2
"""Factor on the mesh tolerance where the true trajectories contradict the mesh."""

EXPLAINED = 0.5
"""Objective over the spread of the data from which an answer counts as no fit at all."""

CLOSE = 1e-4
"""Residuals this small, relative to the data, count as zero where nothing is polished."""

SEARCH = SingleShooting(evaluations=300, tolerance=1e-8, step=1e-7, patience=30)
"""How the end of each start is improved on the true trajectories."""


@dataclass(frozen=True)
class Transcription:
    """The discretised problem, solved by a local or a global solver.

    Attributes
    ----------
    scheme
        One of :data:`SCHEMES` by name, or an object such as ``Collocation(5, "legendre")``.
    mesh
        An :class:`AdaptiveMesh`, :class:`UniformMesh`, :class:`DataMesh` or
        :class:`GivenMesh`; a whole number M stands for ``UniformMesh(M)``. A global solver
        takes an adaptive mesh as it begins, without refinement.
    formulation
        :class:`Baseline`, :class:`ExtraTol` or :class:`SoftCons`.
    solver
        By name (``"ipopt"``, ``"scip"``, ...) or an object such as ``Ipopt(tolerance=1e-10)``.
    states
        Where the states start: at interpolated ``"data"`` (but for a first start that somebody
        gave, which begins with its simulation), at a ``"simulation"`` from the
        unknowns' own start (data where it fails), or at ``"zero"``.
    start
        Values of unknowns by name to start from, such as those of another method's result;
        names that are no unknowns are ignored, others come from the problem's guesses.
    polish
        Whether each answer is improved on the true (integrated) trajectories. Without it, the
        answers and costs are those of the discretised problem.
    shooting
        Whether each start is also improved on the true trajectories straight from its own
        point, and the better of the two ends kept: they fail at different problems.
    starts
        How many starts of a local solver; None for as many as the evidence asks for, see
        :class:`MultiStart`.
    screening
        Each start is the best of so many points, judged by their true trajectories; with 1,
        nothing is integrated before the solver is at work.
    seconds
        Limit of a global solver, where the fit has no time limit of its own.
    gap, absolute_gap
        When a global solver may stop: relative difference of its bounds, or absolute
        difference over the sum of squares of the data about their means.
    engine
        Of the true trajectories: ``"auto"`` recognises stiffness.

    Raises
    ------
    InputError
        An option makes no sense, or, from :meth:`solve`, the solver is not installed.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("harmonic")
    >>> odefit.fit(problem, odefit.Transcription(scheme="trapezoid", mesh=230)).status.value
    'converged'
    """

    scheme: Scheme | str = "radau"
    mesh: Mesh | AdaptiveMesh | int = field(default_factory=AdaptiveMesh)
    formulation: Formulation = field(default_factory=Baseline)
    solver: Solver | str = field(default_factory=lambda: Ipopt(iterations=300))
    states: States = "data"
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
        if isinstance(self.scheme, str):
            if self.scheme not in SCHEMES:
                raise InputError(f"unknown scheme {self.scheme!r}{one_of(self.scheme, SCHEMES)}")
            settings["scheme"] = SCHEMES[self.scheme]
        if isinstance(self.mesh, int | np.integer):
            whole(self.mesh, "Transcription, mesh")
            settings["mesh"] = UniformMesh(int(self.mesh))
        if isinstance(self.solver, str):
            from odefit.methods.solvers.registry import solver

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
            ("scheme", "relations"),
            ("formulation", "constraints"),
            ("solver", "solve"),
        ):
            if not hasattr(getattr(self, name), verb):
                raise InputError(
                    f"Transcription, {name}: expected an object such as those of "
                    f"odefit.methods.transcription, got {getattr(self, name)!r}"
                )
        if not isinstance(self.mesh, AdaptiveMesh) and not hasattr(self.mesh, "points"):
            raise InputError(
                f"Transcription, mesh: expected a whole number or a mesh, got {self.mesh!r}"
            )
        if self.start is not None and not isinstance(self.start, Mapping):
            raise InputError(
                f"Transcription, start: expected values by name of unknown, got {self.start!r}"
            )

    @property
    def name(self) -> str:
        """For results."""
        assert not isinstance(self.scheme, str)
        assert not isinstance(self.solver, str)
        return f"Transcription({self.scheme.name}, {self.formulation.name}, {self.solver.name})"

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate; results depend on the seed, never on the number of workers."""
        absent = self.solver_object.missing()
        if absent is not None:
            raise InputError(absent)
        if self.solver_object.scope == "global":
            from odefit.methods.transcription.global_search import solve_global

            return solve_global(self, problem, control)
        search = self.search(problem)
        estimate = search.solve(problem, control)
        best = estimate.best
        if best is None or control.interrupted.is_set():
            return estimate
        forward = search.forward(problem)
        with interruptible(control):
            agreement = self._confirm(forward, best, control)
        return replace(estimate, agreement=agreement)

    def search(self, problem: Problem) -> MultiStart:
        """Many starts of this method with its local solver."""
        first = None if self.start is None else tuple(chosen(problem, self.start).tolist())
        # Its number of starts is no part of the method of one: checkpoints compare that.
        one = replace(self, starts=None)
        return MultiStart(one, starts=self.starts, screening=self.screening, first=first)

    # A start of a local solver ----------------------------------------------------------------

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """One start; never raises for a solver or an integration that fails.

        Parameters
        ----------
        forward
            The problem's forward map.
        index
            Its number.
        start
            Unknowns in natural units, shape (n,).
        """
        began = time.perf_counter()
        problem = forward.problem
        d = self.discretisation(forward)
        values = self._states(d, forward, start, simulated=index == 0 and self._informed(problem))
        answer = self._improve(Instance(d, self.formulation, values, start), control)
        tolerance = self.mesh.tolerance if isinstance(self.mesh, AdaptiveMesh) else None
        end = self.end(forward, d, index, start, answer, control, began)
        if self.polish and self.shooting and not end.exact and not control.should_stop():
            direct = SEARCH.run(forward, index, start, control)
            if direct.cost < end.cost:
                end = replace(direct, seconds=time.perf_counter() - began)
        if self.polish and answer.objective > EXPLAINED * spread(d):
            return end  # a finer mesh will not make a fit of it
        while tolerance is not None and answer.success and not control.should_stop():
            if self.polish and (end.exact or not _contradicted(forward, end, answer)):
                break
            d, answer, fine = self._refined(d, answer, tolerance, control)
            again = self.end(forward, d, index, start, answer, control, began)
            if again.cost <= end.cost or not self.polish:
                end = again
            if not fine or not self.polish:
                break
            tolerance *= SHARPER
            if tolerance < 1e-10:
                break
        return end

    def _improve(self, instance: Instance, control: Control) -> Answer:
        return self.solver_object.solve(instance, self.limits(control))

    def _refined(
        self, d: Discretisation, answer: Answer, tolerance: float, control: Control
    ) -> tuple[Discretisation, Answer, bool]:
        """The answer on a mesh whose error estimate is below `tolerance`, if it can be had."""
        assert isinstance(self.mesh, AdaptiveMesh)
        wanted = replace(self.mesh, tolerance=tolerance)
        for _ in range(wanted.rounds):
            assert answer.values is not None
            assert answer.unknowns is not None
            errors = step_errors(d, answer.values, answer.unknowns)
            if max(float(e.max(initial=0.0)) for e in errors) <= tolerance:
                return d, answer, True
            mesh = refined(d, errors, wanted)
            if mesh is None or control.should_stop():
                break
            finer = Discretisation(d.problem, self._scheme, mesh)
            values = carried_over(d, answer.values, answer.unknowns, finer)
            instance = Instance(finer, self.formulation, values, answer.unknowns)
            again = NEARBY.solve(instance, self.limits(control))
            if not again.success:
                break
            d, answer = finer, again
        return d, answer, False

    def end(
        self,
        forward: ForwardMap,
        d: Discretisation,
        index: int,
        start: Array,
        answer: Answer,
        control: Control,
        began: float,
    ) -> Start:
        """What the answer is worth on the true trajectories."""
        message = f"{self.solver_object.name}: {answer.message}"
        iterations = max(answer.iterations, 0)
        unknowns = start if answer.unknowns is None else answer.unknowns
        vector = np.clip(unknowns, forward.problem.lower, forward.problem.upper)
        if answer.unknowns is None or not (self.polish or answer.success):
            seconds = time.perf_counter() - began
            lost = (math.inf, Status.FAILED, message, iterations, seconds, math.inf)
            return Start(index, start, vector, *lost)
        if not self.polish:
            assert answer.values is not None
            cost = 0.5 * answer.objective
            return Start(
                index,
                start,
                vector,
                d.squares(answer.values, answer.unknowns),
                Status.CONVERGED if answer.solved else Status.NOT_CONVERGED,
                message,
                iterations,
                time.perf_counter() - began,
                cost,
                {},
                cost <= CostTolerance.of(forward).zero(CLOSE),
            )
        end = SEARCH.run(forward, index, vector, control)
        return replace(
            end,
            start=start,
            message=f"{message}; {end.message}",
            evaluations=end.evaluations + iterations,
            seconds=time.perf_counter() - began,
        )

    # The discretised problem at the answer ----------------------------------------------------

    def _confirm(self, forward: ForwardMap, best: Start, control: Control) -> Agreement | None:
        """The discretised solution next to the answer, on a mesh that is fine enough."""
        d = self.discretisation(forward)
        instance = Instance(d, self.formulation, near(d, forward, best.vector), best.vector)
        answer = NEARBY.solve(instance, self.limits(control))
        if isinstance(self.mesh, AdaptiveMesh) and answer.success:
            d, answer, _ = self._refined(d, answer, self.mesh.tolerance, control)
        if answer.unknowns is None or answer.values is None or not answer.success:
            return None
        return measure_agreement(forward, d, answer)

    # Parts ------------------------------------------------------------------------------------

    @property
    def solver_object(self) -> Solver:
        """The solver, whether it was given by name or not."""
        assert not isinstance(self.solver, str)
        return self.solver

    @property
    def _scheme(self) -> Scheme:
        assert not isinstance(self.scheme, str)
        return self.scheme

    def discretisation(self, forward: ForwardMap) -> Discretisation:
        """The problem on the mesh as it begins, made once."""
        kept = _kept.setdefault(forward, {})
        key = (self._scheme, self.mesh)
        if key not in kept:
            mesh: Any = self.mesh
            if isinstance(mesh, AdaptiveMesh):
                mesh = DataMesh(mesh.steps)
            kept[key] = Discretisation(forward.problem, self._scheme, mesh)
        return kept[key]

    def _states(
        self, d: Discretisation, forward: ForwardMap, unknowns: Array, simulated: bool
    ) -> Array:
        if self.states == "zero":
            return np.zeros((d.points, len(d.variables)))
        if self.states == "simulation" or simulated:
            return near(d, forward, unknowns)
        return from_data(d, unknowns)

    def _informed(self, problem: Problem) -> bool:
        """Whether the first start is somebody's guess and no random point."""
        return self.start is not None or guess(problem) is not None

    def limits(self, control: Control) -> Limits:
        """Those of one run of a solver in this process."""
        seconds = None
        if control.deadline is not None:
            seconds = max(control.deadline - time.time(), 0.01)
        return Limits(seconds, stop=control.interrupted.is_set)


def _contradicted(forward: ForwardMap, end: Start, answer: Answer) -> bool:
    """Whether the true trajectories are clearly worse than the mesh promises."""
    promised = 0.5 * answer.objective
    if forward.likelihood:
        return end.cost > promised + CONTRADICTED_LIKELIHOOD
    return end.cost > CONTRADICTED * promised


_kept: WeakKeyDictionary[ForwardMap, dict[Any, Discretisation]] = WeakKeyDictionary()
"""Discretisations in use, so that every start of a fit uses the same."""
