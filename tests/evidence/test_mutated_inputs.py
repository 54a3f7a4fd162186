"""Mutated inputs are counted by what became of them, whatever the tool calls a fault."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evidence.agreement import mutated_inputs
from evidence.running.campaign import Record
from kinds_of_inputs import KINDS

OUTCOMES = [
    [0, "refused", "", "", 2_000_000, 0.1],
    [1, "same", "", "", 0, 0.2],
    [2, "refused", "", "", 0, 0.1],
    [3, "hang", "", "", 0, 10.04],
]


def test_the_kinds_are_those_of_the_tool() -> None:
    assert tuple(KINDS) == mutated_inputs.KINDS


def test_outcomes_are_counted_and_faults_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        (file,) = (Path(c.removeprefix("--json=")) for c in command if c.startswith("--json="))
        file.write_text(json.dumps({"table": OUTCOMES}), encoding="utf-8")
        assert command[-2:] == ["--count=4", "--seed=7"]
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", ran)
    task = mutated_inputs.tasks(4, 7)[1]
    records = [
        Record(task["key"], task, "done", mutated_inputs.run(task), "", 1.0),
        Record("b", {**task, "kind": "sbml"}, "time limit", None, "late", 1.0),
    ]
    table = mutated_inputs.tables(records)["mutated"]
    assert table.iloc[0].tolist() == ["table", 4, 2, 1, 0, "1 hang", 10.0, 2]
    assert table.iloc[1][["kind of file", "faults"]].tolist() == ["sbml", "time limit"]
