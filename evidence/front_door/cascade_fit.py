"""One fit of a cascade of ten enzymatic activations: thirty states, forty unknowns.

    python -m evidence.front_door.cascade_fit [--seed 1] [--starts 1]

Each stage has an inactive and an active form and a complex with the active form of the stage
before; the active forms are measured at 20 times with 2 % noise. Rates are sought between 1e-3
and 1e3.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import odefit
from evidence.running.processes import machine
from odefit import Model, Problem

STAGES = 10


def cascade(seed: int) -> tuple[Problem, dict[str, float]]:
    """The problem, and the rates behind its data."""
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
    names = [f"{k}{i}" for i in range(1, STAGES + 1) for k in ("kon", "koff", "kcat", "kd")]
    parameters = {name: {"lower": 1e-3, "upper": 1e3} for name in names}
    rng = np.random.default_rng(seed)
    rates = {name: float(10 ** rng.uniform(-0.5, 1)) for name in names}
    times = np.linspace(0.0, 10.0, 21)[1:]
    measured = [f"b{i}" for i in range(1, STAGES + 1)]
    model = Model(ode=ode)
    empty = {"t": times, **{name: np.ones(len(times)) for name in measured}}
    problem = Problem(model, empty, parameters, initial, t0=0.0)
    trajectory = odefit.ForwardMap(problem).trajectory(problem.vector(rates))
    assert isinstance(trajectory, odefit.simulation.Trajectory), trajectory
    data = {"t": times}
    for name in measured:
        values = trajectory.states[:, model.states.index(name)]
        data[name] = values * (1 + 0.02 * rng.normal(size=len(values)))
    return Problem(model, data, parameters, initial, t0=0.0), rates


def main() -> None:
    """Fit once, and print the time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--starts", type=int, default=1)
    options = parser.parse_args()
    problem, rates = cascade(0)
    found = odefit.ForwardMap(problem).evaluate(problem.vector(rates))
    assert isinstance(found, odefit.simulation.Evaluation), found
    method = odefit.MultiStart(starts=options.starts)
    began = time.perf_counter()
    result = odefit.fit(problem, method, seed=options.seed, jobs=1)
    elapsed = time.perf_counter() - began
    print(machine())
    print(f"{options.starts} starts: {elapsed:.1f} s, {result.status.value}")
    print(f"objective {result.objective:.6g}, at the rates behind the data {found.objective:.6g}")


if __name__ == "__main__":
    main()
