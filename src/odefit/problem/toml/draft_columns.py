"""Guesses from a table's columns and the order of its rows: times, runs, roles."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Mapping, Sequence

from odefit.common.errors import InputError, shown
from odefit.problem.dosing.dose_records import ROLES
from odefit.problem.dosing.subjects import IDENTIFIERS
from odefit.problem.inputs.cells import is_missing, plain_number, remedy
from odefit.problem.inputs.dates import column_of_dates, since
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.sentinels import point_out_sentinels
from odefit.problem.inputs.table import Cells
from odefit.problem.model import check_name
from odefit.problem.toml.draft_limits import Limits, limits_of
from odefit.problem.toml.draft_names import (
    OTHER_TIME,
    is_input_name,
    rank_as_time,
    with_usable_names,
)

FEWEST_COUNTS = 4
"""Smallest number of distinct integers that make a column one of counts."""

STAIRS = 4
"""Fewest rows per value for which a column without gaps is taken for a stepwise input."""

RUNS = IDENTIFIERS | {"RUN", "BATCH", "EXPERIMENT", "SERIES", "REPLICATE", "ANIMAL", "INDIVIDUAL"}
"""Upper-case names of columns that identify runs or subjects if their values repeat."""

NAMES_OF_QUANTITIES = frozenset({"variable", "observable", "quantity", "species", "analyte"})
NAMES_OF_VALUES = frozenset({"value", "values", "measurement", "concentration"})
"""Lower-case names of columns in tables with one value per row: the quantity, and its value."""

DOSES = re.compile(r"(dose|doses|dosage|amount|amt)(_?[mun]?(g|mol)(_kg)?)?")
"""Lower-case names of columns that hold doses, if no measurement is in the same rows."""


def column_of_runs(times: Sequence[float], columns: Mapping[str, Sequence[str]]) -> str | None:
    """Return the column that distinguishes runs written one below the other, or None.

    The times restart with each run; NaN is missing. The column is constant within each run and
    differs between runs.
    """
    run = runs_of(times)
    rows, runs = list(run), len({*run.values()})
    for name, cells in columns.items():
        pairs = {(run[i], cells[i].strip()) for i in rows}
        if runs > 1 and len(pairs) == len({value for _, value in pairs}) == runs:
            return name if all(value for _, value in pairs) else None
    return None


def runs_of(times: Sequence[float]) -> dict[int, int]:
    """Return the number of the run, in which times are monotonic, for each row with a time."""
    rows = [i for i, t in enumerate(times) if not math.isnan(t)]
    pairs = list(itertools.pairwise(rows))
    falls, rises = (sum(sign * (times[b] - times[a]) > 0 for a, b in pairs) for sign in (-1, 1))
    way = -1 if falls > rises else 1
    run = dict.fromkeys(rows[:1], 0)
    for a, b in pairs:
        run[b] = run[a] + (way * (times[b] - times[a]) < 0)
    return run


def are_counts(values: Sequence[float]) -> bool:
    """Return whether numbers look like counts: nonnegative integers of several sizes.

    Readings rounded to tens or hundreds do not.
    """
    if not values or not all(v >= 0 and float(v).is_integer() for v in values):
        return False
    different = {*values}
    return len(different) >= FEWEST_COUNTS and math.gcd(*map(int, different)) == 1


def number_in(cell: str) -> float | None:
    """Return the number in a cell, NaN for an empty one, None for a text."""
    return math.nan if is_missing(cell) else plain_number(cell)


def _days(cells: Sequence[str]) -> list[float | None] | None:
    """Return the days since the first date of a column; None without dates."""
    issues = Issues()
    dates = column_of_dates(cells, str, issues)
    if dates is None or issues.errors:
        return None
    begin = next(d for d in dates if isinstance(d, datetime.datetime))
    return [since(begin, d, "d") if isinstance(d, datetime.datetime) else math.nan for d in dates]


class Columns:
    """The possible roles of each column of a table."""

    def __init__(self, cells: Cells, place: str) -> None:
        self.place = place
        self.remarks: list[str] = []  # remarks on unused columns
        self.notes: list[str] = []
        cells, self.named = with_usable_names(cells)
        self.values: dict[str, list[float]] = {}
        self.dated: set[str] = set()
        # The first text of a column that is not all numbers, and its row.
        self.wrong: dict[str, tuple[str, int]] = {}
        self.texts = dict(cells.items())
        self.lines = cells.lines
        self._limits: dict[str, Limits] = {}
        rows = range(len(next(iter(cells.values()), [])))
        if len(cells) == 1:
            name = next(iter(cells))
            raise InputError(
                f"{place}: there is only one column, {shown(name)}; the times belong in a column "
                "of their own, such as t, beside the values"
            )
        for name, column in cells.items():
            days = _days(column)
            self.dated |= set() if days is None else {name}
            numbers = days or [number_in(cell) for cell in column]
            wrong = [i for i in rows if numbers[i] is None]
            limits = limits_of(column) if wrong and self._rank(name) is None else None
            if limits is not None:
                self._limits[name] = limits
                self.values[name] = [*limits.values]
            elif wrong:
                self._refuse(name, wrong[0])
            elif any(not math.isnan(v) for v in numbers if v is not None):
                self.values[name] = [math.nan if v is None else v for v in numbers]
        self.stated: dict[str, str] = {}  # roles of columns whose names do not give them
        self.time = self._find_time()
        self.roles = self._find_roles()
        self._repeated: set[str] = set()  # columns of runs that repeat within other ones
        for name in {*self.roles.values()} & self._limits.keys() - {self.roles.get("DV", "")}:
            del self.values[name]
            self._refuse(
                name, next(row for row, code in enumerate(self._limits[name].codes) if code)
            )
        self.by = self._find_subjects()
        self.dosing = "AMT" in self.roles
        taken = {self.time, self.by, *self.roles.values(), *self._repeated}
        rest = [n for n in self.values if n not in taken]
        if self.by is None and not self.roles:
            self._look_for_runs(cells.lines, rest)
        self.sds = [n for n in rest if n.endswith("_sd") and n[:-3] in rest]
        self.marks = [n for n in rest if n.endswith("_cens") and n[:-5] in rest]
        rest = [n for n in rest if n not in (*self.sds, *self.marks)]
        self.covariates = [n for n in rest if self.by is not None and self._constant(n)]
        rest = [n for n in rest if n not in self.covariates and self._usable(n)]
        self.inputs = {n: kind for n in rest if (kind := self._input(n)) is not None}
        self.observables = [n for n in rest if n not in self.inputs]
        if not self.observables and "DV" not in self.roles and self.inputs:
            self.observables = [self.inputs.popitem()[0]]
        self.limits = self._limits_of_measurements()
        issues = Issues()
        looked = {self.time, *self.observables, *self.inputs, *self.covariates}
        looked |= {self.roles.get("DV", self.time)}
        point_out_sentinels({n: self.values[n] for n in looked if n in self.values}, place, issues)
        self.notes += issues.warnings
        if "DV" in self.roles:  # long tables hold their measurements there
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

    def _rank(self, name: str) -> int | None:
        """Return the rank of a column as time, by its name in the table."""
        return rank_as_time(self.named.get(name, name))

    def _refuse(self, name: str, row: int) -> None:
        """Remark on a column with a text in a row."""
        text = self.texts[name][row].strip()
        self.wrong[name] = text, (line := self.lines[row])
        correction = remedy(text, name, otherwise="correct them if it is a measurement")
        self.remarks.append(f"{name}: has texts, such as {shown(text)} in row {line}; {correction}")

    def _limits_of_measurements(self) -> dict[str, tuple[Limits, str]]:
        """Return the values beyond limits in columns of measurements, and the column of codes."""
        if (dv := self.roles.get("DV")) is not None:
            marks = {dv: self.roles.get("CENS", "CENS")}
        else:
            marks = {name: f"{name}_cens" for name in self.observables}
        limits = {n: (self._limits[n], mark) for n, mark in marks.items() if n in self._limits}
        self.notes += [one.note(n, mark) for n, (one, mark) in limits.items()]
        return limits

    def of(self, name: str) -> list[float]:
        """Return the numbers of a column without gaps."""
        return [v for v in self.values[name] if not math.isnan(v)]

    def by_role(self, role: str) -> list[float]:
        """Return the numbers in the column of a role."""
        return self.of(self.roles[role]) if self.roles.get(role) in self.values else []

    @property
    def span(self) -> float:
        """The time span, or one if it is zero."""
        times = self.of(self.time)
        return (max(times) - min(times)) or 1.0

    def _find_time(self) -> str:
        ranks = {n: self._rank(n) for n in (*self.values, *self.wrong)}
        named = {n: rank for n, rank in ranks.items() if rank is not None}
        best = min(named, key=lambda n: named[n], default=None)
        if best in self.values:
            return best
        if best is not None:
            text, line = self.wrong[best]
            raise InputError(
                f"{self.place}, column {self.named.get(best, best)}, row {line}: {shown(text)} is "
                f"not a time; {remedy(text, best, time=True)}"
            )
        first = next(iter(self.values), None)
        if first is not None:
            values = self.values[first]
            if all(a <= b for a, b in itertools.pairwise(values)) and len(values) > 1:
                return first
        falls = first is not None and all(a >= b for a, b in itertools.pairwise(values))
        raise InputError(
            f"{self.place}: no column with the times; expected numbers in a column named t or "
            f"time, or in the first one, increasing{f'; if {first} has them, name it t' * falls}"
        )

    def _find_roles(self) -> dict[str, str]:
        roles: dict[str, str] = {}
        for role, names in ROLES.items():
            for column in self.texts:
                if column.upper() in names and column != self.time:
                    roles.setdefault(role, column)
        if not {"AMT", "EVID", "DV"} & roles.keys():
            return self._find_quantities() or self._find_doses()
        return roles

    def _find_doses(self) -> dict[str, str]:
        """Return the role of a column of doses with another name than those of the convention."""
        for name, amounts in self.values.items():
            doses = [row for row, amount in enumerate(amounts) if amount > 0]
            if name == self.time or not doses or not DOSES.fullmatch(name.casefold()):
                continue
            others = [column for other, column in self.values.items() if other != name]
            if any(all(math.isnan(column[row]) for row in doses) for column in others):
                self.stated = {"AMT": name}
        return dict(self.stated)

    def _find_quantities(self) -> dict[str, str]:
        """Return the roles in a table whose rows hold the name of a quantity and its value."""
        names = [n for n in self.wrong if n.casefold() in NAMES_OF_QUANTITIES]
        values = [n for n in self.values if n.casefold() in NAMES_OF_VALUES]
        if len(names) != 1 or len(values) != 1:
            return {}
        self.remarks = [r for r in self.remarks if not r.startswith(f"{names[0]}:")]
        self.stated = {"DV": values[0], "DVID": names[0]}
        return dict(self.stated)

    def _find_subjects(self) -> str | None:
        for name, column in self.texts.items():
            if name.upper() in RUNS and 1 < len(set(column)) < len(column):
                name = self._with_one_input(name)
                break
        else:
            others = {n: column for n, column in self.texts.items() if n != self.time}
            runs = None if self.roles else column_of_runs(self.values[self.time], others)
            if runs is None:
                return None
            name = runs
        self.remarks = [r for r in self.remarks if not r.startswith(f"{name}:")]
        return name

    def _with_one_input(self, name: str) -> str:
        """Return the column of runs, or an input of which runs of that column have two values.

        Numbers of replicates repeat at each temperature, which tells the runs apart instead.
        """
        for other, values in self.values.items():
            several = 1 < len({*values}) < len(values) and not any(map(math.isnan, values))
            if not several or not is_input_name(other):
                continue
            by_place: dict[tuple[str, float], set[float]] = {}
            for run, time, value in zip(
                self.texts[name], self.values[self.time], values, strict=True
            ):
                by_place.setdefault((run, time), set()).add(value)
            if any(len(several) > 1 for several in by_place.values()):
                self.remarks.append(
                    f"{name}: repeats at each {other}, which tells the runs apart; equal times "
                    "there are repeated measurements"
                )
                self._repeated.add(name)
                return other
        return name

    def _look_for_runs(self, lines: Sequence[int], others: Sequence[str]) -> None:
        """Report where the times restart; refuse a table whose runs have different columns."""
        run = runs_of(self.values[self.time])
        begins = [row for row in run if run[row] and run.get(row - 1) != run[row]]
        if not begins:
            return
        message = f"{self.place}, row {lines[begins[0]]}: the times restart"
        lacks = "a column that tells the runs apart, such as Run"
        for name in others:
            pairs = {(run[row], self.values[name][row]) for row in run}
            if len({value for _, value in pairs}) > 1 and len(pairs) == len({*run.values()}):
                raise InputError(f"{message}, and {name} is another one there; add {lacks}")
        self.notes.append(f"{message}; if another run begins there, add {lacks}")

    def _constant(self, name: str) -> bool:
        """True if a column has one value for each subject."""
        if self.by is None:
            return len(set(self.of(name))) == 1
        by_column: dict[str, set[float]] = {}
        for subject, value in zip(self.texts[self.by], self.values[name], strict=True):
            if not math.isnan(value):
                by_column.setdefault(subject, set()).add(value)
        return all(len(values) == 1 for values in by_column.values())

    def _usable(self, name: str) -> bool:
        issues = Issues()
        check_name(name, "", issues)
        rank = self._rank(name)
        if rank is not None and rank < OTHER_TIME:
            self.remarks.append(f"{name}: has times as well, of which one column is enough")
        elif issues.errors:
            why = issues.errors[0].partition(": ")[2]
            self.remarks.append(f"{name}: rename it if it is a measurement: {why}")
        elif len(self.of(name)) == 1:
            self.remarks.append(f"{name}: has only one value")
        elif len(set(self.of(name))) == 1:
            self.remarks.append(f"{name}: is the same in all rows; it may be one of [constants]")
        else:
            return True
        return False

    def _input(self, name: str) -> str | None:
        """Return the interpolation of a column that looks like an input; otherwise None."""
        if name in self._limits:
            return None
        values = self.values[name]
        gaps = any(math.isnan(v) for v in values)
        different = len(set(values))
        if is_input_name(name):
            return "constant" if different * STAIRS <= len(values) else "linear"
        return "constant" if not gaps and 1 < different <= len(values) / STAIRS else None
