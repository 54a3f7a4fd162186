"""Cost and gradient of linear chains with as many unknowns as states.

State i feeds state i + 1 with the rate k_i; rates are between 0.5 and 2 (seeded). The chain begins
with 1 in its first state, and its first, middle and last states are measured at twenty times. Each
size is a separate process on one core, in which heyoka can or cannot be imported. Milliseconds are
the least of the processor's: "cost" of `evaluate_cost`, "gradient" of `gradient`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import hide_heyoka, last_json, run_process
from evidence.running.output import listed
from evidence.speed.stiff import least

if TYPE_CHECKING:
    import pandas as pd

    from odefit import Problem

LIMIT = 300.0


def chain(states: int) -> tuple[Problem, np.ndarray]:
    """Return a chain, and the values of its unknowns."""
    import odefit

    rng = np.random.default_rng(states)
    ode = {"x1": "-k1*x1"}
    ode |= {f"x{i}": f"k{i - 1}*x{i - 1} - k{i}*x{i}" for i in range(2, states + 1)}
    times = np.linspace(0.0, 5.0 + 0.1 * states, 21)[1:]
    measured = {f"x{i}": rng.uniform(0.1, 1.0, 20) for i in (1, max(states // 2, 2), states)}
    unknowns = {f"k{i}": {"lower": 0.1, "upper": 10.0} for i in range(1, states + 1)}
    initial = {"x1": 1.0} | {f"x{i}": 0.0 for i in range(2, states + 1)}
    model = odefit.Model(ode=ode)
    problem = odefit.Problem(model, {"t": times, **measured}, unknowns, initial, t0=0.0)
    return problem, rng.uniform(0.5, 2.0, states)


def measure(states: int, repeats: int) -> dict[str, float | bool]:
    """Return the milliseconds of one chain."""
    from odefit import ForwardMap
    from odefit.simulation.evaluation import CostGradient

    problem, vector = chain(states)
    forward = ForwardMap(problem)
    for _ in range(3):  # the choice of an engine settles
        forward.evaluate_cost(vector)
        gradient = forward.gradient(vector)
    assert isinstance(gradient, CostGradient)
    return {
        "adjoint": gradient.adjoint,
        "cost": least(lambda: forward.evaluate_cost(vector), repeats),
        "gradient": least(lambda: forward.gradient(vector), repeats),
    }


HEAD = ("states", "cost, ms", "gradient", "ratio", "without heyoka: cost", "gradient", "ratio")
OPTIONS = (
    Option("states", (10, 30, 100, 300, 1000), "sizes of chains", least=2),
    Option("repeats", 30, "evaluations of which the least counts", least=1),
)


def tasks(states: Sequence[int], repeats: int) -> list[Task]:
    """Return a task for each size, with heyoka and without it."""
    return [
        task
        for heyoka in (True, False)
        for task in tasks_of("states", list(states), heyoka=heyoka, repeats=repeats)
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Measure one chain in a process of its own."""
    command = [sys.executable, "-m", "evidence.speed.chains", str(task["states"])]
    command += [str(task["repeats"]), "yes" if task["heyoka"] else "no"]
    finished = run_process(command, LIMIT)
    if finished.status != 0:
        raise RuntimeError(finished.errors)
    return last_json(finished)


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the times side by side."""
    sizes = sorted({record.task["states"] for record in records})
    rows = []
    for states in sizes:
        row = [f"{states:,}"]
        for heyoka in (True, False):
            results = [
                record.result
                for record in records
                if (record.task["states"], record.task["heyoka"]) == (states, heyoka)
            ]
            r = results[0] if results else None
            if r is None:
                row += ["", "", ""]
                continue
            ratio = r["gradient"] / r["cost"]
            row += [f"{r['cost']:.2f}", f"{r['gradient']:.2f}", f"{ratio:.1f}"]
        rows.append(row)
    return {"chains": listed(HEAD, rows)}


if __name__ == "__main__":
    if sys.argv[3] == "no":
        hide_heyoka()
    sys.stdout.write(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
