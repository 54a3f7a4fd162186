"""Multiple shooting: chaos, cost of an iteration, beside CasADi with IPOPT, and on the library.

    python benchmarks/multiple_shooting.py [--parts lorenz guesses nodes casadi library] [--out DIR]

All seconds are of processor time on one thread, so that other work on the computer counts little.

lorenz
    Lorenz-63 over 100 Lyapunov times (T = 110.4), 5,000 data with noise of 10 % of each state's
    standard deviation, from (s, r, b) = (5, 20, 1); the truth is (10, 28, 8/3). All three states
    are measured, then x alone (y and z of the first point are guessed as 1). "Seconds" is
    :func:`odefit.fit` with everything it does, "gap" the largest discontinuity, relative to the
    states.
guesses
    x alone over 20 Lyapunov times (1,000 data, the same spacing), from guesses that are off by up
    to a factor, all log-uniform, with the default number of nodes and with others: how many end at
    the lowest objective that any found (within 1 %), and median seconds of the iteration alone.
nodes
    Seconds for a Gauss-Newton iteration (a sweep over all intervals with derivatives, the condensed
    problem, and damping) on a node at each of so many data times, and the exponent of their number.
casadi
    The same fit as people write it with CasADi and IPOPT, after the example ``sysid.py`` of
    CasADi's documentation: states at all data times and parameters as variables, a function of an
    interval by fixed RK4 steps (as few as are accurate to 1e-6, expanded to scalar operations and
    mapped over the intervals), sum of squares, gaps as equations; the Hessian of Gauss and Newton,
    the exact one, or L-BFGS. "odefit, same start" has the same nodes (every data time) that begin
    at the data, no relaxation; "odefit" is the default. Seconds are those from the problem to
    the answer: for CasADi building its functions and solving, for odefit all of
    :func:`odefit.fit`, with standard errors and so on; the smallest of the repetitions, so that
    odefit finds its compiled model again. "Error" is the largest relative error of a parameter.
library
    One start of multiple shooting, single shooting and transcription from the same point of every
    problem: its guess, or several random points where it has none. Solved are those
    within 0.1 % of the best known objective, or of 1e-8 times the data's sum of squares.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from common import machine, markdown, publish
from common import seconds as in_seconds
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import odefit
from odefit.methods.multi_start import MultiStart
from odefit.methods.starts import guess, sample

Array = NDArray[np.float64]

LYAPUNOV = 0.9056
"""Largest exponent of Lorenz-63."""

SPACING = 100 / LYAPUNOV / 4999
"""Between data times."""

STATES = ("x", "y", "z")
PARAMETERS = ("s", "r", "b")
TRUTH = (10.0, 28.0, 8 / 3)
GUESS = (5.0, 20.0, 1.0)

NODES = (None, 40, 80, 333, 999)
"""Numbers of them with 1,000 data; None for the default."""

SAME = 1.01
"""Over the lowest objective."""

ACCURACY = 1e-6
"""Of an interval by RK4, relative to the states."""


# Lorenz -----------------------------------------------------------------------------------------


def lorenz(
    count: int,
    seed: int,
    observed: Sequence[str] = STATES,
    first: Sequence[float] = GUESS,
    spacing: float = SPACING,
) -> odefit.Problem:
    """So many data on the attractor, with 10 % noise."""

    def slope(t: float, u: Array) -> list[float]:
        s, r, b = TRUTH
        return [s * (u[1] - u[0]), u[0] * (r - u[2]) - u[1], u[0] * u[1] - b * u[2]]

    start = solve_ivp(slope, (0.0, 20.0), [1.0, 1.0, 1.0], rtol=1e-10, atol=1e-10).y[:, -1]
    t = spacing * np.arange(count)
    span = (0.0, float(t[-1]))
    path = solve_ivp(slope, span, start, "DOP853", t, rtol=1e-12, atol=1e-12).y
    noise = 0.1 * path.std(axis=1)[:, None]
    values = path + noise * np.random.default_rng(seed).normal(size=path.shape)
    model = odefit.Model(
        ode={"x": "s*(y-x)", "y": "x*(r-z)-y", "z": "x*y-b*z"}, observables={k: k for k in observed}
    )
    rows = dict(zip(STATES, values, strict=True))
    return odefit.Problem(
        model,
        data={"t": t} | {k: rows[k] for k in observed},
        parameters={k: {"guess": v} for k, v in zip(PARAMETERS, first, strict=True)},
        initial={k: {"guess": rows[k][0] if k in observed else 1.0} for k in STATES},
    )


@dataclass(frozen=True)
class Fitted:
    """A fit and its processor seconds."""

    result: odefit.Result
    seconds: float


def fitted(problem: odefit.Problem, method: Any, limit: float | None = None) -> Fitted:
    """One fit, without other processes."""
    began = time.process_time()
    result = odefit.fit(problem, method, jobs=1, time_limit=limit)
    return Fitted(result, time.process_time() - began)


def steps_of(result: odefit.Result) -> str:
    """Gauss-Newton iterations, from the message of the start."""
    words = result.starts[0].message.split()
    return words[words.index("Gauss-Newton") - 1] if "Gauss-Newton" in words else "-"


def chaos(count: int, seeds: int) -> str:
    """Errors over 100 Lyapunov times."""
    rows = []
    for observed in (STATES, STATES[:1]):
        for seed in range(seeds):
            found = fitted(lorenz(count, seed, observed), odefit.MultipleShooting(starts=1))
            result = found.result
            print(f"Lorenz {''.join(observed)}, seed {seed}: {result}", file=sys.stderr)
            row = [", ".join(observed), str(seed), result.status.value]
            if result.solutions:
                values = result.best.parameters
                errors = [values[k] / v - 1 for k, v in zip(PARAMETERS, TRUTH, strict=True)]
                row += [f"{100 * e:+.2f}" for e in errors]
            else:
                row += ["-"] * 3
            continuity = result.assessment.continuity
            nodes = continuity.nodes if continuity else 1
            gap = f"{continuity.gap:.0e}" if continuity else "-"
            rows.append([*row, str(nodes), steps_of(result), gap, in_seconds(found.seconds)])
    header = ["measured", "noise", "status", "s, %", "r, %", "b, %", "nodes", "iterations", "gap"]
    return markdown([*header, "seconds"], rows)


@dataclass(frozen=True)
class Followed:
    """One iteration to its end."""

    objective: float
    converged: bool
    seconds: float


def followed(problem: odefit.Problem, method: odefit.MultipleShooting) -> Followed:
    """Relaxation and Gauss-Newton steps alone."""
    began = time.process_time()
    try:
        history = method.follow(problem)
    except RuntimeError:  # the start cannot be integrated
        return Followed(np.inf, False, time.process_time() - began)
    spent = time.process_time() - began
    return Followed(history.objective, history.converged, spent)


def guesses(count: int, seeds: int, nodes: Sequence[int | None], off: Sequence[float]) -> str:
    """Success of x alone by the guess and the number of nodes."""
    found: dict[tuple[int | None, float], list[Followed]] = {}
    for factor in off:
        for seed in range(seeds):
            power = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 3)
            first = [t * factor**p for t, p in zip(TRUTH, power.tolist(), strict=True)]
            problem = lorenz(count, seed, STATES[:1], first)
            for n in nodes:
                method = odefit.MultipleShooting(nodes=n, iterations=50)
                found.setdefault((n, factor), []).append(followed(problem, method))
                last = found[n, factor][-1]
                print(f"factor {factor:g}, seed {seed}, {n} nodes: {last}", file=sys.stderr)
    lowest = [
        min((r[k].objective for r in found.values() if r[k].converged), default=np.inf)
        for k in range(seeds)
    ]
    rows = []
    for n in nodes:
        row = ["default" if n is None else str(n)]
        for factor in off:
            runs = found[n, factor]
            good = [
                r
                for r, best in zip(runs, lowest, strict=True)
                if r.converged and r.objective <= SAME * best
            ]
            spent = in_seconds(statistics.median(r.seconds for r in runs))
            row.append(f"{len(good)} of {len(runs)}, {spent} s")
        rows.append(row)
    return markdown(["nodes", *(f"within a factor of {f:g}" for f in off)], rows)


# Cost of an iteration ---------------------------------------------------------------------------


def growth(chosen: Sequence[int], repeats: int) -> str:
    """Seconds against the number of nodes."""
    rows, spent = [], []
    for count in chosen:
        problem = lorenz(count + 1, 0)
        method = odefit.MultipleShooting(nodes=count, states="data", iterations=10)
        method.follow(problem)
        runs = []
        for _ in range(repeats):
            began = time.process_time()
            history = method.follow(problem)
            runs.append((time.process_time() - began) / history.shooting.evaluations)
        print(f"{count} nodes: {runs}", file=sys.stderr)
        spent.append(min(runs))
        each = 1e6 * spent[-1] / count
        rows.append([str(count), f"{1e3 * spent[-1]:.1f}", f"{each:.0f}"])
    table = markdown(["nodes", "milliseconds", "microseconds a node"], rows)
    if len(chosen) < 2:
        return table
    slope = np.polyfit(np.log(chosen), np.log(spent), 1)[0]
    return f"{table}\n\nExponent of the number of nodes: {slope:.2f}."


# CasADi -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A problem, and what CasADi needs to know of it.

    Attributes
    ----------
    slope
        Right-hand side of states and parameters.
    truth
        Of the parameters.
    """

    name: str
    problem: odefit.Problem
    slope: Callable[[Any, Any], Any]
    truth: Mapping[str, float]


def cases() -> list[Case]:
    """What is compared."""

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
    """States at the data times, shape (times, N): measured, or the guess of the initial value."""
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
    """An interval of a given length by so many RK4 steps, in scalar operations."""
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
    """As few RK4 steps for an interval as are accurate on the data."""
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
    raise SystemExit(f"{case.name}: RK4 is not accurate")


@dataclass(frozen=True)
class Answer:
    """What one of the competitors found."""

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
    """All of the fit."""
    found = fitted(case.problem, method)
    result = found.result
    error = _error(case, result.best.parameters) if result.solutions else np.nan
    return Answer(found.seconds, steps_of(result), result.objective, error, result.status.value)


def _error(case: Case, values: Mapping[str, float]) -> float:
    return max(abs(values[k] / v - 1) for k, v in case.truth.items())


def beside_casadi(limit: float, repeats: int) -> str:
    """The table."""
    rows = []
    for case in cases():
        steps = enough_steps(case)
        times = len(case.problem.conditions[0].times)
        same = odefit.MultipleShooting(starts=1, nodes=times, states="data")
        tools: dict[str, Callable[[], Answer]] = {
            name: partial(by_hand, case, steps, kind, limit) for name, kind in HESSIANS.items()
        }
        tools["odefit, same start"] = partial(by_odefit, case, same)
        default = odefit.MultipleShooting(starts=1)
        tools["odefit"] = partial(by_odefit, case, default)
        answers: dict[str, list[Answer]] = {}
        for _ in range(repeats):
            for name, tool in tools.items():
                before = answers.setdefault(name, [])
                if before and before[0].seconds > limit / 2:
                    continue  # nothing to gain
                before.append(tool())
                print(f"{case.name}, {name}: {before[-1]}", file=sys.stderr)
        own = min(a.seconds for a in answers["odefit"])
        for name, runs in answers.items():
            a, spent = runs[0], min(r.seconds for r in runs)
            ended = [a.iterations, f"{a.objective:.6g}", f"{100 * a.error:.2g}", a.outcome]
            ratio = f"{spent / own:.1f}"
            rows.append([f"{case.name} ({steps} RK4)", name, in_seconds(spent), ratio, *ended])
    header = ["problem", "program", "seconds", "over odefit", "iterations", "objective", "error, %"]
    return markdown([*header, "outcome"], rows)


# Library ----------------------------------------------------------------------------------------

METHODS = ("multiple shooting", "single shooting", "transcription")


def method_from(name: str, start: dict[str, float]) -> Any:
    """One start of a method."""
    if name == "single shooting":
        return MultiStart(starts=1, first=tuple(start.values()))
    if name == "transcription":
        return odefit.Transcription(starts=1, start=start)
    return odefit.MultipleShooting(starts=1, start=start)


def solved(name: str, problem: odefit.Problem, objective: float) -> bool:
    """Whether the best objective known was reached."""
    known = odefit.library.reference(name)
    best = known.objective if known.best_known is None else known.best_known
    if known.noise != "none":
        return objective <= 1.001 * best
    values = [s.values for c in problem.conditions for s in c.series.values()]
    return objective <= 1e-8 * float(np.sum(np.concatenate(values) ** 2))


def on_library(names: Sequence[str], points: int, limit: float) -> str:
    """Solved and seconds, by problem and method."""
    rows = []
    totals = dict.fromkeys(METHODS, 0)
    count = 0
    for name in names:
        problem = odefit.library.load(name)
        given = guess(problem)
        starts = sample(problem, 0, points, 0) if given is None else given[None]
        count += len(starts)
        row = [name, "guess" if given is not None else f"{points} random"]
        for kind in METHODS:
            good, spent = 0, []
            for start in starts:
                at = dict(zip(problem.keys, start.tolist(), strict=True))
                found = fitted(problem, method_from(kind, at), limit)
                good += solved(name, problem, found.result.objective)
                spent.append(found.seconds)
                message = found.result.starts[0].message if found.result.starts else ""
                print(f"{name}, {kind}: {found.seconds:.2f} {good} {message}", file=sys.stderr)
            totals[kind] += good
            row += [str(good), in_seconds(statistics.median(spent))]
        rows.append(row)
    rows.append(["all", f"{count} points", *(c for k in METHODS for c in (str(totals[k]), ""))])
    header = ["problem", "from", *(c for k in METHODS for c in (k, "seconds"))]
    return markdown(header, rows)


def main() -> None:
    """Read the command line, run, report."""
    parts = ("lorenz", "guesses", "nodes", "casadi", "library")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--seeds", type=int, default=5, help="of the noise of Lorenz")
    parser.add_argument("--repeats", type=int, default=3, help="of what is timed")
    parser.add_argument("--points", type=int, default=3, help="a problem without a guess")
    parser.add_argument("--problems", nargs="+", default=list(odefit.library.names()))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a fit")
    parser.add_argument("--out", type=Path, help="write the tables to this folder")
    options = parser.parse_args()
    work: dict[str, Callable[[], str]] = {
        "lorenz": lambda: chaos(5000, options.seeds),
        "guesses": lambda: guesses(1000, 2 * options.seeds, NODES, (1.5, 3.0, 5.0)),
        "nodes": lambda: growth((100, 300, 1000, 3000, 10_000), options.repeats),
        "casadi": lambda: beside_casadi(options.limit, options.repeats),
        "library": lambda: on_library(options.problems, options.points, options.limit),
    }
    for part in options.parts:
        out = None if options.out is None else options.out / f"multiple_shooting_{part}.md"
        publish(f"{work[part]()}\n\n{machine()}", out)


if __name__ == "__main__":
    main()
