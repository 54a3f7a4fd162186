"""The campaign `coverage`: coverage of intervals, and right verdicts on goodness of fit.

Each task fits some data sets of one of the problems in `coverage_problems`, profiles all unknowns,
and records whether intervals and verdicts are right.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from evidence.intervals.coverage_problems import KNOWN
from evidence.running.batches import batch_options, batches, data_sets
from evidence.running.campaign import Record, Task
from odefit import Result, fit
from odefit.assessment.profiles.parts import Profile

DATA_SETS = 1000  # number of data sets of each problem

OPTIONS = batch_options(DATA_SETS, tuple(KNOWN), "decay,enzyme")

tasks = batches


def run(task: Task) -> Mapping[str, Any]:
    """Fit and profile each data set of a batch."""
    known = KNOWN[task["problem"]]
    numbers = range(task["first"], task["last"] + 1)
    fits = ((fit(known.data_set(n), seed=n, jobs=1), n) for n in numbers)
    return {"data sets": [examined(result, n, known.truth) for result, n in fits]}


def examined(
    result: Result, number: int, true: Mapping[str, float], keys: Sequence[str] | None = None
) -> dict[str, Any]:
    """Profile the unknowns `keys` of a fit of data set `number`, all if None; compare the truth."""
    began = time.perf_counter()
    profiles = result.profile(keys, jobs=1)
    seconds = time.perf_counter() - began
    limits = {p.key: p for p in profiles.profiles}
    return {
        "number": number,
        "status": result.status.value,
        "adopted": profiles.adopted,
        "fit seconds": result.seconds,
        "profile seconds": seconds,
        "minimisations": profiles.minimisations,
        "bad": result.goodness is not None and result.goodness.bad,
        "unknowns": {key: _unknown(result, key, truth, limits[key]) for key, truth in true.items()},
    }


def _unknown(result: Result, key: str, truth: float, profile: Profile) -> dict[str, Any]:
    """Return the intervals of an unknown by result and profile, and whether each is right.

    Where several solutions fit, each has an interval; the truth is to be in one of them.
    """
    uncertainty = result.uncertainty
    if uncertainty is None:
        raise RuntimeError(f"no solution: {result.message}")
    position = uncertainty.keys.index(key)
    lower, upper = result.problem.lower[position], result.problem.upper[position]
    row = result.parameters.loc[key]
    low, high = row[["ci_low", "ci_high"]].to_numpy(dtype=float).ravel().tolist()
    shown = math.isfinite(low) and math.isfinite(high)
    several = [s.intervals[position] for s in result.fitting if s.intervals]
    slack = 1e-9 * max(abs(truth), 1.0)
    ends = profile.lower, profile.upper
    return {
        "profile": _held(truth, profile.intervals or [ends]),
        "open": any(map(math.isinf, ends)),
        "found": not any(map(math.isnan, ends)),
        "verdict": profile.verdict,
        "shown": shown,
        "linear": _held(truth, several if len(several) > 1 else [(low, high)]) if shown else None,
        "flagged": bool(row["note"]) or not shown,
        "beyond": shown and bool(low < lower - slack or high > upper + slack),
        "undetermined": shown and key in {k for d in uncertainty.directions for k in d.keys},
    }


def _held(truth: float, intervals: Iterable[Sequence[float]]) -> bool:
    return any(low <= truth <= high for low, high in intervals)


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    return tables_of(records)


def tables_of(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the coverage by problem and unknown, and the times of the fits of each problem."""
    sets = data_sets(records)
    rows = [
        {"problem": name, "unknown": key} | values
        for name, data_set in sets
        for key, values in data_set["unknowns"].items()
    ]
    columns = ["problem", "unknown", "profile", "shown", "linear", "flagged", "beyond"]
    every = pd.DataFrame(rows, columns=[*columns, "undetermined", "open", "found"])
    both = [
        _grouped(every, ["problem", "unknown"]),
        _grouped(every.assign(unknown="all"), ["problem", "unknown"]),
    ]
    kept = ("bad", "adopted", "fit seconds", "profile seconds", "minimisations")
    work = pd.DataFrame(
        [
            {"problem": name, "converged": d["status"] == "converged"} | {k: d[k] for k in kept}
            for name, d in sets
        ],
        columns=["problem", "converged", *kept],
    )
    groups = work.groupby("problem", sort=False)
    aggregates = {
        "fits": ("bad", "size"),
        "converged": ("converged", "mean"),
        "better optimum by profiles": ("adopted", "mean"),
        "goodness of fit bad": ("bad", "mean"),
        "median seconds, fit": ("fit seconds", "median"),
        "median seconds, profiles": ("profile seconds", "median"),
        "minimisations": ("minimisations", "median"),
    }
    fits = groups.agg(**aggregates).reset_index()
    coverage = pd.concat(both, ignore_index=True)
    if len(coverage):
        coverage["goodness called bad"] = coverage["problem"].map(groups["bad"].mean())
    return {"coverage": coverage, "fits": fits}


def _grouped(every: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return shares by group: those of linear intervals among the ones that are shown."""
    rows = []
    flags = ["profile", "open", "shown", "linear", "flagged", "beyond", "undetermined"]
    for group, part in every.groupby(by, sort=False):
        part = part[flags].astype(bool)
        shown = part[part["shown"]]
        inside, flagged = shown["linear"], shown["flagged"]
        shares = {
            "intervals": len(part),
            "profile covers": part["profile"].mean(),
            "profile open": part["open"].mean(),
            "linear shown": len(shown) / max(len(part), 1),
            "linear covers": inside.mean(),
            "without remark": (~flagged).mean(),
            "covers without remark": inside[~flagged].mean(),
            "misses with remark": flagged[~inside].mean(),
            "beyond bounds": part["beyond"].sum(),
            "undetermined": part["undetermined"].sum(),
        }
        rows.append(dict(zip(by, group, strict=True)) | shares)
    return pd.DataFrame(rows)
