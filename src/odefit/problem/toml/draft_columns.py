"""Conclusions from a table's names and the order of its rows: usable names, times, runs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from odefit.common.errors import InputError, shown
from odefit.problem.building.columns import NAMES_OF_TIME
from odefit.problem.dosing.dose_records import ROLES
from odefit.problem.dosing.subjects import IDENTIFIERS
from odefit.problem.inputs.cells import is_missing, plain_number
from odefit.problem.inputs.dates import UNITS_OF_TIME
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import Cells
from odefit.problem.model import check_name

FEWEST_COUNTS = 4
"""So many different whole numbers, or more, make a column one of counts."""

INPUT_WORDS = (
    "u", "input", "temp", "temperature", "feed", "flow", "light", "voltage", "current", "dilution",
    "stimulus", "inflow", "rain", "load",
)  # fmt: skip
"""Names, in lower case and without a number behind them, that are those of inputs."""

STAIRS = 4
"""A column without gaps has the steps of an input if it has so many rows, or more, per value."""

BRACKETS = re.compile(r"[(\[{].*")
"""The part after a bracket in the name of a column: mostly a unit."""

SHORTEST_ALONE = 4
"""A unit that alone names a column of times has so many letters or is ``day``; `s` has fewer."""


def with_usable_names(cells: Cells) -> tuple[Cells, dict[str, str]]:
    """Return a table by names that expressions can have, and the old name of each new one.

    Brackets, mostly around a unit, are left out unless they alone tell columns apart, and other
    signs become underscores. A column such as ``Biomass_g/L`` beside ``Biomass_sd`` is named
    ``Biomass``. The names of a long table stay, since its covariates go by these.
    """
    long = {name for names in ROLES.values() for name in names} | IDENTIFIERS
    if any(name.upper() in long for name in cells):
        return cells, {}
    short = [name if _is_name(name) else _as_name(BRACKETS.sub("", name)) for name in cells]
    names: dict[str, str] = {}
    for name, own in zip(cells, short, strict=True):
        if own != name and short.count(own) > 1:  # what tells them apart is in the brackets
            own = _as_name(name)
        if not _is_name(own) or (own != name and own in cells) or own in names.values():
            own = name
        names[name] = own
    for own in [*names.values()]:
        stem = own.removesuffix("_sd")
        if stem == own or stem in names.values() or not _is_name(stem):
            continue
        measured = [
            n for n, o in names.items() if o.startswith(f"{stem}_") and not o.endswith("_sd")
        ]
        if len(measured) == 1:
            names[measured[0]] = stem
    found = Cells({names[name]: column for name, column in cells.items()})
    found.lines = cells.lines
    return found, {own: name for name, own in names.items() if own != name}


def names_time(name: str) -> bool:
    """Return whether a name says time, as ``t``, ``Hours`` or ``t_min`` do."""
    bare = name.casefold()
    alone = bare in UNITS_OF_TIME and (len(bare) >= SHORTEST_ALONE or bare == "day")
    return bare in NAMES_OF_TIME or alone or re.fullmatch(_TIME_AND_UNIT, bare) is not None


def unit_of_time(name: str) -> str | None:
    """Return the unit that the name of a column of times says, such as ``Time (min)``."""
    bare = name.casefold()
    if bare in UNITS_OF_TIME:
        return UNITS_OF_TIME[bare]
    found = re.search(r"[_\s(\[{/]([a-z]+)[)\]}]?\s*$", bare)
    return UNITS_OF_TIME.get(found[1]) if found else None


def column_of_runs(times: Sequence[float], columns: Mapping[str, Sequence[str]]) -> str | None:
    """Return the column that tells apart runs written one below the other, or None.

    The times begin anew with each run; NaN are missing. The column has one value in each run, and
    another one in every other run.
    """
    rows = [i for i, t in enumerate(times) if not math.isnan(t)]
    run = dict.fromkeys(rows[:1], 0)
    for a, b in itertools.pairwise(rows):
        run[b] = run[a] + (times[b] < times[a])
    runs = len({*run.values()})
    for name, cells in columns.items():
        pairs = {(run[i], cells[i].strip()) for i in rows}
        if runs > 1 and len(pairs) == len({value for _, value in pairs}) == runs:
            return name if all(value for _, value in pairs) else None
    return None


def are_counts(values: Sequence[float]) -> bool:
    """Return whether numbers seem to be counts: whole, not negative, of several sizes.

    Readings that were rounded to tens or hundreds are not.
    """
    if not values or not all(v >= 0 and float(v).is_integer() for v in values):
        return False
    different = {*values}
    return len(different) >= FEWEST_COUNTS and math.gcd(*map(int, different)) == 1


def number_in(cell: str) -> float | None:
    """Return the number in a cell, not-a-number where it is empty, None for a text."""
    return math.nan if is_missing(cell) else plain_number(cell)


def _as_name(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


def _is_name(name: str) -> bool:
    issues = Issues()
    check_name(name, "", issues)
    return not issues.errors


_TIME_AND_UNIT = f"(t|time)_?({'|'.join(UNITS_OF_TIME)})"


class Columns:
    """The possible roles of each column of a table."""

    def __init__(self, cells: Cells, place: str) -> None:
        self.place = place
        self.remarks: list[str] = []
        cells, self.named = with_usable_names(cells)
        self.values: dict[str, list[float]] = {}
        self.texts = dict(cells.items())
        rows = range(len(next(iter(cells.values()), [])))
        for name, column in cells.items():
            numbers = [number_in(cell) for cell in column]
            wrong = [i for i in rows if numbers[i] is None]
            if wrong:
                self.remarks.append(
                    f"{name}: has texts, such as {shown(column[wrong[0]].strip())} in row "
                    f"{cells.lines[wrong[0]]}; correct them if it is a measurement"
                )
            elif any(not math.isnan(v) for v in numbers if v is not None):
                self.values[name] = [math.nan if v is None else v for v in numbers]
        self.time = self._find_time()
        self.roles = self._find_roles()
        self.by = self._find_subjects()
        self.dosing = "AMT" in self.roles
        taken = {self.time, self.by, *self.roles.values()}
        rest = [n for n in self.values if n not in taken]
        self.sds = [n for n in rest if n.endswith("_sd") and n[:-3] in rest]
        rest = [n for n in rest if n not in self.sds]
        self.covariates = [n for n in rest if self.by is not None and self._constant(n)]
        rest = [n for n in rest if n not in self.covariates and self._usable(n)]
        self.inputs = {n: kind for n in rest if (kind := self._input(n)) is not None}
        self.observables = [n for n in rest if n not in self.inputs]
        if not self.observables and "DV" not in self.roles and self.inputs:
            self.observables = [self.inputs.popitem()[0]]
        if "DV" in self.roles:  # long tables have their measurements there
            self.covariates += self.observables
            self.observables = []
        elif not self.observables:
            have = ", ".join(cells)
            raise InputError(
                "; ".join(
                    [
                        (
                            f"{place}: no column beside the times can be a measurement (columns "
                            f"are: {have}); expected numbers that differ, in columns whose names "
                            "are letters, digits and _"
                        ),
                        *self.remarks,
                    ]
                )
            )

    def of(self, name: str) -> list[float]:
        """Return the numbers of a column, without gaps."""
        return [v for v in self.values[name] if not math.isnan(v)]

    def by_role(self, role: str) -> list[float]:
        """Return the numbers in the column of a role."""
        return self.of(self.roles[role]) if self.roles.get(role) in self.values else []

    @property
    def span(self) -> float:
        """The length of the time, or one if there is none."""
        times = self.of(self.time)
        return (max(times) - min(times)) or 1.0

    def _find_time(self) -> str:
        for name in self.values:
            if names_time(name):
                return name
        for name in self.values:
            if name.casefold().startswith("time"):
                return name
        first = next(iter(self.values), None)
        if first is not None:
            values = self.values[first]
            if all(a <= b for a, b in itertools.pairwise(values)) and len(values) > 1:
                return first
        raise InputError(
            f"{self.place}: no column with the times; expected numbers in a column named t or "
            "time, or in the first one, increasing"
        )

    def _find_roles(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for role, names in ROLES.items():
            for column in self.texts:
                if column.upper() in names and column != self.time:
                    found.setdefault(role, column)
        if not {"AMT", "EVID", "DV"} & found.keys():
            return {}
        return found

    def _find_subjects(self) -> str | None:
        for name, column in self.texts.items():
            if name.upper() in IDENTIFIERS and len(set(column)) < len(column):
                break
        else:
            others = {n: column for n, column in self.texts.items() if n != self.time}
            runs = None if self.roles else column_of_runs(self.values[self.time], others)
            if runs is None:
                return None
            name = runs
        self.remarks = [r for r in self.remarks if not r.startswith(f"{name}:")]
        return name

    def _constant(self, name: str) -> bool:
        """True if a column has one value for each subject."""
        if self.by is None:
            return len(set(self.of(name))) == 1
        found: dict[str, set[float]] = {}
        for subject, value in zip(self.texts[self.by], self.values[name], strict=True):
            if not math.isnan(value):
                found.setdefault(subject, set()).add(value)
        return all(len(values) == 1 for values in found.values())

    def _usable(self, name: str) -> bool:
        issues = Issues()
        check_name(name, "", issues)
        if issues.errors:
            why = issues.errors[0].partition(": ")[2]
            self.remarks.append(f"{name}: rename it if it is a measurement: {why}")
        elif len(self.of(name)) == 1:
            self.remarks.append(f"{name}: has one value alone")
        elif len(set(self.of(name))) == 1:
            self.remarks.append(f"{name}: is the same in all rows; it may be one of [constants]")
        else:
            return True
        return False

    def _input(self, name: str) -> str | None:
        """Return the interpolation of a column that seems to be an input; None if it does not."""
        values = self.values[name]
        gaps = any(math.isnan(v) for v in values)
        different = len(set(values))
        if name.casefold().rstrip("0123456789").rstrip("_") in INPUT_WORDS:
            return "constant" if different * STAIRS <= len(values) else "linear"
        return "constant" if not gaps and 1 < different <= len(values) / STAIRS else None
