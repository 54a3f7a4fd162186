"""Outer approximation as a method: options, the slave problem (step 3), the answer and its bounds.

A. Miro et al., Deterministic global optimization algorithm based on outer approximation for the
parameter estimation of nonlinear dynamic biological systems (2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, counted
from odefit.common.option_checks import number, whole
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance, data_variation
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import Collocation
from odefit.methods.bounded_problem import BoundedProblem, GivenBounds, check_bounds
from odefit.methods.estimate import BoundStep, Certificate, Estimate, Start, Status
from odefit.methods.method import Method
from odefit.methods.outer_approximation.algorithm import (
    MasterSlaveSearch,
    SearchOptions,
    resume_search,
    save_search,
)
from odefit.methods.outer_approximation.bound_tightening import FBBT, Infeasible
from odefit.methods.outer_approximation.mixed_integer import MixedIntegerSolver, milp_solver
from odefit.methods.outer_approximation.standard_form import standard_form
from odefit.methods.outer_approximation.state_bounds import StateBounds, require_finite
from odefit.methods.running.control import Control, Progress, interruptible
from odefit.methods.running.start_checkpoint import opened
from odefit.methods.solvers.guarded_solve import solve_locally
from odefit.methods.solvers.local_search import LocalSearch, as_start, measure_agreement
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.reduced_space import ReducedSpace
from odefit.methods.solvers.solver import LEAST_SECONDS, Answer, Limits, Outcome, make_answer
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines.registry import EngineName

LOCAL_SHARE = 0.4
"""Share of the time for the local search that comes first."""

ESTIMATED_STAGES = frozenset({"master", "groups"})
"""Stages of the history whose bounds are those of a mixed-integer solver minus a margin."""


@dataclass(frozen=True)
class OuterApproximation(Method):
    """Find and bound the global optimum of the discretised problem by outer approximation.

    A lower bound, from a relaxation, and an upper bound, the objective of the best answer so far,
    approach each other.

    Attributes
    ----------
    elements
        Number of finite elements of equal length, for every experiment.
    points
        Number of collocation points in each element, at shifted Legendre roots.
    pieces
        Initial number of pieces into which the range of each partitioned variable is divided; each
        iteration halves the piece that contains the master problem's solution.
    hyperplanes
        Initial number of hyper-planes below the square of each residual.
    cut
        Upper bound of the objective (47), which must be known to be attainable. None for the
        objective of the best answer minus the tolerance.
    tolerance
        Relative gap (UB - LB) / UB at which to stop.
    absolute_gap
        Absolute gap at which to stop, relative to the sum of squares of the data about their means.
    bounds
        Bounds by name, for unknowns or states without bounds; ``"propose"`` accepts those that the
        data suggest.
    contractions
        Largest number of rounds of bound contraction before the first master problem.
    recontract
        Whether bounds are contracted again in each iteration.
    cuts
        Groups of consecutive elements, counted from 0, for strengthening cuts.
    iterations
        Largest number of master problems.
    milp
        The solver of master problems: ``"highs"``, ``"scip"``, or a solver object of
        :mod:`odefit.methods.outer_approximation.mixed_integer`.
    most_binaries
        Number of binary variables above which the master problem is refused.
    starts
        Number of starts of the local search that comes first; None lets the evidence decide.
    seconds
        Time limit in seconds, if the fit has none.
    polish
        Whether the answer is improved on the true (integrated) trajectories. Without it, the answer
        is that of the discretised problem.
    engine
        The engine of the true trajectories.

    Raises
    ------
    InputError
        An option has an unusable value.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("alpha-pinene")
    >>> method = odefit.OuterApproximation(tolerance=0.05)
    >>> result = odefit.fit(problem, method, seed=1)  # doctest: +SKIP
    >>> result.assessment.bounds.gap <= 0.05  # doctest: +SKIP
    True
    """

    elements: int = 5
    points: int = 3
    pieces: int = 4
    hyperplanes: int = 6
    cut: float | None = None
    tolerance: float = 0.05
    absolute_gap: float = 1e-6
    bounds: GivenBounds = None
    contractions: int = 12
    recontract: bool = True
    cuts: Sequence[Sequence[int]] = ()
    iterations: int = 50
    milp: MixedIntegerSolver | str = "highs"
    most_binaries: int = 20_000
    starts: int | None = None
    seconds: float = 600.0
    polish: bool = True
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        for name, least in (
            ("elements", 1),
            ("points", 1),
            ("pieces", 1),
            ("hyperplanes", 2),
            ("contractions", 0),
            ("iterations", 0),
            ("most_binaries", 1),
        ):
            whole(getattr(self, name), f"OuterApproximation, {name}", least)
        if self.starts is not None:
            whole(self.starts, "OuterApproximation, starts")
        if self.cut is not None:
            number(self.cut, "OuterApproximation, cut")
        number(self.tolerance, "OuterApproximation, tolerance", least=0.0, most=1.0)
        number(self.absolute_gap, "OuterApproximation, absolute_gap", least=0.0)
        number(self.seconds, "OuterApproximation, seconds", least=math.ulp(0.0))
        if isinstance(self.milp, str):
            object.__setattr__(self, "milp", milp_solver(self.milp))
        elif not hasattr(self.milp, "solve"):
            raise InputError(
                f'OuterApproximation, milp: expected "highs" or "scip", got {self.milp!r}'
            )
        check_bounds("OuterApproximation", self.bounds)
        self._check_cuts()

    def _check_cuts(self) -> None:
        groups = []
        for group in self.cuts:
            elements = tuple(group)
            for element in elements:
                whole(element, "OuterApproximation, cuts", 0)
            if (
                not elements
                or elements != tuple(range(elements[0], elements[-1] + 1))
                or elements[-1] >= self.elements
            ):
                raise InputError(
                    "OuterApproximation, cuts: expected groups of consecutive elements from 0 to "
                    f"{self.elements - 1}, such as ((0, 1), (1, 2)), got {elements!r}"
                )
            groups.append(elements)
        object.__setattr__(self, "cuts", tuple(groups))

    @property
    def name(self) -> str:
        """The method's name in results."""
        elements, points = counted(self.elements, "element"), counted(self.points, "point")
        return f"OuterApproximation({elements}, {points})"

    @property
    def milp_solver(self) -> MixedIntegerSolver:
        """The solver as an object, also if it was given by name."""
        assert not isinstance(self.milp, str)
        return self.milp

    # The fit ----------------------------------------------------------------------------------

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns, and prove how close to the optimum the estimate is.

        Raises InputError if bounds are missing, a part of the model cannot be enclosed, the master
        problem is too large, or the solver is not installed.
        """
        absent = self.milp_solver.missing()
        if absent is not None:
            raise InputError(absent)
        others = (*problem.model.states, *problem.model.algebraic)
        limits = control, self.seconds
        bounded = BoundedProblem.of(problem, self.bounds, *limits, self.engine, others)
        problem, control, forward = bounded.problem, bounded.control, bounded.forward
        scheme, mesh = Collocation(self.points, "legendre"), UniformMesh(self.elements)
        local = LocalSearch(scheme, mesh, polish=self.polish, engine=self.engine)
        d = Discretisation(problem, scheme, mesh)
        with interruptible(control):
            limited = bounded.local_control(LOCAL_SHARE)
            local_answer, true_start = mesh_search(local, forward, d, limited, starts=self.starts)
            states = self._state_bounds(bounded, d, local_answer)
            search = self._search(bounded, d, local_answer)
            # A run with more time or iterations continues one with less.
            settings_kept = {
                k: v for k, v in vars(self).items() if k not in ("seconds", "iterations")
            }
            options = {"method": repr(settings_kept), "seed": control.seed}
            with (
                opened(control, "outer approximation", problem, options)
                or nullcontext() as checkpoint
            ):
                if checkpoint is not None:
                    resume_search(checkpoint, search, d)
                    search.keep = partial(save_search, checkpoint)
                search.run()
            start = bounded.bounds.mean(axis=1)
            if local_answer is None:
                start = np.zeros(len(start))
            elif local_answer.unknowns is not None:
                start = local_answer.unknowns
            answer = search.incumbent
            if answer is None:
                instance = Instance(d, Baseline())
                outcome = Outcome.FAILED, None, None, search.lower, 0.0, "no answer"
                answer = make_answer(instance, *outcome)
            ended = answer, local.solver.name, self.polish, 0, start, control, bounded.began
            end = as_start(forward, d, *ended)
        agreement = measure_agreement(forward, d, answer) if answer.values is not None else None
        ends: tuple[Start, ...] = (
            (end, true_start) if self.polish and true_start is not None else (end,)
        )
        certificate = None
        if math.isfinite(search.lower) or math.isfinite(search.upper):
            certificate = Certificate(
                min(search.lower, search.upper),
                search.upper,
                f"discretised (Legendre collocation, {self.elements} elements x {self.points} "
                f"points; {states.description(d)})",
                closed=search.closed,
                history=tuple(search.history),
                solver=f"outer approximation with {self.milp_solver.name}",
                negligible=search.negligible,
                rigorous=ESTIMATED_STAGES.isdisjoint(s.stage for s in search.history),
                assumed=bounded.assumed,
                discretised=True,
            )
        return Estimate(
            ends,
            _status(search, control),
            f"{end.message}; {_outcome(search)}",
            certificate,
            agreement,
        )

    def _first_cutoff(self, d: Discretisation, local_answer: Answer | None) -> float:
        """Return the cutoff before there is an incumbent, from the answer of the local search."""
        if self.cut is not None:
            return self.cut
        variation = data_variation(d)
        if local_answer is None or not local_answer.success:
            return variation
        return max(local_answer.objective, self.absolute_gap * variation)

    def _state_bounds(
        self, bounded: BoundedProblem, d: Discretisation, local_answer: Answer | None
    ) -> StateBounds:
        """Bound the states of the discretised problem, and return their bounds."""
        cutoff = self._first_cutoff(d, local_answer)
        states = StateBounds.of(d, bounded.bounds, self.bounds, cutoff)
        if local_answer is not None and local_answer.success and local_answer.values is not None:
            states = states.containing(d, local_answer.values)
        states.apply(d)
        return states

    def _search(
        self, bounded: BoundedProblem, d: Discretisation, local_answer: Answer | None
    ) -> MasterSlaveSearch:
        """Return the algorithm, with its problem in standard form and all its variables bounded."""
        form = standard_form(d)
        slave = SlaveProblem(bounded.forward, d, bounded.control)
        cutoff = self._first_cutoff(d, local_answer)
        incumbent = None if local_answer is None else slave.confirm(local_answer)
        if incumbent is not None and self.cut is None:
            cutoff = max(cutoff, incumbent.objective)
        with suppress(Infeasible):  # the search will detect and report it
            require_finite(d, form, FBBT(form).tighten(form.lower, form.upper, cutoff))
        return MasterSlaveSearch(
            SearchOptions(**{f.name: getattr(self, f.name) for f in fields(SearchOptions)}),
            form,
            form.lower,
            form.upper,
            slave.solve,
            cutoff,
            self.absolute_gap * data_variation(d),
            bounded.control.should_stop,
            lambda: bounded.seconds_left,
            _progress(bounded.control),
            incumbent,
            memory=bounded.control.memory or 0,
        )


def _progress(control: Control) -> Callable[[BoundStep], None] | None:
    """Return the function that reports the bounds as progress, None if it was not requested."""
    listener = control.report
    if listener is None:
        return None

    def report(step: BoundStep) -> None:
        text = f"{step.stage} {step.iteration}: {step.lower:.5g} <= optimum <= {step.upper:.5g}"
        if math.isfinite(step.gap):
            text += f" (gap {step.gap:.1%})"
        listener(Progress(0, 0, step.upper, 0, text))

    return report


def _outcome(search: MasterSlaveSearch) -> str:
    """Return the end of the search in words."""
    if search.closed:
        return f"the bounds have met after {search.history[-1].seconds:.1f} s"
    if search.incumbent is None:
        return f"no point with an objective below {search.cutoff:.6g} was found"
    return "the bounds have not met"


def _status(search: MasterSlaveSearch, control: Control) -> Status:
    """Return the status of the search's end."""
    if search.closed:
        return Status.CONVERGED
    if control.interrupted.is_set():
        return control.early
    if control.out_of_time:
        return Status.TIME_LIMIT
    return Status.NOT_CONVERGED if search.incumbent is not None else Status.FAILED


SECOND_SOLVER_SHARE = 0.05
"""Share of the remaining time for the second solver if the first one has an answer."""


class SlaveProblem:
    """The nonlinear program of the discretised problem, whose states are bounded."""

    def __init__(self, forward: ForwardMap, d: Discretisation, control: Control) -> None:
        self._reduced = ReducedSpace(forward, d)
        self._d, self._control = d, control

    def solve(self, w: Array) -> Answer:
        """Return the better of two local optima next to a point of the master problem.

        One is found in the space of the unknowns, with states that follow from the equations, the
        other with the states free. The variables of the discretised problem come first in `w`.
        """
        d, control = self._d, self._control
        at_points, n = d.points * len(d.variables), len(d.problem.unknowns)
        values = w[:at_points].reshape(d.points, len(d.variables))
        unknowns = w[at_points : at_points + n]
        first = self._reduced.minimise(unknowns, values, control.should_stop)
        known = first is not None and first.success
        seconds = max(control.seconds_left, LEAST_SECONDS)
        limits = Limits(
            SECOND_SOLVER_SHARE * seconds if known else seconds, stop=control.interrupted.is_set
        )
        instance = Instance(d, Baseline(), values, unknowns)
        second = solve_locally(Ipopt(iterations=500), instance, limits)
        if first is None or not known:
            return second
        return second if second.success and second.objective < first.objective else first

    def confirm(self, answer: Answer) -> Answer | None:
        """Return an answer within the bounds of the states, although it was found without them.

        It is the same answer if that lies within them, else the nearest one, or None.
        """
        values, unknowns = answer.values, answer.unknowns
        if values is None or unknowns is None:
            return None
        instance = Instance(self._d, Baseline(), values, unknowns)
        answer_within = make_answer(
            instance, answer.outcome, values, unknowns, None, answer.seconds, answer.message
        )
        if not answer_within.success:
            answer_within = self.solve(np.concatenate([values.ravel(), unknowns]))
        return answer_within if answer_within.success else None
