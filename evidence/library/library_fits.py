"""The campaign `library`: every library problem, fitted by the default method from five seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evidence.running.campaign import Record, Task

if TYPE_CHECKING:
    import pandas as pd

SEEDS = 5


def tasks() -> list[Task]:
    """Return a task for each problem and seed; the first seed of all problems comes first."""
    from odefit import library

    return [
        {"key": f"{name}, seed {seed}", "problem": name, "seed": seed}
        for seed in range(SEEDS)
        for name in library.names()
    ]


def run(task: Task) -> Mapping[str, Any]:
    """Run one fit."""
    from evidence.library.fits import compared
    from odefit import library

    name = task["problem"]
    return compared(library.load(name), library.reference(name), task["seed"])


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a row for each run, a row for each problem, and a summary."""
    runs = _runs(records)
    return {"runs": runs, "problems": _problems(runs), "summary": _summary(runs)}


def _runs(records: Sequence[Record]) -> pd.DataFrame:
    import pandas as pd

    columns = ("right", "worst_error", "worst", "objective", "known", "starts", "evaluations")
    rows = []
    for record in records:
        r = record.result or {}
        row = {"problem": record.task["problem"], "seed": record.task["seed"]}
        row |= {c.replace("_", " "): r.get(c) for c in columns}
        row["right"] = bool(r.get("right"))
        row["seconds"] = r.get("seconds", record.seconds)
        row["ended"] = r.get("status", record.outcome)
        rows.append(row)
    table = pd.DataFrame(rows)
    for column in ("worst error", "objective", "known", "starts", "evaluations", "seconds"):
        table[column] = pd.to_numeric(table[column])
    return table


def _problems(runs: pd.DataFrame) -> pd.DataFrame:
    groups = runs.groupby("problem", sort=True)
    return (
        groups.agg(
            runs=("seed", "size"),
            right=("right", "sum"),
            lowest_objective=("objective", "min"),
            known_objective=("known", "first"),
            largest_worst_error=("worst error", "max"),
            median_starts=("starts", "median"),
            median_evaluations=("evaluations", "median"),
            median_seconds=("seconds", "median"),
            most_seconds=("seconds", "max"),
        )
        .reset_index()
        .rename(columns=lambda name: str(name).replace("_", " "))
    )


def _summary(runs: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    by_problem = runs.groupby("problem")["right"].mean()
    return pd.DataFrame(
        [
            {
                "right runs": f"{int(runs['right'].sum())} of {len(runs)}",
                "always right": f"{int((by_problem == 1).sum())} of {len(by_problem)} problems",
                "ever right": f"{int((by_problem > 0).sum())} of {len(by_problem)} problems",
                "median seconds": runs["seconds"].median(),
                "most seconds": runs["seconds"].max(),
            }
        ]
    )
