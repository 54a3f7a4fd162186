"""What the names and the order of a table's rows tell: usable names, times, and runs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from odefit.problem.building.columns import NAMES_OF_TIME
from odefit.problem.dosing.dose_records import MISSING, ROLES
from odefit.problem.dosing.subjects import IDENTIFIERS
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import Cells
from odefit.problem.model import check_name

UNITS_OF_TIME = {
    "hours": "h",
    "hour": "h",
    "h": "h",
    "minutes": "min",
    "min": "min",
    "seconds": "s",
    "sec": "s",
    "s": "s",
    "days": "d",
    "day": "d",
    "d": "d",
}
"""Units of time in the names of columns, and how they are written."""

FEWEST_COUNTS = 4
"""So many different whole numbers, or more, make a column one of counts."""

BRACKETS = re.compile(r"[(\[{].*")
"""What follows a bracket in the name of a column: mostly a unit."""

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
    bare = cell.strip()
    if bare.casefold() in MISSING:
        return math.nan
    try:
        number = float(bare)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in bare else None


def _as_name(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


def _is_name(name: str) -> bool:
    issues = Issues()
    check_name(name, "", issues)
    return not issues.errors


_TIME_AND_UNIT = f"(t|time)_?({'|'.join(UNITS_OF_TIME)})"
