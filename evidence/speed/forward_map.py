"""Microseconds per trajectory with sensitivities by all unknowns, at the data times.

Three engines in one process, taking turns:

odefit
    ``ForwardMap.trajectory``, and ``ForwardMap.evaluate``, which makes residuals and Jacobian of
    it as a fit needs them; the model is the library's problem file. At the default tolerance,
    which a fit polishes and reports with, at the tolerance of the rivals, and at the coarse one
    with which a fit searches.
SciPy
    ``solve_ivp`` on the variational equations written by hand in NumPy (`variational.py`), each
    method that suits at rtol 1e-8.
CasADi
    CVODES at reltol 1e-8: through ``ca.jacobian`` of the integrator and through its
    ``forward(m)``, as the documentation shows, and with the variational equations written out
    ("augmented"); stiff (bdf) and non-stiff (adams, functional iteration) settings.

SciPy and CasADi are helped: they know the size of every state on the trajectory beforehand, and
their absolute tolerance is 1e-3 rtol in these units. Unknowns are counted in units of their own
size. The table shows the error that each engine makes: the largest over all states and
sensitivities of max_t |error| over max(max_t |value|, 1e-3), in these units. An engine counts as
SciPy's or CasADi's best if it is the fastest with an error below 1e-5.

In every repetition all engines integrate at the same new point, 5 % around the reference, several
times over. Times are medians over repetitions; ratios are medians of the ratios within one
repetition, so that a noisy machine does not matter much.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import heyoka
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import integrate

import odefit
from evidence.peers.variational import LINKS, WRITTEN, Written
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit.methods.multi_start import SEARCH_TOLERANCE

Array = NDArray[np.float64]
solve_ivp: Any = integrate.solve_ivp  # its many overloads are too much for a type checker here
RTOL = 1e-8
TIGHT = 1e-9  # odefit's relative tolerance with CVODES
PATIENCE = 10.0  # seconds of processor time for one trajectory after which an engine is left out
Rhs = Callable[[float, Array, Sequence[float]], Array]
MATCHED = ", 1e-8"  # of odefit's engines, that which has the rivals' tolerance
GOOD = 1e-5  # error below which an engine's time counts
BATCH = 0.03  # seconds of calls of one engine in one repetition, at least


@dataclass
class Case:
    """One problem, in scaled units: states over their magnitude, unknowns over their reference."""

    name: str
    problem: odefit.Problem
    experiment: str
    written: Written
    point: Array  # reference values of the unknowns, shape (m,)
    times: Array  # data times, shape (k,)
    # Largest magnitude of each state on the trajectory, shape (n,)
    sizes: Array = field(default_factory=lambda: np.ones(0))
    # States and sensitivities at `point`, shape (k, n * (1 + m)), in scaled units
    exact: Array = field(default_factory=lambda: np.ones(0))
    failures: list[str] = field(default_factory=list)

    @property
    def t0(self) -> float:
        """Time of the initial values."""
        return self.problem.condition(self.experiment).t0

    def seeds(self) -> Array:
        """Initial sensitivities, shape (n, m): initial values are linear in the unknowns."""
        m = len(self.point)
        at_zero = np.array(self.written.initial(np.zeros(m)), dtype=float)
        columns = [np.array(self.written.initial(e), dtype=float) - at_zero for e in np.eye(m)]
        return np.array(columns).T

    def start(self, point: Array) -> Array:
        """States and sensitivities at t0, natural units."""
        x0 = np.array(self.written.initial(point), dtype=float)
        return np.concatenate([x0, self.seeds().ravel()])

    def scales(self) -> Array:
        """Units of states and sensitivities, shape (n * (1 + m),)."""
        return np.concatenate([self.sizes, (self.sizes[:, None] / np.abs(self.point)).ravel()])

    def error(self, found: Array) -> float:
        """See the top of this file; `found` in scaled units."""
        off = np.abs(found - self.exact).max(axis=0)
        return float(np.max(off / np.maximum(np.abs(self.exact).max(axis=0), 1e-3)))


@dataclass
class Timing:
    """What was measured of one engine."""

    engine: str
    call: Callable[[Array], Any]
    build: float
    error: float
    repeat: int = 1
    spent: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds per trajectory."""
        return statistics.median(self.spent)


def chain() -> odefit.Problem:
    """The chain with rates between 0.5 and 2, twenty data times, every state observed."""
    written = WRITTEN["chain-50"]
    k = 2.0 ** np.random.default_rng(50).uniform(-1, 1, LINKS)
    times = np.linspace(3.0, 60.0, 20)
    names = [f"A{i}" for i in range(1, LINKS + 1)]
    flows = [f"{r}*{a}" for r, a in zip(written.unknowns, names, strict=True)]
    ode = {names[0]: f"-{flows[0]}"}
    ode |= {a: f"{i} - {o}" for a, i, o in zip(names[1:], flows[:-1], flows[1:], strict=True)}
    x = solve_ivp(
        lambda t, x: np.array(written.rhs(x, k)),
        (0.0, times[-1]),
        written.initial(k),
        "DOP853",
        times,
        rtol=1e-10,
        atol=1e-14,
    ).y
    return odefit.Problem(
        odefit.Model(ode=ode),
        data=pd.DataFrame({"t": times, **dict(zip(names, x, strict=True))}),
        parameters={
            r: odefit.Parameter(lower=0.01, upper=100.0, guess=float(v))
            for r, v in zip(written.unknowns, k, strict=True)
        },
        initial=dict(zip(names, written.initial(k), strict=True)),
        t0=0.0,
    )


def single(problem: odefit.Problem, experiment: str) -> odefit.Problem:
    """The problem with one of its experiments alone."""
    return odefit.Problem(
        problem.model,
        parameters=problem.parameters,
        initial=problem.initial,
        experiments=[e for e in problem.experiments if e.name == experiment],
        name=problem.name,
    )


def case(name: str) -> Case:
    """A problem with its reference solution."""
    written = WRITTEN[name]
    if name == "chain-50":
        problem = chain()
        values = {u.key: u.parameter.guess or 1.0 for u in problem.unknowns}
    else:
        problem = odefit.library.load(name)
        known = odefit.library.reference(name)
        values = {**known.parameters, **known.initial}
    # hiv-proteinase has five experiments: the fourth.
    experiment = problem.experiments[3 if len(problem.experiments) > 1 else 0].name
    problem = single(problem, experiment)
    point = np.array([values[key] for key in written.unknowns])
    found = Case(name, problem, experiment, written, point, problem.condition(experiment).times)
    return solve_reference(found)


def solve_reference(c: Case) -> Case:
    """Fill in sizes and exact values, by SciPy with tight tolerances."""
    rates = c.point[: c.written.rates].tolist()
    n = len(c.written.initial(c.point))
    plain = solve_ivp(
        lambda t, x: np.array(c.written.rhs(x.tolist(), rates)),
        (c.t0, c.times[-1]),
        np.array(c.written.initial(c.point), dtype=float),
        "LSODA",
        rtol=1e-8,
        atol=1e-12,
    )
    c.sizes = np.abs(plain.y).max(axis=1)
    scales = c.scales()
    solution = solve_ivp(
        c.written.variational,
        (c.t0, c.times[-1]),
        c.start(c.point),
        "Radau" if c.written.stiff else "DOP853",
        c.times,
        args=(rates,),
        rtol=1e-11 if c.written.stiff else 3e-14,
        atol=1e-13 * scales,
        **({"jac": scipy_jacobian(c)} if c.written.stiff else {}),
    )
    if not solution.success:
        raise RuntimeError(f"{c.name}: no reference: {solution.message}")
    c.exact = solution.y.T / scales
    if len(c.sizes) != n:
        raise RuntimeError(f"{c.name}: states do not match")
    return c


def scipy_jacobian(c: Case) -> Callable[[float, Array, list[float]], Array]:
    """Return the Jacobian of the variational equations without the costly second derivatives."""
    n, m = len(c.sizes), len(c.point)

    def jacobian(t: float, y: Array, p: list[float]) -> Array:
        J = c.written.jacobian(y[:n], p)
        whole = np.zeros((n * (1 + m), n * (1 + m)))
        whole[:n, :n] = J
        whole[n:, n:] = np.kron(J, np.eye(m))
        return whole

    return jacobian


def scipy_engines(c: Case) -> list[Timing]:
    """Every method that suits, with what a competent user gives it."""
    scales = c.scales()

    def engine(method: str, rhs: Rhs, **options: Any) -> Callable[[Array], Array]:
        def call(point: Array) -> Array:
            solution = solve_ivp(
                rhs,
                (c.t0, c.times[-1]),
                c.start(point),
                method,
                c.times,
                args=(point[: c.written.rates].tolist(),),
                rtol=RTOL,
                atol=1e-3 * RTOL * scales,
                **options,
            )
            if not solution.success:
                raise RuntimeError(solution.message)
            return np.asarray(solution.y.T / scales)

        return call

    if c.written.stiff:
        jacobian = scipy_jacobian(c)
        tries = [(m, o) for m in ("LSODA", "BDF", "Radau") for o in ({}, {"jac": jacobian})]
    else:
        tries = [(method, {}) for method in ("LSODA", "DOP853", "RK45")]
    found = []
    for method, options in tries:
        name = f"SciPy {method}" + (", jac" if options else "")
        try:
            engine(method, hurried(c.written.variational), **options)(c.point)
            call = engine(method, c.written.variational, **options)
            found.append(timing(name, call, call, c))
        except (RuntimeError, ValueError) as error:
            report_failure(c, name, error)
    return found


def hurried(rhs: Rhs) -> Rhs:
    """The same right-hand side, that raises after :data:`PATIENCE` seconds of work."""
    end = time.process_time() + PATIENCE

    def limited(t: float, y: Array, p: Sequence[float]) -> Array:
        if time.process_time() > end:
            raise RuntimeError(f"more than {PATIENCE:g} s of processor time for one trajectory")
        return rhs(t, y, p)

    return limited


def report_failure(c: Case, engine: str, error: Exception) -> None:
    """Say that an engine cannot integrate the problem, and is left out of its tables."""
    c.failures.append(f"{c.name}: {engine} fails: {str(error).strip().splitlines()[-1]}")


def casadi_engines(c: Case) -> list[Timing]:
    """CVODES by itself, in the configurations that its documentation offers."""
    adams = {"linear_multistep_method": "adams", "nonlinear_solver_iteration": "functional"}
    tight = {"reltol": TIGHT, "abstol": 1e-3 * TIGHT}
    # Where implicit methods win, accuracy costs: also at the tolerance that odefit uses there.
    settings: dict[str, dict[str, Any]] = {"bdf": {}}
    settings |= {"bdf, 1e-9": tight} if c.written.stiff else {"adams": adams}
    found = []
    for label, options in settings.items():
        for how, build in (
            ("jacobian", casadi_jacobian),
            ("forward", casadi_forward),
            ("augmented", casadi_augmented),
        ):
            began = time.perf_counter()
            try:
                call = build(c, options)
                call(c.point)
            except RuntimeError as error:
                report_failure(c, f"CasADi {how}, {label}", error)
                continue
            spent = time.perf_counter() - began
            found.append(timing(f"CasADi {how}, {label}", call, call, c, spent))
    return found


def casadi_model(c: Case, x: Any, u: Any) -> Any:
    """Slopes of the scaled states `x` at scaled unknowns `u`."""
    rates = [u[j] * float(c.point[j]) for j in range(c.written.rates)]
    states = [x[i] * float(s) for i, s in enumerate(c.sizes)]
    return ca.vertcat(*c.written.rhs(states, rates)) / ca.DM(c.sizes)


def casadi_integrator(c: Case, options: dict[str, Any]) -> Any:
    """The integrator of the scaled states, outputs at the data times."""
    x, u = ca.SX.sym("x", len(c.sizes)), ca.SX.sym("u", len(c.point))
    return ca.integrator(
        "F",
        "cvodes",
        {"x": x, "p": u, "ode": casadi_model(c, x, u)},
        c.t0,
        c.times.tolist(),
        {"reltol": RTOL, "abstol": 1e-3 * RTOL, "max_num_steps": 100_000, **options},
    )


def casadi_jacobian(c: Case, options: dict[str, Any]) -> Callable[[Array], Array]:
    """``ca.jacobian`` of the integrator's output, as a Function."""
    n, m, k = len(c.sizes), len(c.point), len(c.times)
    F = casadi_integrator(c, options)
    u = ca.MX.sym("u", m)
    x0 = ca.vertcat(*c.written.initial([u[j] * float(c.point[j]) for j in range(m)]))
    xf = F(x0=x0 / ca.DM(c.sizes), p=u)["xf"]
    J = ca.Function("J", [u], [xf, ca.jacobian(ca.vec(xf), u)])

    def call(point: Array) -> Array:
        values, derivatives = J(point / c.point)
        by_time = np.asarray(derivatives.full()).reshape(k, n * m)
        return np.hstack([np.asarray(values.full()).T, by_time])

    return call


def casadi_forward(c: Case, options: dict[str, Any]) -> Callable[[Array], Array]:
    """``forward(m)`` of the integrator: all directions at once."""
    n, m, k = len(c.sizes), len(c.point), len(c.times)
    F = casadi_integrator(c, options)
    forward = F.forward(m)
    seeds = c.seeds() * c.point / c.sizes[:, None]

    def call(point: Array) -> Array:
        u = point / c.point
        x0 = c.start(point)[:n] / c.sizes
        plain = F(x0=x0, p=u)
        out = forward(
            x0=x0,
            p=u,
            out_xf=plain["xf"],
            out_qf=plain["qf"],
            out_zf=plain["zf"],
            fwd_x0=seeds,
            fwd_p=np.eye(m),
        )["fwd_xf"]
        # Directions follow each other, each with all its times.
        S = np.asarray(out.full()).reshape(n, m, k).transpose(2, 0, 1)
        return np.hstack([np.asarray(plain["xf"].full()).T, S.reshape(k, n * m)])

    return call


def casadi_augmented(c: Case, options: dict[str, Any]) -> Callable[[Array], Array]:
    """The variational equations written out in SX, and integrated with the states."""
    n, m, k = len(c.sizes), len(c.point), len(c.times)
    x, u, S = ca.SX.sym("x", n), ca.SX.sym("u", m), ca.SX.sym("S", n, m)
    f = casadi_model(c, x, u)
    dS = ca.jacobian(f, x) @ S + ca.jacobian(f, u)
    F = ca.integrator(
        "F",
        "cvodes",
        {
            "x": ca.vertcat(x, ca.vec(S)),
            "p": u,
            "ode": ca.vertcat(f, ca.densify(ca.vec(dS))),
        },
        c.t0,
        c.times.tolist(),
        {"reltol": RTOL, "abstol": 1e-3 * RTOL, "max_num_steps": 100_000, **options},
    )
    seeds = (c.seeds() * c.point / c.sizes[:, None]).T.ravel()

    def call(point: Array) -> Array:
        x0 = np.concatenate([c.start(point)[:n] / c.sizes, seeds])
        out = np.asarray(F(x0=x0, p=point / c.point)["xf"].full()).T
        derivatives = out[:, n:].reshape(k, m, n).transpose(0, 2, 1)
        return np.hstack([out[:, :n], derivatives.reshape(k, n * m)])

    return call


def odefit_engines(c: Case) -> list[Timing]:
    """The trajectory, and the whole evaluation of a fit."""
    problem = c.problem
    keys = [u.key.partition("[")[0] for u in problem.unknowns]
    mine = [keys.index(key.partition("[")[0]) for key in c.written.unknowns]
    base = np.array(
        [0.0 if u.parameter.guess is None else u.parameter.guess for u in problem.unknowns]
    )

    def vector(point: Array) -> Array:
        full = base.copy()
        full[mine] = point
        return full

    def ready(label: str, tolerance: float | None) -> list[Timing]:
        began = time.perf_counter()
        forward = odefit.ForwardMap(problem, tolerance=tolerance)
        first = forward.trajectory(vector(c.point), c.experiment)
        build = time.perf_counter() - began
        if isinstance(first, odefit.Failure):
            raise RuntimeError(f"{c.name}: odefit: {first}")  # noqa: TRY004 - a failure

        def scaled(point: Array) -> Array:
            t = forward.trajectory(vector(point), c.experiment)
            if isinstance(t, odefit.Failure):
                raise RuntimeError(f"{c.name}: odefit: {t}")  # noqa: TRY004 - a failure
            order = [t.unknowns.index(i) for i in mine]
            S = t.sensitivities[:, :, order].reshape(len(c.times), -1)
            return np.hstack([t.states, S]) / c.scales()

        def trajectory(point: Array) -> Any:
            return forward.trajectory(vector(point), c.experiment)

        def evaluate(point: Array) -> Any:
            return forward.evaluate(vector(point))

        return [
            timing(f"odefit trajectory{label}", trajectory, scaled, c, build),
            timing(f"odefit evaluate{label}", evaluate, scaled, c, build),
        ]

    return [
        *ready("", None),
        ready(MATCHED, RTOL)[0],
        *ready(f", search ({SEARCH_TOLERANCE:.0e})", SEARCH_TOLERANCE),
    ]


def timing(
    engine: str,
    call: Callable[[Array], Any],
    values: Callable[[Array], Array],
    c: Case,
    build: float = math.nan,
) -> Timing:
    """An engine made ready: its error, and how many calls make a batch."""
    error = c.error(values(c.point))
    call(c.point)
    began = time.perf_counter()
    call(c.point)
    once = time.perf_counter() - began
    return Timing(engine, call, build, error, max(1, min(1000, round(BATCH / once))))


def measure(c: Case, repeats: int) -> list[Timing]:
    """All engines on one problem, taking turns."""
    engines = [*odefit_engines(c), *scipy_engines(c), *casadi_engines(c)]
    rng = np.random.default_rng(1)
    for _ in range(repeats):
        point = c.point * rng.uniform(0.95, 1.05, len(c.point))
        for t in engines:
            began = time.perf_counter()
            for _ in range(t.repeat):
                t.call(point)
            t.spent.append((time.perf_counter() - began) / t.repeat)
    return engines


def best(engines: list[Timing], family: str) -> Timing:
    """The fastest of a family that is accurate enough."""
    mine = [t for t in engines if t.engine.startswith(family)]
    good = [t for t in mine if t.error <= GOOD]
    return min(good or mine, key=lambda t: t.median)


def ratio(slow: Timing, fast: Timing) -> float:
    """Median over repetitions of the ratio within one."""
    return statistics.median(a / b for a, b in zip(slow.spent, fast.spent, strict=True))


def micro(t: Timing) -> str:
    """Microseconds, three digits."""
    value = 1e6 * t.median
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def summary(c: Case, engines: list[Timing]) -> list[str]:
    """A row of the first table."""
    own = engines[0]
    matched = next(t for t in engines if t.engine == f"odefit trajectory{MATCHED}")
    size = f"{c.name} ({len(c.sizes)} states, {len(c.point)} unknowns, {len(c.times)} times)"
    row = [size, micro(own), micro(matched)]
    for rival in (best(engines, "SciPy"), best(engines, "CasADi")):
        _, _, kind = rival.engine.partition(" ")
        row += [
            f"{micro(rival)} ({kind})",
            f"{ratio(rival, own):.1f}",
            f"{ratio(rival, matched):.1f}",
        ]
    return row


def details(c: Case, engines: list[Timing]) -> list[list[str]]:
    """Rows of the second table."""
    return [
        [
            c.name,
            t.engine,
            micro(t),
            f"{ratio(t, engines[0]):.1f}",
            f"{t.error:.0e}",
            "-" if math.isnan(t.build) else f"{t.build:.2f}",
        ]
        for t in engines
    ]


SUMMARY = (
    *("problem", "odefit, µs", "odefit 1e-8, µs", "SciPy, µs", "SciPy / odefit"),
    *("SciPy / odefit 1e-8", "CasADi, µs", "CasADi / odefit", "CasADi / odefit 1e-8"),
)
DETAILS = ("problem", "engine", "µs", "over odefit", "error", "build, s")
OPTIONS = (
    Option("repeats", 15, "points at which all engines integrate", least=1),
    Option("problems", tuple(WRITTEN), "problems, e.g. crauste-f,chain-50", WRITTEN),
)


def tasks(problems: Sequence[str], repeats: int) -> list[Task]:
    """Return a task for each problem."""
    return tasks_of("problem", problems, repeats=repeats)


def run(task: Task) -> Mapping[str, Any]:
    """Measure all engines on one problem."""
    # Build times are those of a model never seen before.
    heyoka.llvm_state.set_diskcache_enabled(False)
    c = case(task["problem"])
    engines = measure(c, task["repeats"])
    return {"rows": [summary(c, engines)], "engines": details(c, engines), "notes": c.failures}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the best engines, and all."""
    every = [row for r in records if r.result is not None for row in r.result["engines"]]
    return {"trajectory": listed(SUMMARY, records), "engines": listed(DETAILS, every)}
