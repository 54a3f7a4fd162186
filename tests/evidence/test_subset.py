"""A part of a campaign is spread evenly over everything that varies."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from evidence.library.library_fits import tasks as library_tasks
from evidence.running.campaign import Task
from evidence.running.subset import balanced

TASKS: list[Task] = [
    {"key": f"{p} {s} {m}", "problem": p, "scheme": s, "mesh": m}
    for p, s, m in product(range(12), "abcde", (10, 20))
]


@pytest.mark.parametrize("limit", [1, 7, 12, 30, 60, 77, 119])
@pytest.mark.parametrize("factor", ["problem", "scheme", "mesh"])
def test_levels_occur_equally_often(limit: int, factor: str) -> None:
    part = balanced(TASKS, limit)
    assert len(part) == limit
    levels = {t[factor] for t in TASKS}
    counts = Counter(dict.fromkeys(levels, 0))
    counts.update(t[factor] for t in part)
    assert max(counts.values()) - min(counts.values()) <= 2


def test_pairs_of_levels_occur_equally_often() -> None:
    pairs = Counter((t["problem"], t["scheme"]) for t in balanced(TASKS, 60))
    assert len(pairs) >= 55
    assert max(pairs.values()) <= 2


def test_more_contains_less_and_the_order_stays() -> None:
    keys = [t["key"] for t in TASKS]
    previous: set[str] = set()
    for limit in range(1, len(TASKS) + 5):
        part = [t["key"] for t in balanced(TASKS, limit)]
        assert part == sorted(part, key=keys.index)
        assert previous <= set(part)
        previous = set(part)
    assert previous == set(keys)


def test_no_limit_is_everything() -> None:
    assert balanced(TASKS, None) == TASKS


def test_a_part_of_the_library_campaign_has_every_problem() -> None:
    part = balanced(library_tasks(), 31)
    assert len({t["problem"] for t in part}) == 31
