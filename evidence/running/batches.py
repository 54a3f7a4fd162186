"""Tasks of simulated data sets: each is a batch of the data sets of one problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from evidence.running.campaign import Option, Record, Task

BATCH = 10  # number of data sets of a task


def batch_options(sets: int, problems: Sequence[str], example: str) -> tuple[Option, ...]:
    """Return the options of a campaign in batches: the number of data sets, and the problems."""
    return (
        Option("sets", sets, "number of data sets of each problem", least=1),
        Option("problems", tuple(problems), f"problems, e.g. {example}", tuple(problems)),
    )


def batches(sets: int, problems: Sequence[str]) -> list[Task]:
    """Return the tasks, the first batch of every problem before the second of any."""
    return [
        {
            "key": f"{name}, data sets {first} to {min(first + BATCH, sets) - 1}",
            "problem": name,
            "first": first,
            "last": min(first + BATCH, sets) - 1,
        }
        for first in range(0, sets, BATCH)
        for name in problems
    ]


def data_sets(records: Sequence[Record]) -> list[tuple[str, dict[str, Any]]]:
    """Return the results of all data sets of some batches, each with the name of its problem."""
    return [
        (str(record.task["problem"]), data_set)
        for record in records
        if record.result is not None
        for data_set in record.result["data sets"]
    ]


def standard_error(shares: pd.Series[float]) -> float:
    """Return the standard error of the mean of shares by data set; 0 for a single data set."""
    return float(shares.std(ddof=1)) / math.sqrt(len(shares)) if len(shares) > 1 else 0.0
