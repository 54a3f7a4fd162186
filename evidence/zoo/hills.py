"""Twelve problems with several optima, and fits called "converged" away from the lowest.

Each data set of a problem of `hills.toml` is simulated by SciPy, with its own noise, and has one
``reference``: searches by SciPy alone from the truth and from many other points. The fits of all
seeds are compared with that and with each other. "Converged" is false where a lower optimum is
known and the difference is not ignored. Fits with a limit of a fraction of a second show that no
interrupted fit is called "converged".
"""

from __future__ import annotations

import math
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
from evidence.zoo.parts import PARTS, data_set_tasks
from evidence.zoo.searching import searched
from odefit.problem import problem_from_mapping
from odefit.result_data.notices import NoticeKind

HILLS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("hills.toml").read_text(encoding="utf-8")
)
ALIKE = 0.05  # difference of chi-square, or n log of the sum of squares, that is ignored

OPTIONS = (
    Option("problems", tuple(HILLS), "problems, e.g. membrane,three-pools", HILLS),
    Option("sets", 5, "data sets of each problem", least=1),
    Option("seeds", 5, "fits of each data set", least=1),
    Option("parts", PARTS, "reference,fit or one of them", PARTS),
    Option("starts", 20, "random starts of a reference", least=0),
    Option("limits", (60.0, 0.5), "time limits of the fits in seconds", above=0),
)


tasks = data_set_tasks


def run(task: Task) -> dict[str, Any]:
    found = data_set(task["problem"], task["number"])
    if task["part"] == "fit":
        return fitted(found, task["seed"], task["limit"])
    random = np.random.default_rng([task["number"], 2])
    return searched(found.by_hand, found.truth, task["starts"], random)


def data_set(name: str, number: int) -> Drawn:
    """Return one of the twelve problems with the data set of a number."""
    return sampled(name, HILLS[name], number)


def fitted(found: Drawn, seed: int, limit: float) -> dict[str, Any]:
    """Fit a data set, and let SciPy judge the answer."""
    began, processor = time.perf_counter(), time.process_time()
    problem = problem_from_mapping(found.mapping)
    result = odefit.fit(problem, seed=seed, jobs=1, time_limit=limit)
    told: dict[str, Any] = {
        "status": result.status.value,
        "message": result.message,
        "limited": any(n.kind is NoticeKind.ENDED_EARLY for n in result.reasons)
        or "ended the search" in result.message,
        "solutions": len(result.fitting),
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - processor,
        "measure": math.inf,
        "values": {},
    }
    if result.solutions:
        told["values"] = dict(zip(problem.keys, result.best.vector.tolist(), strict=True))
        try:
            told["measure"] = found.judge.measure(told["values"])
        except (ArithmeticError, ValueError) as error:
            told["message"] += f" SciPy cannot judge it: {error}"
    return told


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the verdicts by problem and limit, and by name each fit that is not right."""
    best: dict[tuple[str, int], float] = {}
    for r in records:
        if r.result is not None:
            at = r.task["problem"], r.task["number"]
            lowest = r.result["best" if r.task["part"] == "reference" else "measure"]
            best[at] = min(best.get(at, math.inf), math.inf if lowest is None else lowest)
    rows = []
    for r in records:
        if r.task["part"] != "fit":
            continue
        own = r.result or {}
        measure = own.get("measure")
        worse = (math.inf if measure is None else measure) - best.get(
            (r.task["problem"], r.task["number"]), math.inf
        )
        converged = own.get("status") == "converged"
        rows.append(
            {
                "problem": r.task["problem"],
                "limit s": r.task["limit"],
                "data set": r.task["number"],
                "seed": r.task["seed"],
                "status": own.get("status", r.outcome),
                "right": converged and worse <= ALIKE,
                "false converged": converged and not worse <= ALIKE,
                "at the lowest": worse <= ALIKE,
                "converged beside a limit": converged and bool(own.get("limited")),
                "listed": own.get("solutions", 0),
                "several told": own.get("solutions", 0) > 1,
                "worse by": worse,
                "processor s": own.get("processor", r.seconds),
                "message": own.get("message", r.reason),
            }
        )
    if not rows:
        return {}
    fits = pd.DataFrame(rows)
    fits["other lists"] = _differing(fits)
    counted = ("right", "false converged", "at the lowest", "converged beside a limit")
    aggregates: dict[str, Any] = {"fits": ("right", "size")}
    aggregates |= {name: (name, "sum") for name in (*counted, "several told", "other lists")}
    aggregates |= {
        "median s": ("processor s", "median"),
        "most s": ("processor s", "max"),
    }
    # Problems are told apart at the longest limit alone.
    longest = fits[fits["limit s"] == fits["limit s"].max()]
    both = [
        part.groupby(["limit s", "problem"], sort=False).agg(**aggregates).reset_index().round(2)
        for part in (longest, fits.assign(problem="all"))
    ]
    wrong = fits["false converged"] | fits["converged beside a limit"]
    return {"hills": pd.concat(both, ignore_index=True), "wrong": fits[wrong]}


def _differing(fits: pd.DataFrame) -> pd.Series[bool]:
    """Return which fit is the first of a data set whose converged fits list different numbers."""
    sets = ["limit s", "problem", "data set"]
    converged = fits[fits["status"] == "converged"]
    numbers = converged.groupby(sets)["listed"].transform("nunique")
    first = ~converged.duplicated(sets)
    return (first & (numbers > 1)).reindex(fits.index, fill_value=False)
