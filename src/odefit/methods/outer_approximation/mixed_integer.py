"""Mixed-integer programs by HiGHS or SCIP.

The solver runs in a process of its own, which can be ended whenever the user likes: neither solver
notices a Ctrl-C while it is at work.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from odefit.methods.outer_approximation.fbbt import Infeasible
from odefit.methods.outer_approximation.linear_programs import minimise
from odefit.methods.outer_approximation.master_problem import MasterProblem
from odefit.methods.process import Child
from odefit.problem.arrays import Array, BoolArray
from odefit.problem.errors import InputError, one_of

GRACE = 20.0
"""Seconds past the time limit after which the process is ended from outside."""

TOLERANCE = 1e-6
"""Of rows and integrality, in scaled variables: the default of both solvers, or wider."""


@dataclass(frozen=True, eq=False)
class Job:
    """A scaled mixed-integer program as it travels.

    Attributes
    ----------
    cost, matrix, row_lower, row_upper, bounds, integer
        In scaled variables.
    gap
        Relative difference of bound and solution at which to stop.
    seconds
        Limit.
    """

    cost: Array
    matrix: csr_array
    row_lower: Array
    row_upper: Array
    bounds: Array
    integer: BoolArray
    gap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Found:
    """What a solver says.

    Attributes
    ----------
    bound
        Its lower bound; infinite if it finds the program infeasible, minus infinity without one.
    x
        Its best point, None without one.
    optimal
        Bound and point have met.
    message
        Its words.
    margin
        What its tolerances may be worth; already taken off a finite bound.
    """

    bound: float
    x: Array | None
    optimal: bool
    message: str
    margin: float = 0.0


class MixedIntegerSolver(Protocol):
    """One solver."""

    @property
    def name(self) -> str:
        """For results."""

    def missing(self) -> str | None:
        """Why it cannot run here; None if it can."""

    def solve(self, job: Job) -> Found:
        """Solve, in this process."""


@dataclass(frozen=True)
class Highs:
    """HiGHS, which comes with SciPy."""

    name: str = "HiGHS"

    def missing(self) -> str | None:
        """Nothing is."""
        return None

    def solve(self, job: Job) -> Found:
        """Solve, in this process."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        found = milp(
            job.cost,
            integrality=job.integer.astype(int),
            bounds=Bounds(job.bounds[:, 0], job.bounds[:, 1]),
            constraints=LinearConstraint(job.matrix, job.row_lower, job.row_upper),
            options={"time_limit": max(job.seconds, 0.05), "mip_rel_gap": job.gap},
        )
        if found.status == 2:
            return Found(math.inf, None, True, "infeasible")
        bound = found.mip_dual_bound
        bound = -math.inf if bound is None or not math.isfinite(bound) else float(bound)
        x = None if found.x is None else np.asarray(found.x, dtype=float)
        return Found(bound, x, found.status == 0, str(found.message))


@dataclass(frozen=True)
class Scip:
    """SCIP, an extra.

    Attributes
    ----------
    options
        Its parameters by name.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "SCIP"

    def missing(self) -> str | None:
        """Without the package PySCIPOpt."""
        if importlib.util.find_spec("pyscipopt") is None:
            return 'SCIP is not installed: pip install "odefit[global]", or take milp="highs"'
        return None

    def solve(self, job: Job) -> Found:
        """Solve, in this process."""
        import pyscipopt

        model = pyscipopt.Model()
        model.hideOutput()
        for option, value in self.options.items():
            model.setParam(option, value)
        model.setParam("limits/time", max(job.seconds, 0.05))
        model.setParam("limits/gap", job.gap)
        x = [
            model.addVar(lb=float(a), ub=float(b), vtype="B" if whole else "C", obj=float(c))
            for (a, b), whole, c in zip(job.bounds, job.integer, job.cost, strict=True)
        ]
        m = job.matrix
        for r in range(m.shape[0]):
            own = slice(int(m.indptr[r]), int(m.indptr[r + 1]))
            entries = zip(m.data[own].tolist(), m.indices[own].tolist(), strict=True)
            row = pyscipopt.quicksum(c * x[j] for c, j in entries)
            low, high = float(job.row_lower[r]), float(job.row_upper[r])
            if low == high:
                model.addCons(row == low)
                continue
            if math.isfinite(low):
                model.addCons(row >= low)
            if math.isfinite(high):
                model.addCons(row <= high)
        model.optimize()
        status = str(model.getStatus())
        if status == "infeasible":
            return Found(math.inf, None, True, status)
        bound = float(model.getDualbound())
        bound = -math.inf if abs(bound) >= float(model.infinity()) else bound
        point = None
        if model.getNSols():
            best = model.getBestSol()
            point = np.array([model.getSolVal(best, v) for v in x])
        return Found(bound, point, status in ("optimal", "gaplimit"), status)


MILP_SOLVERS: Mapping[str, Callable[[], MixedIntegerSolver]] = {"highs": Highs, "scip": Scip}
"""Those that can be asked for by name."""


def milp_solver(name: str) -> MixedIntegerSolver:
    """The solver `name`.

    Raises
    ------
    InputError
        There is none of this name.
    """
    if name not in MILP_SOLVERS:
        raise InputError(
            f"OuterApproximation, milp: unknown solver {name!r}{one_of(name, MILP_SOLVERS)}"
        )
    return MILP_SOLVERS[name]()


class SolverProcess:
    """A process with a solver, kept from one program to the next.

    Parameters
    ----------
    solver
        What solves.
    """

    def __init__(self, solver: MixedIntegerSolver) -> None:
        self._solver = solver
        self._child: Child | None = None

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> SolverProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def solve(
        self, program: MasterProblem, gap: float, seconds: float, stop: Callable[[], bool]
    ) -> Found:
        """Solve; the bound is that of the solver less a margin for its tolerances.

        The margin is what the optimum of the linear relaxation moves, to first order, if every
        row gives way by :data:`TOLERANCE` in scaled variables. Without a point from the solver,
        that of the linear relaxation stands in.

        Raises
        ------
        Infeasible
            The linear relaxation is proved to be empty.
        """
        p, s = program.polyhedron, program.polyhedron.scaled
        root = minimise(p, program.cost)
        if root.bound == math.inf:
            raise Infeasible
        if not program.integer.any():
            return Found(root.bound, root.x, root.x is not None, "linear")
        cost = program.cost * s.half
        size = float(np.abs(cost).max(initial=0.0)) or 1.0
        job = Job(
            cost / size, s.matrix, s.row_lower, s.row_upper, s.bounds, program.integer, gap, seconds
        )
        found = self._ask(job, stop)
        shift = float(program.cost @ s.centre)
        margin = 0.0
        if root.multipliers is not None:
            margin = TOLERANCE * float(np.abs(root.multipliers / s.row_scale).sum())
        bound = found.bound * size + shift - margin if math.isfinite(found.bound) else found.bound
        x = root.x if math.isfinite(found.bound) or not found.optimal else None
        if found.x is not None:
            x = np.clip(s.centre + s.half * found.x, p.lower, p.upper)
        return Found(max(bound, root.bound), x, found.optimal, found.message, margin)

    def _ask(self, job: Job, stop: Callable[[], bool]) -> Found:
        if self._child is None:
            self._child = Child()
        child = self._child
        child.call(self._solver.solve, job)
        message = child.wait(time.monotonic() + job.seconds + GRACE, stop)
        if message.kind == "returned":
            found: Found = message.content
            return found
        if message.kind != "raised":  # the solver still runs, or its process is gone
            self.close()
        reasons = {
            "raised": f"the solver failed: {message.content}",
            "died": message.content,
            "late": "the solver overran its time limit",
            "stopped": "stopped",
        }
        return Found(-math.inf, None, False, reasons[message.kind])
