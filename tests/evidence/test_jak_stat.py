"""The seeds of the measured cascade are counted by the optima that they tell."""

from __future__ import annotations

from typing import Any

from evidence.running.campaign import Record
from evidence.zoo.jak_stat import cascade, tables, tasks


def test_the_cascade_has_six_unknowns_and_an_input_that_is_measured() -> None:
    problem = cascade()
    assert problem.keys == ("p1", "p2", "p3", "p4", "s1", "s2")
    assert problem.size == 31
    (condition,) = problem.conditions
    assert condition.t0 == 0.0


def test_seeds_with_equal_ends_share_a_row() -> None:
    both: dict[str, Any] = {
        "status": "converged",
        "objective": 38.78012,
        "deviances": [0.0, 1.407],
        "p2": [0.35, 1000.0],
        "processor": 1.0,
    }
    one = {**both, "deviances": [0.0], "p2": [0.35], "processor": 3.0}
    results = [both, one, {**both, "processor": 2.0}, None]
    records = [
        Record(task["key"], task, "done" if found else "error", found, "", 1.0)
        for task, found in zip(tasks(4), results, strict=True)
    ]
    first, second = tables(records)["jak-stat"].to_dict("records")
    assert (first["seeds"], second["seeds"]) == (2, 1)
    assert first["p2 of the solutions told"] == "0.35, 1e+03"
    assert first["deviance of the others"] == "1.41"
    assert (first["median s"], first["most s"]) == (1.5, 2.0)
    assert second["p2 of the solutions told"] == "0.35"
    assert tables([]) == {}
