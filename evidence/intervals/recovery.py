"""The campaign `recovery`: coverage of confidence intervals for data with a known truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evidence.library.fits import reference_values
from evidence.running.campaign import Record, Task
from odefit import Problem, fit, library

# The problems: the default method solves them quickly, and their truth is known
PROBLEMS = (
    "lotka-volterra-f",
    "lotka-volterra-p",
    "fitzhugh-nagumo-separable",
    "seasonal-lotka-volterra",
    "sir",
    "harmonic",
)

# Standard deviation of the noise over that of the observable's noiseless values
LEVELS = (0.01, 0.05)

# The declarations of the noise in a problem: known standard deviations, one to estimate for each
# observable, or none (plain least squares, one for all)
WEIGHTS = ("given", "estimated", "none")
SEEDS = 10  # number of seeds: with six problems, two levels and three weights 360 runs
LEVEL = 0.95


def tasks() -> list[Task]:
    """Return all combinations of problems, noise levels, weights and seeds."""
    return [
        {
            "key": f"{name}, noise {level:g}, sd {weights}, seed {seed}",
            "problem": name,
            "noise": level,
            "sd": weights,
            "seed": seed,
        }
        for seed in range(SEEDS)
        for name in PROBLEMS
        for level in LEVELS
        for weights in WEIGHTS
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Fit one data set; return estimate, interval and truth of every unknown."""
    problem = noisy_problem(task)
    truth = reference_values(problem, library.reference(task["problem"]))
    result = fit(problem, seed=task["seed"], jobs=1, level=LEVEL)
    if result.uncertainty is None:
        raise RuntimeError(f"no solution: {result.message}")
    limits = dict(zip(result.uncertainty.keys, result.uncertainty.intervals, strict=True))
    errors = dict(zip(result.uncertainty.keys, result.uncertainty.standard_errors, strict=True))
    values = dict(zip(problem.keys, result.best.vector, strict=True))
    return {
        "status": result.status.value,
        "seconds": result.seconds,
        "unknowns": {
            key: {
                "truth": truth[key],
                "estimate": float(values[key]),
                "error": float(errors[key]),
                "low": float(limits[key][0]),
                "high": float(limits[key][1]),
            }
            for key in truth
        },
    }


def noisy_problem(task: Task) -> Problem:
    """Return the library problem with noisy data and a declaration of the noise."""
    exact = library.load(task["problem"])
    noisy = library.load(task["problem"], noise=task["noise"], seed=task["seed"])
    if task["sd"] == "none":
        return noisy
    noise: dict[str, dict[str, float | str]] = {}
    for name in exact.model.observables:
        values = [c.series[name].values for c in exact.conditions if name in c.series]
        # as in library.load; a problem with several experiments has a level in each
        sd = task["noise"] * float(np.std(np.concatenate(values), ddof=1))
        noise[name] = {"sd": sd if task["sd"] == "given" else "estimate"}
    return Problem(
        noisy.model,
        parameters=noisy.parameters,
        initial=noisy.initial,
        noise=noise,
        experiments=noisy.experiments,
        name=noisy.name,
    )


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return coverage and bias by unknown, and by problem, noise level and weights."""
    rows = [
        {
            "problem": record.task["problem"],
            "noise": record.task["noise"],
            "sd": record.task["sd"],
            "unknown": key,
            **_scored(values),
        }
        for record in records
        if record.result is not None
        for key, values in record.result["unknowns"].items()
    ]
    columns = ["problem", "noise", "sd", "unknown", "inside", "off", "score", "relative"]
    scored = pd.DataFrame(rows, columns=columns)
    return {
        "unknowns": _grouped(scored, ["problem", "unknown", "sd", "noise"]),
        "problems": _grouped(scored, ["problem", "sd", "noise"]),
        "summary": _grouped(scored, ["sd", "noise"]),
    }


def _scored(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return whether the truth is in the interval, and its relative and standardised error."""
    truth, estimate, error = values["truth"], values["estimate"], values["error"]
    low, high = values["low"], values["high"]
    if truth is None or estimate is None or error is None or low is None or high is None:
        return {"inside": None, "off": None, "score": None, "relative": None}
    return {
        "inside": float(low <= truth <= high),
        "off": estimate - truth,
        "score": (estimate - truth) / error if error > 0 else None,
        "relative": (estimate - truth) / truth if truth else None,
    }


def _grouped(scored: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return coverage with its standard error, bias in standard errors, and spread of the scores.

    Without bias, and with right standard errors, scores have mean 0 and standard deviation 1.
    """
    for column in ("inside", "score", "relative"):
        scored[column] = pd.to_numeric(scored[column])
    found = (
        scored.groupby(by, sort=True)
        .agg(
            intervals=("inside", "count"),
            without=("inside", lambda v: int(v.isna().sum())),
            coverage=("inside", "mean"),
            mean_score=("score", "mean"),
            sd_score=("score", "std"),
            median_relative_error=("relative", lambda v: v.abs().median()),
        )
        .reset_index()
    )
    p = found["coverage"]
    spread = np.sqrt(p * (1 - p) / found["intervals"].clip(lower=1))
    found.insert(list(found.columns).index("coverage") + 1, "coverage_se", spread)
    return found.rename(columns=lambda name: str(name).replace("_", " "))
