"""A balanced part of a list of tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from zlib import crc32

import numpy as np
import numpy.typing as npt

from evidence.running.campaign import Task


def balanced(tasks: Sequence[Task], limit: int | None) -> list[Task]:
    """Return `limit` of the tasks, in their order, spread evenly over the levels of every factor.

    One task after the other is taken, each the one whose levels (and then pairs of levels) have
    been taken least often. So the part does not depend on chance, and that for a smaller limit
    is within that for a larger one.
    """
    if limit is None or limit >= len(tasks):
        return list(tasks)
    columns = _levels(tasks)
    pairs = [_joint(a, b) for a, b in combinations(columns, 2)]
    singles = [np.zeros(c.max() + 1) for c in columns]
    doubles = [np.zeros(p.max() + 1) for p in pairs]
    # Among equals a fixed shuffle: the order of the list would favour its own pattern.
    shuffle = np.array([crc32(str(t["key"]).encode()) for t in tasks]) / 2**32
    taken = np.zeros(len(tasks), dtype=bool)
    for _ in range(limit):
        score = shuffle * 1e-3
        for column, count in zip(columns, singles, strict=True):
            score = score + 1e3 * count[column]
        for pair, count in zip(pairs, doubles, strict=True):
            score = score + count[pair] / max(len(pairs), 1)
        score[taken] = np.inf
        chosen = int(np.argmin(score))
        taken[chosen] = True
        for column, count in zip(columns, singles, strict=True):
            count[column[chosen]] += 1
        for pair, count in zip(pairs, doubles, strict=True):
            count[pair[chosen]] += 1
    return [task for task, mine in zip(tasks, taken, strict=True) if mine]


def _levels(tasks: Sequence[Task]) -> list[npt.NDArray[np.intp]]:
    """Return for every factor the number of its level in each task, shape (tasks,)."""
    names = dict.fromkeys(name for task in tasks for name in task if name != "key")
    columns = []
    for name in names:
        values = [json.dumps(task.get(name), sort_keys=True) for task in tasks]
        numbers = {value: i for i, value in enumerate(dict.fromkeys(values))}
        # What is the same in all tasks, or different in all, is no factor.
        if 1 < len(numbers) < len(tasks):
            columns.append(np.array([numbers[v] for v in values], dtype=np.intp))
    return columns


def _joint(a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return np.asarray(a * (b.max() + 1) + b)
