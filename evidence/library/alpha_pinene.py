"""The campaign `alpha-pinene`: twenty seeds, nothing known but rates between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evidence.running.campaign import Record, Task

if TYPE_CHECKING:
    import pandas as pd

SEEDS = 20
CLOSE = 5e-3  # largest relative distance to the reference of an answer that counts as right


def tasks() -> list[Task]:
    """Return a task for each seed."""
    return [{"key": f"seed {seed}", "seed": seed} for seed in range(SEEDS)]


def run(task: Task) -> Mapping[str, Any]:
    """Run one fit."""
    from evidence.library.fits import compared
    from odefit import library

    name = "alpha-pinene"
    return compared(library.load(name), library.reference(name), task["seed"])


def tables(records: Sequence[Record]) -> Mapping[str, pd.DataFrame]:
    """Return a table with a row for each seed, and how many are right."""
    import pandas as pd

    rows = []
    for record in records:
        r = record.result or {}
        error = r.get("worst_error")
        right = bool(r.get("right")) and error is not None and error <= CLOSE
        rows.append(
            {
                "seed": record.task["seed"],
                "right": right,
                "objective": r.get("objective"),
                "largest deviation of p": error,
                "starts": r.get("starts"),
                "evaluations": r.get("evaluations"),
                "seconds": r.get("seconds", record.seconds),
            }
        )
    table = pd.DataFrame(rows)
    objective = pd.to_numeric(table["objective"])
    seconds = pd.to_numeric(table["seconds"])
    summary = pd.DataFrame(
        [
            {
                "right": f"{int(table['right'].sum())} of {len(table)}",
                "lowest objective": objective.min(),
                "highest objective": objective.max(),
                "largest deviation of p": pd.to_numeric(table["largest deviation of p"]).max(),
                "median seconds": seconds.median(),
                "most seconds": seconds.max(),
            }
        ]
    )
    return {"seeds": table, "summary": summary}
