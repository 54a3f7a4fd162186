"""Textbook systems are sound, their proofs are judged by SciPy, and what is open counts."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.bounds.textbook import SYSTEMS, lowest_known, run, tables, tasks
from evidence.running.campaign import Record
from evidence.zoo.hills import data_set
from odefit.problem import problem_from_mapping


def rows(record: Record) -> list[Any]:
    return tables([record])["certificates"].to_dict("records")


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_truth_nearly_fits(system: str) -> None:
    drawn = data_set(system, 0, SYSTEMS)
    problem = problem_from_mapping(drawn.mapping)
    size = sum(len(s.values) for c in problem.conditions for s in c.series.values())
    assert 0.3 * size < drawn.by_hand.measure(drawn.truth) < 2.5 * size
    assert all(problem.lower <= [drawn.truth[key] for key in problem.keys])
    assert all(problem.upper >= [drawn.truth[key] for key in problem.keys])


@pytest.mark.slow
def test_a_proof_is_told_beside_the_least_objective_of_scipy() -> None:
    (task,) = tasks(["saturable-elimination"], 1, 900.0, 20, 1)
    told = run(task)
    drawn = data_set("saturable-elimination", 0, SYSTEMS)
    problem = problem_from_mapping(drawn.mapping)
    assert told["lowest"] == pytest.approx(lowest_known(drawn, problem, 20, 1, 0))
    assert told["lower"] <= told["lowest"] * (1 + 1e-9)
    assert told["upper"] == pytest.approx(told["lowest"], rel=1e-5)
    (row,) = rows(Record(task["key"], task, "done", told, "", 1.0))
    assert row["closed"]
    assert not row["contradicted"]
    assert row["gap"] <= 0.01


def test_a_bound_above_a_known_objective_is_shown() -> None:
    (task,) = tasks(["enzyme"], 1, 60.0, 0, 0)
    wrong = {"lower": 5.0, "upper": 5.01, "boxes": 9, "processor": 1.0, "lowest": 4.0}
    (row,) = rows(Record(task["key"], task, "done", wrong, "", 1.0))
    assert row["contradicted"]
