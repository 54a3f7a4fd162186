"""Sixteen textbook systems: proofs of the optimum to 1 % in continuous time, and their times.

Each data set of a system of `textbook.toml` is simulated by SciPy with noise of 5 %, or as counts,
and bounds span a decade around the truth. The proof begins at the truth and runs in one process.
SciPy evaluates the objective at many random points within the bounds, and searches from some: no
value may lie below the proved bound.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task
from evidence.zoo.drawing import Drawn, sampled
from evidence.zoo.searching import searched
from odefit.problem import problem_from_mapping

SYSTEMS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
GAP = 0.01  # requested relative gap of the bounds
PROCESSOR = 300.0  # seconds of one processor within which a proof counts as closed

OPTIONS = (
    Option("systems", tuple(SYSTEMS), "systems, e.g. van-der-pol,enzyme", SYSTEMS),
    Option("sets", 1, "data sets of each system", least=1),
    Option("limit", 600.0, "time limit of a proof in seconds", above=0),
    Option("samples", 200, "random points at which SciPy evaluates the objective", least=0),
    Option("starts", 5, "local searches by SciPy", least=0),
)


def tasks(systems: Sequence[str], sets: int, limit: float, samples: int, starts: int) -> list[Task]:
    return [
        {
            "key": f"{system} {number} {limit:g}",
            "system": system,
            "number": number,
            "limit": limit,
            "samples": samples,
            "starts": starts,
        }
        for number in range(sets)
        for system in systems
    ]


def run(task: Task) -> dict[str, Any]:
    drawn = sampled(task["system"], SYSTEMS[task["system"]], task["number"])
    problem = problem_from_mapping(drawn.mapping)
    start = tuple(drawn.truth[key] for key in problem.keys)
    began = time.process_time()
    method = odefit.BranchAndBound(gap=GAP, start=start)
    result = odefit.fit(problem, method, seed=1, jobs=1, time_limit=task["limit"])
    seconds = time.process_time() - began
    bounds = result.assessment.bounds
    assert bounds is not None, "the proof begins at values that fit"
    lowest = lowest_known(drawn, problem, task["samples"], task["starts"], task["number"])
    return {
        "lower": bounds.lower,
        "upper": bounds.upper,
        "boxes": result.starts[0].evaluations,
        "processor": seconds,
        "lowest": lowest,
    }


def lowest_known(
    drawn: Drawn, problem: odefit.Problem, samples: int, starts: int, seed: int
) -> float:
    """Return the lowest objective that SciPy finds within the bounds, by points and searches."""
    random = np.random.default_rng([seed, 41])
    lowest = float(searched(drawn.by_hand, drawn.truth, starts, random)["best"])
    logs = np.log(problem.lower), np.log(problem.upper)
    for point in np.exp(random.uniform(*logs, (samples, len(problem.keys)))):
        values = dict(zip(problem.keys, point.tolist(), strict=True))
        try:
            lowest = min(lowest, float(drawn.by_hand.measure(values)))
        except (ArithmeticError, ValueError):  # SciPy cannot integrate there
            continue
    return lowest


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the bounds by system and data set, and how many are closed."""
    rows = []
    for r in records:
        own = r.result or {}
        lower, upper, lowest = (own.get(key) for key in ("lower", "upper", "lowest"))
        gap = 1.0 if lower is None or not upper else 1.0 - lower / upper
        processor = own.get("processor", r.seconds)
        rows.append(
            {
                "system": r.task["system"],
                "data set": r.task["number"],
                # The gap is rounded.
                "closed": gap <= GAP * (1 + 1e-9) and processor <= PROCESSOR,
                "gap": gap,
                "lower": lower,
                "upper": upper,
                "least known": lowest,
                "contradicted": lower is not None and lowest is not None and lowest < lower,
                "boxes": own.get("boxes"),
                "processor s": processor,
            }
        )
    return {"certificates": pd.DataFrame(rows).round(4)} if rows else {}
