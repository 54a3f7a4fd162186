"""Tables of PEtab: cells, places, mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from odefit.formats.petab.tables import Table, as_list, as_number, read_tsv
from odefit.formats.petab.versions import COLUMNS_1
from odefit.problem.inputs.issues import Issues


def read(tmp_path: Path, text: str) -> tuple[Table | None, list[str]]:
    path = tmp_path / "table.tsv"
    path.write_text(text, encoding="utf-8")
    issues = Issues()
    return read_tsv(path, "table.tsv", issues), issues.errors


def test_cells_have_their_columns_and_places(tmp_path: Path) -> None:
    table, errors = read(tmp_path, "\ufeffid\t value \tnote\n a \t1.5\t\n\n\tNaN\tx\n")
    assert table is not None
    assert not errors
    assert table.columns == ("id", "value", "note")
    assert [row.cells for row in table] == [{"id": "a", "value": "1.5"}, {"note": "x"}]
    assert [row.place for row in table] == ["table.tsv, line 2", "table.tsv, line 4"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the table is empty"),
        ("id\tid\nx\ty\n", "the column 'id' occurs twice"),
        ("id\tvalue\nx\t1\t2\n", "line 2: there are 3 cells, but 2 columns"),
    ],
)
def test_a_mistaken_table_is_reported(tmp_path: Path, text: str, message: str) -> None:
    _, errors = read(tmp_path, text)
    assert len(errors) == 1
    assert message in errors[0]


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    issues = Issues()
    assert read_tsv(tmp_path / "none.tsv", "none.tsv", issues) is None
    assert "none.tsv" in issues.errors[0]


@pytest.mark.parametrize(
    ("cell", "infinite", "expected"),
    [("1e3", False, 1000.0), ("inf", True, float("inf")), ("-inf", True, float("-inf"))],
)
def test_numbers_are_read(tmp_path: Path, cell: str, infinite: bool, expected: float) -> None:
    table, _ = read(tmp_path, f"value\n{cell}\n")
    assert table is not None
    issues = Issues()
    assert table.rows[0].number("value", issues, infinite=infinite) == expected
    assert not issues.errors


@pytest.mark.parametrize("cell", ["1,5", "inf", "a", "1_000", "0x1"])
def test_a_cell_without_a_number_is_reported_with_its_place(tmp_path: Path, cell: str) -> None:
    table, _ = read(tmp_path, f"value\n{cell}\n")
    assert table is not None
    issues = Issues()
    assert table.rows[0].number("value", issues) is None
    assert "table.tsv, line 2: value: expected a finite number" in issues.errors[0]


def test_required_columns_and_near_misses_are_reported(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "parameterID\testimate\nk\t1\n")
    assert table is not None
    issues = Issues()
    assert not table.require(("parameterId",), issues)
    assert "there is no column 'parameterId' (instead of 'parameterID')" in issues.errors[0]
    issues = Issues()
    table.check_near_misses(("parameterId", "estimate"), issues)
    assert "did you mean 'parameterId'?" in issues.errors[0]


@pytest.mark.parametrize(
    ("column", "mistyped"),
    [
        ("realDate", False),
        ("noiseParameterUnit", False),
        ("comment", False),
        ("noiseParameter", True),
        ("observable_parameters", True),
        ("preequilibrationConditionID", True),
    ],
)
def test_an_extra_column_is_allowed_unless_its_name_resembles_a_known_one(
    tmp_path: Path, column: str, mistyped: bool
) -> None:
    table, _ = read(tmp_path, f"observableId\ttime\t{column}\ny\t1\tx\n")
    assert table is not None
    issues = Issues()
    table.check_near_misses(COLUMNS_1["measurement"], issues)
    assert bool(issues.errors) == mistyped


def test_cells_are_read_as_lists_and_numbers() -> None:
    assert as_list("a; 2;b") == ("a", "2", "b")
    assert as_list("") == ()
    assert as_number("nan") is None
