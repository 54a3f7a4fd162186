"""The campaign `global`: the gaps between lower and upper bounds by three methods, and their times.

After A. Miró et al., Deterministic global optimization algorithm based on outer approximation, and
the problems of Fernandez de Dios et al.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evidence.bounds import plan as plan
from evidence.running.campaign import Task
from odefit import (
    BranchAndBound,
    Collocation,
    Control,
    ForwardMap,
    InputError,
    OuterApproximation,
    Problem,
    Progress,
)
from odefit.discretisation.assembly import assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance, data_variation
from odefit.discretisation.mesh import UniformMesh
from odefit.methods.bounded_problem import finite_bounds
from odefit.methods.estimate import Certificate, Estimate
from odefit.methods.method import Method
from odefit.methods.outer_approximation.bound_tightening import FBBT, Infeasible
from odefit.methods.outer_approximation.master_problem import (
    master_problem,
    uniform_partition,
    variables_to_partition,
)
from odefit.methods.outer_approximation.relaxation import HyperPlanes
from odefit.methods.outer_approximation.standard_form import standard_form
from odefit.methods.outer_approximation.state_bounds import StateBounds
from odefit.methods.solvers.guarded_solve import solve_isolated
from odefit.methods.solvers.local_search import LocalSearch
from odefit.methods.solvers.mesh_search import mesh_search
from odefit.methods.solvers.scip import Scip
from odefit.methods.solvers.solver import Limits
from odefit.methods.transcription.transcription import LOCAL_SHARE

# Difference of bounds that is ignored, relative to the data's variation about their means: root
# mean squares of residuals of a thousandth of the data's spread
ABSOLUTE_GAP = 1e-6
ROUNDING = 1e-6  # relative amount by which a gap may exceed the requested gap


def run(task: Task) -> Mapping[str, Any]:
    """Run a task, and return its bounds.

    ``lower``, ``upper``; ``gap``, their distance over the upper one; ``closed``: the requested gap
    was reached; ``seconds`` of the whole run; ``count`` and ``unit``, of boxes, iterations or
    nodes; ``status``, ``message``, ``scope``; ``history``, a list of seconds, lower and upper
    bound; ``unknowns``, values by key at which the upper bound is reached, empty without a bound;
    ``sizes``, by name. Or ``refused``, in words, where the method cannot be run.
    """
    case = plan.CASES[task["case"]]
    methods = {plan.BRANCH: branch_and_bound, plan.OUTER: outer_approximation, plan.SCIP: scip}
    try:
        return methods[task["method"]](case, task["seconds"])
    except InputError as error:
        return {"refused": str(error)}


def branch_and_bound(case: plan.Case, seconds: float) -> Mapping[str, Any]:
    discretised = case.discretisation()
    options: dict[str, Any] = {}
    if discretised is not None:
        options = dict(zip(("scheme", "mesh"), discretised, strict=True))
    method = BranchAndBound(gap=case.gap, absolute_gap=ABSOLUTE_GAP, seconds=seconds, **options)
    problem = case.load()
    run = _Run(method, problem)
    enclosure = method.enclosure(problem)
    count = run.estimate.starts[0].evaluations if run.certificate is not None else 0
    sizes = {
        "unknowns": len(problem.unknowns),
        "residuals": enclosure.size,
        "coefficients": len(enclosure.monomials.degrees),
    }
    return run.result(count, "boxes") | {"sizes": sizes}


def outer_approximation(case: plan.Case, seconds: float) -> Mapping[str, Any]:
    """Run the paper's outer approximation with its settings."""
    method = OuterApproximation(
        elements=case.steps,
        points=case.points,
        absolute_gap=ABSOLUTE_GAP,
        seconds=seconds,
        polish=False,
        **case.options,
    )
    problem = case.load()
    run = _Run(method, problem)
    count = sum(step.stage == "master" for step in run.steps)
    sizes = {**nonlinear_size(case, problem), **master_size(method, problem)}
    return run.result(count, "iterations") | {"sizes": sizes}


class _Run:
    """A method's estimate, with its log on the clock of the whole run."""

    def __init__(self, method: Method, problem: Problem) -> None:
        self.problem = problem
        self._told = self._began = time.perf_counter()
        self.estimate: Estimate = method.solve(
            problem, Control(seed=plan.SEED, jobs=1, report=self._note)
        )
        self.seconds = time.perf_counter() - self._began
        self.certificate: Certificate | None = self.estimate.certificate

    def _note(self, _: Progress) -> None:
        self._told = time.perf_counter()

    @property
    def steps(self) -> Sequence[Any]:
        return () if self.certificate is None else self.certificate.history

    @property
    def history(self) -> list[list[float]]:
        """Return seconds, lower and upper bound of each step; the last has the time it was made."""
        if not self.steps:
            return []
        before = max(self._told - self._began - self.steps[-1].seconds, 0.0)
        return [[before + step.seconds, step.lower, step.upper] for step in self.steps]

    def result(self, count: int, unit: str) -> dict[str, Any]:
        found, estimate = self.certificate, self.estimate
        if found is None:
            return {"refused": f"no bounds: {estimate.message}"}
        unknowns: dict[str, float] = {}
        if math.isfinite(found.upper):
            vector = map(float, estimate.starts[0].vector)
            unknowns = dict(zip(self.problem.keys, vector, strict=True))
        return {
            "lower": found.lower,
            "upper": found.upper,
            "gap": gap(found.lower, found.upper),
            "closed": found.closed,
            "seconds": self.seconds,
            "count": count,
            "unit": unit,
            "status": estimate.status.value,
            "message": estimate.message,
            "scope": found.scope,
            "history": self.history,
            "unknowns": unknowns,
        }


def scip(case: plan.Case, seconds: float) -> Mapping[str, Any]:
    """Run SCIP on the same discretised problem, from the best local answer."""
    solver = Scip()
    absent = solver.missing()
    discretised = case.discretisation()
    if absent is not None or discretised is None:
        return {"refused": absent or "SCIP knows no continuous time"}
    began = time.perf_counter()
    scheme, mesh = discretised
    method = LocalSearch(scheme, mesh)
    problem = case.load()
    forward = ForwardMap(problem)
    d = method.discretisation(forward)
    control = Control(seed=plan.SEED, jobs=1).ending_in(LOCAL_SHARE * seconds)
    warm, _ = mesh_search(method, forward, d, control)
    values = None if warm is None else warm.values
    instance = Instance(d, Baseline(), values, None if warm is None else warm.unknowns)
    absolute = ABSOLUTE_GAP * data_variation(d)
    history: list[list[float]] = []
    if warm is not None and warm.success:
        history.append([time.perf_counter() - began, -math.inf, warm.objective])

    def note(upper: float, lower: float) -> None:
        if history:
            lower, upper = max(lower, history[-1][1]), min(upper, history[-1][2])
        if not history or history[-1][1:] != [lower, upper]:
            history.append([time.perf_counter() - began, lower, upper])

    left = max(seconds - (time.perf_counter() - began), 1.0)
    limits = Limits(left, 1, case.gap, absolute)
    answer = solve_isolated(solver, instance, limits, note)
    known = [a for a in (answer, warm) if a is not None and a.success and a.unknowns is not None]
    if not known:
        return {"refused": f"no feasible point: {answer.message}"}
    best = min(known, key=lambda a: a.objective)
    bound = -math.inf if answer.lower_bound is None else answer.lower_bound
    note(best.objective, min(bound, best.objective))
    lower = history[-1][1]
    taken = time.perf_counter() - began
    assert best.unknowns is not None
    return {
        "lower": lower,
        "upper": best.objective,
        "gap": gap(lower, best.objective),
        "closed": limits.met(best.objective, lower),
        "seconds": taken,
        "count": answer.iterations,
        "unit": "nodes",
        "status": answer.outcome.value,
        "message": answer.message,
        "scope": f"discretised ({d.described()})",
        "history": history,
        "unknowns": dict(zip(problem.keys, map(float, best.unknowns), strict=True)),
        "sizes": nonlinear_size(case, problem),
    }


def gap(lower: float, upper: float) -> float | None:
    """Return the gap relative to the upper bound; None where that is zero or not known."""
    if not (math.isfinite(lower) and math.isfinite(upper)) or not upper:
        return None
    return (upper - lower) / abs(upper)


def nonlinear_size(case: plan.Case, problem: Problem) -> dict[str, int]:
    discretised = case.discretisation()
    if discretised is None:
        return {}
    written = assemble(Discretisation(problem, *discretised), Baseline())
    free = int((written.lower < written.upper).sum())
    return {"NLP variables": free, "NLP equations": written.linear.shape[0]}


def master_size(method: OuterApproximation, problem: Problem) -> dict[str, int]:
    """Return the size of the first master problem, before bounds are tightened."""
    unknowns = finite_bounds(problem, method.bounds)
    d = Discretisation(
        problem, Collocation(method.points, "legendre"), UniformMesh(method.elements)
    )
    cut = data_variation(d) if method.cut is None else method.cut
    StateBounds.of(d, unknowns, method.bounds, cut).apply(d)
    form = standard_form(d)
    try:
        low, high = FBBT(form).tighten(form.lower, form.upper, cut)
    except Infeasible:
        return {}
    variables = variables_to_partition(form, low, high)
    partition = uniform_partition(low, high, variables, method.pieces)
    planes = HyperPlanes.uniform(len(form.residuals), method.hyperplanes)
    program = master_problem(form, low, high, planes, partition, cut)
    binaries = int(program.integer.sum())
    return {
        "MILP variables": len(program.integer) - binaries,
        "MILP binaries": binaries,
        "MILP equations": program.polyhedron.matrix.shape[0],
    }


@dataclass(frozen=True)
class Moment:
    """The bounds at one time."""

    seconds: float  # seconds, lower, upper: Time and bounds, as in the history
    lower: float
    upper: float


def moments(history: Sequence[Sequence[float | None]]) -> list[Moment]:
    """Return a history as read from a store, in which infinite numbers are None."""
    found = []
    for seconds, lower, upper in history:
        assert seconds is not None
        low = -math.inf if lower is None else lower
        found.append(Moment(seconds, low, math.inf if upper is None else upper))
    return found


def until(history: Sequence[Sequence[float | None]], asked: float) -> float | None:
    """Return the seconds after which the gap was at most `asked`; None if it was always larger."""
    for at in moments(history):
        near = (1.0 + ROUNDING) * asked * abs(at.upper)
        if math.isfinite(at.upper) and at.upper - at.lower <= near:
            return at.seconds
    return None
