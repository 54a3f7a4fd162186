"""Tables beyond their limits are refused before their cells are read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odefit.problem.inputs.file_access import MAX_TABLE_SIZE, NamedFiles
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import read_cells, read_table

DRAWN = random.Random(38)
COLUMNS, ROWS = DRAWN.randrange(10_001, 30_000), DRAWN.randrange(1_000_001, 1_100_000)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            ",".join(f"c{i}" for i in range(COLUMNS)) + "\n1,2\n",
            f"has {COLUMNS} columns, and 10000",
        ),
        ("t,y\n" + "\n" * (ROWS - 1), f"has {ROWS} rows, and 1000000 are read at most"),
        ("t,y\n" + "," * 10_000_001, "has 10000003 cells, and 10000000 are read at most"),
    ],
    ids=["columns", "rows", "cells"],
)
def test_a_table_beyond_a_limit_is_refused_with_its_name(
    text: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text, encoding="utf-8")
    for read in (lambda i: read_table(path, "d.csv", {"y"}, i), lambda i: read_cells(path, "d", i)):
        issues = Issues()
        assert read(issues) is None
        (error,) = issues.errors
        assert told in error


def test_all_tables_of_a_problem_are_read_up_to_one_size(tmp_path: Path) -> None:
    """A file that is named a thousand times is read as often."""
    path = tmp_path / "d.csv"
    with path.open("wb") as file:
        file.truncate(MAX_TABLE_SIZE // 3)
    files, issues = NamedFiles(tmp_path), Issues()
    found = [files.path("d.csv", f"experiment {i}", issues) for i in range(4)]
    assert found == [path, path, path, None]
    assert "experiment 3: the files up to 'd.csv' have more than 100 MB" in issues.errors[0]


def test_a_name_invalid_in_the_system_is_allowed_here(tmp_path: Path) -> None:
    """Reading says what is wrong with it."""
    issues = Issues()
    name = "x" * 5000
    assert NamedFiles(tmp_path).path(name, "experiment 1", issues) == tmp_path / name
    assert not issues.errors
