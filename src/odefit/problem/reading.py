"""Problems read from the structure of format 1, as TOML or JSON readers give it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odefit.problem.arrays import Array
from odefit.problem.columns import data_place, used_columns
from odefit.problem.errors import closest, one_of, shown
from odefit.problem.experiment import UNREADABLE, Event, Experiment
from odefit.problem.expressions import TIME
from odefit.problem.issues import Issues, finite_number
from odefit.problem.model import Model
from odefit.problem.preparation import experiment_place
from odefit.problem.problem import Problem
from odefit.problem.table import read_table

FORMAT_VERSION = 1

SECTION_NAMES = (
    "ode", "algebraic", "observables", "constants", "inputs", "parameters", "initial", "noise",
)  # fmt: skip
TEXT_KEYS = ("name", "description", "time_unit")
EXPERIMENT_KEYS = ("name", "data", "t0", "initial", "constants", "steady_state", "event")
EVENT_KEYS = ("time", "times", "when", "initially", "measured", "assign")


def problem_from_mapping(
    raw: Mapping[str, Any],
    directory: Path | None = None,
    source: str | None = None,
    *,
    notes: Sequence[str] = (),
) -> Problem:
    """Return the problem that a mapping in the structure of format 1 describes.

    Parameters
    ----------
    raw
        The mapping, as a TOML or JSON reader gives it. An experiment's ``data`` is the name of a
        CSV file, or a mapping of lists by column, in which None is not measured.
    directory
        The directory to which names of data files are relative; by default the working directory.
    source
        The name of the file, for messages.
    notes
        Remarks on how the mapping was made of another format.

    Raises
    ------
    InputError
        The mapping cannot be used; there is a message for everything that is wrong.
    """
    issues = Issues(source)
    if not isinstance(raw, Mapping):
        issues.error("problem", f"expected a table, got {shown(raw)}")
        issues.raise_errors()
    _check_format(raw, issues)
    issues.raise_errors()  # another format may have other rules
    known = ("format", *TEXT_KEYS, *SECTION_NAMES, "experiment")
    raw = _known_keys(raw, known, "", issues)
    tables = {name: _table(raw.get(name), f"[{name}]", issues) for name in SECTION_NAMES}
    listed = _list_of_tables(raw.get("experiment"), "[[experiment]]", issues)
    if any(table is None for table in tables.values()) or listed is None:
        issues.raise_errors()  # the rest would be consequences
    texts = {name: _text(raw.get(name), name, issues) for name in TEXT_KEYS}
    sections = {name: table or {} for name, table in tables.items()}
    model = Model(
        ode=sections["ode"],
        observables=sections["observables"],
        algebraic=sections["algebraic"],
        constants=sections["constants"],
        inputs=_interpolations(sections["inputs"], issues),
        issues=issues,
    )
    used = used_columns(model)
    experiments = [
        _experiment(table, number, used, directory or Path(), issues)
        for number, table in enumerate(listed or [], 1)
    ]
    problem = Problem(
        model,
        parameters=_parameters(sections["parameters"], issues),
        initial=sections["initial"],
        noise=sections["noise"],
        experiments=experiments,
        name=texts["name"] or _stem(source),
        description=texts["description"] or "",
        time_unit=texts["time_unit"] or "",
        notes=notes,
        issues=issues,
    )
    issues.raise_errors()
    return problem


def _check_format(raw: Mapping[str, Any], issues: Issues) -> None:
    if "format" not in raw:
        meant = closest("format", [k for k in raw if isinstance(k, str)])
        hint = f" (instead of '{meant}')" if meant else ""
        issues.error("format", f"missing; write format = {FORMAT_VERSION} at the top{hint}")
        return
    value = raw["format"]
    if isinstance(value, bool) or not isinstance(value, int) or value != FORMAT_VERSION:
        issues.error(
            "format",
            f"expected {FORMAT_VERSION}, got {shown(value)}; "
            f"this version of odefit reads format {FORMAT_VERSION}",
        )


def _known_keys(
    raw: Mapping[str, Any], known: tuple[str, ...], place: str, issues: Issues
) -> dict[str, Any]:
    """Return `raw` without unknown keys, which are reported.

    A key that was clearly meant to be another is taken for it, so that what is missing because
    of it is not reported as well.
    """
    found = {key: value for key, value in raw.items() if key in known}
    for key, value in raw.items():
        if key in known:
            continue
        name = str(key)
        free = [k for k in known if k not in raw]
        meant = closest(name, free)
        section = isinstance(value, Mapping) and not place
        at = place or (f"[{name}]" if section else name)
        what = f"unknown key {shown(name)}" if place else f"unknown {'section' * section or 'key'}"
        issues.error(at, f"{what}{one_of(name, free if meant else known)}")
        if meant is not None:
            found.setdefault(meant, value)
    return found


def _table(value: Any, place: str, issues: Issues) -> Mapping[str, Any] | None:
    """Return a section: {} if it is absent, None with the reason noted if it is no table."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    doubled = isinstance(value, list) and any(isinstance(v, Mapping) for v in value)
    hint = f"; write {place}, with one pair of brackets" if doubled else ""
    issues.error(place, f"expected a table, got {shown(value)}{hint}")
    return None


def _list_of_tables(value: Any, place: str, issues: Issues) -> list[Mapping[str, Any]] | None:
    if value is None:
        return []
    if isinstance(value, Mapping):
        issues.error(place, f"got a single table; write {place}, with two pairs of brackets")
        return [value]
    if not isinstance(value, list):
        issues.error(place, f"expected tables, got {shown(value)}")
        return None
    wrong = [v for v in value if not isinstance(v, Mapping)]
    if wrong:
        issues.error(place, f"expected tables, got {shown(wrong[0])} among them")
        return None
    return value


def _text(value: Any, place: str, issues: Issues) -> str | None:
    if value is None or isinstance(value, str):
        return value
    issues.error(place, f"expected a text in quotes, got {shown(value)}")
    return None


def _stem(source: str | None) -> str:
    return Path(source).stem if source else "problem"


def _interpolations(table: Mapping[str, Any], issues: Issues) -> dict[str, Any]:
    found = {}
    for name, value in table.items():
        found[name] = "linear"
        place = f"[inputs] {name}"
        if not isinstance(value, Mapping):
            issues.error(
                place, f'expected {{ interpolation = "linear" }} or the like, got {shown(value)}'
            )
            continue
        known = _known_keys(value, ("interpolation",), place, issues)
        found[name] = known.get("interpolation", "linear")
    return found


def _parameters(table: Mapping[str, Any], issues: Issues) -> dict[str, Any]:
    found = {}
    for name, value in table.items():
        found[name] = value
        if isinstance(value, Mapping):
            continue
        found[name] = {}
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        hint = (
            f"; write {{ guess = {value:g} }} if it is to be estimated, "
            f"{{ fixed = {value:g} }} if it is known"
            if number and abs(value) < 10**30
            else "; write such as { lower = 0.0, upper = 1.0 }, or {}"
        )
        issues.error(f"[parameters] {name}", f"expected a table, got {shown(value)}{hint}")
    return found


def _experiment(
    raw: Mapping[str, Any], number: int, used: set[str], directory: Path, issues: Issues
) -> Experiment:
    given = raw.get("name", f"experiment {number}")
    name = given if isinstance(given, str) else f"experiment {number}"
    place = experiment_place(name)
    if not isinstance(given, str):
        issues.error(f"{place} name", f"expected a text in quotes, got {shown(given)}")
    known = _known_keys(raw, EXPERIMENT_KEYS, place, issues)
    events = _list_of_tables(known.get("event"), f"{place} [[experiment.event]]", issues) or []
    data, label = _data(known.get("data"), name, used, directory, issues)
    return Experiment(
        name=name,
        data=data,
        t0=known.get("t0"),
        initial=_table(known.get("initial"), f"{place} initial", issues) or {},
        constants=_table(known.get("constants"), f"{place} constants", issues) or {},
        events=[
            event
            for i, table in enumerate(events, 1)
            if (event := _event(table, f"{place} event {i}", issues)) is not None
        ],
        steady_state=known.get("steady_state", False),
        source=label,
    )


def _data(
    value: Any, experiment: str, used: set[str], directory: Path, issues: Issues
) -> tuple[Mapping[str, Any], str | None]:
    """Return the columns, and the name in messages of the file from which they come."""
    place = experiment_place(experiment)
    if value is None:
        issues.error(f"{place} data", 'missing; write data = "FILE.csv"')
    elif isinstance(value, str):
        columns = read_table(directory / value, value, used, issues)
        return (UNREADABLE if columns is None else columns), value
    elif isinstance(value, Mapping):
        inside = data_place(Experiment(experiment, value))
        found = {k: _column(k, v, f"{inside}, column {k}", issues) for k, v in value.items()}
        return (UNREADABLE if any(v is None for v in found.values()) else found), None
    else:
        issues.error(f"{place} data", f"expected the name of a CSV file, got {shown(value)}")
    return UNREADABLE, None


def _column(name: str, values: Any, place: str, issues: Issues) -> Array | None:
    """Return a column given in place; a mistaken value is NaN, and a time may be infinite."""
    if not isinstance(values, list):
        issues.error(place, f"expected a list of numbers, got {shown(values)}")
        return None
    column = np.full(len(values), math.nan)
    for i, value in enumerate(values):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        if name == TIME and value in (math.inf, "inf"):
            column[i] = math.inf
            continue
        number = finite_number(value, f"{place}, value {i + 1}", issues)
        if number is not None:
            column[i] = number
    return column


def _event(raw: Mapping[str, Any], place: str, issues: Issues) -> Event | None:
    known = _known_keys(raw, EVENT_KEYS, place, issues)
    time, times = known.get("time"), known.get("times")
    if time is not None and times is not None:
        issues.error(f"{place} time", "time and times are both given; keep one of them")
        return None
    if isinstance(time, list):
        issues.error(f"{place} time", "expected one number, got a list; write times = [...]")
        return None
    if times is not None and not isinstance(times, list):
        issues.error(f"{place} times", f"expected a list, got {shown(times)}; for one, write time")
        return None
    assign = _table(known.get("assign"), f"{place} assign", issues)
    if assign is None:
        return None
    return Event(
        tuple(times or ()) if time is None else (time,),
        assign,
        known.get("when"),
        known.get("measured", "before"),
        known.get("initially", True),
    )
