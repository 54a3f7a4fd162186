"""Random problems whose proved bounds SciPy tries to refute, by samples and local searches.

A problem is one of the textbook systems with other true values, noise, bounds, times and data. The
proof may end early: what it has proved by then must hold as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.bounds.by_samples import Together
from evidence.bounds.textbook import GAP, SYSTEMS
from evidence.running.campaign import Option, Record, Task
from evidence.zoo.drawing import Drawn, sampled
from odefit.problem import problem_from_mapping

NOISES = (0.02, 0.05, 0.1)

OPTIONS = (
    Option("problems", 40, "random problems", least=1),
    Option("limit", 60.0, "time limit of a proof in seconds", above=0),
    Option("samples", 100_000, "random points at which SciPy evaluates the objective", least=1),
    Option("searches", 200, "local searches by SciPy", least=1),
)


def tasks(problems: int, limit: float, samples: int, searches: int) -> list[Task]:
    return [
        {
            "key": f"{number} {limit:g} {samples} {searches}",
            "number": number,
            "limit": limit,
            "samples": samples,
            "searches": searches,
        }
        for number in range(problems)
    ]


def drawn(number: int) -> tuple[str, Drawn]:
    """Return the random problem of a number, and the name of its system."""
    names = [name for name, entry in SYSTEMS.items() if entry["noise"] == "sd"]
    name = names[number % len(names)]
    random = np.random.default_rng([number, 401])
    entry: dict[str, Any] = dict(SYSTEMS[name])
    entry["unknown"] = {
        key: [
            float(f"{value * math.exp(random.normal(0, 0.15)):.3g}"),
            *(min(float(f"{random.uniform(1.3, 4):.3g}"), most) for most in ranges),
        ]
        for key, (value, *ranges) in entry["unknown"].items()
    }
    first, last, count = entry["times"]
    entry["times"] = [first, last, int(random.integers(count // 2, count + 1))]
    entry["level"] = float(random.choice(NOISES))
    return name, sampled(name, entry, number)


def run(task: Task) -> dict[str, Any]:
    name, problem_drawn = drawn(task["number"])
    problem = problem_from_mapping(problem_drawn.mapping)
    start = tuple(problem_drawn.truth[key] for key in problem.keys)
    method = odefit.BranchAndBound(gap=GAP, start=start)
    result = odefit.fit(problem, method, seed=1, jobs=1, time_limit=task["limit"])
    bounds = result.assessment.bounds
    assert bounds is not None, "the proof begins at values that fit"
    began = time.process_time()
    random = np.random.default_rng([task["number"], 402])
    least = Together(problem_drawn).least(task["samples"], task["searches"], random)
    return {
        "system": name,
        "lower": bounds.lower,
        "upper": bounds.upper,
        "closed": bounds.closed,
        "least": least,
        "processor": time.process_time() - began,
    }


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return one row: how many bounds SciPy contradicts, and how near it comes."""
    told = [r.result for r in records if r.result]
    if not told:
        return {}
    # SciPy's tolerance leaves an error of the objective about this large.
    below = [r["least"] / max(r["lower"], 1e-300) - 1 for r in told]
    row = {
        "problems": len(told),
        "closed to 1 %": sum(r["closed"] for r in told),
        "bound above zero": sum(r["lower"] > 0 for r in told),
        "samples each": records[0].task["samples"],
        "searches each": records[0].task["searches"],
        "contradicted": sum(b < -1e-9 for b in below),
        "least objective over the bound, % at least": 100 * min(below),
        "reached by SciPy to 0.01 %": sum(r["least"] <= r["upper"] * 1.0001 for r in told),
    }
    return {"refutation": pd.DataFrame([row]).round(4)}
