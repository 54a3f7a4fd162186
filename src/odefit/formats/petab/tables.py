"""Tables of PEtab: tab-separated texts with a header, each cell with its place."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from odefit.common.errors import closest, shown
from odefit.problem.inputs.file_access import read_text
from odefit.problem.inputs.issues import Issues

EMPTY = frozenset({"", "nan", "na", "n/a", "null", "none"})
"""Cells that say nothing, in any case of letters: pandas, by which others read PEtab, takes them
for missing."""

CLOSE_NAMES = 3
"""Characters by which a mistaken name of a column may differ in length from the one meant."""

ALIKE = 0.85
"""How alike a mistaken name of a column and the one meant are at least, between 0 and 1: the
standard allows further columns of any name, and ``realDate``, at 0.63, is no ``replicateId``."""


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    # texts by column, without blanks around them; cells that say nothing are absent
    cells: Mapping[str, str]
    place: str

    def get(self, column: str) -> str:
        """Return a cell, empty if it says nothing."""
        return self.cells.get(column, "")

    def text(self, column: str, issues: Issues) -> str:
        """Return a cell that must say something; empty with the reason noted if it does not."""
        found = self.get(column)
        if not found:
            issues.error(self.place, f"{column} is empty; every row needs one")
        return found

    def number(
        self, column: str, issues: Issues, *, infinite: bool = False, missing: float | None = None
    ) -> float | None:
        """Return a cell as a number, or None with the reason noted.

        `missing` is the value of an empty cell; None makes it a mistake.
        """
        text = self.get(column)
        if not text and missing is not None:
            return missing
        value = as_number(text)
        if value is None or (math.isinf(value) and not infinite):
            wanted = "a number" if infinite else "a finite number"
            issues.error(self.place, f"{column}: expected {wanted}, got {shown(text)}")
            return None
        return value


@dataclass(frozen=True)
class Table:
    """A table."""

    label: str  # the name of its file in messages
    columns: tuple[str, ...]  # names of the columns, in order
    rows: tuple[Row, ...]  # its rows that are not empty

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def require(self, columns: Collection[str], issues: Issues) -> bool:
        """Report required columns that are missing; return whether there are all."""
        missing = [c for c in columns if c not in self.columns]
        for column in missing:
            meant = closest(column, [c for c in self.columns if c not in columns])
            hint = f" (instead of '{meant}')" if meant else ""
            issues.error(self.label, f"there is no column '{column}'{hint}")
        return not missing

    def unused(self, known: Collection[str]) -> list[str]:
        """Return the columns with content whose names are not `known`."""
        return [c for c in self.columns if c not in known and any(row.get(c) for row in self.rows)]

    def check_near_misses(self, known: Collection[str], issues: Issues) -> None:
        """Report columns whose name is that of a known, absent one but for a typing error."""
        absent = [c for c in known if c not in self.columns]
        for column in self.unused(known):
            meant = closest(column, absent, alike=ALIKE)
            if meant is not None and abs(len(meant) - len(column)) <= CLOSE_NAMES:
                issues.error(self.label, f"unknown column '{column}'; did you mean '{meant}'?")


def read_tsv(path: Path, label: str, issues: Issues) -> Table | None:
    """Return a table, or None with the reason noted."""
    text = read_text(path, label, issues)
    if text is None:
        return None
    text = text.removeprefix("\ufeff")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
    try:
        header = [name.strip().removeprefix("\ufeff") for name in next(lines, [])]
        if not any(header):
            issues.error(label, "the table is empty; its first row names the columns")
            return None
        doubled = {name for name in header if name and header.count(name) > 1}
        for name in sorted(doubled):
            issues.error(label, f"the column '{name}' occurs twice; remove one")
        rows = []
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            place = f"{label}, line {lines.line_num}"
            if len(cells) > len(header) and any(c.strip() for c in cells[len(header) :]):
                issues.error(
                    place, f"there are {len(cells)} cells, but {len(header)} columns in the header"
                )
                continue
            texts = zip(header, (cell.strip() for cell in cells), strict=False)
            rows.append(Row({n: c for n, c in texts if n and c.casefold() not in EMPTY}, place))
    except csv.Error as error:
        issues.error(label, f"line {lines.line_num}: {error}")
        return None
    return Table(label, tuple(name for name in header if name), tuple(rows))


def as_number(text: str) -> float | None:
    """Return the number that `text` is, or None."""
    if "_" in text:  # which Python allows between digits
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def as_list(text: str) -> tuple[str, ...]:
    """Return the parts of a cell that are separated by semicolons."""
    return tuple(part.strip() for part in text.split(";")) if text else ()
