"""Microseconds per trajectory with sensitivities by all unknowns, at the data times.

Four engines in one process, taking turns:

odefit
    ``ForwardMap.trajectory``, and ``ForwardMap.evaluate``, which computes residuals and Jacobian
    from it for a fit; the model is the library's problem file. The tolerances are the default, with
    which a fit polishes and reports, that of the rivals, and the coarse tolerance of a search.
SciPy
    ``solve_ivp`` on the variational equations written by hand in NumPy (`variational.py`), each
    suitable method at rtol 1e-8.
CasADi
    CVODES at reltol 1e-8: through ``ca.jacobian`` of the integrator and through its
    ``forward(m)``, as the documentation shows, and with the variational equations written out
    ("augmented"); stiff (bdf) and non-stiff (adams, functional iteration) settings.
diffrax
    In double precision, compiled, on the processor: the solver in forward mode, and with the
    variational equations written out. It is left out where it is not installed.

The three have an advantage: they are given the size of every state on the trajectory, and
their absolute tolerance is 1e-3 rtol in these units. Unknowns are counted in units of their own
size. The table shows the error of each engine: the largest over all states and sensitivities of
max_t |error| over max(max_t |value|, 1e-3), in these units. An engine counts as the best
of its package if it is the fastest with an error below 1e-5.

In every repetition all engines integrate at the same new point, 5 % around the reference, several
times over. Times are medians over repetitions; ratios are medians of the ratios within one
repetition, so that a busy machine has little influence.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import odefit
from evidence.peers.by_diffrax import HOW, diffrax_trajectory, installed, methods
from evidence.peers.cvodes import casadi_augmented, casadi_forward, casadi_jacobian
from evidence.peers.variational import WRITTEN
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import hide_heyoka
from evidence.running.output import listed
from evidence.speed.scaled_cases import RTOL, Case, case, scipy_jacobian, solve_ivp
from odefit.methods.multi_start import SEARCH_TOLERANCE
from odefit.simulation.engines.registry import import_problem

Array = NDArray[np.float64]
TIGHT = 1e-9  # odefit's relative tolerance with CVODES
PATIENCE = 10.0  # seconds of processor time for one trajectory after which an engine is left out
Rhs = Callable[[float, Array, Sequence[float]], Array]
MATCHED = ", 1e-8"  # odefit's engine with the rivals' tolerance
GOOD = 1e-5  # error below which an engine's time counts
BATCH = 0.03  # seconds of calls of one engine in one repetition, at least


@dataclass
class Timing:
    """The measurements on one engine."""

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


def scipy_engines(c: Case) -> list[Timing]:
    """Return the suitable methods, with the options that a competent user would give."""
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
    """Return the same right-hand side, which raises after :data:`PATIENCE` seconds of work."""
    end = time.process_time() + PATIENCE

    def limited(t: float, y: Array, p: Sequence[float]) -> Array:
        if time.process_time() > end:
            raise RuntimeError(f"more than {PATIENCE:g} s of processor time for one trajectory")
        return rhs(t, y, p)

    return limited


def report_failure(c: Case, engine: str, error: Exception) -> None:
    """Report that an engine cannot integrate the problem, and leave it out of its tables."""
    c.failures.append(f"{c.name}: {engine} fails: {str(error).strip().splitlines()[-1]}")


def casadi_engines(c: Case) -> list[Timing]:
    """Return CVODES itself, in the configurations of its documentation."""
    adams = {"linear_multistep_method": "adams", "nonlinear_solver_iteration": "functional"}
    tight = {"reltol": TIGHT, "abstol": 1e-3 * TIGHT}
    # where implicit methods win, also measure at odefit's tolerance there
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


def diffrax_engines(c: Case) -> list[Timing]:
    """Return diffrax, where it is installed, by its recommended methods."""
    found = []
    for method in methods(stiff=c.written.stiff) if installed() else ():
        for how in HOW:
            began = time.perf_counter()
            try:
                call = diffrax_trajectory(c, how, method)
                call(c.point)
            except (RuntimeError, ValueError) as error:
                report_failure(c, f"diffrax {how}, {method}", error)
                continue
            spent = time.perf_counter() - began
            found.append(timing(f"diffrax {how}, {method}", call, call, c, spent))
    return found


def timing(
    engine: str,
    call: Callable[[Array], Any],
    values: Callable[[Array], Array],
    c: Case,
    build: float = math.nan,
) -> Timing:
    """Return the error of an engine, and the number of calls in a batch."""
    error = c.error(values(c.point))
    call(c.point)
    began = time.perf_counter()
    call(c.point)
    once = time.perf_counter() - began
    return Timing(engine, call, build, error, max(1, min(1000, round(BATCH / once))))


def measure(c: Case, repeats: int) -> list[Timing]:
    """Measure all engines on one problem in turns."""
    peers = [*scipy_engines(c), *casadi_engines(c), *diffrax_engines(c)]
    engines = [*odefit_engines(c), *peers]
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
    """Return the median over repetitions of the ratio within a repetition."""
    return statistics.median(a / b for a, b in zip(slow.spent, fast.spent, strict=True))


def micro(t: Timing) -> str:
    """Microseconds, three digits."""
    value = 1e6 * t.median
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def summary(c: Case, engines: list[Timing]) -> list[str]:
    own = engines[0]
    matched = next(t for t in engines if t.engine == f"odefit trajectory{MATCHED}")
    size = f"{c.name} ({len(c.sizes)} states, {len(c.point)} unknowns, {len(c.times)} times)"
    row = [size, micro(own), micro(matched)]
    for family in ("SciPy", "CasADi", "diffrax"):
        if not any(t.engine.startswith(family) for t in engines):
            row += ["", "", ""]
            continue
        rival = best(engines, family)
        _, _, kind = rival.engine.partition(" ")
        row += [
            f"{micro(rival)} ({kind})",
            f"{ratio(rival, own):.1f}",
            f"{ratio(rival, matched):.1f}",
        ]
    return row


def details(c: Case, engines: list[Timing]) -> list[list[str]]:
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
    *("diffrax, µs", "diffrax / odefit", "diffrax / odefit 1e-8"),
)
DETAILS = ("problem", "engine", "µs", "over odefit", "error", "build, s")
OPTIONS = (
    Option("repeats", 15, "points at which all engines integrate", least=1),
    Option("problems", tuple(WRITTEN), "problems, e.g. crauste-f,chain-50", WRITTEN),
    Option("heyoka", "no", "no, as in an installation without extras, or yes", ("no", "yes")),
)


def tasks(problems: Sequence[str], repeats: int, heyoka: str) -> list[Task]:
    return tasks_of("problem", problems, repeats=repeats, heyoka=heyoka)


def run(task: Task) -> Mapping[str, Any]:
    if task["heyoka"] == "no":
        hide_heyoka()
    elif not import_problem("heyoka"):
        import heyoka

        heyoka.llvm_state.set_diskcache_enabled(False)  # build times are those of a new model
    c = case(task["problem"])
    engines = measure(c, task["repeats"])
    return {"rows": [summary(c, engines)], "engines": details(c, engines), "notes": c.failures}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    every = [row for r in records if r.result is not None for row in r.result["engines"]]
    return {"trajectory": listed(SUMMARY, records), "engines": listed(DETAILS, every)}
