"""A signalling cascade of ten enzymatic activations, and one fit of it: 30 states, 40 unknowns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import odefit
from evidence.running.campaign import Option, Task, tasks_of
from odefit import Failure, Model, Problem
from odefit.simulation import Evaluation, simulated

STAGES = 10

# The rate constants of a stage: binding, unbinding, activation and deactivation
RATES = ("kon", "koff", "kcat", "kd")
NOISE = 0.02  # standard deviation of the noise over the value that is measured


def cascade_problem(seed: int, *, plain: bool = False) -> tuple[Problem, dict[str, float]]:
    """Return the problem, and the rates behind its data.

    Each stage has an inactive form a, an active form b, and a complex c with the active form of the
    stage before. Both forms are measured, 20 observables at 21 times. The `plain` problem measures
    active forms alone, at 20 times, and declares no noise, which is relative to each value.
    """
    ode: dict[str, str] = {}
    initial: dict[str, float] = {}
    for i in range(1, STAGES + 1):
        before = f"b{i - 1}" if i > 1 else "1"
        binding = f"kon{i}*a{i}*{before} - koff{i}*c{i}"
        ode[f"a{i}"] = f"-({binding}) + kd{i}*b{i}"
        ode[f"c{i}"] = f"{binding} - kcat{i}*c{i}"
        ode[f"b{i}"] = f"kcat{i}*c{i} - kd{i}*b{i}"
        if i < STAGES:
            bound = f"kon{i + 1}*a{i + 1}*b{i} - koff{i + 1}*c{i + 1}"
            ode[f"b{i}"] += f" - ({bound}) + kcat{i + 1}*c{i + 1}"
        initial |= {f"a{i}": 1.0, f"b{i}": 0.0, f"c{i}": 0.0}
    names = [f"{rate}{i}" for i in range(1, STAGES + 1) for rate in RATES]
    parameters = {name: {"lower": 1e-3, "upper": 1e3} for name in names}
    random = np.random.default_rng(seed)
    rates = {name: float(10 ** random.uniform(-0.5, 1)) for name in names}
    measured = [f"{form}{i}" for i in range(1, STAGES + 1) for form in ("b" if plain else "ab")]
    model = Model(ode=ode, observables={name: name for name in measured})
    times = np.linspace(0.0, 10.0, 21)[int(plain) :]
    empty = {"t": times, **{name: np.zeros(len(times)) for name in measured}}
    bare = Problem(model, empty, parameters, initial, t0=0.0)
    exact = simulated(bare, bare.vector(rates))
    assert not isinstance(exact, Failure), exact
    data = {"t": times}
    noise = {}
    for name in measured:
        values = exact.observables[name]
        if plain:
            data[name] = values * (1 + NOISE * random.normal(size=len(values)))
            continue
        sd = NOISE * float(np.mean(values))
        data[name] = values + sd * random.standard_normal(len(values))
        noise[name] = {"sd": sd}
    problem = Problem(model, data, parameters, initial, noise=noise, t0=0.0, name="cascade")
    return problem, rates


HEAD = ("seed", "starts", "seconds", "status", "objective", "at the rates behind the data")
OPTIONS = (
    Option("seeds", (1,), "seeds of the fit, e.g. 1,2"),
    Option("starts", 1, "starts of a fit", least=1),
)


def tasks(seeds: Sequence[int], starts: int) -> list[Task]:
    return tasks_of("seed", seeds, starts=starts)


def run(task: Task) -> Mapping[str, Any]:
    problem, rates = cascade_problem(0, plain=True)
    known = odefit.ForwardMap(problem).evaluate(problem.vector(rates))
    assert isinstance(known, Evaluation), known
    method = odefit.MultiStart(starts=task["starts"])
    began = time.perf_counter()
    result = odefit.fit(problem, method, seed=task["seed"], jobs=1)
    cells = [f"{time.perf_counter() - began:.1f}", result.status.value]
    cells += [f"{result.objective:.6g}", f"{known.objective:.6g}"]
    return {"rows": [[str(task["seed"]), str(task["starts"]), *cells]]}
