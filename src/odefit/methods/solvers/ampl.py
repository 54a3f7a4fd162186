"""Solvers with an AMPL interface, which read a ``.nl`` file and write a ``.sol`` file.

BARON, Couenne, Knitro, CONOPT, SNOPT, BONMIN, Octeract and other solvers of the paper have one.
Pyomo writes the ``.nl`` files.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.common.temporary_folders import temporary_folder
from odefit.discretisation.assembly import Assembly, assemble
from odefit.discretisation.instance import Instance
from odefit.expressions.grammar import named
from odefit.methods.running.child import ONE_THREAD, OUTPUT_TAIL, ending_together, exit_reason
from odefit.methods.solvers.solver import Answer, Limits, Outcome, make_answer

SMOOTH_FUNCTIONS = frozenset("exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh".split())
"""Functions of the ``.nl`` format without corners."""


class PyomoAlgebra:
    """Pyomo expressions, and floats of known values.

    Refusals name the solver `whose`; with `smooth`, functions with corners are refused.
    """

    def __init__(self, whose: str, smooth: bool) -> None:
        self._whose = whose
        self._smooth = smooth

    def number(self, text: str) -> float:
        return float(text)

    def power(self, base: Any, exponent: Any) -> Any:
        return base**exponent

    def call(self, function: str, arguments: Sequence[Any]) -> Any:
        if function in SMOOTH_FUNCTIONS:
            import pyomo.environ

            return getattr(pyomo.environ, function)(arguments[0])
        if self._smooth:
            raise InputError(
                f"{self._whose}: the model uses {named(function)}(), which a global solver cannot "
                "bound here; take a local solver, or write the equations without it"
            )
        if function == "abs":
            return abs(arguments[0])
        if function not in {"min", "max"}:
            raise InputError(
                f"{self._whose}: the model uses {named(function)}(), which cannot be written for "
                "solvers of this kind; take a solver of trajectories, or switch by events"
            )
        sign = 1.0 if function == "max" else -1.0
        best, *rest = arguments
        for other in rest:
            best = (best + other + sign * abs(best - other)) / 2.0
        return best


def write_nl(a: Assembly, start: Array, path: Path, algebra: PyomoAlgebra) -> Array:
    """Write the problem as a ``.nl`` file; return the variables' numbers in its order.

    Variables that occur nowhere are omitted.
    """
    import pyomo.environ as pyo
    from pyomo.core.expr import LinearExpression
    from pyomo.repn.plugins.nl_writer import NLWriter

    model = pyo.ConcreteModel()
    model.w = pyo.Var(range(a.size))
    w = list(model.w.values())
    for variable, low, high, value in zip(
        w, a.lower.tolist(), a.upper.tolist(), start.tolist(), strict=True
    ):
        variable.setlb(low if np.isfinite(low) else None)
        variable.setub(high if np.isfinite(high) else None)
        variable.set_value(value, skip_validation=True)
    known = a.known(w)
    evaluated = [
        output
        for block in a.discretisation.blocks
        for instance in a.evaluated(block, known, algebra)
        for output in instance
    ]
    # One named expression for each output, so that it is written once.
    model.f = pyo.Expression(range(len(evaluated)), initialize=dict(enumerate(evaluated)))
    outputs = list(model.f.values())
    sizes = [b.instances * b.outputs for b in a.discretisation.blocks]
    shifts = np.cumsum([0, *sizes])[:-1].tolist()

    def body(parts: Sequence[tuple[Any, Any]]) -> Any:
        numbers, weights = parts[0]
        total = LinearExpression(
            constant=0.0, linear_coefs=weights.tolist(), linear_vars=[w[k] for k in numbers]
        )
        terms = [
            weight * outputs[shift + number]
            for shift, (numbers, weights) in zip(shifts, parts[1:], strict=True)
            for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True)
        ]
        return total + pyo.quicksum(terms) if terms else total

    rows = list(a.rows())
    model.rows = pyo.Constraint(
        range(len(rows)),
        rule=lambda _, k: (
            rows[k][0] if np.isfinite(rows[k][0]) else None,
            body(rows[k][2]),
            rows[k][1] if np.isfinite(rows[k][1]) else None,
        ),
    )
    terms = a.objective_terms(known, algebra, lambda residual: residual**2)
    model.objective = pyo.Objective(expr=pyo.quicksum(terms))
    with path.open("w", encoding="utf-8") as stream:
        written = NLWriter().write(model, stream, linear_presolve=False, scale_model=False)
    number = {id(variable): k for k, variable in enumerate(w)}
    return np.array([number[id(v)] for v in written.variables], dtype=np.intp)


def read_sol(text: str) -> tuple[str, Array, int | None]:
    """Return message, variables (perhaps empty) and result code of a ``.sol`` file's text."""
    lines = [line.strip() for line in text.splitlines()]
    try:
        at = lines.index("Options")
        count = int(lines[at + 1])
        # If there are more than four options, a tolerance follows that is not counted.
        tolerance, count = (1, count - 2) if count > 4 else (0, count)
        at += 2 + count
        _, duals, _, primals = (int(n) for n in lines[at : at + 4])
        at += 4 + tolerance + duals
        x = np.array([float(n) for n in lines[at : at + primals]])
        if len(x) != primals:
            raise ValueError("it ends early")
    except (ValueError, IndexError) as error:
        raise ValueError(f"not a .sol file: {error}") from error
    code = None
    for line in lines[at + primals :]:
        if line.startswith("objno"):
            code = int(line.split()[2])
    message = " ".join(line for line in lines[: lines.index("Options")] if line)
    return message, x, code


GRACE_PERIOD = 10.0
"""Seconds past the time limit after which a solver is stopped from outside."""

NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"


@dataclass(frozen=True)
class Executable:
    """The options of an executable for its limits, and the form of its reported bound.

    Templates for `seconds` and `threads` have ``{}`` for the value; without a template for its
    limit, the solver is stopped from outside. `file` is the name and text of an options file in the
    working directory instead. `bound` is a regular expression of the lower bound; the last match
    counts.
    """

    scope: Literal["local", "global"] = "local"
    seconds: str | None = None
    threads: str | None = None
    file: tuple[str, str] | None = None
    bound: str | None = None


_GUROBI = Executable("global", "timelim={}", "threads={}", bound=rf"best bound {NUMBER}")
_KNITRO = Executable("local", "maxtime_real={}", "numthreads={}")

KNOWN_EXECUTABLES: Mapping[str, Executable] = {
    # CPU time, which all versions of IPOPT know; on one thread it is the wall time.
    "ipopt": Executable("local", "max_cpu_time={}"),
    "bonmin": Executable("local", "bonmin.time_limit={}"),
    "knitro": _KNITRO,
    "knitroampl": _KNITRO,
    "conopt": Executable(),
    "snopt": Executable(),
    "couenne": Executable(
        "global", file=("couenne.opt", "time_limit {}\n"), bound=rf"Lower bound:\s+{NUMBER}"
    ),
    "baron": Executable("global", "maxtime={}", "threads={}"),
    "octeract-engine": Executable("global"),
    "scip": Executable(
        "global", file=("scip.set", "limits/time = {}\n"), bound=rf"Dual Bound\s*:\s*{NUMBER}"
    ),
    "gurobi": _GUROBI,
    "gurobi_ampl": _GUROBI,
}
"""Executables by name. Any other is treated as a local solver without its own time limit."""


@dataclass(frozen=True)
class AmplSolver:
    """A solver with an AMPL interface that is installed on this machine.

    Attributes
    ----------
    executable
        Its name on the PATH, or a path; see :data:`KNOWN_EXECUTABLES` for those with known options
        for time limit, threads and bound.
    options
        Options ``name=value`` of its command line.
    """

    executable: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the executable."""
        return Path(self.executable).name

    @property
    def scope(self) -> Literal["local", "global"]:
        """The scope of the solver: local optima, or global ones with proved bounds."""
        return self._known.scope

    @property
    def _known(self) -> Executable:
        return KNOWN_EXECUTABLES.get(self.name, Executable())

    def missing(self) -> str | None:
        """Return the missing part and its installation: the executable, or Pyomo."""
        if importlib.util.find_spec("pyomo") is None:
            return f'{self.name} needs Pyomo, which is not installed: pip install "odefit[ampl]"'
        if shutil.which(self.executable) is None:
            return (
                f"{self.name} is not on the PATH: install its AMPL version and add the folder of "
                f"the executable with export PATH=/folder/of/{self.name}:$PATH"
            )
        return None

    def solve(self, instance: Instance, limits: Limits) -> Answer:
        """Write the problem, run the executable, read its answer.

        Raises InputError if a package is missing, or if the solver is global and the model has
        corners.
        """
        if (reason := self.missing()) is not None:
            raise InputError(reason)
        a = assemble(instance.discretisation, instance.formulation)
        with temporary_folder("solver") as folder:
            path = folder / "problem.nl"
            smooth = self.scope == "global"
            columns = write_nl(a, a.start(instance), path, PyomoAlgebra(self.name, smooth))
            began = time.perf_counter()
            code, words = self._run(path, limits)
            seconds = time.perf_counter() - began
            if code is None:
                words = f"{self.name} was ended after {seconds:.1f} s, at its time limit"
                return make_answer(instance, Outcome.LIMIT, None, None, None, seconds, words)
            answer = self._read(
                instance, a, path.with_suffix(".sol"), columns, code, words, seconds
            )
        late = limits.seconds is not None and seconds >= limits.seconds
        if answer.solved and self.scope == "global" and late:
            return replace(answer, outcome=Outcome.LIMIT)  # Couenne reports that as optimal
        return answer

    def _run(self, path: Path, limits: Limits) -> tuple[int | None, str]:
        """Return the exit status, None if the solver had to be stopped, and its output."""
        known = self._known
        arguments = [f"{name}={value}" for name, value in self.options.items()]
        timeout = None
        if limits.seconds is not None:
            seconds = f"{max(limits.seconds, 0.01):g}"
            # with its own time limit it can return its best point
            timeout = limits.seconds
            if known.seconds is not None:
                arguments.append(known.seconds.format(seconds))
            if known.file is not None:
                name, text = known.file
                (path.parent / name).write_text(text.format(seconds), encoding="utf-8")
            if known.seconds is not None or known.file is not None:
                timeout += GRACE_PERIOD
        if known.threads is not None:
            arguments.append(known.threads.format(limits.threads))
        environment = dict(os.environ) | dict.fromkeys(ONE_THREAD, str(limits.threads))
        program = shutil.which(self.executable) or self.executable
        log = path.with_suffix(".log")
        with log.open("wb") as stream:
            try:
                code: int | None = subprocess.run(
                    ending_together([program, str(path), "-AMPL", *arguments]),
                    cwd=path.parent,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    timeout=timeout,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        return code, log.read_text(encoding="utf-8", errors="replace")

    def _read(
        self,
        instance: Instance,
        a: Assembly,
        path: Path,
        columns: Array,
        code: int,
        words: str,
        seconds: float,
    ) -> Answer:
        try:
            message, x, result = read_sol(path.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError) as error:
            message = exit_reason(code, self.name) if code else f"{self.name} gave no solution"
            if isinstance(error, ValueError):
                message += f" ({error})"
            if words.strip():
                message += f"; it wrote: {' '.join(words.split())[-OUTPUT_TAIL:]}"
            return make_answer(instance, Outcome.FAILED, None, None, None, seconds, message)
        outcome = _outcome(result, message)
        values = unknowns = None
        if len(x) == len(columns):
            w = a.start(instance)
            w[columns] = x
            values, unknowns = a.unpack(w)
        elif outcome is Outcome.SOLVED:
            outcome, message = Outcome.FAILED, f"{message} (without a point)"
        bound = self._bound(f"{words}\n{message}")
        return make_answer(instance, outcome, values, unknowns, bound, seconds, message)

    def _bound(self, words: str) -> float | None:
        pattern = self._known.bound
        matches = re.findall(pattern, words) if pattern is not None else []
        return float(matches[-1]) if matches else None


def _outcome(code: int | None, message: str) -> Outcome:
    """Return the outcome from AMPL's result code, or without one from the message."""
    if code is not None:
        ranges = [Outcome.SOLVED] * 2 + [Outcome.INFEASIBLE] * 2 + [Outcome.LIMIT]
        return ranges[code // 100] if 0 <= code < 500 else Outcome.FAILED
    words = message.lower()
    for word, outcome in (
        ("infeasible", Outcome.INFEASIBLE),
        ("unbounded", Outcome.INFEASIBLE),
        ("limit", Outcome.LIMIT),
        ("optimal", Outcome.SOLVED),
    ):
        if word in words:
            return outcome
    return Outcome.FAILED
