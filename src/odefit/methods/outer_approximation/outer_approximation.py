"""The method: options, and how its answer and bounds are returned.

A. Miro et al., Deterministic global optimization algorithm based on outer approximation for the
parameter estimation of nonlinear dynamic biological systems (2012).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.scales import data_variation
from odefit.discretisation.schemes import Collocation
from odefit.methods.bounded_problem import BoundedProblem, GivenBounds, check_bounds
from odefit.methods.control import Control, Progress, interruptible
from odefit.methods.estimate import BoundStep, Certificate, Estimate, Start, Status
from odefit.methods.outer_approximation.algorithm import Search, SearchOptions, SlaveProblem
from odefit.methods.outer_approximation.boxes import Box, refuse_infinite, state_bounds
from odefit.methods.outer_approximation.fbbt import FBBT, Infeasible
from odefit.methods.outer_approximation.mixed_integer import MixedIntegerSolver, milp_solver
from odefit.methods.outer_approximation.standard_form import standard_form
from odefit.methods.solvers.agreement import measure_agreement
from odefit.methods.solvers.local_search import LocalSearch, as_start
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.reduced import ReducedSpace
from odefit.methods.solvers.solver import Answer, Limits, Outcome, make_answer
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError
from odefit.problem.option_checks import number, whole
from odefit.problem.problem import Problem
from odefit.simulation import ForwardMap
from odefit.simulation.engines import EngineName

LOCAL_SHARE = 0.4
"""Of the time, what the local search before everything else may take."""

SLAVE_SHARE = 0.05
"""Of the time that is left, what a second solver of a slave problem may take."""


@dataclass(frozen=True)
class OuterApproximation:
    """Lower and upper bounds of the discretised problem, brought together.

    Attributes
    ----------
    elements
        Finite elements of equal length, for every experiment.
    points
        Collocation points in each, at shifted Legendre roots.
    pieces
        Into which each partitioned variable is divided at first; each iteration divides the one
        in which the master's solution lies.
    hyperplanes
        Below the square of each residual at first.
    cut
        Upper bound of the objectives that are looked at (47), of which somebody knows that it
        can be reached. None for the best local solution less the tolerance.
    tolerance
        Gap (UB - LB) / UB at which to stop.
    absolute_gap
        The same as an absolute difference, over the sum of squares of the data about their means.
    bounds
        Bounds by name of unknown or state, for those that have none; ``"propose"`` accepts what
        the data suggest.
    contractions
        Rounds of bound contraction before the first master problem, at most.
    recontract
        Whether bounds are contracted again in each iteration.
    cuts
        Groups of consecutive elements, counted from 0, for strengthening cuts.
    iterations
        Of master and slave problem, at most.
    milp
        ``"highs"``, ``"scip"``, or a solver object of
        :mod:`odefit.methods.outer_approximation.mixed_integer`.
    most_binaries
        With more binary variables the master problem is refused.
    starts
        Of the local search that comes first.
    seconds
        Limit where the fit has none of its own.
    polish
        Whether the answer is improved on the true (integrated) trajectories. Without it, it is
        that of the discretised problem.
    engine
        Of the true trajectories.

    Raises
    ------
    InputError
        An option makes no sense.

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
            own = tuple(group)
            for element in own:
                whole(element, "OuterApproximation, cuts", 0)
            if not own or own != tuple(range(own[0], own[-1] + 1)) or own[-1] >= self.elements:
                raise InputError(
                    "OuterApproximation, cuts: expected groups of consecutive elements from 0 to "
                    f"{self.elements - 1}, such as ((0, 1), (1, 2)), got {own!r}"
                )
            groups.append(own)
        object.__setattr__(self, "cuts", tuple(groups))

    @property
    def name(self) -> str:
        """For results."""
        return f"OuterApproximation({self.elements} elements, {self.points} points)"

    @property
    def milp_solver(self) -> MixedIntegerSolver:
        """The solver, whether it was given by name or not."""
        assert not isinstance(self.milp, str)
        return self.milp

    # The fit ----------------------------------------------------------------------------------

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate, and prove how good the estimate is.

        Raises
        ------
        InputError
            Bounds are missing, the model has something that cannot be enclosed, the master
            problem is too large, or the solver is not installed.
        """
        absent = self.milp_solver.missing()
        if absent is not None:
            raise InputError(absent)
        others = (*problem.model.states, *problem.model.algebraic)
        limits = control, self.seconds
        bounded = BoundedProblem.of(problem, self.bounds, *limits, self.engine, others)
        problem, control, unknowns = bounded.problem, bounded.control, bounded.bounds
        forward, began = bounded.forward, bounded.began
        scheme, mesh = Collocation(self.points, "legendre"), UniformMesh(self.elements)
        local = LocalSearch(scheme, mesh, polish=self.polish, engine=self.engine)
        d = Discretisation(problem, scheme, mesh)
        with interruptible(control):
            limited = bounded.local_control(LOCAL_SHARE)
            warm, true = mesh_search(local, forward, d, limited, starts=self.starts)
            search, box = self._search(forward, d, unknowns, warm, control)
            search.run()
            best = search.incumbent
            start = np.zeros(len(problem.unknowns)) if warm is None else _vector(warm, unknowns)
            answer = best if best is not None else _nothing(d, search)
            solver = local.solver.name
            end = as_start(forward, d, answer, solver, self.polish, 0, start, control, began)
        agreement = measure_agreement(forward, d, answer) if answer.values is not None else None
        ends: tuple[Start, ...] = (end, true) if self.polish and true is not None else (end,)
        certificate = self._certificate(d, search, box)
        if certificate is not None:
            certificate = replace(certificate, assumed=bounded.assumed)
        return Estimate(
            ends,
            _status(search, control),
            f"{end.message}; {self._said(search)}",
            certificate,
            agreement,
        )

    def _search(
        self,
        forward: ForwardMap,
        d: Discretisation,
        unknowns: Array,
        warm: Answer | None,
        control: Control,
    ) -> tuple[Search, Box]:
        """The algorithm with its problem in standard form and all its variables bounded."""
        reach = data_variation(d)
        if self.cut is not None:
            reach = self.cut
        elif warm is not None and warm.success:
            reach = max(warm.objective, self.absolute_gap * reach)
        box = Box(unknowns, state_bounds(d, unknowns, self.bounds, reach))
        if warm is not None and warm.success and warm.values is not None:
            box = box.around(d, warm.values)
        box.applied(d)
        form = standard_form(d)

        reduced = ReducedSpace(forward, d)

        def slave(w: Array) -> Answer:
            """Step 3, from the states of the master and from those that follow its parameters."""
            values = w[: d.points * len(d.variables)].reshape(d.points, len(d.variables))
            vector = w[form.parameters]
            first = reduced.refined(vector, values, control.should_stop)
            left = max(deadline - time.time(), 0.01)
            if first is not None and first.success:
                left *= SLAVE_SHARE
            limits = Limits(left, stop=control.interrupted.is_set)
            second = Ipopt(iterations=500).solve(Instance(d, Baseline(), values, vector), limits)
            if first is None or not first.success:
                return second
            return second if second.success and second.objective < first.objective else first

        deadline = control.deadline or math.inf
        best = None if warm is None else _confirmed(d, warm, slave)
        if best is not None and self.cut is None:
            reach = max(reach, best.objective)
        with suppress(Infeasible):  # the search finds that out again, and says so
            low, high = FBBT(form).tighten(form.lower, form.upper, reach)
            refuse_infinite(d, form.names, low, high, form.originals)
        search = Search(
            SearchOptions(**{f.name: getattr(self, f.name) for f in fields(SearchOptions)}),
            form,
            form.lower,
            form.upper,
            slave,
            reach,
            self.absolute_gap * data_variation(d),
            control.should_stop,
            lambda: max(deadline - time.time(), 0.0),
            _teller(control),
            best,
        )
        return search, box

    def _certificate(self, d: Discretisation, search: Search, box: Box) -> Certificate | None:
        if not math.isfinite(search.lower) and not math.isfinite(search.upper):
            return None
        scope = (
            f"discretised (Legendre collocation, {self.elements} elements x {self.points} points; "
            f"{box.described(d)})"
        )
        return Certificate(
            min(search.lower, search.upper),
            search.upper,
            scope,
            closed=search.closed,
            history=tuple(search.history),
            solver=f"outer approximation with {self.milp_solver.name}",
            negligible=search.negligible,
            # bounds of mixed-integer programs are the solver's, less a margin
            rigorous=not {s.stage for s in search.history} & {"master", "groups"},
        )

    def _said(self, search: Search) -> str:
        if search.closed:
            return f"the bounds have met after {search.history[-1].seconds:.1f} s"
        if search.incumbent is None:
            return f"no point with an objective below {search.cutoff:.6g} was found"
        return "the bounds have not met"


def _confirmed(d: Discretisation, warm: Answer, slave: SlaveProblem) -> Answer | None:
    """The local answer as one of the problem with bounded states, which it did not know of."""
    if warm.values is None or warm.unknowns is None:
        return None
    instance = Instance(d, Baseline(), warm.values, warm.unknowns)
    seconds, words = warm.seconds, warm.message
    same = make_answer(instance, warm.outcome, warm.values, warm.unknowns, None, seconds, words)
    if same.success:
        return same
    again = slave(np.concatenate([warm.values.ravel(), warm.unknowns]))
    return again if again.success else None


def _vector(warm: Answer, bounds: Array) -> Array:
    return bounds.mean(axis=1) if warm.unknowns is None else warm.unknowns


def _nothing(d: Discretisation, search: Search) -> Answer:
    """No answer: the cut is below everything that was found."""
    instance = Instance(d, Baseline())
    return make_answer(instance, Outcome.FAILED, None, None, search.lower, 0.0, "no answer")


def _teller(control: Control) -> Callable[[BoundStep], None] | None:
    if control.report is None:
        return None
    report = control.report

    def tell(step: BoundStep) -> None:
        words = f"{step.stage} {step.iteration}: {step.lower:.5g} <= optimum <= {step.upper:.5g}"
        if math.isfinite(step.gap):
            words += f" (gap {step.gap:.1%})"
        report(Progress(0, 0, step.upper, 0, words))

    return tell


def _status(search: Search, control: Control) -> Status:
    if search.closed:
        return Status.CONVERGED
    if control.interrupted.is_set():
        return Status.INTERRUPTED
    if control.out_of_time:
        return Status.TIME_LIMIT
    return Status.NOT_CONVERGED if search.incumbent is not None else Status.FAILED
