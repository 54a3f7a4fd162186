"""Data files: CSV tables of numbers with a header."""

from __future__ import annotations

import csv
import io
import math
import re
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from odefit.problem.arrays import Array
from odefit.problem.errors import did_you_mean, shown
from odefit.problem.expressions import TIME
from odefit.problem.issues import Issues

DELIMITERS = ",;\t"
"""What may separate the columns; the one that occurs most often in the header does."""

INFINITE = frozenset({"inf", "infinity"})
"""Words for infinity, in lower case: as a time, that of the steady state."""

NOT_MEASURED = frozenset({"nan", "na", "n/a", "null", "none"})
"""Cells that count as empty, with a warning; in any case."""

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\Z")
_NUMBER_AND_MORE = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*[A-Za-z%/µ°]+")


def read_table(
    path: Path, label: str, used: Collection[str], issues: Issues
) -> dict[str, Array] | None:
    """Return the columns of a CSV file, empty cells as NaN.

    UTF-8 with or without a byte order mark; columns separated by comma, semicolon or tab; decimal
    points; a first row with the names of the columns; empty rows are skipped.

    Parameters
    ----------
    path
        The path of the file.
    label
        Its name in messages.
    used
        Columns that mean something: a text among their numbers is a mistake. A column with
        another name comes back empty if it is not all numbers.
    issues
        The list to which mistakes are added.

    Returns
    -------
    dict or None
        Arrays of shape (rows,) by name, mistaken cells as NaN; None if there is no table.
    """
    text = read_text(path, label, issues)
    if text is None:
        return None
    rows = _rows(text, label, issues)
    if rows is None:
        return None
    names = [name.strip() for name in rows.header]
    columns: dict[str, Array] = {}
    twice: set[str] = set()
    for index, name in enumerate(names):
        place = f"{label}, column {name}"
        cells = rows.column(index)
        if name in columns:
            twice.add(name)
        elif name in used:
            columns[name] = _numbers(cells, rows.lines, place, issues, name == TIME)
            if name == TIME:
                _check_times(cells, rows.lines, place, issues)
        elif not name:
            if any(cell.strip() for cell in cells):
                issues.warn(label, f"column {index + 1} has no name and is not used")
        else:
            quiet = Issues()
            values = _numbers(cells, rows.lines, place, quiet)
            columns[name] = np.full(len(cells), math.nan) if quiet.errors else values
    for name in sorted(twice):
        issues.error(f"{label}, column {name}", "two columns have this name; rename one")
    return columns


def read_text(path: Path, label: str, issues: Issues) -> str | None:
    """Return the text of a file in UTF-8, or None with the reason noted."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            issues.error(label, "is a folder, not a file")
            return None
        if not stat.S_ISREG(status.st_mode):
            issues.error(label, "is a device or a pipe, not a file")
            return None
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        issues.error(label, f"there is no such file in {_folder(path)}{_similar(path)}")
        return None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else str(error)
        issues.error(label, f"cannot be read: {reason}")
        return None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        issues.error(label, "is in UTF-16; save it as UTF-8")
    elif content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        issues.error(label, "is a workbook or an archive; export the sheet as CSV (UTF-8)")
    elif b"\x00" in content:
        issues.error(label, "is a binary file; expected text in UTF-8")
    else:
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            issues.error(label, f"line {line} is not in UTF-8; save the file as UTF-8")
    return None


@dataclass(frozen=True)
class _Rows:
    """A header, the cells of each row, and the line on which each row ends."""

    header: Sequence[str]
    cells: Sequence[Sequence[str]]
    lines: Sequence[int]

    def column(self, index: int) -> list[str]:
        return [row[index] for row in self.cells]


def _rows(text: str, label: str, issues: Issues) -> _Rows | None:
    start = next((line for line in text.splitlines() if line.strip()), "")
    if not start:
        issues.error(label, "the file is empty; expected a row of names and rows of numbers")
        return None
    unquoted = re.sub(r'"[^"]*"', "", start)
    delimiter = max(DELIMITERS, key=unquoted.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header: list[str] = []
    cells: list[list[str]] = []
    lines: list[int] = []
    ragged: list[tuple[int, int]] = []
    try:
        for row in reader:
            if not any(row) or not any(cell.strip() for cell in row):
                continue
            if not header:
                header = row
                continue
            if len(row) > len(header) and not any(c.strip() for c in row[len(header) :]):
                row = row[: len(header)]
            if len(row) == len(header):
                cells.append(row)
                lines.append(reader.line_num)
            else:
                ragged.append((reader.line_num, len(row)))
    except csv.Error as error:
        issues.error(f"{label}, row {reader.line_num}", f"cannot be read as CSV: {error}")
        return None
    if ragged:
        line, count = ragged[0]
        comma = "; is the comma a decimal comma? Write decimal points" if delimiter == "," else ""
        issues.error(
            f"{label}, row {line}",
            f"{_fields(count)}, but the header has {len(header)}{_and_more(len(ragged), 'row')}"
            f"{comma if count > len(header) else '; complete the row'}",
        )
    if not ragged and not cells:
        if all(_float(cell) is not None for cell in header):
            issues.error(label, "the first row has the names of the columns, then come the numbers")
        else:
            issues.error(label, "no rows below the header")
        return None
    if all(_float(cell) is not None for cell in header):
        issues.error(
            f"{label}, row 1",
            f"expected the names of the columns, got the numbers {shown(', '.join(header))[1:-1]}; "
            "put a header such as t,y1,y2 above them",
        )
        return None
    return _Rows(header, cells, lines) if cells else None


def _numbers(
    cells: Sequence[str],
    lines: Sequence[int],
    place: str,
    issues: Issues,
    infinite: bool = False,
) -> Array:
    """Return the numbers of a column, nan for what is missing.

    Positive infinity is a number where `infinite` says so.
    """
    try:
        values = np.array([float(c) if c else math.nan for c in cells])
    except ValueError:
        return _carefully(cells, lines, place, issues, infinite)
    # float() takes nan, inf and 1_000 too; they deserve a word.
    plain = np.isfinite(values).sum() + sum(not c for c in cells) == len(cells)
    if not plain or "_" in "".join(cells):
        return _carefully(cells, lines, place, issues, infinite)
    return values


def _carefully(
    cells: Sequence[str],
    lines: Sequence[int],
    place: str,
    issues: Issues,
    infinite: bool,
) -> Array:
    """Return the numbers of a column with cells that are none; report each kind of trouble once."""
    values = np.full(len(cells), math.nan)
    wrong: list[int] = []
    named: list[int] = []
    for i, cell in enumerate(cells):
        bare = cell.strip()
        number = _float(bare)
        if number is not None:
            values[i] = number
        elif infinite and bare.lstrip("+").casefold() in INFINITE:
            values[i] = math.inf
        elif bare.casefold() in NOT_MEASURED:
            named.append(i)
        elif bare:
            wrong.append(i)
    if wrong:
        first = cells[wrong[0]].strip()
        issues.error(
            f"{place}, row {lines[wrong[0]]}",
            f"{shown(first)} is not a number{_and_more(len(wrong), 'row')}; {_remedy(first)}",
        )
    if named:
        issues.warn(
            f"{place}, row {lines[named[0]]}",
            f"{shown(cells[named[0]].strip())} counts as not measured"
            f"{_and_more(len(named), 'row')}; an empty field says the same",
        )
    return values


def _check_times(cells: Sequence[str], lines: Sequence[int], place: str, issues: Issues) -> None:
    missing = [
        line
        for cell, line in zip(cells, lines, strict=True)
        if not cell.strip() or cell.strip().casefold() in NOT_MEASURED
    ]
    if missing:
        issues.error(
            f"{place}, row {missing[0]}",
            f"the time is missing{_and_more(len(missing), 'row')}; every row needs one",
        )


def _remedy(cell: str) -> str:
    if _DECIMAL_COMMA.match(cell):
        return f"write a decimal point: {cell.replace(',', '.')}"
    if cell.startswith(("<", ">")):
        return "leave a value beyond the limits of detection empty"
    if _NUMBER_AND_MORE.match(cell):
        return "give the number without a unit"
    if cell.lstrip("+-").casefold() in INFINITE:
        return "leave the field empty if it was not measured"
    return "correct it, or leave the field empty if it was not measured"


def _float(cell: str) -> float | None:
    """Return a finite number in plain notation, else None."""
    if "_" in cell:
        return None
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _and_more(count: int, what: str) -> str:
    return "" if count == 1 else f" (and {count - 1} more {what}{'s' * (count > 2)})"


def _folder(path: Path) -> str:
    return str(path.parent.absolute())


def _similar(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return ""
    return did_you_mean(path.name, names)
