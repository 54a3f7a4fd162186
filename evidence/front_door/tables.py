"""The tables of the campaign `automatic`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evidence.front_door.judge import runs
from evidence.front_door.plan import DEFAULT, METHODS, PARTS, PEERS
from evidence.running.campaign import Record

if TYPE_CHECKING:
    import pandas as pd

# The columns that are equal for all methods on the same data
CASE = ["part", "problem", "noise", "draw"]


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return the summary, the parts of it, the comparison, and what failed."""
    judged = runs(records)
    default = judged[judged["method"] == DEFAULT]
    return {
        "summary": summary(default),
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


def summary(default: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each part: how many fits are right, and how long they took."""
    return _rates(default, ["part"])


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
    import pandas as pd

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
    import pandas as pd

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

    A method to which a problem does not apply says so.
    """
    import pandas as pd

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
    """Return success and seconds of every method, on the data that all methods were given.

    Dense series are told apart by their noise. A method to which a problem does not apply is not
    right there; the column says how often.
    """
    import pandas as pd

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
    import pandas as pd

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
    """Return how many fits that were broken off gave an answer, and how many said so."""
    import pandas as pd

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
    """Return the fits of the default that are wrong, or say something wrong."""
    bad = default[~(default["right"] & default["honest"])]
    columns = ["part", "problem", "noise", "draw", "right", "status", "objective", "best"]
    return bad[[*columns, "seconds", "starts", "message"]]
