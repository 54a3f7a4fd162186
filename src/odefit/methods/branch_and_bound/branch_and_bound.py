"""The method of branch and bound over boxes of unknowns: its options and its answer."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.option_checks import number, whole
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import Mesh, as_mesh
from odefit.discretisation.schemes import Scheme, as_scheme
from odefit.enclosure import Enclosure
from odefit.enclosure.discretised.residuals import DiscretisedEnclosure
from odefit.methods.bounded_problem import BoundedProblem, GivenBounds, check_bounds
from odefit.methods.branch_and_bound.leaf_log import LeafLog
from odefit.methods.branch_and_bound.node_evaluator import ResidualEnclosure
from odefit.methods.branch_and_bound.region_tree import RegionGoal, RegionTree
from odefit.methods.branch_and_bound.search import LocalAnswer, TreeSearch
from odefit.methods.estimate import Certificate, Estimate, Start, Status
from odefit.methods.local.cost_tolerance import CostTolerance
from odefit.methods.method import Method
from odefit.methods.multi_start import MultiStart
from odefit.methods.running.control import Control, interruptible
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.solvers.local_search import LocalSearch, measure_agreement
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation
from odefit.simulation.engines.cut_off import CountedSeconds
from odefit.simulation.engines.engine_choice import UNDECIDED
from odefit.simulation.engines.registry import EngineName

LOCAL_SHARE = 0.25
"""Largest share of the time for the local search, which comes first."""

NOT_ENCLOSED = (
    "The upper bound could not be enclosed: it is the objective of a local solver's answer, which "
    "satisfies the discretised equations to within {:.0e}."
)
"""Remark on an upper bound that is only as reliable as its solver."""

LEFT_OUT = ("seconds", "certificate")
"""Options that may change between a checkpoint and its continuation."""

ONE_SOLUTION = (
    "For some values of the unknowns the discretised equations may have several solutions, because "
    "they are nonlinear and implicit: the bounds hold only for the solution that Newton's method "
    "finds when it follows the equations step by step from the initial values."
)
"""Remark on the bounds of a problem whose discretised equations may have several solutions."""


@dataclass(frozen=True)
class BranchAndBound(Method):
    """Find and prove the global optimum in the space of the unknowns alone.

    Over a box of unknowns, the residuals are enclosed by polynomials with remainders, rounded
    outwards throughout. A box that cannot contain anything better than the incumbent is fathomed;
    other boxes are contracted or divided. The bounds are rigorous: they hold in exact arithmetic.

    Attributes
    ----------
    scheme, mesh
        Scheme and mesh of the discretised problem that is bounded, as for :class:`Transcription`;
        without a scheme the bounds hold in continuous time.
    gap
        Relative gap (upper - lower) / upper of the bounds at which to stop.
    absolute_gap
        Absolute gap at which to stop, relative to the weighted sum of squares of the data about
        their means.
    degree
        Degree of the enclosing polynomials in the unknowns. A long search in continuous time raises
        it, with shorter steps, where that leaves less for its work.
    bounds
        Bounds by name, for unknowns without bounds; ``"propose"`` accepts those that the data
        suggest.
    starts
        Number of starts of the local search that comes first; None lets the evidence decide.
    start
        Values of the unknowns, in their order, that replace that search; None runs the search.
    seconds
        Time limit in seconds, if the fit has none. The default is converted to work of the search
        over boxes, 50 million operations a second, so that it ends at the same box on every
        computer.
    engine
        Engine of the local search.
    certificate
        A file to which the proof is written, for ``odefit verify``; None writes no proof. A
        certificate needs continuous time, and the search then keeps no checkpoint.

    Raises
    ------
    InputError
        An option has an unusable value.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("harmonic")
    >>> result = odefit.fit(problem, odefit.BranchAndBound(), seed=1)
    >>> result.assessment.bounds.scope
    'continuous time'
    """

    start_option: ClassVar[str] = "start"
    scheme: Scheme | str | None = None
    mesh: Mesh | int = 30
    gap: float = 1e-3
    absolute_gap: float = 1e-6
    degree: int = 2
    bounds: GivenBounds = None
    starts: int | None = None
    start: tuple[float, ...] | None = None
    seconds: float = CountedSeconds(600.0)
    engine: EngineName = "auto"
    certificate: str | Path | None = None

    def __post_init__(self) -> None:
        if self.scheme is not None:
            object.__setattr__(self, "scheme", as_scheme(self.scheme, "BranchAndBound"))
        object.__setattr__(self, "mesh", as_mesh(self.mesh, "BranchAndBound"))
        number(self.gap, "BranchAndBound, gap", least=0.0, most=1.0)
        number(self.absolute_gap, "BranchAndBound, absolute_gap", least=0.0)
        whole(self.degree, "BranchAndBound, degree")
        if self.starts is not None:
            whole(self.starts, "BranchAndBound, starts")
        number(self.seconds, "BranchAndBound, seconds", least=math.ulp(0.0))
        check_bounds("BranchAndBound", self.bounds)
        if self.certificate is not None and not isinstance(self.certificate, str | Path):
            raise InputError(
                f"BranchAndBound, certificate: expected a file name, got {self.certificate!r}"
            )
        if self.certificate is not None and self.scheme is not None:
            raise InputError(
                "BranchAndBound, certificate: is written only in continuous time; leave out scheme"
            )

    @property
    def name(self) -> str:
        """The method's name in results."""
        return f"BranchAndBound({self.scheme_object.name})" if self.scheme else "BranchAndBound"

    def with_certificate(self, path: str | Path) -> BranchAndBound:
        """Return the method that writes its proof to a file."""
        return replace(self, certificate=path)

    @property
    def scheme_object(self) -> Scheme:
        """The scheme as an object, also if it was given by name."""
        assert self.scheme is not None
        assert not isinstance(self.scheme, str)
        return self.scheme

    @property
    def mesh_object(self) -> Mesh:
        """The mesh as an object, also if it was given as a number of steps."""
        assert not isinstance(self.mesh, int)
        return self.mesh

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate the unknowns, and prove how close to the optimum the estimate is.

        Raises InputError if bounds are missing, or if equations or noise cannot be enclosed.
        """
        return self.solve_with_region(problem, control, None)[0]

    def solve_with_region(
        self, problem: Problem, control: Control, goal: RegionGoal | None
    ) -> tuple[Estimate, RegionTree | None]:
        """Return the estimate as :meth:`solve` does, and boxes outside which nothing fits.

        There are no boxes without a `goal`, or if no objective could be enclosed.
        """
        limits = control, self.seconds
        bounded = BoundedProblem.of(
            problem, self.bounds, *limits, self.engine, squares=self.scheme is not None
        )
        enclosure = self.enclosure(bounded.problem)
        leaves = None if self.certificate is None else LeafLog(bounded.problem, self.certificate)
        make = partial(self.enclosure, bounded.problem)
        with interruptible(bounded.control):
            local = self._local_search(bounded)
            gaps = self.gap, self.absolute_gap
            # A run with a longer limit continues one with a shorter limit.
            options = repr({k: v for k, v in vars(self).items() if k not in LEFT_OUT})
            search = TreeSearch(bounded, enclosure, make, local, *gaps, options, leaves, goal)
            search.run()
        estimate = Estimate(
            _starts(bounded, search, local),
            search.status,
            search.message,
            _certificate(bounded, search, enclosure),
            local.agreement,
        )
        return estimate, search.region

    def enclosure(self, problem: Problem) -> ResidualEnclosure:
        """Return the enclosure of the residuals, in continuous time or discretised."""
        if self.scheme is None:
            return Enclosure(problem, self.degree)
        return DiscretisedEnclosure(problem, self.scheme_object, self.mesh_object, self.degree)

    def _local_search(self, bounded: BoundedProblem) -> LocalAnswer:
        """Return the best local answer that can be found quickly."""
        control = bounded.local_control(LOCAL_SHARE)
        if self.start is not None:
            begin = np.array(self.start)
            if self.scheme is None:
                begin = _descended(bounded, begin, control)
            return LocalAnswer(begin, None, None, None)
        if self.scheme is None:
            local = MultiStart(SingleShooting(engine=self.engine), starts=self.starts)
            best = local.solve(bounded.problem, control).best
            return LocalAnswer(None if best is None else best.vector, best, None, None)
        method = LocalSearch(self.scheme_object, self.mesh_object, engine=self.engine)
        forward = bounded.forward
        d = Discretisation(bounded.problem, self.scheme_object, self.mesh_object)
        answer, start = mesh_search(method, forward, d, control, starts=self.starts)
        vector = None if start is None else start.vector
        agreement = None
        if answer is not None and answer.unknowns is not None:
            vector = answer.unknowns
            if answer.values is not None:
                agreement = measure_agreement(forward, d, answer)
        feasible = answer if answer is not None and answer.success else None
        return LocalAnswer(vector, start, agreement, feasible)


def _descended(bounded: BoundedProblem, vector: Array, control: Control) -> Array:
    """Return the end of a local search from these values, shape (n,), on the true trajectories.

    An integration takes a hundredth of the time in which a point is enclosed.
    """
    end = SingleShooting().run(bounded.forward, 0, vector, control, interior=False)
    return end.vector if end.status is Status.CONVERGED else vector


def _certificate(
    bounded: BoundedProblem, search: TreeSearch, enclosure: ResidualEnclosure
) -> Certificate | None:
    """Return the bounds of a search with all their conditions."""
    certificate = search.certificate
    if certificate is None:
        return None
    remarks = [] if enclosure.unique_solution else [ONE_SOLUTION]
    if search.local_answer is not None:
        remarks.append(NOT_ENCLOSED.format(search.local_answer.violation))
    return replace(certificate, assumed=bounded.assumed, remark=" ".join(remarks))


def _starts(bounded: BoundedProblem, search: TreeSearch, local: LocalAnswer) -> tuple[Start, ...]:
    """Return the incumbent on the true trajectories, and the best local start if it differs."""
    vector, forward = search.incumbent, bounded.forward
    if vector is None:
        return () if local.start is None else (local.start,)
    evaluation = forward.evaluate(vector, UNDECIDED)
    seconds = time.perf_counter() - bounded.began
    if isinstance(evaluation, Evaluation):
        end = Start(
            0,
            vector,
            vector,
            evaluation.objective,
            search.status,
            search.message,
            search.evaluated,
            seconds,
            evaluation.cost,
            {},
            evaluation.cost <= CostTolerance.of(forward).zero(forward.accuracy(evaluation.choice)),
        )
    else:
        failure = (math.inf, Status.FAILED, str(evaluation), search.evaluated, seconds, math.inf)
        end = Start(0, vector, vector, *failure)
    return (end,) if local.start is None else (end, replace(local.start, index=1))
