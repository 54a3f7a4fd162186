"""Multiple shooting by hand with CasADi and IPOPT, beside odefit: part of `chaos.py`.

The same fit written by hand with CasADi and IPOPT, after the example ``sysid.py`` of CasADi's
documentation: states at all data times and parameters as variables, a function of an interval by
fixed RK4 steps (the fewest that are accurate to 1e-6, expanded to scalar operations and mapped over
the intervals), sum of squares, gaps as equations; the Hessian of Gauss and Newton, the exact one,
or L-BFGS. "odefit, same start" has the same nodes (every data time), which begin at the data, and
no relaxation; "odefit" is the default. Seconds run from the problem to the answer. For CasADi they
include building its functions and solving; for odefit all of :func:`odefit.fit`, with standard
errors. The smallest of the repetitions is shown, so that odefit reuses its compiled model. "Error"
is the largest relative error of a parameter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi
import numpy as np

import odefit
from evidence.multiple_shooting.lorenz import (
    PARAMETERS,
    SPACING,
    TRUTH,
    Array,
    fitted,
    lorenz,
    steps_of,
)
from evidence.running.measuring import seconds as in_seconds
from odefit.methods.starts import guess

ACCURACY = 1e-6  # of an interval by RK4, relative to the states


@dataclass(frozen=True)
class Case:
    """A problem, and its equations for CasADi."""

    name: str
    problem: odefit.Problem
    slope: Callable[[Any, Any], Any]  # Right-hand side of states and parameters
    truth: Mapping[str, float]  # of the parameters


def cases() -> list[Case]:

    def lorenz_slope(x: Any, p: Any) -> Any:
        return casadi.vertcat(
            p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]) - x[1], x[0] * x[1] - p[2] * x[2]
        )

    def henon_heiles(u: Any, p: Any) -> Any:
        x, y, px, py = u[0], u[1], u[2], u[3]
        return casadi.vertcat(
            px, py, -p[0] * x - 2 * p[2] * x * y, -p[1] * y - p[2] * x**2 + p[3] * y**2
        )

    def fitzhugh_nagumo(u: Any, p: Any) -> Any:
        v, r = u[0], u[1]
        return casadi.vertcat(p[2] * (v - v**3 / 3 + r), -(v - p[0] + p[1] * r) / p[2])

    true = dict(zip(PARAMETERS, TRUTH, strict=True))
    near = (9.0, 26.0, 2.4)
    noisy = {name: odefit.library.load(name, noise=0.1) for name in ("henon-heiles", FITZHUGH)}
    return [
        Case("Lorenz, 1000 data", lorenz(1000, 0), lorenz_slope, true),
        Case("Lorenz, 5000 data", lorenz(5000, 0), lorenz_slope, true),
        Case("the same, near guess", lorenz(5000, 0, first=near), lorenz_slope, true),
        Case(
            "Lorenz, 1000 data, 5 times as far apart",
            lorenz(1000, 0, spacing=5 * SPACING),
            lorenz_slope,
            true,
        ),
        Case("Henon-Heiles", noisy["henon-heiles"], henon_heiles, _known("henon-heiles")),
        Case("FitzHugh-Nagumo, V alone", noisy[FITZHUGH], fitzhugh_nagumo, _known(FITZHUGH)),
    ]


FITZHUGH = "fitzhugh-nagumo-v"
HESSIANS = {"IPOPT, Gauss-Newton": "GN", "IPOPT, exact": "exact", "IPOPT, L-BFGS": "L-BFGS"}


def _known(name: str) -> Mapping[str, float]:
    return odefit.library.reference(name).parameters


def data_nodes(problem: odefit.Problem) -> Array:
    """Return states at the data times, shape (times, N): measured, or initial guesses."""
    condition = problem.conditions[0]
    first = _guess(problem)
    columns = []
    for state in problem.model.states:
        flat = np.full(len(condition.times), first[state])
        columns.append(condition.series[state].values if state in condition.series else flat)
    return np.column_stack(columns)


def _guess(problem: odefit.Problem) -> dict[str, float]:
    found = guess(problem)
    assert found is not None
    return dict(zip(problem.keys, found.tolist(), strict=True))


def stepper(case: Case, steps: int) -> casadi.Function:
    """Return an interval of a given length by this number of RK4 steps, in scalar operations."""
    n, m = len(case.problem.model.states), len(case.truth)
    x, p, h = casadi.SX.sym("x", n), casadi.SX.sym("p", m), casadi.SX.sym("h")
    k1 = case.slope(x, p)
    k2 = case.slope(x + h / 2 * k1, p)
    k3 = case.slope(x + h / 2 * k2, p)
    k4 = case.slope(x + h * k3, p)
    one = casadi.Function("one", [x, p, h], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    many = one.mapaccum("many", steps) if steps > 1 else one
    s, q, d = casadi.MX.sym("s", n), casadi.MX.sym("q", m), casadi.MX.sym("d")
    ends = many(s, casadi.repmat(q, 1, steps), casadi.repmat(d / steps, 1, steps))[:, -1]
    return casadi.Function("interval", [s, q, d], [ends]).expand()


def enough_steps(case: Case) -> int:
    """Return the fewest RK4 steps for an interval that are accurate on the data."""
    states, times = data_nodes(case.problem)[:-1], case.problem.conditions[0].times
    truth = np.array(list(case.truth.values()))

    def ends(steps: int) -> Array:
        count = len(states)
        swept = stepper(case, steps).map(count)
        values = swept(states.T, np.tile(truth[:, None], count), np.diff(times)[None])
        return np.array(values)

    exact = ends(256)
    size = np.abs(states).max()
    for steps in range(1, 100):
        if np.abs(ends(steps) - exact).max() <= ACCURACY * size:
            return steps
    raise RuntimeError(f"{case.name}: RK4 is not accurate")


@dataclass(frozen=True)
class Answer:
    """The answer of one competitor."""

    seconds: float
    iterations: str
    objective: float
    error: float
    outcome: str


def by_hand(case: Case, steps: int, hessian: str, limit: float) -> Answer:
    """CasADi and IPOPT."""
    problem, start = case.problem, data_nodes(case.problem)
    condition = problem.conditions[0]
    rows = [i for i, s in enumerate(problem.model.states) if s in condition.series]
    first = _guess(problem)
    unknowns = np.array([first[k] for k in case.truth])
    began = time.process_time()
    n, m, count = len(problem.model.states), len(case.truth), len(condition.times)
    states, p = casadi.MX.sym("states", n, count), casadi.MX.sym("p", m)
    swept = stepper(case, steps).map(count - 1)
    lengths = casadi.DM(np.diff(condition.times)).T
    ends = swept(states[:, :-1], casadi.repmat(p, 1, count - 1), lengths)
    gaps = casadi.vec(ends - states[:, 1:])
    residuals = casadi.vec(casadi.DM(start[:, rows]).T - states[rows, :])
    v = casadi.veccat(p, states)
    program = {"x": v, "f": casadi.sumsqr(residuals), "g": gaps}
    ipopt: dict[str, Any] = {"print_level": 0, "sb": "yes", "tol": 1e-8, "max_iter": 1000}
    ipopt["max_cpu_time"] = limit
    options: dict[str, Any] = {"print_time": False, "show_eval_warnings": False, "ipopt": ipopt}
    if hessian == "GN":
        jacobian = casadi.jacobian(residuals, v)
        sigma, none = casadi.MX.sym("sigma"), casadi.MX.sym("none", 0)
        upper = casadi.triu(2 * sigma * jacobian.T @ jacobian)
        multipliers = casadi.MX.sym("multipliers", gaps.numel())
        options["hess_lag"] = casadi.Function("hessian", [v, none, sigma, multipliers], [upper])
    elif hessian == "L-BFGS":
        ipopt["hessian_approximation"] = "limited-memory"
    bounds = {u.name: (u.parameter.lower, u.parameter.upper) for u in problem.unknowns}
    solver = casadi.nlpsol("solver", "ipopt", program, options)
    given = np.array([bounds[k] for k in case.truth])
    free = np.full(n * count, np.inf)
    found = solver(
        x0=np.concatenate([unknowns, start.ravel()]),
        lbx=np.concatenate([given[:, 0], -free]),
        ubx=np.concatenate([given[:, 1], free]),
        lbg=0,
        ubg=0,
    )
    spent = time.process_time() - began
    stats = solver.stats()
    values = np.array(found["x"]).ravel()[:m]
    return Answer(
        spent,
        str(stats["iter_count"]),
        float(found["f"]),
        _error(case, dict(zip(case.truth, values.tolist(), strict=True))),
        "converged" if stats["success"] else str(stats["return_status"]).replace("_", " ").lower(),
    )


def by_odefit(case: Case, method: odefit.MultipleShooting) -> Answer:
    found = fitted(case.problem, method)
    result = found.result
    error = _error(case, result.best.parameters) if result.solutions else np.nan
    return Answer(found.seconds, steps_of(result), result.objective, error, result.status.value)


def _error(case: Case, values: Mapping[str, float]) -> float:
    return max(abs(values[k] / v - 1) for k, v in case.truth.items())


CASES = 6  # number of cases
BESIDE = (
    *("problem", "program", "seconds", "over odefit", "iterations", "objective", "error, %"),
    "outcome",
)


def beside_casadi(number: int, limit: float, repeats: int) -> list[list[str]]:
    """Return the rows of a case: IPOPT with three Hessians, and odefit."""
    case = cases()[number]
    steps = enough_steps(case)
    times = len(case.problem.conditions[0].times)
    same = odefit.MultipleShooting(starts=1, nodes=times, states="data")
    tools: dict[str, Callable[[], Answer]] = {
        name: partial(by_hand, case, steps, kind, limit) for name, kind in HESSIANS.items()
    }
    tools["odefit, same start"] = partial(by_odefit, case, same)
    tools["odefit"] = partial(by_odefit, case, odefit.MultipleShooting(starts=1))
    answers: dict[str, list[Answer]] = {}
    for _ in range(repeats):
        for name, tool in tools.items():
            before = answers.setdefault(name, [])
            if not before or before[0].seconds <= limit / 2:  # otherwise no gain is possible
                before.append(tool())
    own = min(a.seconds for a in answers["odefit"])
    rows = []
    for name, runs in answers.items():
        a, spent = runs[0], min(r.seconds for r in runs)
        ended = [a.iterations, f"{a.objective:.6g}", f"{100 * a.error:.2g}", a.outcome]
        cells = [in_seconds(spent), f"{spent / own:.1f}", *ended]
        rows.append([f"{case.name} ({steps} RK4)", name, *cells])
    return rows
