"""Tables of PEtab: tab-separated texts with a header, each cell with its place."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odefit.common.errors import closest, did_you_mean, one_of, shown
from odefit.formats.petab.description import Measurement
from odefit.problem.inputs.file_access import (
    MAX_COLUMNS,
    MAX_EXPERIMENTS,
    is_small,
    read_text,
    too_many,
    too_many_experiments,
)
from odefit.problem.inputs.issues import Issues
from odefit.problem.priors import FAMILIES

EMPTY = frozenset({"", "nan", "na", "n/a", "null", "none"})
"""Cells that count as empty, in any case of letters: pandas, with which others read PEtab, treats
them as missing."""

MAX_PETAB_ROWS = 100_000
"""Largest number of rows of a table. Each takes 30 microseconds and 1.4 kB, as every cell is kept
with its place; the largest table of the PEtab collection in our tests has 9,600."""

CLOSE_NAMES = 3
"""Largest difference in length between a mistaken name of a column and the intended one."""

ALIKE = 0.85
"""The smallest similarity, between 0 and 1, of a mistaken name of a column and the intended one.
The standard allows further columns of any name, and ``realDate``, at 0.63, is not ``replicateId``.
"""


QUANTITATIVE = frozenset({"quantitative", "absolute", "relative"})
"""Types of measurements that are values of an observable, in any case of letters. A relative one
has its scale as a parameter."""

NOT_QUANTITATIVE = (
    "pyPESTO relates values that are not quantitative to the observable by a monotone function, "
    "which it estimates, and the standard has none. In a problem file this is an unknown function: "
    '[inputs] f = { estimate = "linear", of = "x", shape = "increasing" } and [observables] y = "f"'
)
"""The remedy for measurements that are not quantitative."""


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    # texts by column, without blanks around them; empty cells are absent
    cells: Mapping[str, str]
    place: str

    def get(self, column: str) -> str:
        """Return a cell, with an empty text for an empty cell."""
        return self.cells.get(column, "")

    def text(self, column: str, issues: Issues) -> str:
        """Return a cell that must not be empty; report it if it is."""
        cell = self.get(column)
        if not cell:
            issues.error(self.place, f"{column} is empty; every row needs one")
        return cell

    def choice(self, column: str, choices: Sequence[str], issues: Issues) -> str:
        """Return a cell that must be one of some words; an empty one means the first."""
        word = self.get(column) or choices[0]
        if word not in choices:
            issues.error(self.place, f"{column}: unknown {shown(word)}{one_of(word, choices)}")
        return word

    def number(
        self, column: str, issues: Issues, *, infinite: bool = False, missing: float | None = None
    ) -> float | None:
        """Return a cell as a number, or None with a reported reason.

        `missing` is the value of an empty cell; None makes it a mistake.
        """
        text = self.get(column)
        if not text and missing is not None:
            return missing
        value = as_number(text)
        if value is None or (math.isinf(value) and not infinite):
            kind = "a number" if infinite else "a finite number"
            issues.error(self.place, f"{column}: expected {kind}, got {shown(text)}")
            return None
        return value


@dataclass(frozen=True)
class Table:
    """A table."""

    label: str  # the name of its file in messages
    columns: tuple[str, ...]  # names of the columns, in order
    rows: tuple[Row, ...]  # its non-empty rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def require(self, columns: Collection[str], issues: Issues) -> bool:
        """Report missing required columns; return whether all exist."""
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
        """Report columns whose name is a likely misspelling of a known, absent one."""
        absent = [c for c in known if c not in self.columns]
        for column in self.unused(known):
            meant = closest(column, absent, alike=ALIKE)
            if meant is not None and abs(len(meant) - len(column)) <= CLOSE_NAMES:
                issues.error(self.label, f"unknown column '{column}'; did you mean '{meant}'?")


EXPERIMENT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "experiment": ("experimentId",),
    "measurement": ("preequilibrationConditionId", "simulationConditionId", "experimentId"),
}
"""Columns that name the experiment of a row, by kind of table, in both versions."""


def read_tsv(path: Path, label: str, issues: Issues, kind: str = "") -> Table | None:
    """Return a table, or None with a reported reason.

    Raises InputError: a table of this `kind` names more experiments than a problem may have. The
    rest of it is not read.
    """
    text = read_text(path, label, issues)
    if text is None or not is_small(text, label, issues, MAX_PETAB_ROWS):
        return None
    text = text.removeprefix("\ufeff")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
    try:
        header = [name.strip().removeprefix("\ufeff") for name in next(lines, [])]
        if not any(header):
            issues.error(label, "the table is empty; its first row names the columns")
            return None
        if len(header) > MAX_COLUMNS:
            issues.error(label, too_many("columns", len(header), MAX_COLUMNS))
            return None
        doubled = Counter(filter(None, header))
        for name in sorted(name for name, count in doubled.items() if count > 1):
            issues.error(label, f"the column '{name}' occurs twice; remove one")
        named = [i for i, c in enumerate(header) if c in EXPERIMENT_COLUMNS.get(kind, ())]
        experiments: set[tuple[str, ...]] = set()
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
            experiments.add(tuple(cells[i].strip() for i in named if i < len(cells)))
            if len(experiments) > MAX_EXPERIMENTS:
                issues.error(label, too_many_experiments())
                issues.raise_errors()
            texts = zip(header, (cell.strip() for cell in cells), strict=False)
            rows.append(Row({n: c for n, c in texts if n and c.casefold() not in EMPTY}, place))
    except csv.Error as error:
        issues.error(label, f"line {lines.line_num}: {error}")
        return None
    return Table(label, tuple(name for name in header if name), tuple(rows))


def as_number(text: str) -> float | None:
    """Return the number that `text` is, or None."""
    if "_" in text:  # Python allows it between digits
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def as_list(text: str) -> tuple[str, ...]:
    """Return the parts of a cell that are separated by semicolons."""
    return tuple(part.strip() for part in text.split(";")) if text else ()


WITHOUT_EFFECT = frozenset(
    {"parameterName", "observableName", "datasetId", "replicateId", "conditionName",
     "experimentName", "name"}
)  # fmt: skip
"""Columns of the standard without any effect, so that a misspelling is not a mistake."""


def column_notes(
    tables: Mapping[str, Sequence[Table]], columns: Mapping[str, Sequence[str]], issues: Issues
) -> list[str]:
    """Return a sentence for each unread column; misspelt ones are mistakes.

    The standard allows further columns in all tables but the condition table of version 1.
    `columns` are those that are read, by kind of table.
    """
    notes = []
    for kind, known in columns.items():
        for table in tables[kind]:
            table.check_near_misses([c for c in known if c not in WITHOUT_EFFECT], issues)
            notes += [
                f"The column '{c}' of {table.label} is not read." for c in table.unused(known)
            ]
    return notes


def aliases(tables: Sequence[Table], issues: Issues) -> dict[str, str]:
    """Return the names in the tables for ids of the model, from the mapping tables."""
    required = ("petabEntityId", "modelEntityId")
    rows = [row for table in tables if table.require(required, issues) for row in table]
    named = unique(rows, "petabEntityId", issues)
    return {n: row.get("modelEntityId") for n, row in named.items() if row.get("modelEntityId")}


def unique(rows: Sequence[Row], column: str, issues: Issues) -> dict[str, Row]:
    """Return rows by the id in `column`; report empty ids and duplicates."""
    by_id: dict[str, Row] = {}
    for row in rows:
        name = row.text(column, issues)
        if not name:
            continue
        if name in by_id:
            issues.error(
                row.place, f"{column} {shown(name)} occurs twice, first in {by_id[name].place}"
            )
        by_id.setdefault(name, row)
    return by_id


def all_rows(tables: Sequence[Table], required: Sequence[str], issues: Issues) -> list[Row]:
    """Return the rows of the tables that have the required columns."""
    return [row for table in tables if table.require(required, issues) for row in table]


def bounds(row: Row, estimate: bool, issues: Issues) -> tuple[float, float]:
    """Return lower and upper bound; an empty cell means no bound."""
    lower = row.number("lowerBound", issues, infinite=True, missing=-math.inf)
    upper = row.number("upperBound", issues, infinite=True, missing=math.inf)
    if lower is None or upper is None:
        return -math.inf, math.inf
    if estimate and lower > upper:
        issues.error(row.place, f"lowerBound {lower:g} is above upperBound {upper:g}")
    return lower, upper


def nominal_value(row: Row, estimate: bool, issues: Issues) -> float | None:
    """Return the nominal value; a parameter that is not estimated must have one."""
    if not row.get("nominalValue"):
        if not estimate:
            issues.error(
                row.place, "nominalValue is empty, but the parameter is not estimated; give one"
            )
        return None
    return row.number("nominalValue", issues)


def check_known(row: Row, kind: str, name: str, known: Collection[str], issues: Issues) -> None:
    """Report a name that is missing in the table of its kind; an empty name is allowed here."""
    if name and name not in known:
        issues.error(
            row.place,
            f"there is no {kind} {shown(name)} in the {kind} table{did_you_mean(name, known)}",
        )


def measurement(
    row: Row, observable: str, experiment: str, time: float | None, issues: Issues
) -> Measurement | None:
    """Return a row of the measurement table, or None if its time or its value is a mistake."""
    kind = row.get("measurementType")
    if kind and kind.lower() not in QUANTITATIVE:
        issues.error(row.place, f"measurementType {shown(kind)}: {NOT_QUANTITATIVE}")
    value = row.number("measurement", issues)
    if time is None or value is None:
        return None
    return Measurement(
        observable,
        experiment,
        time,
        value,
        as_list(row.get("observableParameters")),
        as_list(row.get("noiseParameters")),
        row.place,
    )


def check_measured(rows: Collection[object], tables: Sequence[Table], issues: Issues) -> None:
    """Report tables without a measurement."""
    if not rows and not issues.errors:
        issues.error(tables[0].label, "the table has no measurement")


VERSION_2_NAMES = {**{name: name for name in FAMILIES}, "chisquare": "chi-square"}
VERSION_1_NAMES = {
    "uniform": ("uniform", False),
    "normal": ("normal", False),
    "laplace": ("laplace", False),
    "logNormal": ("log-normal", False),
    "logLaplace": ("log-laplace", False),
    "parameterScaleUniform": ("uniform", True),
    "parameterScaleNormal": ("normal", True),
    "parameterScaleLaplace": ("laplace", True),
}
"""Names of version 1, and whether they apply on the scale of the parameter."""


def prior_of_version_1(row: Row, scale: str, issues: Issues) -> dict[str, Any] | None:
    """Return the prior of the objective, or None; scales are ``"lin"``, ``"log"``, ``"log10"``."""
    kind = _kind(row, "objectivePriorType", "objectivePriorParameters", VERSION_1_NAMES, issues)
    if kind is None:
        return None
    family, on_scale = VERSION_1_NAMES[kind]
    if family == "uniform" and not row.get("objectivePriorParameters"):
        return None  # uniform between the bounds, which adds nothing
    prior = _prior(family, "objectivePriorParameters", row, issues)
    if prior is not None and on_scale and scale != "lin":
        prior["on"] = scale
    return prior


def prior_of_version_2(row: Row, issues: Issues) -> dict[str, Any] | None:
    """Return the prior, or None. The arguments are those for version 1."""
    kind = _kind(row, "priorDistribution", "priorParameters", VERSION_2_NAMES, issues)
    if kind is None:
        return None
    return _prior(VERSION_2_NAMES[kind], "priorParameters", row, issues)


def _kind(
    row: Row, column: str, parameters: str, known: Collection[str], issues: Issues
) -> str | None:
    """Return the family named in a row; None without one, or if it is unknown."""
    kind = row.get(column)
    if kind in known:
        return kind
    if kind:
        issues.error(row.place, f"{column}: unknown {shown(kind)}{one_of(kind, known)}")
    elif row.get(parameters):
        issues.error(row.place, f"{parameters} without {column}")
    return None


def _prior(family: str, column: str, row: Row, issues: Issues) -> dict[str, Any] | None:
    text = row.get(column)
    names = FAMILIES[family]
    numbers = [as_number(part) for part in as_list(text)]
    if len(numbers) != len(names) or any(n is None or math.isinf(n) for n in numbers):
        issues.error(
            row.place,
            f"{column}: expected {' and '.join(names)} of the {family} distribution, separated by "
            f"a semicolon, got {shown(text)}",
        )
        return None
    return {"distribution": family, **dict(zip(names, numbers, strict=True))}
