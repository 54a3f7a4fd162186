"""Branch and bound over boxes of unknowns: the least objective, and the proof that it is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.mesh import Mesh, UniformMesh
from odefit.discretisation.schemes import SCHEMES, Scheme
from odefit.enclosure import Enclosure
from odefit.enclosure.discretised.residuals import DiscretisedEnclosure
from odefit.enclosure.residuals import standard_deviations
from odefit.methods.branch_and_bound.examination import Enclosed, Examiners
from odefit.methods.branch_and_bound.local import objective, refined
from odefit.methods.branch_and_bound.saving import SavedTree
from odefit.methods.branch_and_bound.tree import Tree
from odefit.methods.checkpoint import fingerprint
from odefit.methods.control import Control, Progress, interruptible
from odefit.methods.cost_tolerance import CostTolerance
from odefit.methods.estimate import Agreement, BoundStep, Certificate, Estimate, Start, Status
from odefit.methods.finite_bounds import (
    Given,
    assumed,
    check_given,
    check_names,
    finite_bounds,
    within,
)
from odefit.methods.multi_start import MultiStart
from odefit.methods.single_shooting import SingleShooting
from odefit.methods.solvers.agreement import measure_agreement
from odefit.methods.solvers.local_search import LocalSearch
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.solver import Answer
from odefit.methods.workers import Workers
from odefit.problem.arrays import Array
from odefit.problem.errors import InputError, one_of
from odefit.problem.option_checks import number, whole
from odefit.problem.problem import Problem
from odefit.simulation import Evaluation, ForwardMap
from odefit.simulation.engines import EngineName

LOCAL_SHARE = 0.25
"""Of the time, for the local search that comes first, at most."""

SHORTEST = 0.01
"""Seconds that a search is given at least, however late it is."""

LOGGED = 1.1
"""Ratio of the times of two entries of the log, at least."""

UNCERTAIN = 1e-6
"""How much lower, relatively, a local solver's answer has to be to replace one that is enclosed."""

SOLVED = (
    "The upper bound is that of a local solver, whose answer meets the equations to {:.0e}: it "
    "could not be enclosed."
)
"""Said of an upper bound that is no more certain than its solver."""

CONTINUED = (
    "Of the solutions of the discretised equations, those that Newton's iteration finds from point "
    "to point are meant: others, which nonlinear equations of a scheme may have, are not."
)
"""Said of bounds where a discretised problem may have several solutions for the same unknowns."""


@dataclass(frozen=True)
class BranchAndBound:
    """The global optimum with a proof, in the space of the unknowns alone.

    Over a box of unknowns, the residuals are enclosed by polynomials with remainders, rounded
    outwards throughout. What cannot be better than the best answer known is discarded; the rest is
    shrunk, or divided. The bounds are rigorous: they hold in exact arithmetic.

    Attributes
    ----------
    scheme, mesh
        Discretisation that the bounds are of, as :class:`Transcription` takes them; without a
        scheme they hold in continuous time.
    gap
        (upper - lower) / upper at which to stop.
    absolute_gap
        The same as an absolute difference, over the sum of squares of the data about their means.
    degree
        Of the polynomials in the unknowns.
    bounds
        Bounds by name of unknown, for those that have none; ``"propose"`` accepts what the data
        suggest.
    starts
        Of the local search that comes first.
    seconds
        Limit where the fit has none of its own.
    engine
        Of the local search.

    Raises
    ------
    InputError
        An option makes no sense.

    Examples
    --------
    >>> import odefit
    >>> problem = odefit.library.load("harmonic")
    >>> result = odefit.fit(problem, odefit.BranchAndBound(), seed=1)
    >>> result.assessment.bounds.scope
    'continuous time'
    """

    scheme: Scheme | str | None = None
    mesh: Mesh | int = 30
    gap: float = 1e-3
    absolute_gap: float = 1e-6
    degree: int = 2
    bounds: Given = None
    starts: int | None = None
    seconds: float = 600.0
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.scheme, str):
            if self.scheme not in SCHEMES:
                raise InputError(f"unknown scheme {self.scheme!r}{one_of(self.scheme, SCHEMES)}")
            object.__setattr__(self, "scheme", SCHEMES[self.scheme])
        elif self.scheme is not None and not hasattr(self.scheme, "relations"):
            raise InputError(
                f"BranchAndBound, scheme: expected one of {', '.join(SCHEMES)}, got {self.scheme!r}"
            )
        if isinstance(self.mesh, int | np.integer):
            whole(self.mesh, "BranchAndBound, mesh")
            object.__setattr__(self, "mesh", UniformMesh(int(self.mesh)))
        elif not hasattr(self.mesh, "points"):
            raise InputError(
                f"BranchAndBound, mesh: expected a whole number or a mesh, got {self.mesh!r}"
            )
        number(self.gap, "BranchAndBound, gap", least=0.0, most=1.0)
        number(self.absolute_gap, "BranchAndBound, absolute_gap", least=0.0)
        whole(self.degree, "BranchAndBound, degree")
        if self.starts is not None:
            whole(self.starts, "BranchAndBound, starts")
        number(self.seconds, "BranchAndBound, seconds", least=math.ulp(0.0))
        check_given("BranchAndBound", self.bounds)

    @property
    def name(self) -> str:
        """For results."""
        return f"BranchAndBound({self.scheme_object.name})" if self.scheme else "BranchAndBound"

    @property
    def scheme_object(self) -> Scheme:
        """The scheme, whether it was given by name or not."""
        assert self.scheme is not None
        assert not isinstance(self.scheme, str)
        return self.scheme

    @property
    def mesh_object(self) -> Mesh:
        """The mesh, whether it was given as a number or not."""
        assert not isinstance(self.mesh, int)
        return self.mesh

    def solve(self, problem: Problem, control: Control) -> Estimate:
        """Estimate, and prove how good the estimate is.

        Raises
        ------
        InputError
            Bounds are missing, or the equations or the noise cannot be enclosed.
        """
        check_names(problem, self.bounds)
        given = problem
        began = time.perf_counter()
        deadline = control.deadline if control.deadline is not None else time.time() + self.seconds
        control = replace(control, deadline=deadline)
        bounds = finite_bounds(problem, self.bounds)
        problem = within(problem, bounds)
        enclosure = self.enclosure(problem)
        with interruptible(control):
            forward = ForwardMap(problem, self.engine)
            local = self._locally(forward, control)
            search = _Search(self, enclosure, problem, local, control, began)
            search.run()
        certificate = search.certificate
        if certificate is not None:
            remarks = [] if enclosure.unique else [CONTINUED]
            if search.solved is not None:
                remarks.append(SOLVED.format(search.solved.violation))
            certificate = replace(
                certificate, assumed=assumed(given, bounds), remark=" ".join(remarks)
            )
        return Estimate(
            self._ends(forward, search, local, began),
            search.status,
            search.message,
            certificate,
            local.agreement,
        )

    def enclosure(self, problem: Problem) -> Enclosed:
        """Residuals over boxes, in continuous time or discretised."""
        if self.scheme is None:
            return Enclosure(problem, self.degree)
        return DiscretisedEnclosure(problem, self.scheme_object, self.mesh_object, self.degree)

    def _locally(self, forward: ForwardMap, control: Control) -> _Local:
        """The best local answer that is quickly found."""
        assert control.deadline is not None
        left = max(control.deadline - time.time(), SHORTEST)
        limited = replace(control, deadline=time.time() + LOCAL_SHARE * left, checkpoint=None)
        problem = forward.problem
        if self.scheme is None:
            found = MultiStart(SingleShooting(engine=self.engine), starts=self.starts)
            best = found.solve(problem, limited).best
            return _Local(None if best is None else best.vector, best, None, None)
        method = LocalSearch(self.scheme_object, self.mesh_object, engine=self.engine)
        d = Discretisation(problem, self.scheme_object, self.mesh_object)
        answer, true = mesh_search(method, forward, d, limited, starts=self.starts)
        feasible = answer if answer is not None and answer.success else None
        return _Local(_vector(answer, true), true, _agreement(forward, d, answer), feasible)

    def _ends(
        self, forward: ForwardMap, search: _Search, local: _Local, began: float
    ) -> tuple[Start, ...]:
        """The answer on the true trajectories, and the best local one if that is another."""
        vector = search.vector
        if vector is None:
            return () if local.true is None else (local.true,)
        evaluation = forward.evaluate(vector)
        seconds = time.perf_counter() - began
        if isinstance(evaluation, Evaluation):
            end = Start(
                0,
                vector,
                vector,
                evaluation.objective,
                search.status,
                search.message,
                search.boxes,
                seconds,
                evaluation.cost,
                {},
                evaluation.cost <= CostTolerance.of(forward).zero(forward.accuracy),
            )
        else:
            lost = (math.inf, Status.FAILED, str(evaluation), search.boxes, seconds, math.inf)
            end = Start(0, vector, vector, *lost)
        return (end,) if local.true is None else (end, replace(local.true, index=1))


@dataclass(frozen=True, eq=False)
class _Local:
    """What the local search found.

    Attributes
    ----------
    vector
        Where the enclosure's own local search begins.
    true
        The best on the true trajectories.
    agreement
        How far the discretised answer is from these.
    feasible
        The discretised answer, if it meets its equations.
    """

    vector: Array | None
    true: Start | None
    agreement: Agreement | None
    feasible: Answer | None


def _vector(answer: Answer | None, true: Start | None) -> Array | None:
    if answer is not None and answer.unknowns is not None:
        return answer.unknowns
    return None if true is None else true.vector


def _agreement(forward: ForwardMap, d: Discretisation, answer: Answer | None) -> Agreement | None:
    if answer is None or answer.values is None or answer.unknowns is None:
        return None
    return measure_agreement(forward, d, answer)


class _Search:
    """From a local answer to bounds that meet, or to the end of the time."""

    def __init__(
        self,
        method: BranchAndBound,
        enclosure: Enclosed,
        problem: Problem,
        local: _Local,
        control: Control,
        began: float,
    ) -> None:
        self._method, self._enclosure, self._control = method, enclosure, control
        self._problem = problem
        self._lower, self._upper = problem.lower, problem.upper
        self._began = began
        self._negligible = method.absolute_gap * variation(problem)
        self._history: list[BoundStep] = []
        self.vector: Array | None = None
        self.upper_bound = math.inf
        self.lower_bound = 0.0
        self.boxes = 0
        self.solved: Answer | None = None
        for point in (local.vector, (problem.lower + problem.upper) / 2):
            if point is not None and self.vector is None:
                self._improve(point)
        answer = local.feasible
        if answer is not None and answer.objective < self.upper_bound * (1 - UNCERTAIN):
            self.solved, self.vector, self.upper_bound = answer, answer.unknowns, answer.objective
        self.lower_bound = min(enclosure.floor, self.upper_bound)

    def _improve(self, point: Array) -> bool:
        """Whether a local minimum next to `point` is better."""
        stop: Callable[[], bool] = self._control.should_stop
        vector = np.clip(point, self._lower, self._upper)
        found = objective(self._enclosure, vector)
        if found > self._negligible:  # nothing is much below: data without noise
            vector, found = refined(self._enclosure, point, self._lower, self._upper, stop)
        if found >= self.upper_bound:
            return False
        self.solved, self.vector, self.upper_bound = None, vector, found
        return True

    @property
    def _target(self) -> float:
        """What has to be refuted: anything below."""
        if math.isinf(self.upper_bound):
            return math.inf
        return max(
            self.upper_bound - max(self._method.gap * self.upper_bound, self._negligible), 0.0
        )

    @property
    def closed(self) -> bool:
        """The bounds have met, for what was asked."""
        return math.isfinite(self.upper_bound) and self.lower_bound >= self._target

    def run(self) -> None:
        """Until the bounds meet, or the time is over."""
        self._log("local search", 1)
        if self.closed or math.isinf(self.upper_bound):
            return
        with Workers(self._control) as workers:
            make = partial(self._method.enclosure, self._problem)
            self._divide(Examiners(self._enclosure, make, workers))

    def _divide(self, examiners: Examiners) -> None:
        bounds = self._lower, self._upper, self.upper_bound, self._target
        tree = Tree(self._enclosure, *bounds, examiners)
        saved = self._saved()
        if saved is not None and saved.resume(tree):
            self._note(tree)
            self._log("resumed", 1, tree.left, always=True)
        turn = 0
        for turn, _ in enumerate(tree.run(self._control.should_stop), start=1):
            if tree.best is not None:
                if self._improve(tree.best):
                    tree.aim(self.upper_bound, self._target)
                tree.best = None
            self._note(tree)
            self._log("boxes", turn, tree.left)
            if saved is not None:
                saved.save(tree)
        if saved is not None:
            saved.save(tree, now=True)
        self._note(tree)
        self._log("boxes", turn, tree.left, always=True)

    def _note(self, tree: Tree) -> None:
        # What was proved stays proved, also when a better point lowers the target.
        self.lower_bound = max(self.lower_bound, min(tree.lower_bound, self.upper_bound))
        self.boxes = tree.boxes

    def _saved(self) -> SavedTree | None:
        """Where the boxes are kept, if they are to be."""
        path = self._control.checkpoint
        if path is None:
            return None
        options = {"method": repr(self._method), "scope": self._enclosure.scope}
        return SavedTree(path, fingerprint(self._problem, options))

    def _log(self, stage: str, iteration: int, left: int = 0, always: bool = False) -> None:
        seconds = time.perf_counter() - self._began
        step = BoundStep(stage, iteration, self.lower_bound, self.upper_bound, seconds)
        before = self._history[-1] if self._history else None
        moved = before is None or before.lower < step.lower or before.upper > step.upper
        if always or before is None or (moved and seconds >= LOGGED * before.seconds):
            self._history.append(step)
        if self._control.report is not None:
            said = f"{self.boxes} boxes, {left} left: {step.lower:.5g} <= optimum"
            if math.isfinite(step.gap):
                said += f" <= {step.upper:.5g} (gap {step.gap:.2%})"
            self._control.report(Progress(0, 0, self.upper_bound, 0, said))

    @property
    def status(self) -> Status:
        """How it ended."""
        if self.vector is None:
            return Status.FAILED
        if self.closed:
            return Status.CONVERGED
        if self._control.interrupted.is_set():
            return Status.INTERRUPTED
        if self._control.out_of_time:
            return Status.TIME_LIMIT
        return Status.NOT_CONVERGED

    @property
    def message(self) -> str:
        """In words."""
        if self.vector is None:
            return "no point was found whose residuals can be enclosed"
        said = "the bounds have met" if self.closed else "the bounds have not met"
        return f"{said} after {self.boxes} boxes"

    @property
    def certificate(self) -> Certificate | None:
        """The bounds."""
        if math.isinf(self.upper_bound):
            return None
        return Certificate(
            self.lower_bound,
            self.upper_bound,
            self._enclosure.scope,
            closed=self.closed,
            history=tuple(self._history),
            solver="branch and bound over boxes",
            negligible=self._negligible,
            rigorous=True,
        )


def variation(problem: Problem) -> float:
    """What a fit has to explain: the weighted data's sum of squares about their means, or 1."""
    total = 0.0
    for condition in problem.conditions:
        for name, series in condition.series.items():
            sds = standard_deviations(problem, condition, name)
            total += float(np.sum(((series.values - series.values.mean()) / sds) ** 2))
    return total if math.isfinite(total) and total > 0 else 1.0
