"""Seconds to discretise alpha-pinene and to solve it with IPOPT, against the number of steps.

The first table is the trapezoid rule on a uniform mesh to t = 36900 min, of M steps: all five
states at all points are variables. "Build" is from the problem to the nonlinear program with its
derivatives, "IPOPT" one solve on one thread at tolerance 1e-8. Below it is the exponent of M,
fitted by least squares to the logarithms.

The second compares the building with Pyomo's, in the same process: the same model written by hand
in pyomo.dae, with the same uniform mesh. Pyomo discretises it by backward differences (Radau
collocation with one point) and by Radau collocation with three points. "Build" is to a model ready
for a solver: with exact derivatives for odefit, before any derivative for Pyomo, whose solvers make
them from the .nl file. That file is written by Pyomo in both cases: by odefit's interface to AMPL
solvers, and from Pyomo's model. "Difference" is the largest of Pyomo's constraints at odefit's
solution, relative to the largest state, to check that both programs are the same.

Both start from the data interpolated by straight lines and all rate constants at 1e-4 1/min (our
choice; the reference is between 2e-5 and 3e-4). Times are the smallest of the repetitions, after
a small problem that is not counted.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task
from evidence.running.measuring import seconds
from evidence.running.output import listed
from odefit import Collocation
from odefit.common.arrays import Array
from odefit.discretisation.assembly import assemble
from odefit.discretisation.discretisation import Discretisation
from odefit.discretisation.formulations import Baseline
from odefit.discretisation.instance import Instance
from odefit.discretisation.mesh import UniformMesh
from odefit.discretisation.schemes import Scheme, Trapezoid
from odefit.methods.solvers.ampl import PyomoAlgebra, write_nl
from odefit.methods.solvers.nlpsol import Ipopt
from odefit.methods.solvers.nonlinear_program import nonlinear_program
from odefit.methods.solvers.solver import Answer, Limits

FINAL = 36900.0
STEPS = (1230, 3690, 12300, 36900, 100_000)
BESIDE = 3690  # steps of the comparison with Pyomo
RATE = 1e-4
LIMIT = 300.0
DATA = odefit.library.load("alpha-pinene")
MEASURED = DATA.conditions[0].series
DATA_TIMES = DATA.conditions[0].times
STATES = ("x1", "x2", "x3", "x4", "x5")
INITIAL = dict(zip(STATES, (100.0, 0.0, 0.0, 0.0, 0.0), strict=True))


def interpolated(times: Array) -> Array:
    """Return states at `times`, shape (times, 5), by straight lines through the data."""
    knots = np.append(0.0, DATA_TIMES)
    columns = [
        np.interp(times, knots, np.append(INITIAL[s], MEASURED[f"y{s[1]}"].values)) for s in STATES
    ]
    return np.column_stack(columns)


# odefit -----------------------------------------------------------------------------------------


@dataclass
class Run:
    """One solve: its seconds and outcome."""

    discretisation: Discretisation
    build: float
    solve: float
    answer: Answer


def run_once(scheme: Scheme, steps: int) -> Run:
    """Build and solve."""
    began = time.perf_counter()
    d = Discretisation(DATA, scheme, UniformMesh(steps, FINAL))
    nonlinear_program(d, Baseline())  # kept with the discretisation
    built = time.perf_counter()
    start = np.full(len(DATA.unknowns), RATE)
    instance = Instance(d, Baseline(), interpolated(d.times), start)
    found = Ipopt().solve(instance, Limits(LIMIT))
    return Run(d, built - began, time.perf_counter() - built, found)


def solved(steps: int, repeats: int) -> list[Any]:
    """Return seconds of building and solving, sizes, and the solution."""
    run_once(Trapezoid(), 123)
    runs = [run_once(Trapezoid(), steps) for _ in range(repeats)]
    build, solve = min(r.build for r in runs), min(r.solve for r in runs)
    answer, size = runs[0].answer, runs[0].discretisation.points * len(STATES)
    said = [str(answer.iterations), f"{answer.objective:.6f}", answer.outcome.value]
    return [steps, size, build, solve, build + solve, *said]


# Pyomo ------------------------------------------------------------------------------------------


def pyomo_model(steps: int, points: int) -> Any:
    """Return Pyomo's model by backward differences (0 points), or by Radau collocation."""
    import pyomo.dae as dae
    import pyomo.environ as pyo

    m = pyo.ConcreteModel()
    mesh = np.linspace(0.0, FINAL, steps + 1)
    m.t = dae.ContinuousSet(bounds=(0.0, FINAL), initialize=mesh.tolist())
    m.p = pyo.Var(range(1, 6), bounds=(0.0, 1.0), initialize=RATE)
    m.x = pyo.Var(range(1, 6), m.t)
    m.dx = dae.DerivativeVar(m.x, wrt=m.t)

    def ode(m: Any, i: int, t: float) -> Any:
        p = m.p
        x = {k: m.x[k, t] for k in range(1, 6)}
        slopes = {
            1: -(p[1] + p[2]) * x[1],
            2: p[1] * x[1],
            3: p[2] * x[1] - (p[3] + p[4]) * x[3] + p[5] * x[5],
            4: p[3] * x[3],
            5: p[4] * x[3] - p[5] * x[5],
        }
        return m.dx[i, t] == slopes[i]

    m.ode = pyo.Constraint(range(1, 6), m.t, rule=ode)
    for i, state in enumerate(STATES, start=1):
        m.x[i, 0.0].fix(INITIAL[state])
    if points:
        method = pyo.TransformationFactory("dae.collocation")
        method.apply_to(m, wrt=m.t, nfe=steps, ncp=points, scheme="LAGRANGE-RADAU")
    else:
        method = pyo.TransformationFactory("dae.finite_difference")
        method.apply_to(m, wrt=m.t, nfe=steps, scheme="BACKWARD")
    times = np.array(list(m.t))
    for row, values in zip(times.tolist(), interpolated(times), strict=True):
        for i in range(1, 6):
            if not m.x[i, row].fixed:
                m.x[i, row].set_value(float(values[i - 1]))
    nearest = [times[np.argmin(np.abs(times - t))] for t in DATA_TIMES]
    assert np.allclose(nearest, DATA_TIMES, rtol=1e-12)
    m.objective = pyo.Objective(
        expr=sum(
            (m.x[i, float(t)] - float(value)) ** 2
            for i in range(1, 6)
            for t, value in zip(nearest, MEASURED[f"y{i}"].values, strict=True)
        )
    )
    return m


def difference(m: Any, found: Run) -> float:
    """Return the largest of Pyomo's residuals at odefit's solution over the largest state."""
    import pyomo.environ as pyo

    values, unknowns = found.answer.values, found.answer.unknowns
    if values is None or unknowns is None:
        raise RuntimeError(f"no solution to compare with: {found.answer.message}")
    times = np.array(list(m.t))
    if len(times) != len(values) or not np.allclose(times, found.discretisation.times):
        raise RuntimeError("Pyomo's points are not odefit's")
    for k, p in enumerate(unknowns.tolist(), start=1):
        m.p[k].set_value(p)
    for k, t in enumerate(times.tolist()):
        for i in range(1, 6):
            m.x[i, t].set_value(float(values[k, i - 1]))
            m.dx[i, t].set_value(0.0)
    for row in m.ode.values():
        i, t = row.index()
        m.dx[i, t].set_value(pyo.value(row.lower) - pyo.value(row.body))
    worst = 0.0
    step = FINAL / found.discretisation.steps
    for c in m.component_data_objects(pyo.Constraint, active=True):
        if c.parent_component() is not m.ode:
            worst = max(worst, abs(pyo.value(c.body) - pyo.value(c.lower)) * step)
    return worst / float(np.abs(values).max())


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Smallest seconds, and the last result."""
    spent, found = [], None
    for _ in range(repeats):
        began = time.perf_counter()
        found = work()
        spent.append(time.perf_counter() - began)
    return min(spent), found


SCHEMES = {
    "backward differences": (Collocation(1), 0),
    "Radau collocation, 3 points": (Collocation(3), 3),
}  # odefit's scheme, and the number of Pyomo's collocation points


def beside_pyomo(name: str, steps: int, repeats: int) -> list[list[str]]:
    """Return a row for each program: size, building, writing, difference."""
    scheme, points = SCHEMES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.nl"
        own = [run_once(scheme, steps) for _ in range(repeats)]
        first = own[0]
        a = assemble(first.discretisation, Baseline())
        at = interpolated(first.discretisation.times)
        start = a.pack(at, np.full(len(DATA.unknowns), RATE))
        algebra = PyomoAlgebra("benchmark", smooth=True)
        writing, _ = timed(lambda: write_nl(a, start, path, algebra), repeats)
        build = min(r.build for r in own)
        size = first.discretisation.points * len(STATES)
        rival, m = timed(lambda: pyomo_model(steps, points), repeats)
        written, _ = timed(lambda: m.write(str(path)), repeats)
    both, far = 2 * len(STATES) * len(m.t), f"{difference(m, first):.0e}"
    return [
        [f"odefit, {name}", str(size), seconds(build), seconds(writing), ""],
        [f"Pyomo, {name}", str(both), seconds(rival), seconds(written), far],
    ]


GROWTH = (
    *("M", "variables", "build, s", "IPOPT, s", "total, s", "iterations", "objective"),
    "outcome",
)
OPTIONS = (
    Option("steps", STEPS, "numbers of steps, e.g. 1230,3690", least=1),
    Option("repeats", 3, "runs of which the least counts", least=1),
)


def tasks(steps: Sequence[int], repeats: int) -> list[Task]:
    common = {"repeats": repeats}
    return [
        *({"key": f"M = {m}, repeats {repeats}", "steps": m, **common} for m in steps),
        *({"key": f"{name}, repeats {repeats}", "beside": name, **common} for name in SCHEMES),
    ]


def run(task: Task) -> Mapping[str, Any]:
    if "beside" in task:
        return {"rows": beside_pyomo(task["beside"], BESIDE, task["repeats"])}
    return {"solved": solved(task["steps"], task["repeats"])}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return growth with the number of steps, and both programs."""
    found = [r.result["solved"] for r in records if r.result and "solved" in r.result]
    rows = [[*map(str, row[:2]), *map(seconds, row[2:5]), *row[5:]] for row in found]
    notes = []
    if len(found) > 1:
        logs = np.log(np.array([row[:5] for row in found], dtype=float))
        slopes = [np.polyfit(logs[:, 0], logs[:, k], 1)[0] for k in (2, 3, 4)]
        notes = ["Exponents of M: build {:.2f}, IPOPT {:.2f}, total {:.2f}.".format(*slopes)]
    head = (f"M = {BESIDE}", "variables", "build, s", "write .nl, s", "difference")
    return {"size": listed(GROWTH, rows, *notes), "beside-pyomo": listed(head, records)}
