"""One local search on the discretised problem, followed by improvement by integration."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from odefit.common.arrays import Array
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline, Formulation
from odefit.discretisation.instance import (
    Instance,
    StateGuess,
    data_variation,
    guess_from_data,
    guess_states,
)
from odefit.discretisation.mesh import DataMesh, Mesh
from odefit.discretisation.refinement import (
    AdaptiveMesh,
    interpolate_solution,
    refine_mesh,
    step_errors,
)
from odefit.discretisation.schemes import Scheme
from odefit.methods.best_so_far import rescued
from odefit.methods.estimate import Agreement, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.method import LocalMethod
from odefit.methods.running.control import Control
from odefit.methods.single_shooting import START_SEARCH
from odefit.methods.solvers.guarded_solve import solve_locally
from odefit.methods.solvers.nlpsol import WARM_START_IPOPT, Ipopt
from odefit.methods.solvers.solver import Answer, Limits, Solver
from odefit.methods.starts import guess
from odefit.simulation import Evaluation, Failure, ForwardMap
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.registry import EngineName
from odefit.simulation.residuals.normal_approximation import normal_approximation

COARSE_MESH_RATIO = 1.05
"""Ratio of the objective on the integrated trajectories to that of the discretised problem above
which the mesh is considered too coarse."""

COARSE_MESH_DIFFERENCE = 0.1
"""Difference of the two costs above which the mesh is considered too coarse, if standard deviations
are estimated."""

MESH_TOLERANCE_FACTOR = 1e-2
"""Factor on the mesh tolerance if the integrated trajectories contradict the mesh."""

NO_FIT_RATIO = 0.5
"""Ratio of the objective to that of constant predictions above which an answer does not count as a
fit."""

ZERO_RESIDUAL = 1e-4
"""Size of residuals, relative to the data, that counts as zero without polishing."""

POLISHING = START_SEARCH
"""The search on the integrated trajectories that improves the answer on the mesh."""


@dataclass(frozen=True)
class LocalSearch(LocalMethod):
    """A local solver of the discretised problem, from one start to one end.

    Its options are those of :class:`~odefit.methods.transcription.Transcription`. If the first
    start is `guessed`, that is, given by the user, its simulation gives the initial states.
    """

    scheme: Scheme
    mesh: Mesh | AdaptiveMesh
    formulation: Formulation = field(default_factory=Baseline)
    solver: Solver = field(default_factory=lambda: Ipopt(iterations=300))
    states: StateGuess = "data"
    guessed: bool = False
    polish: bool = True
    shooting: bool = True
    engine: EngineName = "auto"

    @property
    def name(self) -> str:
        """Scheme, formulation and solver, for results."""
        return f"{self.scheme.name}, {self.formulation.name}, {self.solver.name}"

    def run(self, forward: ForwardMap, index: int, start: Array, control: Control) -> Start:
        """Return the end of a start at unknowns, shape (n,), even if solver or integration fail."""
        began = time.perf_counter()
        d = self.discretisation(forward)
        guessed = index == 0 and (self.guessed or guess(forward.problem) is not None)
        instance = Instance(d, self.formulation, self._states(d, forward, start, guessed), start)
        answer = solve_locally(self.solver, instance, Limits.until(control))

        def ended(d: Discretisation, answer: Answer) -> Start:
            name, polish = self.solver.name, self.polish
            return as_start(forward, d, answer, name, polish, index, start, control, began)

        end = ended(d, answer)
        if self.polish and self.shooting and not end.exact and not control.should_stop():
            direct = POLISHING.run(forward, index, start, control)
            if direct.cost < end.cost:
                # The reason why the solver gave no answer is reported anyway: it may have crashed.
                lost = f"{end.message}; " if answer.unknowns is None else ""
                seconds = time.perf_counter() - began
                end = replace(direct, message=lost + direct.message, seconds=seconds)
        if self.polish and answer.objective > NO_FIT_RATIO * data_variation(d):
            return end  # a finer mesh will not make it fit
        tolerance = self.mesh.tolerance if isinstance(self.mesh, AdaptiveMesh) else None
        while tolerance is not None and answer.success and not control.should_stop():
            if self.polish and (end.exact or not _contradicted(forward, end, answer)):
                break
            d, answer, fine = self._refined(d, answer, tolerance, control)
            again = ended(d, answer)
            if again.cost <= end.cost or not self.polish:
                end = again
            if not fine or not self.polish:
                break
            tolerance *= MESH_TOLERANCE_FACTOR
            if tolerance < 1e-10:
                break
        return end

    def agreement_near(
        self, forward: ForwardMap, vector: Array, control: Control
    ) -> Agreement | None:
        """Return the agreement of the discretised solution next to `vector` with trajectories.

        An adaptive mesh is refined to its tolerance. Returns None if no solution is found, or if
        noise or priors are not normal: the discretised problem is then an approximation that only
        gives a start.
        """
        if not _exact(forward):
            return None
        d = self.discretisation(forward)
        instance = Instance(d, self.formulation, guess_states(d, forward, vector), vector)
        answer = solve_locally(WARM_START_IPOPT, instance, Limits.until(control))
        if isinstance(self.mesh, AdaptiveMesh) and answer.success:
            d, answer, _ = self._refined(d, answer, self.mesh.tolerance, control)
        if answer.unknowns is None or answer.values is None or not answer.success:
            return None
        return measure_agreement(forward, d, answer)

    def discretisation(self, forward: ForwardMap) -> Discretisation:
        """Return the problem on the initial mesh, which is built once for a forward map."""
        by_mesh = _discretisations.setdefault(forward, {})
        key = (self.scheme, self.mesh)
        if key not in by_mesh:
            mesh = DataMesh(self.mesh.steps) if isinstance(self.mesh, AdaptiveMesh) else self.mesh
            by_mesh[key] = Discretisation(normal_approximation(forward.problem), self.scheme, mesh)
        return by_mesh[key]

    def _refined(
        self, d: Discretisation, answer: Answer, tolerance: float, control: Control
    ) -> tuple[Discretisation, Answer, bool]:
        """Return the answer on a mesh with an error estimate below `tolerance`, if there is one.

        Otherwise returns the last mesh that could be solved, its answer, and False.
        """
        assert isinstance(self.mesh, AdaptiveMesh)
        target_mesh = replace(self.mesh, tolerance=tolerance)
        for _ in range(target_mesh.rounds):
            assert answer.values is not None
            assert answer.unknowns is not None
            errors = step_errors(d, answer.values, answer.unknowns)
            if max(float(e.max(initial=0.0)) for e in errors) <= tolerance:
                return d, answer, True
            mesh = refine_mesh(d, errors, target_mesh)
            if mesh is None or control.should_stop():
                break
            finer = Discretisation(d.problem, self.scheme, mesh)
            values = interpolate_solution(d, answer.values, answer.unknowns, finer)
            instance = Instance(finer, self.formulation, values, answer.unknowns)
            again = solve_locally(WARM_START_IPOPT, instance, Limits.until(control))
            if not again.success:
                break
            d, answer = finer, again
        return d, answer, False

    def _states(
        self, d: Discretisation, forward: ForwardMap, unknowns: Array, guessed: bool
    ) -> Array:
        if self.states == "zero":
            return np.zeros((d.points, len(d.variables)))
        if self.states == "simulation" or guessed:
            return guess_states(d, forward, unknowns)
        return guess_from_data(d, unknowns)


def as_start(
    forward: ForwardMap,
    d: Discretisation,
    answer: Answer,
    solver: str,
    polish: bool,
    index: int,
    start: Array,
    control: Control,
    began: float,
) -> Start:
    """Return the answer of a discretised problem as the end of a start from `start`, shape (n,).

    Without `polish` on the integrated trajectories, the cost is that of the discretised problem.
    The start began at the time `began` of :func:`time.perf_counter`.
    """
    message = f"{solver}: {answer.message}"
    iterations = max(answer.iterations, 0)
    unknowns = start if answer.unknowns is None else answer.unknowns
    vector = np.clip(unknowns, forward.problem.lower, forward.problem.upper)
    if answer.unknowns is None or not (polish or answer.success):
        seconds = time.perf_counter() - began
        lost = (math.inf, Status.FAILED, message, iterations, seconds, math.inf)
        end = Start(index, start, vector, *lost)
        early = polish and control.should_stop()
        return rescued(forward, end, [vector, start], control) if early else end
    if not polish:
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
            cost <= CostTolerance.of(forward).zero(ZERO_RESIDUAL),
        )
    end = POLISHING.run(forward, index, vector, control)
    if end.status is Status.FAILED and control.should_stop():
        end = rescued(forward, end, [start], control)
    return replace(
        end,
        start=start,
        message=f"{message}; {end.message}",
        evaluations=end.evaluations + iterations,
        seconds=time.perf_counter() - began,
    )


def _contradicted(forward: ForwardMap, end: Start, answer: Answer) -> bool:
    """Return whether the integrated trajectories are clearly worse than the mesh predicts."""
    if not _exact(forward):
        return False  # it predicts something else
    promised = 0.5 * answer.objective
    if forward.likelihood:
        return end.cost > promised + COARSE_MESH_DIFFERENCE
    return end.cost > COARSE_MESH_RATIO * promised


def _exact(forward: ForwardMap) -> bool:
    """Return whether the discretised problem has the noise and the priors of the true one."""
    return forward.gaussian and all(p.gaussian for p in forward.problem.priors.values())


_discretisations: WeakKeyDictionary[ForwardMap, dict[Any, Discretisation]] = WeakKeyDictionary()
"""Discretisations in use, so that all starts of a fit share them."""


def measure_agreement(forward: ForwardMap, d: Discretisation, answer: Answer) -> Agreement:
    """Return the distance of the discretised answer from the integrated trajectories."""
    assert answer.values is not None
    assert answer.unknowns is not None
    predicted = d.predictions(answer.values, answer.unknowns)
    error = 0.0
    at = np.clip(answer.unknowns, d.problem.lower, d.problem.upper)
    for condition, ours in zip(d.problem.conditions, predicted, strict=True):
        path = forward.trajectory(at, condition.name)
        if isinstance(path, Failure):
            error = math.inf
            break
        true = forward.predictions(condition, at, path)
        for name, series in condition.series.items():
            exact = true[name].array(len(condition.times))
            size = float(np.max(np.abs(exact), initial=0.0)) or 1.0
            off = np.nan_to_num(np.abs(ours[name] - exact)[series.rows], nan=math.inf)
            error = max(error, float(np.max(off, initial=0.0)) / size)
    evaluation = forward.evaluate(at, UNDECIDED)
    true_objective = evaluation.objective if isinstance(evaluation, Evaluation) else math.inf
    return Agreement(
        d.scheme.name,
        d.steps,
        d.squares(answer.values, answer.unknowns),
        true_objective,
        error,
        vector=tuple(at.tolist()),
    )
