"""A sheet of a workbook is a table like one in CSV. The workbooks are written by hand here."""

from __future__ import annotations

import datetime
import io
import random
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

import odefit
from odefit import InputError
from odefit.problem.inputs import workbooks
from odefit.problem.toml.drafts import draft
from tests.cli.commands import run

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
DAY_ZERO = datetime.datetime(1899, 12, 30)

Cell = str | float | datetime.datetime | None
Sheets = Mapping[str, Sequence[Sequence[Cell]]]


def workbook(sheets: Sheets) -> bytes:
    """The bytes of an .xlsx file; the style with number 1 is that of a date."""
    names = list(sheets)
    numbered = list(enumerate(names, 1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        f'relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="{KIND}.sheet.main'
        f'+xml"/><Override PartName="/xl/styles.xml" ContentType="{KIND}.styles+xml"/>'
        + "".join(
            f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{KIND}.worksheet+xml"/>'
            for i, _ in numbered
        )
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        + "".join(f'<sheet name="{escape(n)}" sheetId="{i}" r:id="rId{i}"/>' for i, n in numbered)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="rId{i}" Type="{OFFICE}/worksheet" '
            f'Target="worksheets/sheet{i}.xml"/>'
            for i, _ in numbered
        )
        + f'<Relationship Id="rId99" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>',
    }
    for i, name in numbered:
        rows = "".join(
            f'<row r="{r}">{"".join(_cell(c, r, k) for k, c in enumerate(row))}</row>'
            for r, row in enumerate(sheets[name], 1)
        )
        sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        parts[f"xl/worksheets/sheet{i}.xml"] = sheet
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for part, text in parts.items():
            file.writestr(part, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return out.getvalue()


def _cell(value: Cell, row: int, column: int) -> str:
    at = f'r="{chr(65 + column)}{row}"'
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c {at} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    if isinstance(value, datetime.datetime):
        return f'<c {at} s="1"><v>{(value - DAY_ZERO).total_seconds() / 86400}</v></c>'
    return f"<c {at}><v>{value!r}</v></c>"


PROBLEM = """format = 1
time_unit = "h"
[ode]
x = "-k*x"
[parameters]
k = { lower = 0.0, upper = 5.0 }
[initial]
x = 10.0
[[experiment]]
data = "DATA"
time = "Time (h)"
"""
HEAD: list[Cell] = ["Time (h)", "x"]
RUN: list[list[Cell]] = [HEAD, [0.0, 10.0], [1.0, None], [2.5, 3.7]]


def problem(folder: Path, sheets: Sheets, data: str = "runs.xlsx") -> odefit.Problem:
    (folder / "runs.xlsx").write_bytes(workbook(sheets))
    (folder / "p.toml").write_text(PROBLEM.replace("DATA", data), encoding="utf-8")
    return odefit.load(folder / "p.toml")


@pytest.fixture
def reader() -> None:
    """The extra that reads workbooks."""
    pytest.importorskip("python_calamine", reason="the extra odefit[excel] is not installed")


@pytest.mark.usefixtures("reader")
def test_a_workbook_is_read_with_the_names_in_its_first_row(tmp_path: Path) -> None:
    found = problem(tmp_path, {"Sheet1": RUN, "empty": []})
    series = found.conditions[0].series["x"]
    assert series.values.tolist() == [10.0, 3.7]
    assert found.conditions[0].times[series.rows].tolist() == [0.0, 2.5]


@pytest.mark.usefixtures("reader")
def test_a_sheet_is_chosen_by_its_name(tmp_path: Path) -> None:
    sheets: Sheets = {"run 1": RUN, "run 2": [HEAD, [0.0, 8.0], [1.0, 5.0]]}
    found = problem(tmp_path, sheets, "runs.xlsx#run 2")
    assert found.conditions[0].series["x"].values.tolist() == [8.0, 5.0]
    several = (
        "runs.xlsx: several sheets have data: 'run 1', 'run 2'; name one, as in "
        'data = "runs.xlsx#run 1" (for odefit new: --sheet)'
    )
    unknown = "there is no sheet 'Run2'; did you mean 'run 2'?"
    for data, message in (("runs.xlsx", several), ("runs.xlsx#Run2", unknown)):
        with pytest.raises(InputError) as caught:
            problem(tmp_path, sheets, data)
        (told,) = caught.value.messages
        assert message in told


@pytest.mark.usefixtures("reader")
def test_dates_of_a_workbook_are_times(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 2, 28)
    rows: list[list[Cell]] = [HEAD]
    rows += [[day + datetime.timedelta(hours=6 * i), 10.0 * 0.5**i] for i in range(4)]
    found = problem(tmp_path, {"a": rows})
    assert found.conditions[0].times == pytest.approx([0.0, 6.0, 12.0, 18.0], abs=1e-3)
    assert found.notes == ("runs.xlsx: the times are hours since 2024-02-28",)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*RUN, [3.0, "<0.5"]], "runs.xlsx, column x, row 5: '<0.5' is not a number; if it is"),
        ([["My measurements"], [], *RUN], "'My measurements' stands above the names of the"),
        ([HEAD, ["h", "mg/L"], *RUN[1:]], "no number in 1 row below the names, 'h, mg/L'"),
        ([HEAD], "no rows below the header"),
    ],
)
def test_a_mistake_in_a_sheet_is_named_with_its_row(
    tmp_path: Path, rows: list[list[Cell]], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        problem(tmp_path, {"a": rows})
    assert message in str(caught.value)


@pytest.mark.usefixtures("reader")
def test_a_first_problem_file_is_written_for_a_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sheets: Sheets = {"notes": [["by hand"], ["on Monday"]], "run 1": RUN}
    (tmp_path / "runs.xlsx").write_bytes(workbook(sheets))
    assert run("new", "runs.xlsx") == 2
    assert "several sheets have data" in capsys.readouterr().err
    assert run("new", "runs.xlsx", "--sheet", "run 1") == 0
    text = Path("runs.toml").read_text(encoding="utf-8")
    assert 'data = "runs.xlsx#run 1"' in text
    assert 'time = "Time (h)"' in text
    assert odefit.load("runs.toml").size == 2


def test_without_the_reader_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InputError, match=r"workbooks need the package .* 'pip install odefit\[exc"):
        problem(tmp_path, {"a": RUN})


@pytest.mark.usefixtures("reader")
def test_a_file_that_is_not_a_workbook_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "damaged.xlsx").write_bytes(workbook({"a": RUN})[:-60])
    (tmp_path / "text.xlsx").write_text("t,x\n0,1\n", encoding="utf-8")
    (tmp_path / "other.xlsx").write_bytes(workbook({}))
    for name in ("damaged.xlsx", "text.xlsx", "other.xlsx"):
        with pytest.raises(
            InputError, match=r"cannot be read as a workbook|all sheets of the work"
        ):
            draft(tmp_path / name, tmp_path, "p")
    with pytest.raises(InputError, match="there is no such file"):
        draft(tmp_path / "none.xlsx", tmp_path, "p")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_workbook_of_another_compression_is_refused(tmp_path: Path, method: int) -> None:
    """It would be unpacked without a limit of memory; a damaged one raises errors of its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        file.writestr("xl/workbook.xml", b" " * 100_000)
    (tmp_path / "data.xlsx").write_bytes(out.getvalue())
    with pytest.raises(InputError, match="compressed in a way that workbooks are not"):
        draft(tmp_path / "data.xlsx", tmp_path, "p")


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("seed", range(5))
def test_a_workbook_with_damaged_parts_is_refused(tmp_path: Path, seed: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/worksheets/sheet1.xml", bytes(range(256)) * 400)
    raw = bytearray(out.getvalue())
    raw[60:90] = random.Random(seed).randbytes(30)
    (tmp_path / "data.xlsx").write_bytes(raw)
    with pytest.raises(InputError, match="cannot be read as a workbook"):
        draft(tmp_path / "data.xlsx", tmp_path, "p")


def test_the_area_of_a_sheet_is_that_of_its_last_row_and_column() -> None:
    drawn = random.Random("38 workbooks")
    for _ in range(20):
        row, column = drawn.randrange(1, 1_048_577), drawn.randrange(1, 16_385)
        name, left = "", column
        while left:
            left, digit = divmod(left - 1, 26)
            name = chr(65 + digit) + name
        cells = [f'<c r="A{row}">', f'<c r="{name}1">', '<c r="A1">']
        drawn.shuffle(cells)
        assert workbooks._area("".join(cells).encode()) == row * column, (row, column)


def test_a_workbook_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cell in the last corner of a sheet stands for 17 thousand million cells."""
    book = workbook({"a": [*RUN, [1.0]]}).replace(b"", b"")
    far = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(far, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'r="A5"', b'r="XFD1048576"'))
    (tmp_path / "far.xlsx").write_bytes(far.getvalue())
    with pytest.raises(InputError, match="more than 1,000,000 cells between its first and last"):
        draft(tmp_path / "far.xlsx", tmp_path, "p")
    (tmp_path / "large.xlsx").write_bytes(book)
    monkeypatch.setattr(workbooks, "MAX_UNPACKED", 1000)
    with pytest.raises(InputError, match=r"has more than 0\.001 MB when unpacked; save it as CSV"):
        draft(tmp_path / "large.xlsx", tmp_path, "p")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("runs.xlsx#Run 1", ("runs.xlsx", "Run 1")),
        ("a/b.XLSX#x#y", ("a/b.XLSX", "x#y")),
        ("runs#1.csv", ("runs#1.csv", None)),
        ("runs.xlsx", ("runs.xlsx", None)),
    ],
)
def test_a_sheet_name_may_only_follow_the_name_of_a_workbook(
    name: str, expected: tuple[str, str | None]
) -> None:
    assert workbooks.split_name(name) == expected


def test_cells_are_written_as_in_csv() -> None:
    cells = [True, 3.0, 0.1, datetime.datetime(2024, 1, 31, 8, 30), datetime.date(2024, 1, 31)]
    texts = ["1", "3", "0.1", "2024-01-31 08:30:00", "2024-01-31"]
    assert [workbooks._text(cell) for cell in cells] == texts
    assert workbooks._text("two\nlines") == "two lines"
    assert workbooks._text(np.float64(1e300)) == "1e+300"
