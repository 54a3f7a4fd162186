"""SCIP, a global solver: spatial branch and bound (Bestuzheva et al., 2023)."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.assembly import assemble
from odefit.discretisation.instance import Instance, data_variation
from odefit.methods.solvers.solver import (
    Answer,
    BoundingAlgebra,
    Limits,
    Outcome,
    Progress,
    make_answer,
)

_LIMITS = "time node totalnode stallnode mem sol bestsol restart".split()
OUTCOMES = {
    **dict.fromkeys(("optimal", "gaplimit"), Outcome.SOLVED),
    **dict.fromkeys((*(f"{name}limit" for name in _LIMITS), "userinterrupt"), Outcome.LIMIT),
    **dict.fromkeys(("infeasible", "unbounded", "inforunbd"), Outcome.INFEASIBLE),
}
"""Outcomes by SCIP's status; all others are failures."""

REPORT_INTERVAL = 0.5
"""Seconds between reports of a bound; a new best point is reported at once."""


class ScipAlgebra(BoundingAlgebra):
    """SCIP expressions, and floats where values are known."""

    solver = "SCIP"

    def constant_power(self, base: Any, exponent: float) -> Any:
        return base**exponent if exponent else 1.0

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        import pyscipopt

        x = arguments[0]
        if function in {"exp", "log", "sqrt", "sin", "cos"}:
            module = math if isinstance(x, float) else pyscipopt
            return getattr(module, function)(x)
        if function == "log10":
            return self.call("log", [x]) / math.log(10.0)
        if function == "tan":
            return self.call("sin", [x]) / self.call("cos", [x])
        if function == "tanh":
            return 1.0 - 2.0 / (self.call("exp", [2.0 * x]) + 1.0)
        if function in {"sinh", "cosh"}:
            up, down = self.call("exp", [x]), self.call("exp", [-x])
            return (up - down if function == "sinh" else up + down) / 2.0
        self.refuse(function)


@dataclass(frozen=True)
class Scip:
    """SCIP, which proves a bound for its answer.

    Attributes
    ----------
    lift
        Whether every right-hand side is a separate variable, instead of an expression in each row
        that uses it (measured on harmonic, 10 steps: 1.0 s instead of 7.2 s).
    resolution
        Differences of the objective below this fraction of its scale count as zero; SCIP's own
        tolerances are of this size. The scale is the data's sum of squares about their means, or
        the objective at the best known point, but at least this fraction of the former.
    options
        SCIP's parameters by name, such as ``{"numerics/feastol": 1e-7}``.
    """

    lift: bool = True
    resolution: float = 1e-6
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "SCIP"
    scope: Literal["global"] = "global"

    def missing(self) -> str | None:
        """Return the name of the package to install, if PySCIPOpt is missing."""
        if importlib.util.find_spec("pyscipopt") is None:
            return 'SCIP is not installed: pip install "odefit[global]"'
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Return the global optimum within the bounds.

        Raises InputError if SCIP is not installed, does not know an option, or cannot bound a
        function of the model.
        """
        return self.follow(instance, limits, None)

    def follow(self, instance: Instance, limits: Limits, progress: Progress | None) -> Answer:
        """Solve like :meth:`solve`, calling `progress` with every best point and bound."""
        if (reason := self.missing()) is not None:
            raise InputError(reason)
        model = _Model(self, instance, progress)
        answer = model.run(limits)
        # It stopped at differences that count as zero, but not on the scale of the best point.
        while _undecided(answer, limits):
            left = None if limits.seconds is None else limits.seconds - answer.seconds
            again = replace(instance, values=answer.values, unknowns=answer.unknowns)
            finer = _Model(self, again, progress)
            finer.proved = answer.lower_bound
            if finer.scale > 0.1 * model.scale:
                break
            if left is not None and left <= 0:
                return replace(answer, outcome=Outcome.LIMIT, message="timelimit")
            answer = _together(answer, finer.run(replace(limits, seconds=left)))
            model = finer
        return answer


HARMLESS_WARNING = "without GMP"
"""Part of a warning that SoPlex, SCIP's linear solver, writes for options that it lacks."""


class _StandardErrorFilter:
    """A context in which harmless warnings do not reach standard error.

    They come from compiled code, so the file descriptor itself is redirected. Solves in several
    threads share one filter.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                sys.stderr.flush()
                self._log = tempfile.TemporaryFile()
                self._stderr = os.dup(2)
                os.dup2(self._log.fileno(), 2)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            sys.stderr.flush()
            os.dup2(self._stderr, 2)
            os.close(self._stderr)
            self._log.seek(0)
            lines = self._log.read().decode("utf-8", errors="replace").splitlines(keepends=True)
            self._log.close()
            sys.stderr.write("".join(line for line in lines if HARMLESS_WARNING not in line))


_FILTER = _StandardErrorFilter()


def _undecided(answer: Answer, limits: Limits) -> bool:
    """Return whether the bounds are further apart than the limits require."""
    if not answer.solved or answer.lower_bound is None:
        return False
    return math.isfinite(answer.objective) and not limits.met(answer.objective, answer.lower_bound)


def _together(first: Answer, second: Answer) -> Answer:
    """Return the answer of two solves, the second of which continued the first."""
    seconds, iterations = first.seconds + second.seconds, first.iterations + second.iterations
    if not second.success:
        words = f"gap limit on a coarse scale, then {second.message}"
        limit = replace(first, outcome=Outcome.LIMIT, message=words)
        return replace(limit, seconds=seconds, iterations=iterations)
    bounds = [b for b in (first.lower_bound, second.lower_bound) if b is not None]
    best = min(first, second, key=lambda a: a.objective)
    return replace(
        best,
        outcome=second.outcome,
        lower_bound=max(bounds, default=None),
        seconds=seconds,
        message=second.message,
        iterations=iterations,
    )


class _Model:
    """The instance as a model of PySCIPOpt, which minimises objective / `scale`.

    `proved` is a lower bound that an earlier solve has proved.
    """

    def __init__(self, solver: Scip, instance: Instance, progress: Progress | None) -> None:
        import pyscipopt

        self._scip = pyscipopt
        self._solver = solver
        self._instance = instance
        self._progress = progress
        self._assembly = assemble(instance.discretisation, instance.formulation)
        self._start = self._packed_start()
        self.scale = self._scale()
        self.model = pyscipopt.Model()
        self.model.hideOutput()
        for option, value in solver.options.items():
            try:
                self.model.setParam(option, value)
            except (KeyError, ValueError, TypeError) as error:
                raise InputError(f"SCIP: option {option} = {value!r} is not accepted") from error
        self.proved: float | None = None
        self._start_values: list[tuple[Any, float]] = []  # the start, variable by variable
        self._build()

    def _build(self) -> None:
        a, model, quicksum = self._assembly, self.model, self._scip.quicksum
        self._w = [
            model.addVar(lb=_finite(low), ub=_finite(high))
            for low, high in zip(a.lower.tolist(), a.upper.tolist(), strict=True)
        ]
        if self._start is not None:
            self._start_values += zip(self._w, self._start.tolist(), strict=True)
        known = a.known(self._w)
        outputs = [self._w, *(self._outputs(b, known) for b in a.discretisation.blocks)]
        for low, high, parts in a.rows():
            row = quicksum(
                weight * variables[number]
                for variables, (numbers, weights) in zip(outputs, parts, strict=True)
                for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True)
            )
            self._constrain(row, low, high)
        self._minimise(known)

    def _constrain(self, row: Any, low: float, high: float) -> None:
        if isinstance(row, float | int):  # everything is known: the start has been checked already
            row = row + 0.0 * self._w[0]
        if low == high:
            self.model.addCons(row == low)
        elif math.isfinite(low) and math.isfinite(high):
            self.model.addCons((row >= low) <= high)
        elif math.isfinite(low):
            self.model.addCons(row >= low)
        else:
            self.model.addCons(row <= high)

    def _outputs(self, block: Any, known: list[Any]) -> list[Any]:
        a = self._assembly
        expressions = self._defined(lambda: a.evaluated(block, known, ScipAlgebra()))
        expressions = [output for outputs in expressions for output in outputs]
        if not self._solver.lift:
            return expressions
        values = self._values(block)
        lifted: list[Any] = []
        for number, expression in enumerate(expressions):
            if isinstance(expression, float):
                lifted.append(expression)
                continue
            variable = self.model.addVar(lb=None, ub=None)
            self.model.addCons(variable == expression)
            lifted.append(variable)
            if values is not None:
                self._start_values.append((variable, float(values[number])))
        return lifted

    def _defined(self, evaluate: Callable[[], list[Any]]) -> list[Any]:
        """Return expressions, or refuse a model that is undefined at its known values."""
        try:
            return evaluate()
        except (ZeroDivisionError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"SCIP: the model is not defined at its known values ({error})"
            ) from error

    def _values(self, block: Any) -> Array | None:
        """Return the outputs of a block at the start."""
        if self._start is None:
            return None
        values, unknowns = self._assembly.unpack(self._start)
        d = self._assembly.discretisation
        return np.column_stack(d.outputs(block, values, unknowns)).ravel()

    def _minimise(self, known: list[Any]) -> None:
        """Bound the objective from above by a variable near one, and minimise that."""
        a = self._assembly
        total = self._defined(lambda: a.objective_terms(known, ScipAlgebra()))
        self._likelihood = a.likelihood
        top = self.model.addVar(lb=None if self._likelihood else 0.0, ub=None)
        self.model.addCons(self._scip.quicksum(t / self.scale for t in total) <= top)
        self.model.setObjective(top)
        if self._start is not None:
            self._start_values.append((top, self._start_objective() / self.scale * (1 + 1e-9)))

    def _packed_start(self) -> Array | None:
        i = self._instance
        if i.values is None or i.unknowns is None:
            return None
        if not (np.isfinite(i.values).all() and np.isfinite(i.unknowns).all()):
            return None
        return self._assembly.start(i)

    def _start_objective(self) -> float:
        """Return the objective at the start, with penalties."""
        assert self._start is not None
        a = self._assembly
        values, unknowns = a.unpack(self._start)
        slacks = self._start[a.size - a.constraints.slacks :]
        return a.discretisation.objective(values, unknowns) + a.constraints.penalty * float(
            slacks.sum()
        )

    def _scale(self) -> float:
        scale = data_variation(self._assembly.discretisation)
        if self._start is not None:
            objective = self._start_objective()
            if math.isfinite(objective):
                scale = float(np.clip(abs(objective), self._solver.resolution * scale, scale))
        return scale

    def run(self, limits: Limits) -> Answer:
        """Solve within the limits."""
        model = self.model
        if limits.seconds is not None:
            model.setParam("limits/time", max(limits.seconds, 1e-3))
        model.setParam("parallel/maxnthreads", limits.threads)
        model.setParam("limits/gap", limits.gap)
        gap = max(limits.absolute_gap / self.scale, self._solver.resolution)
        model.setParam("limits/absgap", gap)
        if self._start_values:
            solution = model.createSol()
            for variable, value in self._start_values:
                model.setSolVal(solution, variable, value)
            model.addSol(solution)
        if self._progress is not None:
            _report_progress(self, self._scip, self._progress)
        began = time.perf_counter()
        try:
            # A caller with reports runs this in a separate process, whose log keeps the output.
            with _FILTER if self._progress is None else contextlib.nullcontext():
                model.optimize()
        except Exception as error:  # noqa: BLE001 - PySCIPOpt raises Exception itself
            seconds = time.perf_counter() - began
            failed = Outcome.FAILED, None, None, None, seconds, f"SCIP failed: {error}"
            return make_answer(self._instance, *failed)
        seconds = time.perf_counter() - began
        status = str(model.getStatus())
        values, unknowns = self.best()
        return make_answer(
            self._instance,
            OUTCOMES.get(status, Outcome.FAILED),
            values,
            unknowns,
            self.bound(),
            seconds,
            status,
            int(model.getNTotalNodes()),
        )

    def best(self) -> tuple[Array | None, Array | None]:
        """Return the best point so far, moved into the bounds that SCIP keeps to its tolerance."""
        model = self.model
        if model.getNSols() == 0:
            return None, None
        solution = model.getBestSol()
        w = np.array([model.getSolVal(solution, v) for v in self._w])
        return self._assembly.unpack(np.clip(w, self._assembly.lower, self._assembly.upper))

    def bound(self) -> float | None:
        """Return the lower bound so far, minus the differences that SCIP neglects."""
        bound = float(self.model.getDualbound())
        proved = abs(bound) < float(self.model.infinity())
        bound = (bound - self._solver.resolution) * self.scale if proved else -math.inf
        if self.proved is not None:
            return max(bound, self.proved)
        if not self._likelihood:
            return max(bound, 0.0)  # of a sum of squares
        return bound if proved else None


def _report_progress(run: _Model, scip: Any, progress: Progress) -> None:
    """Make SCIP report best points and bounds during the solve."""
    kinds = scip.SCIP_EVENTTYPE
    watched = [kinds.BESTSOLFOUND, kinds.NODESOLVED]
    if hasattr(kinds, "DUALBOUNDIMPROVED"):  # missing in older versions
        watched.append(kinds.DUALBOUNDIMPROVED)

    class Reporter(scip.Eventhdlr):  # type: ignore[misc]
        def eventinit(self) -> None:
            self.last, self.reported = 0.0, False
            for kind in watched:
                self.model.catchEvent(kind, self)

        def eventexit(self) -> None:
            for kind in watched:
                self.model.dropEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            new_best = event.getType() == kinds.BESTSOLFOUND
            now = time.monotonic()
            if new_best or (not self.reported and self.model.getNSols() > 0):
                self.reported = True  # a start is not an event
                progress(*run.best(), run.bound())
            elif now - self.last >= REPORT_INTERVAL:
                self.last = now
                progress(None, None, run.bound())

    run.model.includeEventhdlr(Reporter(), "odefit", "reports best points and bounds")


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
