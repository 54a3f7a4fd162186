"""Samples and searches for many vectors at once agree with SciPy one by one, and contradict."""

from __future__ import annotations

import numpy as np
import pytest

from evidence.bounds.by_samples import Together
from evidence.bounds.refutation import drawn, run, tables, tasks
from evidence.running.campaign import Record


@pytest.mark.parametrize("number", [1, 2, 12])
def test_objectives_of_many_are_those_of_one(number: int) -> None:
    _, problem = drawn(number)
    together = Together(problem)
    random, size = np.random.default_rng(number), (5, len(together.keys))
    logs = random.uniform(together.lower, together.upper, size)
    values = [dict(zip(together.keys, v, strict=True)) for v in np.exp(logs).tolist()]
    alone = [problem.by_hand.measure(v) for v in values]
    np.testing.assert_allclose(together.objectives(logs), alone, rtol=1e-3)


def test_local_searches_end_at_the_least_objective() -> None:
    _, problem = drawn(1)
    together = Together(problem)
    random = np.random.default_rng(0)
    starts = random.uniform(together.lower, together.upper, (20, len(together.keys)))
    _, values = together.ends(starts)
    least = together.least(500, 20, random)
    assert np.median(values) == pytest.approx(least, rel=1e-3)
    assert least <= problem.by_hand.measure(problem.truth)


@pytest.mark.slow
def test_a_proof_is_compared_with_the_least_objective() -> None:
    (task,) = tasks(1, 60.0, 300, 10)
    told = run(task)
    assert told["lower"] <= told["least"] * (1 + 1e-9)
    (row,) = tables([Record(task["key"], task, "done", told, "", 1.0)])["refutation"].to_dict(
        "records"
    )
    assert (row["problems"], row["contradicted"]) == (1, 0)


def test_a_bound_above_a_sample_is_counted() -> None:
    (task,) = tasks(1, 60.0, 300, 10)
    wrong = {"lower": 5.0, "upper": 5.01, "closed": True, "least": 4.0}
    (row,) = tables([Record(task["key"], task, "done", wrong, "", 1.0)])["refutation"].to_dict(
        "records"
    )
    assert row["contradicted"] == 1
