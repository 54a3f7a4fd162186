"""Models of all sizes fitted with a time limit: the delay of the answer after it.

A cascade has as many unknowns as states: x1' = 1 - k1 x1, xi' = ki (x(i-1) - xi), all states
measured at 14 times with noise of 0.01, bounds 0.01 and 100 on logarithmic scales, no guesses.
Problems of `folder` have their nominal values removed. Each fit is the default, on one core. "Late"
is the time from the limit to the result, the assessment included; a fit that ended before its limit
shows its status instead. A delay of 2 s, or of 3 % of the limit if that is more, is allowed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

import odefit
from evidence.peers.amici import problem_folders
from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.output import listed
from odefit.common.arrays import Array
from odefit.formats.petab import read_petab

ALLOWED, SHARE = 2.0, 0.03  # seconds after a limit, and share of it, whichever is more
TIMES = np.linspace(0.0, 40.0, 15)[1:]  # of a cascade's measurements
NOISE = 0.01


def cascade(size: int) -> odefit.Problem:
    """Return a cascade with simulated measurements."""
    rng = np.random.default_rng(size)
    rates = 10 ** rng.uniform(-0.5, 0.5, size)

    def slope(_: float, x: Array) -> Array:
        return np.asarray(rates * (np.concatenate([[1.0 / rates[0]], x[:-1]]) - x))

    exact = solve_ivp(
        slope, (0.0, TIMES[-1]), np.zeros(size), "LSODA", TIMES, rtol=1e-8, atol=1e-10
    ).y
    states = [f"x{i + 1}" for i in range(size)]
    ode = {"x1": "1 - k1*x1"} | {f"x{i}": f"k{i}*(x{i - 1} - x{i})" for i in range(2, size + 1)}
    wide = {"lower": 0.01, "upper": 100.0, "scale": "log10"}
    return odefit.Problem(
        odefit.Model(ode=ode),
        {
            "t": TIMES,
            **dict(zip(states, exact + NOISE * rng.normal(size=exact.shape), strict=True)),
        },
        {f"k{i + 1}": wide for i in range(size)},
        dict.fromkeys(states, 0.0),
        noise={state: {"sd": NOISE} for state in states},
        t0=0.0,
    )


def model_named(name: str, folder: str) -> odefit.Problem:
    """Return a cascade, as `cascade 10`, or a PEtab problem in a folder of such problems."""
    if name.startswith("cascade "):
        return cascade(int(name.removeprefix("cascade ")))
    return read_petab(Path(folder) / name / f"{name}.yaml").problem


OPTIONS = (
    Option("sizes", (10, 100, 300, 1000), "states of cascades, e.g. 10,100"),
    Option("folder", "", "folder with a folder for each PEtab problem, as the collection has"),
    Option("models", (), "names of PEtab problems, e.g. Boehm_JProteomeRes2014"),
    Option("limits", (5.0, 20.0, 60.0), "time limits in seconds, e.g. 5,20"),
    Option("seed", 1, "seed of the fits"),
)


def tasks(
    sizes: Sequence[int],
    folder: str,
    models: tuple[str, ...],
    limits: Sequence[float],
    seed: int,
) -> list[Task]:
    names = problem_folders(folder, models) if folder else []
    return [
        task
        for name in [*(f"cascade {size}" for size in sizes), *names]
        for task in tasks_of("limit", limits, model=name, folder=folder, seed=seed)
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Fit a model within a limit."""
    limit = task["limit"]
    problem = model_named(task["model"], task["folder"])
    began = time.monotonic()
    result = odefit.fit(problem, seed=task["seed"], time_limit=limit, jobs=1)
    taken = time.monotonic() - began
    return {
        "states": len(problem.model.states),
        "unknowns": len(problem.unknowns),
        "values": sum(condition.size for condition in problem.conditions),
        "status": result.status.value,
        "late": taken - limit,
        "answer": bool(result.solutions),
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return how late each model was at each limit."""
    limits = list(dict.fromkeys(record.task["limit"] for record in records))
    rows: dict[str, list[str]] = {}
    notes = []
    for record in records:
        name, limit, found = record.task["model"], record.task["limit"], record.result
        if found is None:
            notes.append(f"{name}, {limit:g} s: {record.reason}")
            continue
        sizes = [f"{found[key]:,}" for key in ("states", "unknowns", "values")]
        row = rows.setdefault(name, [name, *sizes, *["–"] * len(limits)])
        late = f"{found['late']:.1f}" if found["late"] > 0 else found["status"]
        if found["late"] > max(ALLOWED, SHARE * limit):
            late += ", too late"
        row[4 + limits.index(limit)] = late if found["answer"] else f"{late}, no answer"
    head = ("model", "states", "unknowns", "values", *(f"late at {x:g} s" for x in limits))
    return {"lateness": listed(head, list(rows.values()), *notes)}
