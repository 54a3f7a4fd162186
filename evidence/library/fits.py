"""Library problems fitted by the default method from several seeds, beside their references."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evidence.running.campaign import Option, Record, Task
from odefit import Problem, Result, fit, library
from odefit.library import Reference

AS_LOW = 1e-3  # largest relative excess of an objective that counts as the lowest one known

# Residuals, relative to noiseless data, below which a fit is exact
EXACT = 1e-6


def compared(problem: Problem, reference: Reference, seed: int) -> dict[str, Any]:
    """Fit `problem`, and compare the answer with its reference.

    ``right``: the objective is as low as the lowest one known; ``objective``, ``known`` (that
    lowest one); ``worst_error``: the largest relative error of an identifiable unknown against its
    reference, and ``worst``, its key; ``status``, ``starts``, ``evaluations``, ``seconds``.
    """
    result = fit(problem, seed=seed, jobs=1)
    known = reference.objective if reference.best_known is None else reference.best_known
    worst, error = worst_error(result, reference)
    return {
        "right": as_low(result.objective, known, problem),
        "objective": result.objective,
        "known": known,
        "worst": worst,
        "worst_error": error,
        "status": result.status.value,
        "starts": len(result.starts),
        "evaluations": sum(s.evaluations for s in result.starts),
        "seconds": result.seconds,
    }


def as_low(objective: float, known: float, problem: Problem) -> bool:
    """Whether `objective` (a plain sum of squares) is as low as the lowest one known."""
    squares = sum(float(s.values @ s.values) for c in problem.conditions for s in c.series.values())
    return bool(objective <= (1 + AS_LOW) * known + EXACT**2 * squares)


def worst_error(result: Result, reference: Reference) -> tuple[str, float]:
    """Return the identifiable unknown with the largest relative error, and that error.

    A reference of zero has no relative error: there it is the absolute one.
    """
    truth = reference_values(result.problem, reference)
    if not result.solutions:
        return "", math.inf
    errors = {
        key: abs(float(value) - truth[key]) / (abs(truth[key]) or 1.0)
        for key, value in zip(result.problem.keys, result.best.vector, strict=True)
        if key in truth and key not in reference.not_identifiable
    }
    worst = max(errors, key=lambda k: errors[k], default="")
    return worst, errors.get(worst, 0.0)


def reference_values(problem: Problem, reference: Reference) -> Mapping[str, float]:
    """Return the reference values by the key of the unknown."""
    given = {**reference.initial, **reference.parameters}
    return {key: given[key] for key in problem.keys if key in given}


OPTIONS = (
    Option("problems", (), "problems, all if none is named, e.g. alpha-pinene", library.names),
    Option("seeds", 5, "seeds of each", least=1),
)


def tasks(problems: Sequence[str], seeds: int) -> list[Task]:
    """Return a task for each problem and seed; the first seed of all problems comes first."""
    return [
        {"key": f"{name}, seed {seed}", "problem": name, "seed": seed}
        for seed in range(seeds)
        for name in problems or library.names()
    ]


def run(task: Task) -> Mapping[str, Any]:
    name = task["problem"]
    return compared(library.load(name), library.reference(name), task["seed"])


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a row for each run, a row for each problem, and a summary."""
    columns = ("worst_error", "objective", "known", "starts", "evaluations")
    rows = []
    for record in records:
        r = record.result or {}
        row = {"problem": record.task["problem"], "seed": record.task["seed"]}
        row |= {"right": bool(r.get("right")), "worst": r.get("worst")}
        row |= {c.replace("_", " "): r.get(c) for c in columns}
        row |= {"seconds": r.get("seconds", record.seconds)}
        rows.append(row | {"ended": r.get("status", record.outcome)})
    runs = pd.DataFrame(rows)
    for column in (*(c.replace("_", " ") for c in columns), "seconds"):
        runs[column] = pd.to_numeric(runs[column])
    problems = runs.groupby("problem", sort=True).agg(
        runs=("seed", "size"),
        right=("right", "sum"),
        lowest_objective=("objective", "min"),
        highest_objective=("objective", "max"),
        known_objective=("known", "first"),
        largest_worst_error=("worst error", "max"),
        median_starts=("starts", "median"),
        median_evaluations=("evaluations", "median"),
        median_seconds=("seconds", "median"),
        most_seconds=("seconds", "max"),
    )
    share = problems["right"] / problems["runs"]
    summary = {
        "right runs": f"{int(runs['right'].sum())} of {len(runs)}",
        "always right": f"{int((share == 1).sum())} of {len(share)} problems",
        "ever right": f"{int((share > 0).sum())} of {len(share)} problems",
        "median seconds": runs["seconds"].median(),
        "most seconds": runs["seconds"].max(),
    }
    problems = problems.reset_index().rename(columns=lambda name: str(name).replace("_", " "))
    return {"runs": runs, "problems": problems, "summary": pd.DataFrame([summary])}
