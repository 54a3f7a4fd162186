"""Rows of tables that both versions of PEtab have in common."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from odefit.common.errors import did_you_mean, shown
from odefit.formats.petab.description import Measurement
from odefit.formats.petab.tables import Row, Table, as_list
from odefit.formats.petab.yaml_file import PetabFiles
from odefit.problem.inputs.issues import Issues

WITHOUT_EFFECT = frozenset(
    {"parameterName", "observableName", "datasetId", "replicateId", "conditionName",
     "experimentName", "name"}
)  # fmt: skip
"""Columns that the standard names and that change nothing, so that a misspelt one is no mistake."""


def column_notes(
    files: PetabFiles, columns: Mapping[str, Sequence[str]], issues: Issues
) -> list[str]:
    """Return a sentence for each column that is not read; misspelt ones are mistakes.

    The standard allows further columns in all tables but the condition table of version 1.
    `columns` are those that are read, by kind of table.
    """
    notes = []
    for kind, known in columns.items():
        for table in files.tables[kind]:
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
    """Return rows by the id in `column`, with ids that are empty or occur twice reported."""
    found: dict[str, Row] = {}
    for row in rows:
        name = row.text(column, issues)
        if not name:
            continue
        if name in found:
            issues.error(
                row.place, f"{column} {shown(name)} occurs twice, first in {found[name].place}"
            )
        found.setdefault(name, row)
    return found


def all_rows(tables: Sequence[Table], required: Sequence[str], issues: Issues) -> list[Row]:
    """Return the rows of several tables, of those that have the required columns."""
    return [row for table in tables if table.require(required, issues) for row in table]


def bounds(row: Row, estimate: bool, issues: Issues) -> tuple[float, float]:
    """Return lower and upper bound; an empty cell is no bound."""
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
    """Report a name that is not in the table of its kind; an empty one is no mistake here."""
    if name and name not in known:
        issues.error(
            row.place,
            f"there is no {kind} {shown(name)} in the {kind} table{did_you_mean(name, known)}",
        )


def measurement(
    row: Row, observable: str, experiment: str, time: float | None, issues: Issues
) -> Measurement | None:
    """Return a row of the measurement table, or None if its time or its value is a mistake."""
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
