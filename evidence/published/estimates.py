"""Published estimates and standard errors: does the default method find them to their digits?

`problems.toml` has the data and the published values of each problem: NIST's StRD problems as
solutions of a differential equation, COPS's estimation problems, those of Bates and Watts and of
R's own examples, the glucose minimal model. No guess is given, and no bound but zero for what
`positive` names. Where a `closed` form exists, the table of data is checked by it.
"""

from __future__ import annotations

import itertools
import math
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import odefit
from evidence.running.campaign import Option, Record, Task
from odefit.common.arrays import Array
from odefit.problem import problem_from_mapping

_ENTRIES = tomllib.loads(Path(__file__).with_name("problems.toml").read_text(encoding="utf-8"))
PROBLEMS: Mapping[str, Mapping[str, Any]] = {
    name: {**entry, **entry["model"], **entry["known"]} for name, entry in _ENTRIES.items()
}
CLOSE = 1e-5  # relative difference of an estimate or sum of squares that is ignored
CLOSE_ERROR = 1e-3  # the same of a standard error
FUNCTIONS = {name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "arctan", "pi")}
Columns = Mapping[str, Sequence[float]]


def mapping(name: str) -> dict[str, Any]:
    """Return a problem in format 1."""
    entry = PROBLEMS[name]
    positive = entry.get("positive", ())
    initial = {
        state: ({"lower": 0.0} if state in positive else {}) if value == "free" else value
        for state, value in entry["initial"].items()
    }
    names = dict.fromkeys([*entry["published"], *positive])
    observables = entry.get("observables") or {k: k for k in entry["data"] if k in entry["ode"]}
    if entry.get("logs"):
        observables = {f"log_{k}": f"log({v})" for k, v in observables.items()}
    experiments: list[dict[str, Any]] = []
    for constants, data in _parts(entry):
        columns = {k: [None if math.isnan(v) else v for v in values] for k, values in data.items()}
        experiment: dict[str, Any] = {"t0": float(entry["t0"]), "data": columns}
        experiment["constants"] = constants
        experiment |= {"event": [entry["event"]]} if "event" in entry else {}
        experiments.append({"name": f"run {len(experiments) + 1}", **experiment})
    inputs = {k: {"interpolation": v} for k, v in entry.get("inputs", {}).items()}
    return {
        "format": 1,
        "name": name,
        "ode": entry["ode"],
        "observables": observables,
        "constants": dict(experiments[0]["constants"]),
        "inputs": inputs,
        "parameters": {
            k: {"lower": 0.0} if k in positive else {} for k in names if k not in initial
        },
        "initial": initial,
        "experiment": experiments,
    }


def _parts(entry: Mapping[str, Any]) -> Iterator[tuple[dict[str, float], Columns]]:
    """Yield the constants and the columns of each experiment."""
    data = {k: np.array(v, dtype=float) for k, v in entry["data"].items()}
    if entry.get("logs"):
        data["log_y"] = np.log(data.pop("y"))
    by = entry.get("by")
    for value in np.unique(data[by]).tolist() if by else (None,):
        rows = data[by] == value if by else np.ones(len(data["t"]), dtype=bool)
        order = np.argsort(data["t"][rows], kind="stable")
        yield (
            {by: float(value)} if by and value is not None else {},
            {k: v[rows][order].tolist() for k, v in data.items() if k != by},
        )


def squares_by_hand(name: str, values: Mapping[str, float]) -> float:
    """Return the sum of squares of a problem's closed form."""
    entry = PROBLEMS[name]
    data = {k: np.array(v) for k, v in entry["data"].items()}
    names = {**FUNCTIONS, **{k: v for k, v in data.items() if k not in entry["closed"]}, **values}
    total = 0.0
    for observable, text in entry["closed"].items():
        found, measured = eval(text, {"__builtins__": {}}, names), data[observable]  # noqa: S307
        logs = entry.get("logs", False)
        residuals = np.log(found / measured) if logs else found - measured
        total += float(residuals @ residuals)
    return total


def published(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return published estimates, and standard errors where there are some."""
    words = {k: text.split() for k, text in PROBLEMS[name]["published"].items()}
    estimates = {k: float(w[0]) for k, w in words.items()}
    return estimates, {k: float(w[1]) for k, w in words.items() if len(w) > 1}


def last_digit(text: str) -> float:
    """Return half a unit of the last digit of a number."""
    mantissa, _, exponent = text.lower().partition("e")
    return 0.5000001 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def compared(name: str, seed: int, limit: float) -> dict[str, Any]:
    """Fit a problem, and compare its answer with what is published."""
    problem = problem_from_mapping(mapping(name))
    began, processor = time.perf_counter(), time.process_time()
    result = odefit.fit(problem, seed=seed, jobs=1, time_limit=limit)
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    found: dict[str, Any] = {
        "status": result.status.value,
        "objective": result.objective,
        "seconds": seconds,
        "processor": processor,
        "unknowns": len(problem.unknowns),
        "values": problem.size,
    }
    if not result.solutions:
        return found | {"wrong": ["no solution"]}
    errors = result.uncertainty.standard_errors if result.uncertainty else None
    told = differences(name, problem.keys, result.best.vector, errors, result.objective)
    if result.status is not odefit.Status.CONVERGED:
        told["wrong"].append(found["status"])
    return found | told


def differences(
    name: str, keys: Sequence[str], vector: Array, errors: Array | None, objective: float
) -> dict[str, Any]:
    """Return what differs from the published values, and how many digits agree."""
    entry = PROBLEMS[name]
    wrong = []
    if text := entry.get("squares"):
        known = float(text)
        size = sum(float(np.nansum(np.square(v))) for k, v in entry["data"].items() if k != "t")
        if objective > known + max(CLOSE * known, last_digit(text)) + 1e-20 * size:
            wrong.append(f"sum of squares {objective:.9g} instead of {text}")
    values = dict(zip(keys, vector.tolist(), strict=True))
    spread = {} if errors is None else dict(zip(keys, errors.tolist(), strict=True))
    best: tuple[int, list[str], float, float] | None = None
    for renamed in renamings(entry):
        digits, digits_of_errors, told = math.inf, math.inf, []
        for key, text in entry["published"].items():
            own = renamed.get(key, key)
            if own is None:  # differs between equal solutions
                continue
            for words, where, close in zip(
                text.split(), (values, spread), (CLOSE, CLOSE_ERROR), strict=False
            ):
                known, here = float(words), where.get(own, math.nan)
                apart = abs(here - known)
                agree = -math.log10(max(apart / abs(known), 1e-16)) if apart >= 0 else 0.0
                if where is values:
                    digits = min(digits, agree)
                else:
                    digits_of_errors = min(digits_of_errors, agree)
                if not apart <= max(close * abs(known), last_digit(words)):
                    what = "" if where is values else "error of "
                    told.append(f"{what}{key} {here:.7g} instead of {words}")
        if best is None or len(told) < best[0]:
            best = len(told), told, digits, digits_of_errors
    assert best is not None
    return {"wrong": wrong + best[1], "digits": best[2], "digits of errors": best[3]}


def renamings(entry: Mapping[str, Any]) -> Iterator[Mapping[str, str | None]]:
    """Yield the exchanges of terms that are alike, by name; that of none comes first."""
    groups = entry.get("alike", [[]])
    for order in itertools.permutations(groups):
        pairs = [zip(a, b, strict=True) for a, b in zip(groups, order, strict=True)]
        renamed = dict(itertools.chain(*pairs))
        same = all(a == b for a, b in renamed.items())
        yield renamed if same else {**dict.fromkeys(entry.get("free", ())), **renamed}


OPTIONS = (
    Option("problems", (), "problems, all if none is named, e.g. Rat43", PROBLEMS),
    Option("seeds", 3, "seeds of each", least=1),
    Option("limit", 120.0, "time limit of a fit in seconds", above=0),
)


def tasks(problems: Sequence[str], seeds: int, limit: float) -> list[Task]:
    """Return a task for each problem and seed; the first seed of all problems comes first."""
    return [
        {"key": f"{name}, seed {seed}", "problem": name, "seed": seed, "limit": limit}
        for seed in range(seeds)
        for name in problems or PROBLEMS
    ]


def run(task: Task) -> Mapping[str, Any]:
    return compared(task["problem"], task["seed"], task["limit"])


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a row for each problem, what failed by name, and a row for each collection."""
    rows = []
    for record in records:
        r = record.result or {"wrong": [f"{record.outcome}: {record.reason}"]}
        rows.append(
            {
                "problem": record.task["problem"],
                "seed": record.task["seed"],
                "right": not r["wrong"],
                "differs": "; ".join(r["wrong"]),
                **{k: r.get(k) for k in ("values", "unknowns", "digits", "digits of errors")},
                "processor s": r.get("processor", math.nan),
            }
        )
    runs = pd.DataFrame(rows)
    runs["of"] = [PROBLEMS[name]["of"] for name in runs["problem"]]

    def counted(by: str) -> pd.DataFrame:
        groups = runs.groupby(by, sort=False)
        table = groups.agg(runs=("right", "size"), right=("right", "sum"))
        digits = pd.DataFrame({k: groups[k].min() for k in ("digits", "digits of errors")})
        times = groups["processor s"]
        table = table.join(digits.round(1))
        table["median s"], table["most s"] = times.median().round(2), times.max().round(1)
        return table.reset_index()

    problems = counted("problem")
    problems.insert(1, "of", [PROBLEMS[name]["of"] for name in problems["problem"]])
    failures = runs[~runs["right"]][["problem", "seed", "differs"]]
    return {"collections": counted("of"), "problems": problems, "failures": failures}
