"""Tables of the attacks: counts by kind, and the commits and machines of each attack."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from evidence.endings.hostile import tasks
from evidence.endings.hostile_tables import counted
from evidence.running.campaign import Record
from odefit.common.errors import InputError

ORDER = [("kills", "fit"), ("files", "rows"), ("files", "columns")]


def record(attack: str, kind: str, result: dict[str, Any] | None) -> Record:
    key = f"{attack} {kind} {result}"
    task = {"key": key, "attack": attack, "kind": kind, "first": 4}
    return Record(key, task, "done", result, "", 1.0)


def made(runs: int, faults: list[str], commit: str, machine: str) -> dict[str, Any]:
    return {
        "runs": runs,
        "faults": faults,
        "commit": f"{commit} (number 1200)",
        "machine": machine,
    }


def test_each_attack_names_the_commits_and_machines_of_its_own_runs() -> None:
    records = [
        record("files", "columns", made(2, [], "11111111", "A, 2 cores")),
        record("files", "rows", made(2, ["run 1: slow"], "22222222", "A, 2 cores")),
        record("files", "rows", made(2, [], "33333333", "B, 4 cores")),
        record("kills", "fit", made(2, [], "11111111", "A, 2 cores")),
    ]
    tables = counted(ORDER, records)
    kinds = [tuple(row) for row in tables["kinds"].to_numpy()]
    assert kinds == [
        ("kills", "fit", "2", "0"),
        ("files", "rows", "4", "1"),
        ("files", "columns", "2", "0"),
    ]
    attacks = [tuple(row) for row in tables["hostile"].to_numpy()]
    assert attacks == [
        ("kills", "2", "0", "11111111", "A, 2 cores"),
        ("files", "6", "1", "11111111, 22222222, 33333333", "A, 2 cores; B, 4 cores"),
    ]
    assert tables["faults"].to_numpy().tolist() == [["files", "rows", "run 1: slow"]]


def test_runs_without_a_record_of_their_commit_are_not_given_another() -> None:
    found = counted(ORDER, [record("kills", "fit", {"runs": 2, "faults": []})])
    assert found["hostile"]["commit"].tolist() == ["not recorded"]


def test_a_task_that_was_stopped_is_a_fault_without_runs() -> None:
    row = counted(ORDER, [record("kills", "fit", None)])["kinds"].to_numpy()[0]
    assert tuple(row[:4]) == ("kills", "fit", "0", "1")


def test_each_attack_may_have_its_own_number_of_runs() -> None:
    attacks = ("streams", "limits")
    each = Counter((t["attack"], t["kind"], t["runs"]) for t in tasks((5, 2), 1, attacks))
    assert each == {
        **{("streams", kind, 2): 2 for kind in ("1", "2")},
        **{("streams", kind, 1): 1 for kind in ("1", "2")},
        **{("limits", kind, 2): 1 for kind in ("memory", "size of files")},
    }
    assert tasks((4,), 1, attacks) == tasks((4, 4), 1, attacks)
    with pytest.raises(InputError, match="one number or 2, one for each attack"):
        tasks((4, 4, 4), 1, attacks)
