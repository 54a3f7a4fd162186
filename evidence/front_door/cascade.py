"""A signalling cascade of ten enzymatic activations: thirty states, forty unknowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from odefit.problem.problem import Problem

STAGES = 10

# The rate constants of a stage: binding, unbinding, activation and deactivation
RATES = ("kon", "koff", "kcat", "kd")
NOISE = 0.02  # standard deviation of the noise over the value that is measured


def cascade_problem(seed: int) -> tuple[Problem, dict[str, float]]:
    """Return the problem, and the rates behind its data.

    Each stage has an inactive form a, an active form b, and a complex c with the active form of
    the stage before. Both forms are measured, 20 observables at 21 times.
    """
    from odefit.problem import Model, Problem
    from odefit.simulation import Failure, simulate

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
    measured = [f"{form}{i}" for i in range(1, STAGES + 1) for form in "ab"]
    model = Model(ode=ode, observables={name: name for name in measured})
    times = np.linspace(0.0, 10.0, 21)
    empty = {"t": times, **{name: np.zeros(len(times)) for name in measured}}
    bare = Problem(model, empty, parameters, initial, t0=0.0)
    exact = simulate(bare, bare.vector(rates))
    assert not isinstance(exact, Failure), exact
    data = {"t": times}
    noise = {}
    for name in measured:
        values = exact.observables[name]
        sd = NOISE * float(np.mean(values))
        data[name] = values + sd * random.standard_normal(len(values))
        noise[name] = {"sd": sd}
    problem = Problem(model, data, parameters, initial, noise=noise, t0=0.0, name="cascade")
    return problem, rates
