"""Guesses from the names of a table's columns: usable names, times, inputs."""

from __future__ import annotations

import re

from odefit.problem.building.columns import NAMES_OF_TIME
from odefit.problem.building.times import NAMES_OF_DATES
from odefit.problem.dosing.dose_records import ROLES
from odefit.problem.inputs.dates import UNITS_OF_TIME
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import Cells
from odefit.problem.model import check_name

INPUT_WORDS = (
    "u", "input", "temp", "temperature", "feed", "flow", "light", "voltage", "current", "dilution",
    "stimulus", "inflow", "rain", "load",
)  # fmt: skip
"""Lower-case names, without what follows, of typical inputs."""

BRACKETS = re.compile(r"\s*[(\[{]([^()\[\]{}]*)[)\]}]\s*\Z")
"""Brackets at the end of a column's name, mostly around a unit."""

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


def is_input_name(name: str) -> bool:
    """Return whether a name is that of a typical input, such as ``temperature_C`` or ``u2``."""
    stem = name.casefold().rstrip("0123456789").rstrip("_")
    return stem in INPUT_WORDS or stem.partition("_")[0] in INPUT_WORDS


def _as_name(text: str) -> str:
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


def is_name(name: str) -> bool:
    """Return whether a name is valid in expressions."""
    issues = Issues()
    check_name(name, "", issues)
    return not issues.errors


_TIME_AND_UNIT = f"(t|time)_?({'|'.join(UNITS_OF_TIME)})"
