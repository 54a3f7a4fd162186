"""Data files are read as people write them, and every mistake in them is placed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from odefit.common.arrays import Array
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import read_table


def read(path: Path, content: str | bytes) -> tuple[dict[str, Array] | None, Issues]:
    file = path / "d.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    issues = Issues()
    return read_table(file, "d.csv", {"t", "y", "w"}, issues), issues


@pytest.mark.parametrize(
    "content",
    [
        "t,y\n0,1.5\n1,\n",
        "t;y\r\n0;1.5\r\n1;\r\n",
        "t\ty\n0\t1.5\n1\t\n",
        "\ufefft,y\n0,1.5\n1,\n",
        "t,y\n0,1.5\n1,",
        '"t","y"\n"0","1.5"\n1,""\n',
        " t , y \n 0 , 1.5 \n 1 ,  \n",
        "\n\nt,y\n\n0,1.5\n,\n1,\n\n",
        "t,y,\n0,1.5,\n1,,\n",
        "t,y\r0,1.5\r1,\r",
        "t,y\n0,15e-1,,\n1,,\n",
        "# measured on Monday\n#, by hand\nt,y\n0,1.5\n1,\n",
        "\ufeff\n  # a note; with a semicolon\n\nt,y\n0,1.5\n1,\n",
        '"# a note, quoted",\nt,y\n0,1.5\n1,\n',
        "sep=;\r\nt;y\r\n0;1.5\r\n1;\r\n",
        "t,y,,\n0,1.5,,\n1,,,\n,,,\n,,,\n",
        "t;y\r\n0;1,5\r\n1;\r\n",
        "t\ty\n0\t1,5\n1,0\t\n",
    ],
    ids=range(18),
)
def test_spreadsheets_write_tables_in_many_ways(tmp_path: Path, content: str) -> None:
    found, issues = read(tmp_path, content)
    assert found is not None
    assert issues.errors == issues.warnings == []
    np.testing.assert_array_equal(found["t"], [0, 1])
    np.testing.assert_array_equal(found["y"], [1.5, np.nan])


@pytest.mark.parametrize(
    ("cells", "decimal"),
    [("1,5;2,500", True), ("1,500;2,500", False), ("1,5;2.5", False), ("1,5;3", True)],
)
def test_commas_are_decimal_if_no_other_reading_is_possible(
    tmp_path: Path, cells: str, decimal: bool
) -> None:
    _, issues = read(tmp_path, f"t;y\n{cells}\n")
    assert (not issues.errors) == decimal


@pytest.mark.parametrize("cell", ["nan", "NaN", "NA", "n/a", "null", " NA ", ".", "-", "?"])
def test_words_for_a_missing_value_are_a_warning(tmp_path: Path, cell: str) -> None:
    found, issues = read(tmp_path, f"t,y\n0,1\n1,{cell}\n2,{cell}\n")
    assert found is not None
    assert issues.errors == []
    assert np.isnan(found["y"]).tolist() == [False, True, True]
    assert len(issues.warnings) == 1
    assert "column y, row 3" in issues.warnings[0]
    assert "and 1 more row" in issues.warnings[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("t,y\n0,1\n1,abc\n2,3\n", "d.csv, column y, row 3: 'abc' is not a number; correct it"),
        ("t,y\n0,a\n1,b\n2,c\n", "row 2: 'a' is not a number (and 2 more rows)"),
        (
            "t;y\n0.5;1,5\n1;2,5\n",
            "'1,5' is not a number (and 1 more row); write a decimal point: 1.5",
        ),
        (
            "t,y\nh,mg/L\n0,1\n1,2\n",
            "d.csv, row 2: no number in 1 row below the names, 'h, mg/L'; if these are the units",
        ),
        ("t,y,w\nh,g\n0,1,2\n", "d.csv, row 2: no number in 1 row below the names, 'h, g'"),
        ("t,y\nhours,c\nh,mg/L\n0,1\n", "row 2: no number in 2 rows below the names, 'hours, c, h"),
        ("Run 1,\nt,y\n0,1\n", "d.csv, row 1: 'Run 1' stands above the names of the columns"),
        ("My data\nt,y\n0,1\n", "d.csv, row 1: 'My data' stands above the names of the columns"),
        ("t|y\n0|1\n", "between the names 't|y'; separate the columns by one of them, not by bars"),
        ("t,y\n0,1\nt,y\n0,2\n", "d.csv, row 3: the names of the columns stand here again; rem"),
        ("t,y\n0,1,note\n1,2\n", "d.csv, row 2: 3 fields, but the header has 2"),
        ("t,y\n0,1\n1,BLQ\n", "write the limit here and either lower_limit = the limit for the"),
        ("t,y\n0,1\n1,n.d.\n", "if it was not measured, leave the field empty"),
        ("t;y\n0;>0,5\n1;2,5\n", "write 0.5 here and either upper_limit = 0.5 for the observable"),
        ("t,y\n0,10±1\n", "write the standard deviation in a column of its own, with _sd after"),
        ("t,y\n0,1.5D2\n", "write the exponent with e: 1.5e2"),
        ("t,y\n08:30,1\n09:30,2\n", "give times as numbers, such as the hours since the first"),
        ("t,y\n1h 30min,1\n2h,2\n", "give times as numbers, such as the hours since the first"),
        ("t,y\n31-Jan-2024,1\n", "write dates as year-month-day, such as 2024-01-31 or"),
        ("t,y\n0,10 000\n", "write it without separators of thousands: 10000"),
        ("t;y\n0;10.000,5\n", "write it without separators of thousands: 10000.5"),
        ('t,y\n0,"10,500"\n', "write 10.500 if the comma is a decimal one, else 10500"),
        ("t,y\n0,<0.1\n", "write 0.1 here and either lower_limit = 0.1 for the observable in"),
        ("t,y\n0,5 mg\n", "give the number without a unit"),
        ("t,y\n0,inf\n", "'inf' is not a number; leave the field empty"),
        ("t,y\n0,1_000\n", "'1_000' is not a number"),
        ("t,y\n0,0x10\n", "'0x10' is not a number"),
        ("t,y\n0,1e999\n", "'1e999' is not a number; it is beyond 1e+150: correct it"),
        (
            "t,y\n0,1\n1,1e308\n2,-1e200\n",
            (
                "d.csv, column y, row 3: 1e+308 is too large, since its square overflows; "
                "expected at most 1e+150 in size: correct it, or choose another unit "
                "(and 1 more row)"
            ),
        ),
        (
            "# note\n#t,y\n0,1\n",
            "d.csv: the first row has the names of the columns, then come the numbers",
        ),
        (
            "# note\n#t,y\n0,1\n1,2\n",
            (
                "d.csv, row 3: expected the names of the columns, got the numbers 0, 1; "
                "remove the # in "
                "front of the names in row 2"
            ),
        ),
        ("# note\nt,y\n0,1\n1,x\n", "d.csv, column y, row 4: 'x' is not a number"),
        (
            "t,y\n0,1\n# pause, lunch\n1,2\n",
            (
                "d.csv, row 3: a comment (#) below the names of the columns; comments may only "
                "stand above them: move or remove it"
            ),
        ),
        (
            "t y\n0 1\n1 2\n",
            (
                "d.csv, row 1: no comma, semicolon or tab between the names 't y'; separate the "
                "columns by one of them, not by spaces"
            ),
        ),
        (
            "t,y\n31.01.2020,1\n01.02.2020,2\n",
            "(and 1 more row); write dates as year-month-day, such as 2024-01-31 or 2024-01-31",
        ),
        ('t,y\n0,"1,234.5"\n', "write it without separators of thousands: 1234.5"),
        ("t,y\n\n\n0,1\nx,2\n", "column t, row 5: 'x' is not a number"),
        ("t,y\n0,1\n,2\n", "column t, row 3: the time is missing"),
        ("t,y\n0,1\n,2\n,3\n,4\n", "the time is missing (and 2 more rows)"),
        ("t,y,y\n0,1,2\n", "d.csv, column y: two columns have this name"),
        ("t,y\n0,1\n1\n", "d.csv, row 3: 1 field, but the header has 2; complete the row"),
        ("t,y\n0,1,5\n1,2,5\n", "3 fields, but the header has 2 (and 1 more row); is the comma a"),
        ("t;y\n0;1;5\n", "3 fields, but the header has 2"),
        ("", "d.csv: the file is empty"),
        (" \n\n", "d.csv: the file is empty"),
        ("t,y\n", "d.csv: no rows below the header"),
        ("0,1\n1,2\n", "row 1: expected the names of the columns, got the numbers 0, 1"),
        ("0,1\n", "the first row has the names of the columns"),
        (b"PK\x03\x04rest", "is a workbook or an archive; save it as .xlsx, or export"),
        (b"\xff\xfet\x00", "is in UTF-16; save it as UTF-8"),
        (b"t,y\n\x00\x01", "is a binary file"),
        (b"t,y\n0,1\n1,\xb5\n", "d.csv: line 3 is not in UTF-8"),
        ('t,y\n0,"' + "x" * 200_000, "d.csv, row 2: cannot be read as CSV: field larger"),
    ],
    ids=range(53),
)
def test_a_mistake_gives_one_message_with_its_place(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    _, issues = read(tmp_path, content)
    assert len(issues.errors) == 1, issues.errors
    assert message in issues.errors[0]


def test_an_unused_column_may_be_text(tmp_path: Path) -> None:
    found, issues = read(tmp_path, "t,y,note\n0,1,ok\n1,2,\n")
    assert found is not None
    assert issues.errors == []
    assert np.isnan(found["note"]).all()


def test_a_column_without_a_name_is_a_warning_if_it_is_filled(tmp_path: Path) -> None:
    _, issues = read(tmp_path, "t,y,\n0,1,7\n1,2,\n")
    assert issues.errors == []
    assert issues.warnings == ["d.csv: column 3 has no name and is not used"]


def test_a_missing_file_is_named_with_its_folder_and_a_likely_other(tmp_path: Path) -> None:
    (tmp_path / "data.csv").touch()
    issues = Issues()
    assert read_table(tmp_path / "dat.csv", "dat.csv", set(), issues) is None
    assert issues.errors == [
        f"dat.csv: there is no such file in {tmp_path}; did you mean 'data.csv'?"
    ]


@pytest.mark.parametrize("name", ["a\x00b.csv", "x" * 5000, "no/such/folder.csv", ""])
def test_any_name_of_a_file_is_a_message(tmp_path: Path, name: str) -> None:
    issues = Issues()
    assert read_table(tmp_path / name, "d.csv", set(), issues) is None
    assert len(issues.errors) == 1


def test_folders_pipes_and_link_loops_are_not_files(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    for name in ("folder.csv", "pipe.csv", "loop.csv"):
        issues = Issues()
        assert read_table(tmp_path / name, name, set(), issues) is None
        assert len(issues.errors) == 1


def test_links_and_dots_in_a_path_are_followed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "real.csv").write_text("t,y\n0,1\n")
    (tmp_path / "sub" / "link.csv").symlink_to("../real.csv")
    issues = Issues()
    path = tmp_path / "sub" / ".." / "sub" / "link.csv"
    assert read_table(path, "link.csv", {"t", "y"}, issues) is not None
    assert issues.errors == []


@pytest.mark.parametrize("gaps", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_hundred_thousand_rows_are_read_in_seconds(tmp_path: Path, gaps: bool) -> None:
    rows = [f"{i * 0.01:.2f},{'' if gaps and i % 3 else i / 7},{i}" for i in range(100_000)]
    content = "t,y,w\n" + "\n".join(rows)
    start = time.process_time()
    found, issues = read(tmp_path, content)
    assert time.process_time() - start < 5
    assert found is not None
    assert found["w"][-1] == 99_999
    assert issues.errors == []
