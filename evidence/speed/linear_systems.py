"""Whole fits of ten linear systems with dense series, with heyoka and without it.

They are chains of fast and slow modes, flexible structures, filters, converters, springs and heat:
two to eight states, 1,000 or 1,500 times, some with an input in every row. Parameters of a draw lie
within a quarter of their typical values, and bounds a factor of ten around these; noise is 2 % of
the range. Each fit is a separate process, in which heyoka can or cannot be imported. Seconds are
the processor's, for a second fit in that process, so that kernels are compiled and packages
imported. An answer is right if its objective is at most that of the parameters that made the data.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.running.campaign import Option, Record, Task, tasks_of
from evidence.running.measuring import hide_heyoka, last_json, run_process
from evidence.running.output import listed

if TYPE_CHECKING:
    import pandas as pd

    from odefit import Problem

NOISE = 0.02  # standard deviation, over the range of the observable
SPREAD, WIDE = 0.25, 10.0  # parameters vary by a quarter, bounds lie a factor of ten around


@dataclass(frozen=True)
class System:
    """A linear system: its equations, typical parameters, known initial values and times."""

    ode: Mapping[str, str]
    typical: Mapping[str, float]
    observed: Sequence[str]
    end: float
    initial: Mapping[str, float] = field(default_factory=dict)  # the others begin at zero
    interpolation: str = ""  # of the input u; empty without one
    count: int = 1000


def heat(nodes: int) -> dict[str, str]:
    """Return the temperatures of a rod whose left end is kept warm."""
    names = ["hot", *(f"T{i}" for i in range(1, nodes + 1))]
    right = [*names[2:], f"T{nodes}"]
    return {
        name: f"d*({before} - 2*{name} + {after}) - h*{name}"
        for before, name, after in zip(names[:-1], names[1:], right, strict=True)
    }


SYSTEMS: dict[str, System] = {
    "cascade": System(
        {
            "x1": "-k1*x1",
            "x2": "k1*x1 - k2*x2",
            "x3": "k2*x2 - k3*x3",
            "x4": "k3*x3 - k4*x4 + b*x5",
            "x5": "k4*x4 - b*x5 - l*x5",
        },
        {"k1": 20.0, "k2": 0.5, "k3": 5.0, "k4": 0.2, "b": 0.1, "l": 0.05},
        ("x3", "x4", "x5"),
        30.0,
        {"x1": 10.0},
        count=1500,
    ),
    "flexible arm": System(
        {
            "q": "w",
            "w": "-a*(q - p) - b*(w - v) - f*w",
            "p": "v",
            "v": "c*(q - p) + e*(w - v) - g*p",
        },
        {"a": 40.0, "b": 0.2, "c": 150.0, "e": 0.3, "f": 0.2, "g": 30.0},
        ("q", "p"),
        10.0,
        {"q": 0.3, "p": 0.5, "v": -0.4},
        count=1500,
    ),
    "springs": System(
        {
            "x1": "v1",
            "v1": "-k1*x1 + k2*(x2 - x1) - c*v1",
            "x2": "v2",
            "v2": "-k2*(x2 - x1) + k3*(x3 - x2) - c*v2",
            "x3": "v3",
            "v3": "-k3*(x3 - x2) - c*v3",
        },
        {"k1": 8.0, "k2": 3.0, "k3": 5.0, "c": 0.1},
        ("x1", "x3"),
        20.0,
        {"x1": 1.0, "x3": -0.5},
    ),
    "filter": System(
        {"a": "w*(u - a - b)", "b": "w*a - d*b", "c": "r*(b - c) - s*e", "e": "s*c"},
        {"w": 4.0, "d": 1.0, "r": 2.0, "s": 3.0},
        ("c",),
        20.0,
        interpolation="constant",
    ),
    "converter": System(
        {"i": "(u - v)*m - r*i", "v": "n*i - o*v"},
        {"m": 25.0, "r": 2.0, "n": 40.0, "o": 8.0},
        ("v",),
        10.0,
        interpolation="constant",
    ),
    "beam": System(
        {"x": "v", "v": "g*u - k*x - c*v", "y": "z", "z": "h*u - l*y - d*z"},
        {"k": 9.0, "c": 0.2, "g": 1.0, "l": 150.0, "d": 0.6, "h": 3.0},
        ("x", "y"),
        20.0,
        interpolation="linear",
    ),
    "heat": System(heat(8), {"d": 3.0, "h": 0.05, "hot": 10.0}, ("T2", "T5", "T8"), 20.0),
    "ladder": System(
        {"i": "a*(u - v) - r*i", "v": "b*(i - j)", "j": "a*(v - w) - r*j", "w": "b*j - l*w"},
        {"a": 5.0, "b": 4.0, "r": 0.5, "l": 1.5},
        ("w",),
        15.0,
        interpolation="linear",
    ),
    "building": System(
        {"T": "a*(W - T) + b*(u - T)", "W": "c*(T - W) + d*(u - W)"},
        {"a": 3.0, "b": 0.6, "c": 0.2, "d": 0.05},
        ("T",),
        60.0,
        {"T": 20.0, "W": 18.0},
        "linear",
    ),
    "suspension": System(
        {
            "x": "v",
            "v": "-k*(x - y) - c*(v - w)",
            "y": "w",
            "w": "k*m*(x - y) + c*m*(v - w) - b*(y - u)",
        },
        {"k": 40.0, "c": 3.0, "m": 6.0, "b": 900.0},
        ("x", "y"),
        10.0,
        interpolation="linear",
    ),
}


def problem_of(name: str, draw: int) -> tuple[Problem, dict[str, float]]:
    """Return a system's problem with data of a draw, and the parameters that made them."""
    from odefit import ForwardMap, Model, Problem
    from odefit.simulation import Trajectory

    system = SYSTEMS[name]
    rng = np.random.default_rng([draw, *name.encode()])
    truth = {n: v * rng.uniform(1 - SPREAD, 1 + SPREAD) for n, v in system.typical.items()}
    times = np.linspace(0.0, system.end, system.count)
    columns: dict[str, Any] = {"t": times}
    if system.interpolation == "constant":
        columns["u"] = np.repeat(rng.choice([0.0, 1.0], system.count // 20 + 1), 20)[: len(times)]
    elif system.interpolation:
        phases = rng.uniform(0.0, 6.0, 6)
        columns["u"] = np.sin(np.outer(times, [0.2, 0.7, 1.9, 3.1, 7.0, 12.0]) + phases).sum(axis=1)
    inputs = {"u": system.interpolation} if system.interpolation else {}
    model = Model(ode=dict(system.ode), inputs=inputs)
    initial = {n: system.initial.get(n, 0.0) for n in system.ode}
    bounds = {n: {"lower": v / WIDE, "upper": v * WIDE} for n, v in system.typical.items()}

    def problem(values: Mapping[str, Any], sds: Mapping[str, float]) -> Problem:
        noise = {n: {"sd": sd} for n, sd in sds.items()}
        return Problem(model, {**columns, **values}, bounds, initial, noise=noise, t0=0.0)

    blank = problem(dict.fromkeys(system.observed, np.zeros(len(times))), {})
    exact = ForwardMap(blank).trajectory(blank.vector(truth))
    assert isinstance(exact, Trajectory)
    values, sds = {}, {}
    for observed in system.observed:
        curve = exact.states[:, model.states.index(observed)]
        sds[observed] = NOISE * float(np.ptp(curve))
        values[observed] = curve + sds[observed] * rng.standard_normal(len(curve))
    return problem(values, sds), truth


def measure(name: str, draw: int, engine: str) -> dict[str, Any]:
    """Fit a system twice, and return the seconds of the second fit."""
    if engine == "without":
        hide_heyoka()
    import odefit

    problem, truth = problem_of(name, draw)
    at_truth = odefit.ForwardMap(problem).evaluate(problem.vector(truth))
    odefit.fit(problem_of(name, draw + 1000)[0], jobs=1)
    began = time.process_time()
    result = odefit.fit(problem, jobs=1)
    return {
        "seconds": time.process_time() - began,
        "right": bool(result.best.objective <= at_truth.objective),  # type: ignore[union-attr]
        "size": f"{len(problem.model.states)}, {len(problem.unknowns)}, {problem.size}",
    }


def printed(name: str, draw: str, engine: str) -> None:
    """Fit a system, and print the measurements as JSON, in a child process."""
    sys.stdout.write(json.dumps(measure(name, int(draw), engine)) + "\n")


HEAD = ("system", "states, unknowns, values", "with heyoka, s", "without, s", "without / with")
OPTIONS = (
    Option("systems", (), "names of systems"),
    Option("draws", 1, "draws of parameters and noise of each", least=1),
    Option("limit", 300.0, "seconds of a process", above=0),
)


def tasks(systems: Sequence[str], draws: int, limit: float) -> list[Task]:
    chosen = [name for name in SYSTEMS if not systems or name in systems]
    return [
        task for draw in range(draws) for task in tasks_of("system", chosen, draw=draw, limit=limit)
    ]


def run(task: Task) -> dict[str, Any]:
    """Fit a system with heyoka and without."""
    code = "import sys; from evidence.speed.linear_systems import printed; printed(*sys.argv[1:])"
    found: dict[str, Any] = {}
    for engine in ("with", "without"):
        command = [sys.executable, "-c", code, task["system"], str(task["draw"]), engine]
        finished = run_process(command, task["limit"])
        if finished.status is None:
            found[engine] = {"failure": f"more than {task['limit']:g} s"}
        elif finished.status:
            found[engine] = {"failure": finished.errors.strip().splitlines()[-1]}
        else:
            found[engine] = last_json(finished)
    return found


def cell(measured: Mapping[str, Any]) -> str:
    """Return the seconds of a fit, and whether it was right."""
    if "failure" in measured:
        return str(measured["failure"])
    return f"{measured['seconds']:.2f} {'right' if measured['right'] else 'wrong'}"


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    rows, ratios, right = [], [], {"with": 0, "without": 0}
    for record in records:
        if record.result is None:
            continue
        both = [record.result[engine] for engine in ("with", "without")]
        row = [record.task["system"], both[0].get("size", ""), *map(cell, both)]
        for engine, one in zip(right, both, strict=True):
            right[engine] += bool(one.get("right"))
        if any("failure" in one for one in both):
            rows.append(row)
            continue
        ratios.append(both[1]["seconds"] / both[0]["seconds"])
        rows.append([*row, f"{ratios[-1]:.2f}"])
    notes = []
    if ratios:
        mean = math.exp(float(np.mean(np.log(ratios))))
        notes.append(
            f"Right: {right['with']} of {len(rows)} with heyoka, {right['without']} without it, "
            f"which takes {mean:.2f} times as long in the geometric mean."
        )
    return {"linear": listed(HEAD, rows, *notes)}
