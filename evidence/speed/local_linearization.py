"""Local Linearization against the Taylor method and CVODES, at equal measured error.

Every method integrates states and sensitivities by all parameters and initial values, at a range of
tolerances. The errors of the states, relative to the largest value of each on the trajectory, are
measured against heyoka at 1e-14. Tolerances fall until the target is met; that run is shown, with
the error of its sensitivities: those of each state relative to their largest value, or to that of
the state if larger (so that pure rounding errors do not count).

single
    One trajectory, values at 50 times.
batch
    1,000 initial value problems that begin on that trajectory, each a two-hundredth of it long, as
    in multiple shooting: Local Linearization all at once, heyoka all at once (four to a vector) and
    one by one, CVODES one by one.

LL 2 is the method as published, LL 3 has states and sensitivities corrected by the defect. Compile
times are not counted. Times are those of the processor, medians over repetitions in which all
methods take turns: every method runs in one thread (set OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit import Model, Problem
from odefit.problem.vector_field import SensitivityPattern, VectorField
from odefit.simulation.engines.casadi_engine import CasadiEngine
from odefit.simulation.engines.engine import (
    BatchFailure,
    BatchIntegrator,
    BatchSolution,
    Engine,
    EngineFailure,
    InitialValueProblems,
    Values,
)
from odefit.simulation.engines.heyoka.heyoka_batches import HeyokaBatchIntegrator
from odefit.simulation.engines.heyoka.heyoka_engine import HeyokaEngine
from odefit.simulation.engines.linearized.local_linearization import (
    LocalLinearizationBatchIntegrator,
    LocalLinearizationEngine,
)
from odefit.simulation.engines.segments import Segment

Array = NDArray[np.float64]
MOST = 50_000_000  # steps
TIMES = 50
PROBLEMS = 1_000
SHORT = 200  # InitialValueProblems in a trajectory

# Seconds of a run after which no smaller tolerance is tried, and nothing is repeated
PATIENCE = 4.0

# States, shape (t, n), sensitivities, shape (t, n, m), and steps
Run = Callable[[], tuple[Array, Array, int]]


class UnfinishedError(Exception):
    """An integration stopped before its end."""


@dataclass(frozen=True)
class Case:
    """A problem: equations, values of the parameters, start and end."""

    ode: Mapping[str, str]
    values: Mapping[str, float]
    start: tuple[float, ...]
    end: float


CASES = {
    "FitzHugh-Nagumo": Case(
        {"v": "c*(v - v^3/3 + w)", "w": "-(v - a + b*w)/c"},
        {"a": 0.2, "b": 0.2, "c": 3.0},
        (-1.0, 1.0),
        20.0,
    ),
    "Lorenz-63": Case(
        {"x": "s*(y - x)", "y": "x*(r - z) - y", "z": "x*y - b*z"},
        {"s": 10.0, "r": 28.0, "b": 8 / 3},
        (1.0, 1.0, 20.0),
        5.0,
    ),
    "stiff linear": Case(
        {"x": "-k*(x - cos(t)) - a*sin(t)", "y": "x - y"},
        {"k": 1e4, "a": 1.0},
        (2.0, 0.5),
        10.0,
    ),
    "van der Pol, mu = 100": Case(
        {"x": "y", "y": "mu*(1 - x^2)*y - x"}, {"mu": 100.0}, (2.0, 0.0), 100.0
    ),
}


@dataclass
class Entry:
    """A method at one tolerance."""

    method: str
    tolerance: float
    run: Run
    steps: int
    error: float
    slope_error: float
    spent: list[float] = field(default_factory=list)


class Setting:
    """A prepared case: field, pattern, and the inputs of single runs and bundles."""

    def __init__(self, case: Case) -> None:
        data = {"t": [0.0, 1.0], next(iter(case.ode)): [1.0, 1.0]}
        problem = Problem(
            Model(ode=case.ode),
            data,
            {name: {} for name in case.values},
            {name: {} for name in case.ode},
        )
        self.field = VectorField.of(problem.model, problem.conditions)
        n, p = len(case.ode), len(case.values)
        self.pattern = SensitivityPattern(p + n, frozenset((j, j) for j in range(p)))
        scalars = np.array([case.values[name] for name in self.field.scalars])
        times = np.linspace(0.0, case.end, TIMES + 1)[1:]
        start = np.array(case.start)
        # directions in units of the unknowns' sizes, as in a fit
        changes = np.concatenate([np.diag(scalars), np.zeros((p, n))], axis=1)
        derivatives = np.concatenate([np.zeros((n, p)), np.eye(n)], axis=1)
        self.segment = Segment(0.0, times, np.zeros(0), np.zeros((1, 0, 5)))
        self.initial = Values(start, scalars, derivatives, changes, np.zeros(0))
        self.exact = self.single(HeyokaEngine(self.field, self.pattern, 1e-14))
        starts = np.sort(np.random.default_rng(0).uniform(0.0, case.end, PROBLEMS))
        plain = HeyokaEngine(self.field, SensitivityPattern(0, frozenset()), 1e-14)
        none = Values(start, scalars, np.zeros((n, 0)), np.zeros((p, 0)), np.zeros(0))
        along = plain.integrate(
            Segment(0.0, starts, np.zeros(0), self.segment.polynomials), none, MOST
        )
        assert not isinstance(along, EngineFailure), along
        self.problems = InitialValueProblems(
            starts,
            [np.array([t + case.end / SHORT]) for t in starts],
            np.zeros((PROBLEMS, 0, 5)),
            along.states,
            scalars,
            derivatives,
            changes,
        )
        self.exact_batch = self.one_by_one(HeyokaEngine(self.field, self.pattern, 1e-14))

    def single(self, engine: Engine) -> tuple[Array, Array, int]:
        path = engine.integrate(self.segment, self.initial, MOST)
        if isinstance(path, EngineFailure):
            raise UnfinishedError(path.reason)
        return path.states, path.sensitivities, path.steps

    def one_by_one(self, engine: Engine) -> tuple[Array, Array, int]:
        """Solve the batch, one problem after the other."""
        s = self.problems
        states, derivatives, steps = [], [], 0
        for i, start in enumerate(s.starts):
            segment = Segment(float(start), s.times[i], np.zeros(0), s.polynomials[i : i + 1])
            initial = Values(
                s.states[i], s.scalars, s.sensitivities, s.scalar_sensitivities, np.zeros(0)
            )
            path = engine.integrate(segment, initial, MOST)
            if isinstance(path, EngineFailure):
                raise UnfinishedError(path.reason)
            states.append(path.states)
            derivatives.append(path.sensitivities)
            steps += path.steps
        return np.concatenate(states), np.concatenate(derivatives), steps

    def at_once(self, integrator: BatchIntegrator) -> tuple[Array, Array, int]:
        """Solve the batch together."""
        found = integrator.integrate(self.problems, MOST)
        if isinstance(found, BatchFailure):
            raise UnfinishedError(found.failure.reason)
        assert isinstance(found, BatchSolution)
        return found.states, found.sensitivities, int(found.steps.sum())


def errors(found: tuple[Array, Array, int], exact: tuple[Array, Array, int]) -> tuple[float, float]:
    """Return errors of states and sensitivities, relative to their largest values."""
    size = np.abs(exact[0]).max(axis=0)
    slope = np.maximum(np.abs(exact[1]).max(axis=0), size[:, None])
    return (
        float((np.abs(found[0] - exact[0]) / size).max()),
        float((np.abs(found[1] - exact[1]) / slope).max()),
    )


def entries(s: Setting, batch: bool, target: float, failures: list[str]) -> list[Entry]:
    """Return the runs of all methods at falling tolerances, and add failures to `failures`."""
    f, pattern = s.field, s.pattern
    coarse = (10.0 ** -np.arange(3, 9.5, 0.5)).tolist()
    fine = (10.0 ** -np.arange(3, 13.0, 1.0)).tolist()

    def linearized(maker: Any, order: int) -> Callable[[float], Any]:
        return lambda tol: maker(f, pattern, tol, 1e-3 * tol, order=order)

    def by(maker: Any) -> Callable[[float], Any]:
        return lambda tol: maker(f, pattern, tol)

    local = LocalLinearizationBatchIntegrator if batch else LocalLinearizationEngine
    end, how = (", at once", s.at_once) if batch else ("", s.single)
    methods: dict[str, tuple[list[float], Callable[[float], Any], Callable[[Any], Any]]] = {
        f"LL {order}{end}": (coarse, linearized(local, order), how) for order in (2, 3)
    }
    if batch:
        methods["heyoka, at once"] = (fine, by(HeyokaBatchIntegrator), s.at_once)
    one, single = (", one by one", s.one_by_one) if batch else ("", s.single)
    methods[f"heyoka{one}"] = (fine, by(HeyokaEngine), single)
    methods[f"CVODES{one}"] = (fine, by(CasadiEngine), single)
    exact = s.exact_batch if batch else s.exact
    found = []
    for method, (tolerances, make, integrate) in methods.items():
        for tolerance in tolerances:
            made = make(tolerance)

            def run(made: Any = made, integrate: Any = integrate) -> tuple[Array, Array, int]:
                values: tuple[Array, Array, int] = integrate(made)
                return values

            try:
                run()
                began = time.process_time()
                result = run()
            except UnfinishedError as error:
                failures.append(f"{method} at {tolerance:g}: {error}")
                continue
            spent = time.process_time() - began
            entry = Entry(method, tolerance, run, result[2], *errors(result, exact))
            entry.spent.append(spent)
            found.append(entry)
            if entry.error <= target or spent > PATIENCE:
                break
    return found


def best(found: list[Entry]) -> list[Entry]:
    """Return the last run of each method, the first that met the target."""
    return list({e.method: e for e in found}.values())


HEAD = ("what", "method", "tolerance", "steps", "ms", "error", "of sensitivities")
OPTIONS = (
    Option("repeats", 5, "runs that are timed", least=1),
    Option("target", 1e-5, "error that is to be met", above=0),
    Option("problems", tuple(CASES), "problems, e.g. Lorenz-63", CASES),
)


def tasks(problems: Sequence[str], **options: Any) -> list[Task]:
    return [
        *tasks_of("problem", problems, batch=False, **options),
        *tasks_of("problem", problems, batch=True, **options),
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Return the first run of each method that met the target."""
    failures: list[str] = []
    found = entries(Setting(CASES[task["problem"]]), task["batch"], task["target"], failures)
    chosen = best(found)
    for _ in range(task["repeats"] - 1):
        for entry in [e for e in chosen if e.spent[0] < PATIENCE]:
            began = time.process_time()
            entry.run()
            entry.spent.append(time.process_time() - began)
    rows = [
        [
            task["problem"],
            e.method,
            f"{e.tolerance:.0e}",
            f"{e.steps}",
            f"{1e3 * statistics.median(e.spent):.3g}",
            f"{e.error:.1e}" + ("" if e.error <= task["target"] else " (missed)"),
            f"{e.slope_error:.1e}",
        ]
        for e in chosen
    ]
    return {"rows": rows, "notes": failures}


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    parts = {False: "one trajectory", True: f"{PROBLEMS} short problems"}
    return {
        name.replace(" ", "-"): listed(HEAD, [r for r in records if r.task["batch"] == batch])
        for batch, name in parts.items()
    }
