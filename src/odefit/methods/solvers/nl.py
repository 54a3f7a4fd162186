"""AMPL's file formats: a problem is written as a ``.nl`` file, a ``.sol`` file is read.

Pyomo has the writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError
from odefit.discretisation.assembly import Assembly
from odefit.expressions.grammar import named

SMOOTH_FUNCTIONS = frozenset("exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh".split())
"""Functions that the ``.nl`` format knows and that have no corners."""


class PyomoAlgebra:
    """Pyomo expressions, and floats of known values.

    Refusals name the solver, `whose`; if `smooth`, functions with corners are refused.
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

    Those that occur nowhere are not in it.
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
    # One named expression for each output, which is written once.
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
    """Return message, variables (empty without any) and result code of a ``.sol`` file's text."""
    lines = [line.strip() for line in text.splitlines()]
    try:
        at = lines.index("Options")
        count = int(lines[at + 1])
        # More than four options mean that a tolerance follows, which is not counted as such.
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
