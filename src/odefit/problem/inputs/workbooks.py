"""Workbooks: a sheet as the text of a CSV table, read and checked like one."""

from __future__ import annotations

import csv
import datetime
import io
import re
from pathlib import Path
from typing import Any

from odefit.common.errors import one_of, shown
from odefit.common.packages import require
from odefit.problem.inputs.file_access import MAX_TABLE_SIZE, read_content
from odefit.problem.inputs.issues import Issues

SUFFIXES = (".xlsx", ".xlsm")

_NAMED = re.compile(rf"(.*(?:{'|'.join(map(re.escape, SUFFIXES))}))#(.+)\Z", re.IGNORECASE)
_CELL = re.compile(rb'\br="([A-Z]{1,3})([0-9]{1,7})"')

MAX_UNPACKED = MAX_TABLE_SIZE
"""Largest unpacked workbook in bytes: repetition compresses a hundredfold."""

MAX_CELLS = 1_000_000
"""Largest number of cells of a sheet's bounding range: one distant cell makes many."""


def split_name(name: str) -> tuple[str, str | None]:
    """Return the file and the sheet of a name such as ``runs.xlsx#Run 1``."""
    match = _NAMED.match(name)
    return (match[1], match[2]) if match else (name, None)


def is_workbook(path: Path) -> bool:
    """Return whether a name is that of a workbook or of one of its sheets."""
    return Path(split_name(str(path))[0]).suffix.lower() in SUFFIXES


def sheet_text(path: Path, label: str, issues: Issues) -> str | None:
    """Return a sheet as CSV with semicolons, each row on the line of its own number, or None.

    Without a name it is the only sheet with content. Dates are in the form of ISO 8601.
    """
    file, sheet = split_name(str(path))
    content = read_content(Path(file), label, issues, MAX_TABLE_SIZE)
    if content is None:
        return None
    if reason := _too_large(content):
        issues.error(label, reason)
        return None
    require("python_calamine")
    import python_calamine

    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        filled = [n for n in book.sheet_names if sheet or book.get_sheet_by_name(n).height]
        if sheet is None and len(filled) == 1:
            sheet = filled[0]
        if sheet not in filled:
            issues.error(label, _which(Path(file).name, sheet, filled))
            return None
        rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    except (python_calamine.CalamineError, ValueError, OSError) as error:
        issues.error(label, f"cannot be read as a workbook: {error}; save it again, or as CSV")
        return None
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";", quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([_text(cell) for cell in row] if any(row) else [] for row in rows)
    return out.getvalue()


def _which(file: str, sheet: str | None, filled: list[str]) -> str:
    """Return the remedy for an unknown sheet, or for several sheets without a name given."""
    if not filled:
        return "all sheets of the workbook are empty"
    if sheet is not None:
        return f"there is no sheet {shown(sheet)}{one_of(sheet, filled)}"
    names = ", ".join(shown(name) for name in filled)
    return (
        f"several sheets have data: {names}; name one, as in "
        f'data = "{file}#{filled[0]}" (for odefit new: --sheet)'
    )


def _too_large(content: bytes) -> str:
    """Return the reason for refusing a workbook before it is unpacked, or an empty text."""
    import zipfile  # CSV files save the import
    import zlib

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            methods = {part.compress_type for part in parts.infolist()}
            if not methods <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                return "is compressed in a way that workbooks are not; save it again, or as CSV"
            if sum(part.file_size for part in parts.infolist()) > MAX_UNPACKED:
                return f"has more than {MAX_UNPACKED / 1e6:g} MB when unpacked; save it as CSV"
            for name in parts.namelist():
                if name.startswith("xl/worksheets/") and _area(parts.read(name)) > MAX_CELLS:
                    return (
                        f"has a sheet of more than {MAX_CELLS:,} cells between its "
                        "first and last one; remove entries far from the table, or "
                        "save it as CSV"
                    )
    except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError) as error:
        return f"cannot be read as a workbook: {error}; save it again, or as CSV"
    return ""


def _area(sheet: bytes) -> int:
    """Return the number of cells up to the last row and column mentioned."""
    rows, last = 0, b""
    # one by one, since a list would need more memory than the sheet
    for cell in _CELL.finditer(sheet):
        rows = max(rows, int(cell[2]))
        if (len(cell[1]), cell[1]) > (len(last), last):
            last = cell[1]
    columns = 0
    for letter in last:
        columns = 26 * columns + letter - 64
    return rows * columns


def _text(cell: Any) -> str:
    """Return a cell as a CSV file would hold it."""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ")
    return " ".join(str(cell).split()) if isinstance(cell, str) else str(cell)
