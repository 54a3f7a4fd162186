"""Guesses from a table's names and row order: usable names, times, runs."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Mapping, Sequence

from odefit.common.errors import InputError, shown
from odefit.problem.building.columns import NAMES_OF_TIME
from odefit.problem.building.times import NAMES_OF_DATES
from odefit.problem.dosing.dose_records import ROLES
from odefit.problem.dosing.subjects import IDENTIFIERS
from odefit.problem.inputs.cells import is_missing, plain_number, remedy
from odefit.problem.inputs.dates import UNITS_OF_TIME, column_of_dates, since
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.sentinels import point_out_sentinels
from odefit.problem.inputs.table import Cells
from odefit.problem.model import check_name

FEWEST_COUNTS = 4
"""Smallest number of distinct integers that make a column one of counts."""

INPUT_WORDS = (
    "u", "input", "temp", "temperature", "feed", "flow", "light", "voltage", "current", "dilution",
    "stimulus", "inflow", "rain", "load",
)  # fmt: skip
"""Lower-case names, without trailing numbers, of typical inputs."""

STAIRS = 4
"""Fewest rows per value for which a column without gaps is taken for a stepwise input."""

BRACKETS = re.compile(r"\s*[(\[{]([^()\[\]{}]*)[)\]}]\s*\Z")
"""Brackets at the end of a column's name, mostly around a unit."""

RUNS = IDENTIFIERS | {"RUN", "BATCH", "EXPERIMENT", "SERIES", "REPLICATE", "ANIMAL", "INDIVIDUAL"}
"""Upper-case names of columns that identify runs or subjects if their values repeat."""

NAMES_OF_QUANTITIES = frozenset({"variable", "observable", "quantity", "species", "analyte"})
NAMES_OF_VALUES = frozenset({"value", "values", "measurement", "concentration"})
"""Lower-case names of columns in tables with one value per row: the quantity, and its value."""

DOSES = re.compile(r"(dose|doses|dosage|amount|amt)(_?[mun]?(g|mol)(_kg)?)?")
"""Lower-case names of columns that hold doses, if no measurement is in the same rows."""

OTHER_TIME = 2
"""Rank below which a name can only mean the time."""

SHORTEST_ALONE = 4
"""Length of a unit that by itself names a column of times, unless it is ``day``; `s` is shorter."""


def with_usable_names(cells: Cells) -> tuple[Cells, dict[str, str]]:
    """Return a table with valid names, and the old name of each renamed column.

    Brackets at the end, mostly around a unit, are dropped unless names would become equal, and
    other signs become underscores. A column such as ``Biomass_g/L`` beside ``Biomass_sd`` becomes
    ``Biomass``. A long table keeps its names, because its covariates use them.
    """
    long = {name for names in ROLES.values() for name in names}
    if any(name.upper() in long for name in cells):
        return cells, {}
    short = [name if is_name(name) else _as_name(BRACKETS.sub("", name)) for name in cells]
    names: dict[str, str] = {}
    for name, short_name in zip(cells, short, strict=True):
        if short_name != name and short.count(short_name) > 1:  # they differ only in the brackets
            short_name = _as_name(name)
        if (
            not is_name(short_name)
            or (short_name != name and short_name in cells)
            or short_name in names.values()
        ):
            short_name = name
        names[name] = short_name
    for short_name in [*names.values()]:
        stem = short_name.removesuffix("_sd")
        if stem == short_name or stem in names.values() or not is_name(stem):
            continue
        measured = [
            n for n, o in names.items() if o.startswith(f"{stem}_") and not o.endswith("_sd")
        ]
        if len(measured) == 1:
            names[measured[0]] = stem
    cells_out = Cells({names[name]: column for name, column in cells.items()})
    cells_out.lines = cells.lines
    return cells_out, {short_name: name for name, short_name in names.items() if short_name != name}


def rank_as_time(name: str) -> int | None:
    """Return the rank of a name such as ``Time (min)`` as time, 0 for best; None if it is not.

    A single letter with another unit has no rank: ``T (°C)`` is a temperature.
    """
    unit, bare = BRACKETS.search(name), BRACKETS.sub("", name).strip().casefold()
    known = unit is not None and unit[1].strip().casefold() in UNITS_OF_TIME
    alone = bare in UNITS_OF_TIME and (len(bare) >= SHORTEST_ALONE or bare == "day")
    if unit is not None and not known and len(bare) == 1:
        return None
    if bare in NAMES_OF_TIME or re.fullmatch(_TIME_AND_UNIT, bare):
        return 0 if known else 4 if name == "T" else 1
    if bare in NAMES_OF_DATES:
        return 2
    if alone or bare.startswith("time") or bare.endswith("time"):
        return 1 if known else 3
    return 4 if known else None


def unit_of_time(name: str) -> str | None:
    """Return the unit in the name of a column of times, such as ``Time (min)``."""
    bare = name.casefold()
    if bare in UNITS_OF_TIME:
        return UNITS_OF_TIME[bare]
    match = re.search(r"[_\s(\[{/]([a-z]+)[)\]}]?\s*$", bare)
    return UNITS_OF_TIME.get(match[1]) if match else None


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


def _as_name(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


def is_name(name: str) -> bool:
    """Return whether a name is valid in expressions."""
    issues = Issues()
    check_name(name, "", issues)
    return not issues.errors


_TIME_AND_UNIT = f"(t|time)_?({'|'.join(UNITS_OF_TIME)})"


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
            if wrong:
                text = column[wrong[0]].strip()
                self.wrong[name] = text, (line := cells.lines[wrong[0]])
                correction = remedy(text, name, otherwise="correct them if it is a measurement")
                self.remarks.append(
                    f"{name}: has texts, such as {shown(text)} in row {line}; {correction}"
                )
            elif any(not math.isnan(v) for v in numbers if v is not None):
                self.values[name] = [math.nan if v is None else v for v in numbers]
        self.stated: dict[str, str] = {}  # roles of columns whose names do not give them
        self.time = self._find_time()
        self.roles = self._find_roles()
        self._repeated: set[str] = set()  # columns of runs that repeat within other ones
        self.by = self._find_subjects()
        self.dosing = "AMT" in self.roles
        taken = {self.time, self.by, *self.roles.values(), *self._repeated}
        rest = [n for n in self.values if n not in taken]
        if self.by is None and not self.roles:
            self._look_for_runs(cells.lines, rest)
        self.sds = [n for n in rest if n.endswith("_sd") and n[:-3] in rest]
        rest = [n for n in rest if n not in self.sds]
        self.covariates = [n for n in rest if self.by is not None and self._constant(n)]
        rest = [n for n in rest if n not in self.covariates and self._usable(n)]
        self.inputs = {n: kind for n in rest if (kind := self._input(n)) is not None}
        self.observables = [n for n in rest if n not in self.inputs]
        if not self.observables and "DV" not in self.roles and self.inputs:
            self.observables = [self.inputs.popitem()[0]]
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
        ranks = {n: rank_as_time(self.named.get(n, n)) for n in (*self.values, *self.wrong)}
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
            stem = other.casefold().rstrip("0123456789").rstrip("_")
            is_input = stem in INPUT_WORDS or stem.partition("_")[0] in INPUT_WORDS
            if not is_input or not 1 < len({*values}) < len(values) or any(map(math.isnan, values)):
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
        rank = rank_as_time(self.named.get(name, name))
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
        values = self.values[name]
        gaps = any(math.isnan(v) for v in values)
        different = len(set(values))
        if name.casefold().rstrip("0123456789").rstrip("_") in INPUT_WORDS:
            return "constant" if different * STAIRS <= len(values) else "linear"
        return "constant" if not gaps and 1 < different <= len(values) / STAIRS else None
