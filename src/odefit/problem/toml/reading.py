"""Problems read from the structure of format 1, as returned by TOML or JSON readers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from odefit.common.errors import closest, shown
from odefit.expressions.expressions import TIME
from odefit.problem.building.columns import used_columns
from odefit.problem.building.layout import read_layout
from odefit.problem.building.preparation import experiment_place
from odefit.problem.experiment import UNREADABLE, Cycle, Event, Experiment, data_place
from odefit.problem.inputs.file_access import NamedFiles, refuse_controls
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import as_list, listed_column, read_cells, read_table
from odefit.problem.inputs.workbooks import split_name
from odefit.problem.model import Interpolation, Model
from odefit.problem.noise import noise_hint
from odefit.problem.parameters import is_pair
from odefit.problem.problem import Problem
from odefit.problem.toml.other_notations import (
    EVENT,
    EXPERIMENT,
    SECTIONS,
    assignment,
    event_hint,
    experiment_hint,
    initial_of,
    section_hint,
    states_of,
    with_experiment,
    without_fields,
)
from odefit.problem.toml.parts import known_keys, list_of_tables, table_of, text_of
from odefit.problem.toml.repetitions import repetitions
from odefit.problem.unknown_functions.specification import is_unknown

FORMAT_VERSION = 1

SECTION_NAMES = (
    "ode", "algebraic", "observables", "constants", "inputs", "parameters", "initial", "noise",
    "functions", "definitions", "reactions", "compartments",
    "units",
)  # fmt: skip
TEXT_KEYS = ("name", "description", "time_unit")
EXPERIMENT_KEYS = (
    "name", "data", "time", "by", "observable", "columns", "doses",
    "t0", "origin", "initial", "constants", "steady_state", "event", "layout",
)  # fmt: skip
EVENT_KEYS = (
    "time", "times", "every", "until", "when", "initially", "delay", "priority", "persistent",
    "values", "measured", "assign",
)  # fmt: skip


def problem_from_mapping(
    raw: Mapping[str, Any],
    directory: Path | None = None,
    source: str | None = None,
    *,
    notes: Sequence[str] = (),
    within: Path | None = None,
) -> Problem:
    """Return the problem described by a mapping in the structure of format 1.

    Parameters
    ----------
    raw
        The mapping, as returned by a TOML or JSON reader. An experiment's ``data`` is the name of a
        CSV file, or a mapping of lists by column, with None for missing values.
    directory
        The directory to which names of data files are relative; by default the working directory.
    source
        The name of the file, for messages.
    notes
        Remarks on the conversion from another format.
    within
        The folder that must contain the data files; by default `directory`.

    Raises
    ------
    InputError
        The mapping is invalid; there is one message for each mistake.
    """
    issues = Issues(source)
    if not isinstance(raw, Mapping):
        issues.expected("problem", "a table", raw)
        issues.raise_errors()
    _check_format(raw, issues)
    refuse_controls(raw, issues)
    issues.raise_errors()  # other formats may have other rules
    known = ("format", *TEXT_KEYS, *SECTION_NAMES, "experiment")
    raw = with_experiment(raw, issues)
    raw = known_keys(raw, known, "", issues, SECTIONS, section_hint)
    if raw.get("noise") is not None and not isinstance(raw["noise"], Mapping):
        observed = raw.get("observables") or raw.get("ode")
        hint = noise_hint(raw["noise"], observed if isinstance(observed, Mapping) else ())
        issues.error("noise", f"expected a table by observable, {hint}")
        issues.raise_errors()
    tables = {name: table_of(raw.get(name), f"[{name}]", issues) for name in SECTION_NAMES}
    listed = list_of_tables(raw.get("experiment"), "[[experiment]]", issues)
    if any(table is None for table in tables.values()) or listed is None:
        issues.raise_errors()  # the rest would be consequences
    texts = {name: text_of(raw.get(name), name, issues) for name in TEXT_KEYS}
    sections = {name: table or {} for name, table in tables.items()}
    sections["ode"] = states_of(sections["ode"], sections["initial"], issues)
    sections["initial"] = initial_of(sections["initial"], sections["ode"], issues)
    observed = tuple(sections["observables"]) or tuple(sections["ode"])
    for name, owners in (("noise", observed), ("parameters", ("k",))):
        sections[name] = without_fields(name, sections[name], owners, issues)
    model = Model(
        ode=sections["ode"],
        observables=sections["observables"],
        algebraic=sections["algebraic"],
        constants=sections["constants"],
        inputs=_interpolations(sections["inputs"], issues),
        functions=sections["functions"],
        definitions=sections["definitions"],
        reactions=sections["reactions"],
        compartments=sections["compartments"],
        arrays=[str(key) for key in sections["parameters"]],
        issues=issues,
    )
    used = used_columns(model)
    files, unit = NamedFiles(directory or Path(), within), texts["time_unit"] or ""
    experiments = [
        _experiment(table, number, used, files, unit, issues)
        for number, table in enumerate(listed or [], 1)
    ]
    _warn_of_shared_files(experiments, issues)
    problem = Problem(
        model,
        parameters=_parameters(sections["parameters"], issues),
        initial=sections["initial"],
        noise=sections["noise"],
        experiments=experiments,
        name=texts["name"] or (Path(source).stem if source else "problem"),
        description=texts["description"] or "",
        time_unit=unit,
        units=sections["units"],
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
    if isinstance(value, (bool, float)) or value != FORMAT_VERSION:
        issues.error(
            "format",
            f"expected {FORMAT_VERSION}, got {shown(value)}; "
            f"this version of odefit reads format {FORMAT_VERSION}",
        )


def _interpolations(table: Mapping[str, Any], issues: Issues) -> dict[str, Any]:
    kinds: dict[str, Any] = {n: v if is_unknown(v) else "linear" for n, v in table.items()}
    for name, value in [item for item in table.items() if not is_unknown(item[1])]:
        place = f"[inputs] {name}"
        if isinstance(value, Mapping):
            known = known_keys(value, ("interpolation",), place, issues)
            kinds[name] = known.get("interpolation", "linear")
        else:
            meant = value if value in get_args(Interpolation) else "linear"
            issues.error(
                place,
                f'expected {{ interpolation = "{meant}" }} for a column of the data, got '
                f"{shown(value)}; a formula belongs in [definitions]",
            )
            kinds[name] = meant
    return kinds


def _parameters(table: Mapping[str, Any], issues: Issues) -> dict[str, Any]:
    parameters = {}
    for name, value in table.items():
        parameters[name] = value
        array = "[" in str(name) and isinstance(value, list)
        if array:  # two numbers are bounds of all elements, since a number is not a parameter
            parameters[name] = value = _bounds_of_elements(value)
            if isinstance(value, dict):
                continue
        elements = array and all(isinstance(v, Mapping) for v in value)
        if isinstance(value, Mapping) or elements or (is_pair(value) and "[" not in str(name)):
            continue
        parameters[name] = {}
        number = _is_number(value)
        hint = (
            f"; write {{ guess = {value:g} }} if it is to be estimated, "
            f"{{ fixed = {value:g} }} if it is known"
            if number and abs(value) < 10**30
            else "; write, for example, { lower = 0.0, upper = 1.0 }, or {}"
        )
        issues.error(f"[parameters] {name}", f"expected a table, got {shown(value)}{hint}")
    return parameters


def _bounds_of_elements(value: list[Any]) -> Any:
    """Return tables in place of pairs of bounds, for all elements of an array or for each."""
    if len(value) == 2 and all(_is_number(v) for v in value):
        return {"lower": value[0], "upper": value[1]}
    return [
        {"lower": v[0], "upper": v[1]}
        if isinstance(v, list) and len(v) == 2 and all(_is_number(x) for x in v)
        else v
        for v in value
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _experiment(
    raw: Mapping[str, Any],
    number: int,
    used: set[str],
    files: NamedFiles,
    unit: str,
    issues: Issues,
) -> Experiment:
    raw_name = raw.get("name", f"experiment {number}")
    name = raw_name if isinstance(raw_name, str) else f"experiment {number}"
    place = experiment_place(name)
    if not isinstance(raw_name, str):
        issues.expected(f"{place} name", "a text in quotes", raw_name)
    known = known_keys(raw, EXPERIMENT_KEYS, place, issues, EXPERIMENT, experiment_hint)
    events = list_of_tables(known.get("event"), f"{place} [[experiment.event]]", issues) or []
    time = text_of(known.get("time", TIME), f"{place} time", issues) or TIME
    by = text_of(known.get("by"), f"{place} by", issues)
    columns = _names(known.get("columns"), f"{place} columns", issues)
    long = any(known.get(key) is not None for key in ("by", "observable", "doses"))
    long = long or not used.issuperset(columns)
    names = used.union(columns.values())
    data, label = data_of(known.get("data"), name, names, time, files, issues, long)
    return Experiment(
        name=name if by is None or "name" in raw else "",
        data=data,
        t0=known.get("t0"),
        origin=known.get("origin"),
        initial=table_of(known.get("initial"), f"{place} initial", issues) or {},
        constants=table_of(known.get("constants"), f"{place} constants", issues) or {},
        events=events_of(events, f"{place} event", unit, issues),
        steady_state=steady_state_of(known.get("steady_state", False), place, issues),
        source=label,
        time=time,
        by=by,
        doses=known.get("doses"),
        observable=(_names if isinstance(known.get("observable"), Mapping) else text_of)(
            known.get("observable"), f"{place} observable", issues
        ),
        columns=columns,
        layout=read_layout(
            table_of(known.get("layout"), f"{place} layout", issues) or {},
            f"{place} layout",
            issues,
        ),
    )


def _warn_of_shared_files(experiments: Sequence[Experiment], issues: Issues) -> None:
    """Warn of an experiment that uses the same measurements as another."""
    seen: dict[tuple[str | None, ...], str] = {}
    for e in experiments:
        if e.source is None:
            continue
        columns = str(sorted(e.columns.items())), str(e.observable)
        first = seen.setdefault((os.path.normpath(e.source), e.time, e.by, *columns), e.name)
        if first != e.name:
            issues.warn(
                f"{experiment_place(e.name)} data",
                f"{shown(e.source)} has the measurements of {experiment_place(first)}, too, so "
                "each counts twice; name the file of this experiment, or its columns",
            )


def _names(value: Any, place: str, issues: Issues) -> dict[str, str]:
    """Return a table of texts."""
    if isinstance(value, (list, str)):
        issues.error(
            place,
            f'expected a table, got {shown(value)}; write such as {{ x = "NAME" }} for an x whose '
            "column is called NAME, or leave it out",
        )
        return {}
    table = table_of(value, place, issues) or {}
    for key, name in table.items():
        if not isinstance(name, str):
            issues.expected(f"{place}.{key}", "a text in quotes", name)
    return {str(key): name for key, name in table.items() if isinstance(name, str)}


def data_of(
    value: Any,
    experiment: str,
    used: set[str],
    time: str,
    files: NamedFiles,
    issues: Issues,
    long: bool,
) -> tuple[Mapping[str, Any], str | None]:
    """Return the columns, and the name of their file in messages."""
    place = experiment_place(experiment)
    if value is None:
        issues.error(f"{place} data", 'missing; write data = "FILE.csv"')
    elif isinstance(value, str):
        file, sheet = split_name(value)
        path = files.path(file, f"{place} data", issues)
        if path is None:
            return UNREADABLE, value
        if sheet is not None:
            path = path.with_name(f"{path.name}#{sheet}")
        if long:
            cells = read_cells(path, value, issues)
            return (UNREADABLE if cells is None else cells), value
        columns = read_table(path, value, used | {time}, issues, time)
        return (UNREADABLE if columns is None else columns), value
    elif isinstance(value, Mapping):
        value = {k: as_list(v) for k, v in value.items()}
        inside = data_place(Experiment(experiment, value))
        if long:
            wrong = [k for k, v in value.items() if not isinstance(v, list)]
            for k in wrong:
                issues.expected(f"{inside}, column {k}", "a list", value[k])
            return (UNREADABLE if wrong else dict(value)), None
        data = {
            k: listed_column(v, f"{inside}, column {k}", issues, infinite=k == time)
            for k, v in value.items()
        }
        return (UNREADABLE if any(v is None for v in data.values()) else data), None
    else:
        issues.expected(f"{place} data", "the name of a CSV file or a workbook", value)
    return UNREADABLE, None


def steady_state_of(value: Any, place: str, issues: Issues) -> Any:
    """Return whether an experiment begins at a steady state, or after repeated events."""
    if not isinstance(value, Mapping):
        return value
    at = f"{place} steady_state"
    known = known_keys(value, ("period", "event"), at, issues)
    if "period" not in known:
        issues.error(f"{at}.period", "missing; write the time from one repetition to the next")
    tables = list_of_tables(known.get("event"), f"{at}.event", issues) or []
    return Cycle(known.get("period", 1.0), events_of(tables, f"{at}.event", "", issues))


def events_of(
    tables: Sequence[Mapping[str, Any]], place: str, unit: str, issues: Issues
) -> list[Event]:
    """Return the events described by tables; the reasons for mistakes are noted."""
    events = [_event(table, f"{place} {i}", unit, issues) for i, table in enumerate(tables, 1)]
    return [event for event in events if event is not None]


def _event(raw: Mapping[str, Any], place: str, unit: str, issues: Issues) -> Event | None:
    known = known_keys(raw, EVENT_KEYS, place, issues, EVENT, event_hint)
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
    raw_assign = known.get("assign")
    if hint := assignment(raw_assign):
        issues.error(f"{place} assign", f"expected a table, got {shown(raw_assign)}{hint}")
        return None
    if raw_assign is None and any(key not in EVENT_KEYS for key in raw):
        return None  # that key says what was meant to be assigned
    assign = table_of(raw_assign, f"{place} assign", issues)
    if assign is None:
        return None
    if "every" in known or "until" in known:
        times = repetitions(known, place, unit, issues)
        if times is None:
            return None
    return Event(
        times=tuple(times or ()) if times is not None or time is None else (time,),
        assign=assign,
        when=known.get("when"),
        measured=known.get("measured", "before"),
        initially=known.get("initially", True),
        delay=known.get("delay", 0.0),
        priority=known.get("priority"),
        persistent=known.get("persistent", True),
        values=known.get("values", "event"),
    )
