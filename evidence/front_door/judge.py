"""When a fit of the campaign `automatic` is right, and when its status is.

A dense series with noise is fitted as well as it can be when the objective is within 3.84 of the
best that is known: so much a likelihood ratio with one degree of freedom exceeds at 95 %, and the
objective is in units of the noise's variance. Without noise, the residuals must be below 1e-6 of
the data: a hundred times the error that the stiff engine's tolerance leaves, and far below any
measurement's. The best that is known is the lowest of all ends in the records, of the search from
the truth among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evidence.library.fits import AS_LOW, EXACT
from evidence.running.campaign import Record

if TYPE_CHECKING:
    import pandas as pd

NOISE_VARIANCES = 3.84  # largest excess of the weighted objective over the best known
LOG_UNITS = 0.1  # largest deficit of the log-likelihood of a published problem
FITS = ("dense", "library", "published", "cascade")  # the parts that are fits to the end


def runs(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row for each fit to the end, judged."""
    import pandas as pd

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
        rows.append(
            {
                "part": task["part"],
                "problem": task["problem"],
                "noise": task.get("noise", math.nan),
                "draw": task["seed"],
                "method": task["method"],
                "right": right,
                "honest": _honest(right, status),
                "status": status,
                "seconds": r.get("seconds", record.seconds),
                "processor": r.get("processor"),
                "objective": _number(r.get("objective")),
                "best": best[_case(record)],
                "log likelihood": r.get("log_likelihood"),
                "published": r.get("known_log_likelihood"),
                "found": r.get("found"),
                "possible": r.get("possible"),
                "starts": r.get("starts"),
                "message": r.get("message", record.reason),
            }
        )
    table = pd.DataFrame(rows, columns=columns)
    for column in ("seconds", "processor", "objective", "best", "starts", "found", "possible"):
        table[column] = pd.to_numeric(table[column])
    for column in ("right", "honest"):
        table[column] = table[column].astype(bool)
    return table


def _case(record: Record) -> tuple[Any, ...]:
    """Return what the fits of different methods have in common: their data."""
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
    """Whether a status says what is: "converged" of what is right, and of nothing else.

    A time limit that was reached is one, whatever was found before. A peer that ends by itself
    makes no such statement; none is expected of it.
    """
    if status in ("time limit", "done", "not applicable"):
        return True
    return right == (status == "converged")


def _number(value: float | None) -> float:
    return math.inf if value is None else float(value)
