"""The tables of the campaign `automatic`: rules for right fits and right statuses.

A fit of a dense series with noise is right if the objective is within 3.84 of the best known. This
is the 95 % point of a likelihood ratio with one degree of freedom; the objective is in units of the
noise's variance. Without noise, the residuals must be below 1e-6 of the data. This is a hundred
times the error of the stiff engine's tolerance, and far below any measurement's. The best known is
the lowest end in the records, those of the search from the truth included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evidence.front_door.plan import DEFAULT, METHODS, PARTS, PEERS, PUBLISHED, SLOW_LIBRARY
from evidence.library.fits import AS_LOW, EXACT
from evidence.running.campaign import Record

NOISE_VARIANCES = 3.84  # largest excess of the weighted objective over the best known
LOG_UNITS = 0.1  # largest deficit of the log-likelihood of a published problem
FITS = ("dense", "library", "published", "cascade")  # the parts that are fits to the end


def runs(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row for each fit to the end, judged."""
    columns = ["part", "problem", "noise", "draw", "method", "right", "honest", "status"]
    columns += ["seconds", "processor", "objective", "best", "log likelihood", "published"]
    columns += ["found", "possible", "starts", "message"]
    fits = [r for r in records if r.task["part"] in FITS]
    best: dict[Any, float] = {}
    for record in fits:
        r = record.result or {}
        lowest = min(_number(r.get("objective")), _number(r.get("known")))
        best[_case(record)] = min(best.get(_case(record), math.inf), lowest)
    rows = []
    for record in fits:
        task, r = record.task, record.result or {}
        right = _right(record, best[_case(record)])
        status = r.get("status", record.outcome)
        row = {name: task[name] for name in ("part", "problem", "method")}
        row |= {"noise": task.get("noise", math.nan), "draw": task["seed"]}
        row |= {"right": right, "honest": _honest(right, status), "status": status}
        row |= {"objective": _number(r.get("objective")), "best": best[_case(record)]}
        row |= {"log likelihood": r.get("log_likelihood")}
        row |= {"published": r.get("known_log_likelihood")}
        row |= {name: r.get(name) for name in ("processor", "found", "possible", "starts")}
        row |= {"seconds": r.get("seconds", record.seconds)}
        rows.append(row | {"message": r.get("message", record.reason)})
    table = pd.DataFrame(rows, columns=columns)
    for column in ("seconds", "processor", "objective", "best", "starts", "found", "possible"):
        table[column] = pd.to_numeric(table[column])
    for column in ("right", "honest"):
        table[column] = table[column].astype(bool)
    return table


def _case(record: Record) -> tuple[Any, ...]:
    """Return the entries that identify the data of a fit, the same for all methods."""
    task = record.task
    if task["part"] == "dense":
        return task["part"], task["problem"], task["noise"], task["seed"]
    return task["part"], task["problem"]


def _right(record: Record, best: float) -> bool:
    r = record.result
    if r is None or r["objective"] is None:
        return False
    objective, part = float(r["objective"]), record.task["part"]
    exact = EXACT**2 * r["squares"]
    if part == "dense":
        return bool(objective <= (best + NOISE_VARIANCES if record.task["noise"] > 0 else exact))
    if part == "library":
        counted = r["possible"] is not None and r["found"] is not None
        every = counted and r["found"] >= r["possible"]
        return bool(every or objective <= (1 + AS_LOW) * r["known"] + exact)
    if part == "published":
        if r["log_likelihood"] is None:  # plain least squares
            return bool(objective <= (1 + AS_LOW) * r["known"])
        return bool(r["log_likelihood"] >= r["known_log_likelihood"] - LOG_UNITS)
    return objective <= best + NOISE_VARIANCES


def _honest(right: bool, status: str) -> bool:
    """Return whether a status is right: "converged" if and only if the fit is right.

    A time limit is reported even if the fit is right. A peer that ends by itself reports no status,
    and none is expected.
    """
    if status in ("time limit", "done", "not applicable"):
        return True
    return right == (status == "converged")


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)


# For each part the smallest share of right fits, the largest median, and the longest fit in seconds
# for problems without their own limit
TARGETS = {
    "library": (0.99, 1.0, 60.0),
    "dense": (0.98, 1.0, 20.0),
    "published": (1.0, math.nan, math.nan),
    "cascade": (1.0, math.nan, 60.0),
}

# The columns that are equal for all methods on the same data
CASE = ["part", "problem", "noise", "draw"]


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the summary, the parts of it, the comparison, and what failed."""
    judged = runs(records)
    default = judged[judged["method"] == DEFAULT]
    return {
        "parts": parts(judged),
        "summary": _rates(default, ["part"]),
        "dense": _dense(default),
        "library": _by_problem(default, "library"),
        "published": _published(default),
        "published by method": published_methods(judged),
        "cascade": _by_problem(default, "cascade"),
        "methods": methods(judged),
        "speed": speed(judged),
        "interrupts": interrupts(records),
        "failures": failures(default),
        "runs": judged,
    }


def parts(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the target of each part beside the results of the default method."""
    default = judged[judged["method"] == DEFAULT]
    own_limits = {*PUBLISHED, *SLOW_LIBRARY}
    rows = []
    for part, (share, median, longest) in TARGETS.items():
        group = default[default["part"] == part]
        if not len(group):
            continue
        usual = group[~group["problem"].isin(own_limits)]
        most = usual["seconds"].max()
        seen = {
            "part": part,
            "fits": len(group),
            "right": int(group["right"].sum()),
            "to be right": f"{share:.0%}",
            "right, %": round(100 * float(group["right"].mean()), 1),
            "status right": int(group["honest"].sum()),
            "median, s": group["seconds"].median(),
            "median to be below": median,
            "median, s of the processor": group["processor"].median(),
            "longest, s": most if len(usual) else group["seconds"].max(),
            "longest to be below": longest,
        }
        reached = [group["right"].mean() >= share]
        if not math.isnan(median):
            reached.append(group["seconds"].median() < median)
        if not math.isnan(longest):
            reached.append(most <= longest)
        rows.append(seen | {"reached": bool(all(reached))})
    return pd.DataFrame(rows)


def _rates(judged: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    found = (
        judged.groupby(by, sort=True, dropna=False)
        .agg(
            fits=("right", "size"),
            right=("right", "sum"),
            share=("right", "mean"),
            status_right=("honest", "sum"),
            median_seconds=("seconds", "median"),
            most_seconds=("seconds", "max"),
            median_processor=("processor", "median"),
            most_processor=("processor", "max"),
        )
        .reset_index()
    )
    return found.rename(columns=lambda name: str(name).replace("_", " "))


def _dense(default: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each system, with a column for each level of the noise."""
    part = default[default["part"] == "dense"]
    rows = []
    for system, group in part.groupby("problem", sort=True):
        row: dict[str, object] = {"system": system}
        for noise, level in group.groupby("noise", sort=True):
            row[f"noise {noise:g}"] = f"{int(level['right'].sum())} of {len(level)}"
        row["median seconds"] = group["seconds"].median()
        row["most seconds"] = group["seconds"].max()
        rows.append(row)
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=["system"])


def _by_problem(default: pd.DataFrame, part: str) -> pd.DataFrame:
    return _rates(default[default["part"] == part], ["problem"])


def _published(default: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each published problem, with the log-likelihood of every seed."""
    part = default[default["part"] == "published"]
    rows = []
    for problem, group in part.groupby("problem", sort=True):
        ends = sorted(group["log likelihood"].dropna(), reverse=True)
        rows.append(
            {
                "problem": problem,
                "published": group["published"].max(),
                "found": ", ".join(f"{v:.2f}" for v in ends),
                "right": f"{int(group['right'].sum())} of {len(group)}",
                "median seconds": group["seconds"].median(),
            }
        )
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=["problem"])


def published_methods(judged: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each published problem and method, with the log-likelihood of every seed.

    A method that does not apply to a problem has that as its entry.
    """
    part = judged[judged["part"] == "published"]
    rows = []
    for (problem, method), group in part.groupby(["problem", "method"], sort=False):
        applies = group[group["status"] != "not applicable"]
        ends = sorted(applies["log likelihood"].dropna(), reverse=True)
        right = f"{int(group['right'].sum())} of {len(group)}"
        rows.append(
            {
                "problem": problem,
                "method": method,
                "published": group["published"].max(),
                "found": ", ".join(f"{v:.2f}" for v in ends),
                "right": right if len(applies) else "does not apply",
                "median seconds": applies["seconds"].median(),
            }
        )
    columns = ["problem", "method", "published", "found", "right", "median seconds"]
    found = pd.DataFrame(rows, columns=columns)
    order = {name: i for i, name in enumerate(METHODS)}
    found = found.sort_values("method", key=lambda c: c.map(order), kind="stable")
    return found.sort_values("problem", kind="stable")


def methods(judged: pd.DataFrame) -> pd.DataFrame:
    """Return success and seconds of every method, on the data that all methods share.

    Dense series have a row for each level of noise. A method that does not apply to a problem is
    not right there; a column counts these.
    """
    shared = _shared(judged)
    rows = []
    by = ["part", "noise", "method"]
    for (part, noise, method), group in shared.groupby(by, sort=False, dropna=False):
        applies = group["status"] != "not applicable"
        rows.append(
            {
                "part": part,
                "noise": noise,
                "method": method,
                "fits": len(group),
                "right": int(group["right"].sum()),
                "share": group["right"].mean(),
                "applies to": int(applies.sum()),
                "median seconds": group["seconds"][applies].median(),
                "median processor": group["processor"][applies].median(),
                "median where right": group["seconds"][group["right"]].median(),
            }
        )
    columns = [*by, "fits", "right", "share", "applies to"]
    columns += ["median seconds", "median processor", "median where right"]
    found = pd.DataFrame(rows, columns=columns)
    order = {name: i for i, name in enumerate((*PARTS, *METHODS))}
    return found.sort_values(
        by, key=lambda c: c if c.name == "noise" else c.map(order), kind="stable"
    )


def _shared(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the fits of data that the default and another method had."""
    count = judged.groupby(CASE, dropna=False)["method"].transform("nunique")
    return judged[count > 1]


def speed(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the default's seconds beside those of the faster peer that is right.

    Medians over the data on which a peer and the default are right; the ratio is of medians. In
    seconds of the processor, because other work on the machine does not lengthen them.
    """
    rows = []
    by = ["part", "noise"]
    for (part, noise), group in _shared(judged).groupby(by, sort=True, dropna=False):
        own, other = [], []
        for _, case in group.groupby(CASE, dropna=False):
            right = case[case["right"]]
            default = right[right["method"] == DEFAULT]["processor"]
            peers = right[right["method"].isin(PEERS)]["processor"]
            if len(default) and len(peers):
                own.append(default.iloc[0])
                other.append(peers.min())
        if own:
            ours, theirs = float(pd.Series(own).median()), float(pd.Series(other).median())
            rows.append((part, noise, len(own), ours, theirs, theirs / ours))
    columns = [*by, "data sets", "median processor", "faster right peer", "ratio"]
    return pd.DataFrame(rows, columns=columns)


def interrupts(records: Sequence[Record]) -> pd.DataFrame:
    """Return the numbers of interrupted fits with an answer and with a status that reports it."""
    rows = []
    for record in records:
        if record.task["part"] != "interrupts":
            continue
        r = record.result or {}
        rows.append(
            {
                "kind": record.task["kind"],
                "returned": bool(r.get("returned")),
                "labelled": bool(r.get("labelled")),
                "late": r.get("late", math.nan),
            }
        )
    found = pd.DataFrame(rows, columns=["kind", "returned", "labelled", "late"])
    found["late"] = pd.to_numeric(found["late"])
    return (
        found.groupby("kind", sort=True)
        .agg(
            fits=("returned", "size"),
            answers=("returned", "sum"),
            labelled=("labelled", "sum"),
            median_seconds_to_end=("late", "median"),
            most_seconds_to_end=("late", "max"),
        )
        .reset_index()
        .rename(columns=lambda name: str(name).replace("_", " "))
    )


def failures(default: pd.DataFrame) -> pd.DataFrame:
    """Return the fits of the default with a wrong answer or a wrong status."""
    bad = default[~(default["right"] & default["honest"])]
    columns = ["part", "problem", "noise", "draw", "right", "status", "objective", "best"]
    return bad[[*columns, "seconds", "starts", "message"]]
