"""Mixed-integer linear programs (MILP) by HiGHS or SCIP.

The solver runs in a separate process, which can be stopped at any time: neither solver reacts to
Ctrl-C while it works.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from odefit.common.arrays import Array, BoolArray
from odefit.common.errors import InputError, one_of
from odefit.methods.outer_approximation.bound_tightening import Infeasible
from odefit.methods.outer_approximation.linear_programs import ScaledPolyhedron, minimise
from odefit.methods.outer_approximation.master_problem import MasterProblem
from odefit.methods.running.child import Child

GRACE_PERIOD = 20.0
"""Seconds past the time limit after which the process is stopped from outside."""

FEASIBILITY_TOLERANCE = 1e-6
"""Tolerance of rows and of integrality, in scaled variables: at least both solvers' default."""

LEAST_SECONDS = 0.05
"""Smallest time limit of a solver, in seconds."""

SCIPY_INFEASIBLE = 2
"""The status of :func:`scipy.optimize.milp` for an infeasible program."""


@dataclass(frozen=True, eq=False)
class MixedIntegerProgram:
    """A mixed-integer linear program in scaled variables, as it is sent to a solver.

    It minimises `cost`, shape (columns,), with integer values in the columns `integer`, to the
    relative `gap` between bound and solution.
    """

    polyhedron: ScaledPolyhedron
    cost: Array
    integer: BoolArray
    gap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class MixedIntegerOptimum:
    """The outcome of a mixed-integer program: lower bound, best point, and solver's message.

    The bound is infinite if the solver finds the program infeasible, and minus infinity if it has
    no bound. The outcome is `optimal` if bound and point have met. The `margin`, the possible
    effect of the solver's tolerances, is already subtracted from a finite bound.
    """

    bound: float
    x: Array | None
    optimal: bool
    message: str
    margin: float = 0.0


class MixedIntegerSolver(Protocol):
    """A solver of mixed-integer linear programs, with its options as fields."""

    @property
    def name(self) -> str:
        """The solver's name in results."""

    def missing(self) -> str | None:
        """Return the reason why the solver cannot run here, None if it can."""

    def solve(self, program: MixedIntegerProgram) -> MixedIntegerOptimum:
        """Solve a program in this process."""


@dataclass(frozen=True)
class Highs:
    """The solver HiGHS, which comes with SciPy."""

    name: str = "HiGHS"

    def missing(self) -> str | None:
        """Return None: SciPy is always installed."""
        return None

    def solve(self, program: MixedIntegerProgram) -> MixedIntegerOptimum:
        """Solve a program in this process."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        p = program.polyhedron
        outcome = milp(
            program.cost,
            integrality=program.integer.astype(int),
            bounds=Bounds(p.bounds[:, 0], p.bounds[:, 1]),
            constraints=LinearConstraint(p.matrix, p.row_lower, p.row_upper),
            options={"time_limit": program.seconds, "mip_rel_gap": program.gap},
        )
        if outcome.status == SCIPY_INFEASIBLE:
            return MixedIntegerOptimum(math.inf, None, True, "infeasible")
        bound = outcome.mip_dual_bound
        bound = -math.inf if bound is None or not math.isfinite(bound) else float(bound)
        x = None if outcome.x is None else np.asarray(outcome.x, dtype=float)
        return MixedIntegerOptimum(bound, x, outcome.status == 0, str(outcome.message))


@dataclass(frozen=True)
class Scip:
    """The solver SCIP, which an extra installs.

    Attributes
    ----------
    options
        SCIP's parameters by name.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "SCIP"

    def missing(self) -> str | None:
        """Return a hint to install the package PySCIPOpt, None if it is installed."""
        if importlib.util.find_spec("pyscipopt") is None:
            return 'SCIP is not installed: pip install "odefit[global]", or take milp="highs"'
        return None

    def solve(self, program: MixedIntegerProgram) -> MixedIntegerOptimum:
        """Solve a program in this process."""
        import pyscipopt

        model = pyscipopt.Model()
        model.hideOutput()
        limits = {"limits/time": program.seconds, "limits/gap": program.gap}
        for option, value in {**self.options, **limits}.items():
            model.setParam(option, value)
        p = program.polyhedron
        columns = zip(p.bounds.tolist(), program.integer, program.cost.tolist(), strict=True)
        x = [
            model.addVar(lb=low, ub=high, vtype="B" if whole else "C", obj=cost)
            for (low, high), whole, cost in columns
        ]
        m = p.matrix
        sides = zip(p.row_lower.tolist(), p.row_upper.tolist(), strict=True)
        for r, (low, high) in enumerate(sides):
            row_entries = slice(int(m.indptr[r]), int(m.indptr[r + 1]))
            entries = zip(
                m.data[row_entries].tolist(), m.indices[row_entries].tolist(), strict=True
            )
            row = pyscipopt.quicksum(c * x[j] for c, j in entries)
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
            return MixedIntegerOptimum(math.inf, None, True, status)
        bound = float(model.getDualbound())
        bound = -math.inf if abs(bound) >= float(model.infinity()) else bound
        point = None
        if model.getNSols():
            best = model.getBestSol()
            point = np.array([model.getSolVal(best, v) for v in x])
        return MixedIntegerOptimum(bound, point, status in ("optimal", "gaplimit"), status)


MILP_SOLVERS: Mapping[str, Callable[[], MixedIntegerSolver]] = {"highs": Highs, "scip": Scip}
"""The solvers by name."""


def milp_solver(name: str) -> MixedIntegerSolver:
    """Return the solver `name`; refuse any other name."""
    if name not in MILP_SOLVERS:
        raise InputError(
            f"OuterApproximation, milp: unknown solver {name!r}{one_of(name, MILP_SOLVERS)}"
        )
    return MILP_SOLVERS[name]()


class SolverProcess:
    """A process with a solver, kept between programs; 0 bytes of memory mean no limit."""

    def __init__(self, solver: MixedIntegerSolver, memory: int = 0) -> None:
        self._solver = solver
        self._memory = memory
        self._child: Child | None = None

    def close(self) -> None:
        """Stop the process."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> SolverProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def solve(
        self, program: MasterProblem, gap: float, seconds: float, stop: Callable[[], bool]
    ) -> MixedIntegerOptimum:
        """Solve a master problem; the bound is the solver's minus a margin for its tolerances.

        The margin is the change of the linear relaxation's optimum, to first order, if every row is
        relaxed by :data:`FEASIBILITY_TOLERANCE` in scaled variables. Without a point from the
        solver, that of the linear relaxation replaces it. Raises Infeasible if that relaxation is
        proved to be empty.
        """
        p, s = program.polyhedron, program.polyhedron.scaled
        root = minimise(p, program.cost)
        if root.bound == math.inf:
            raise Infeasible
        if not program.integer.any():
            return MixedIntegerOptimum(root.bound, root.x, root.x is not None, "linear")
        cost = program.cost * s.half
        size = float(np.abs(cost).max(initial=0.0)) or 1.0
        limits = gap, max(seconds, LEAST_SECONDS)
        optimum = self._ask(MixedIntegerProgram(s, cost / size, program.integer, *limits), stop)
        margin = 0.0
        if root.multipliers is not None:
            margin = FEASIBILITY_TOLERANCE * float(np.abs(root.multipliers / s.row_scale).sum())
        bound = optimum.bound
        if math.isfinite(bound):
            bound = bound * size + float(program.cost @ s.centre) - margin
        x = root.x if math.isfinite(bound) or not optimum.optimal else None
        if optimum.x is not None:
            x = np.clip(s.centre + s.half * optimum.x, p.lower, p.upper)
        return replace(optimum, bound=max(bound, root.bound), x=x, margin=margin)

    def _ask(self, program: MixedIntegerProgram, stop: Callable[[], bool]) -> MixedIntegerOptimum:
        if self._child is None:
            self._child = Child(self._memory)
        self._child.call(self._solver.solve, program)
        message = self._child.wait(time.monotonic() + program.seconds + GRACE_PERIOD, stop)
        if message.kind == "returned":
            optimum: MixedIntegerOptimum = message.content
            return optimum
        if message.kind != "raised":  # the solver still runs, or its process has died
            self.close()
        reasons = {
            "raised": f"the solver failed: {message.content}",
            "died": message.content,
            "late": "the solver overran its time limit",
            "stopped": "stopped",
        }
        return MixedIntegerOptimum(-math.inf, None, False, reasons[message.kind])
