"""Tasks of simulated data sets: each is a batch of the data sets of one problem."""

from __future__ import annotations

from collections.abc import Sequence

from evidence.running.campaign import Option, Task

BATCH = 10  # number of data sets of a task


def batch_options(sets: int, problems: Sequence[str], example: str) -> tuple[Option, ...]:
    """Return the options of such a campaign: how many data sets, and of which problems."""
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
