"""Tasks of campaigns that have references by SciPy and fits by odefit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evidence.running.campaign import Task

PARTS = ("reference", "fit")


def data_set_tasks(
    problems: Sequence[str],
    sets: int,
    parts: Sequence[str],
    starts: int,
    limits: Sequence[float],
    seeds: int,
) -> list[Task]:
    """Return the tasks of each data set of each problem: one reference, and fits.

    A campaign that is stopped early has done all parts of its first data sets.
    """
    kinds: dict[str, list[dict[str, Any]]] = {
        "reference": [{"starts": starts}],
        "fit": [{"limit": limit, "seed": seed} for limit in limits for seed in range(seeds)],
    }
    return [
        {
            "key": " ".join(map(str, (part, problem, number, *kind.values()))),
            "part": part,
            "problem": problem,
            "number": number,
            **kind,
        }
        for number in range(sets)
        for part in parts
        for kind in kinds[part]
        for problem in problems
    ]
