"""Data files: tables of numbers with a header, in CSV or in a sheet of a workbook."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import counted, shown
from odefit.expressions.expressions import TIME
from odefit.problem.inputs.cells import (
    INFINITE,
    NOT_MEASURED,
    have_decimal_commas,
    is_missing,
    plain_number,
    remedy,
    with_decimal_point,
)
from odefit.problem.inputs.dates import column_of_dates
from odefit.problem.inputs.file_access import (
    DELIMITERS,
    MAX_COLUMNS,
    has_controls,
    is_small,
    read_text,
    too_many,
)
from odefit.problem.inputs.issues import LARGEST, Issues, finite_number, too_large
from odefit.problem.inputs.workbooks import is_workbook, sheet_text

COMMENT = "#"
"""Lines above the column names that begin with it are skipped."""

SEPARATOR_LINES = frozenset(f"sep={delimiter}" for delimiter in DELIMITERS)
"""First lines in which spreadsheets declare the separator; they are skipped."""


def read_table(
    path: Path, label: str, used: Collection[str], issues: Issues, time: str = TIME
) -> dict[str, Array] | None:
    """Return the columns of a table, with NaN for empty and mistaken cells; None without a file.

    It is a sheet of a workbook, or a CSV file in UTF-8 with or without a byte order mark. Columns
    are separated by comma, semicolon or tab. Decimal points are allowed, and commas if no other
    comma occurs. A first row has the names of the columns; empty rows, and lines above the names
    that begin with ``#``, are skipped.

    A text in one of the `used` columns is a mistake; other columns with texts are returned empty.
    Every row needs a value in the column `time`, which may hold dates.
    """
    rows = _rows_of(path, label, issues)
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
            dates = _dates(cells, rows.lines, place, issues) if name == time else None
            if dates is None:
                columns[name] = _numbers(cells, rows.lines, place, issues, name == time)
            else:
                columns[name] = dates
            if name == time:
                _check_times(cells, rows.lines, place, issues)
        elif not name:
            if any(cell.strip() for cell in cells):
                issues.warn(label, f"column {index + 1} has no name and is not used")
        else:
            quiet = Issues()
            values = _dates(cells, rows.lines, place, quiet)
            if values is None:
                values = _numbers(cells, rows.lines, place, quiet)
            columns[name] = np.full(len(cells), math.nan) if quiet.errors else values
    for name in sorted(twice):
        issues.error(f"{label}, column {name}", "two columns have this name; rename one")
    return None if issues.has_errors(f"{label}, column {time}") else columns


class Cells(dict[str, list[str]]):
    """The cells of a table by the name of their column."""

    lines: Sequence[int] = ()  # the line of the file at which each row ends


def read_cells(path: Path, label: str, issues: Issues) -> Cells | None:
    """Return the texts in the cells of a table, in the form of :func:`read_table`."""
    rows = _rows_of(path, label, issues)
    if rows is None:
        return None
    cells = Cells()
    cells.lines = rows.lines
    for index, name in enumerate(name.strip() for name in rows.header):
        if name in cells:
            issues.error(f"{label}, column {name}", "two columns have this name; rename one")
        elif name:
            cells[name] = rows.column(index)
    return cells


@dataclass(frozen=True)
class _Rows:
    """A header, the cells of each row, and the line at which each row ends."""

    header: Sequence[str]
    cells: Sequence[Sequence[str]]
    lines: Sequence[int]

    def column(self, index: int) -> list[str]:
        return [row[index] for row in self.cells]


def _rows_of(path: Path, label: str, issues: Issues) -> _Rows | None:
    """Return the rows of a CSV file or of a sheet of a workbook."""
    text = (sheet_text if is_workbook(path) else read_text)(path, label, issues)
    small = text is not None and is_small(text, label, issues)
    return _rows(text, label, issues) if text is not None and small else None


def _without_comments(text: str) -> tuple[str, list[str]]:
    """Return a text without its leading empty lines and comments, and these lines."""
    above: list[str] = []
    length = 0
    for line in io.StringIO(text, newline=""):
        bare = line.strip()
        if bare and not bare.lstrip(' \t"').startswith(COMMENT) and bare not in SEPARATOR_LINES:
            break
        above.append(line)
        length += len(line)
    return text[length:], above


def _rows(text: str, label: str, issues: Issues) -> _Rows | None:
    text, comments = _without_comments(text)
    two = list(islice(io.StringIO(text, newline=""), 2))
    start = two[0].rstrip("\r\n") if two else ""
    if not start:
        issues.error(label, "the file is empty; expected a row of names and rows of numbers")
        return None
    above = len(comments)
    unquoted, second = ([re.sub(r'"[^"]*"', "", line.rstrip("\r\n")) for line in two] + [""])[:2]
    delimiter = max(DELIMITERS, key=unquoted.count)
    if unquoted.count(delimiter) == 0:
        between = max(DELIMITERS, key=second.count)
        if second.count(between) and not any(map(_holds, second.split(between))):
            _refuse_title(label, above + 1, start, issues)
            return None
        if len(unquoted.split()) > 1 or "|" in unquoted:
            issues.error(
                f"{label}, row {above + 1}",
                f"no comma, semicolon or tab between the names {shown(start.strip())}; separate "
                f"the columns by one of them, not by {'bars' if '|' in unquoted else 'spaces'}",
            )
            return None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header: list[str] = []
    cells: list[list[str]] = []
    lines: list[int] = []
    ragged: list[tuple[int, int]] = []
    again: list[int] = []
    texts: list[list[str]] = []  # the rows below the names, up to the first with numbers
    begin = 0  # the first of their lines
    numbers = False
    before = len(issues.errors)
    try:
        for row in reader:
            if not any(row) or not any(cell.strip() for cell in row):
                continue
            if not header:
                header = row
                if len(header) > MAX_COLUMNS:
                    issues.error(label, too_many("columns", len(header), MAX_COLUMNS))
                    return None
                continue
            if row == header:
                again.append(above + reader.line_num)
                continue
            comment = row[0].lstrip().startswith(COMMENT)
            if not numbers and not comment and not any(map(_holds, row)):
                if not cells and sum(map(bool, row)) > sum(map(bool, header)):
                    title = ", ".join(filter(None, header))
                    _refuse_title(label, above + 1, title, issues)
                    return None
                texts.append(row)
                begin = begin or above + reader.line_num
            numbers = numbers or any(map(_holds, row))
            if len(row) > len(header) and not any(c.strip() for c in row[len(header) :]):
                row = row[: len(header)]
            if comment:
                issues.error(
                    f"{label}, row {above + reader.line_num}",
                    f"a comment ({COMMENT}) below the names of the columns; comments may only "
                    "stand above them: move or remove it",
                )
            elif len(row) == len(header):
                cells.append(row)
                lines.append(above + reader.line_num)
            else:
                ragged.append((above + reader.line_num, len(row)))
    except csv.Error as error:
        issues.error(f"{label}, row {above + reader.line_num}", f"cannot be read as CSV: {error}")
        return None
    if texts and numbers:
        issues.error(
            f"{label}, row {begin}",
            f"no number in {counted(len(texts), 'row')} below the names, "
            f"{shown(', '.join(cell for row in texts for cell in row))}; if these are the units, "
            "write them into the names, and remove the rows between names and numbers",
        )
        return None
    if again:
        issues.error(
            f"{label}, row {again[0]}",
            f"the names of the columns stand here again{_and_more(len(again), 'row')}; remove the "
            "row, and if another run begins here, add a column that tells runs apart",
        )
    if ragged:
        line, count = ragged[0]
        comma = "; is the comma a decimal comma? Write decimal points" if delimiter == "," else ""
        issues.error(
            f"{label}, row {line}",
            f"{counted(count, 'field')}, but the header has {len(header)}"
            f"{_and_more(len(ragged), 'row')}"
            f"{comma if count > len(header) else '; complete the row'}",
        )
    if not ragged and not cells:
        if all(plain_number(cell) is not None for cell in header):
            issues.error(label, "the first row has the names of the columns, then come the numbers")
        else:
            issues.error(label, "no rows below the header")
        return None
    if _is_data(header):
        fields = len(comments[-1].split(delimiter)) if comments else 0
        remedy = (
            f"remove the {COMMENT} in front of the names in row {above}"
            if fields == len(header)
            else "put a header such as t,y1,y2 above them"
        )
        issues.error(
            f"{label}, row {above + 1}",
            f"expected the names of the columns, got the numbers {shown(', '.join(header))[1:-1]}; "
            f"{remedy}",
        )
        return None
    odd = next((name for name in header if has_controls(name)), None)
    if odd is not None:
        issues.error(
            f"{label}, row {above + 1}",
            f"the name {shown(odd)} has a control character, which can change what a "
            "terminal shows; remove it",
        )
        return None
    if delimiter != "," and have_decimal_commas([c.strip() for row in cells for c in row]):
        cells = [[with_decimal_point(cell) for cell in row] for row in cells]
    return _Rows(header, cells, lines) if cells and len(issues.errors) == before else None


def _refuse_title(label: str, row: int, title: str, issues: Issues) -> None:
    issues.error(
        f"{label}, row {row}",
        f"{shown(title.strip())} stands above the names of the columns, which seem to be in the "
        f"next row; put {COMMENT} in front of it, or remove it",
    )


def _holds(cell: str) -> bool:
    """Return whether a cell begins like a number, a limit or a date."""
    return re.match(r"\s*[<>≤≥~]?\s*[+−-]?[.,]?[0-9]", cell) is not None


def _is_data(header: Sequence[str]) -> bool:
    """Return the numbers and the empty cells among names."""
    bare = [cell.strip() for cell in header]
    numbers = [plain_number(cell) is not None for cell in bare]
    nothing = [is_missing(cell) for cell in bare]
    return any(numbers) and all(a or b for a, b in zip(numbers, nothing, strict=True))


def _dates(cells: Sequence[str], lines: Sequence[int], place: str, issues: Issues) -> Array | None:
    return column_of_dates(cells, lambda i: f"{place}, row {lines[i]}", issues)


def _numbers(
    cells: Sequence[str], lines: Sequence[int], place: str, issues: Issues, infinite: bool = False
) -> Array:
    """Return the numbers of a column, NaN for missing ones; `infinite` allows infinity."""
    try:
        values = np.array([float(c) if c else math.nan for c in cells])
    except ValueError:
        return _carefully(cells, lines, place, issues, infinite)
    # float() also accepts nan, inf and 1_000, which are reported.
    with np.errstate(invalid="ignore"):
        usual = np.abs(values) <= LARGEST
    plain = usual.sum() + sum(not c for c in cells) == len(cells)
    if not plain or "_" in "".join(cells):
        return _carefully(cells, lines, place, issues, infinite)
    return values


def _carefully(
    cells: Sequence[str], lines: Sequence[int], place: str, issues: Issues, infinite: bool
) -> Array:
    """Return the numbers of a column with other cells too; report each kind of problem once."""
    values = np.full(len(cells), math.nan)
    wrong, named, large = [], [], []
    for i, cell in enumerate(cells):
        bare = cell.strip()
        number = plain_number(bare)
        if number is not None and abs(number) > LARGEST:
            large.append(i)
        elif number is not None:
            values[i] = number
        elif infinite and bare.lstrip("+").casefold() in INFINITE:
            values[i] = math.inf
        elif bare.casefold() in NOT_MEASURED:
            named.append(i)
        elif bare:
            wrong.append(i)
    if wrong:
        first = cells[wrong[0]].strip()
        column = place.partition(", column ")[2]
        issues.error(
            f"{place}, row {lines[wrong[0]]}",
            f"{shown(first)} is not a number{_and_more(len(wrong), 'row')}; "
            f"{remedy(first, column, time=infinite)}",
        )
    if large:
        issues.error(
            f"{place}, row {lines[large[0]]}",
            f"{too_large(plain_number(cells[large[0]]) or 0.0)}{_and_more(len(large), 'row')}",
        )
    if named:
        issues.warn(
            f"{place}, row {lines[named[0]]}",
            f"{shown(cells[named[0]].strip())} counts as missing"
            f"{_and_more(len(named), 'row')}; an empty field says the same",
        )
    return values


def _check_times(cells: Sequence[str], lines: Sequence[int], place: str, issues: Issues) -> None:
    missing = [line for cell, line in zip(cells, lines, strict=True) if is_missing(cell)]
    if missing:
        issues.error(
            f"{place}, row {missing[0]}",
            f"the time is missing{_and_more(len(missing), 'row')}; every row needs one",
        )


def _and_more(count: int, noun: str) -> str:
    return "" if count == 1 else f" (and {count - 1} more {noun}{'s' * (count > 2)})"


def as_list(values: Any) -> Any:
    """Return a column that is a tuple, an array or a pandas series as a list; others unchanged.

    Arrays of dates stay arrays, since their lists would be numbers.
    """
    if isinstance(values, tuple):
        return list(values)
    if hasattr(values, "dtype"):
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind in "iufO":
            return array.tolist()
    return values


def listed_column(values: Any, place: str, issues: Issues, *, infinite: bool) -> Array | None:
    """Return a column given in place, with NaN for mistaken values; times may be infinite."""
    if not isinstance(values, list):
        issues.expected(place, "a list of numbers", values)
        return None
    if infinite:  # the times
        dates = column_of_dates(values, lambda i: f"{place}, value {i + 1}", issues)
        if dates is not None:
            return None if issues.has_errors(place) else dates
    column = np.full(len(values), math.nan)
    for i, value in enumerate(values):
        if infinite and value in (math.inf, "inf"):
            column[i] = math.inf
        elif not (value is None or (isinstance(value, float) and math.isnan(value))):
            number = finite_number(value, f"{place}, value {i + 1}", issues)
            column[i] = math.nan if number is None else number
    return column
