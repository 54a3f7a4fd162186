"""Scenarios in files: TOML with changes of an experiment, or tables of inputs and doses."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, did_you_mean
from odefit.expressions.expressions import TIME
from odefit.problem.building.columns import used_columns
from odefit.problem.building.layout import laid_out, names_by_column
from odefit.problem.building.preparation import ScenarioName, experiment_place
from odefit.problem.dosing.dose_records import ROLES
from odefit.problem.dosing.subjects import DOSING, IDENTIFIERS
from odefit.problem.inputs.cells import is_missing
from odefit.problem.inputs.file_access import MAX_PROBLEM_SIZE, NamedFiles, read_text
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import Cells, read_cells, read_table
from odefit.problem.inputs.workbooks import is_workbook, split_name
from odefit.problem.problem import Problem
from odefit.problem.toml.files import parsed_toml
from odefit.problem.toml.parts import known_keys, list_of_tables, table_of, text_of
from odefit.problem.toml.reading import data_of, events_of, steady_state_of
from odefit.problem.variants.scenario import Scenario
from odefit.problem.variants.scenario_problem import named_apart, named_condition, with_scenarios

KEYS = (
    "format", "name", "like", "initial", "constants", "covariates", "inputs", "data", "time",
    "columns", "event", "doses", "dosing", "times", "t0", "steady_state",
)  # fmt: skip

TABLES = frozenset({".csv", ".tsv", ".txt"})
"""Suffixes of tables, other than workbooks."""

MOST_TIMES = 10**6
"""Largest number of times given by FROM:TO:COUNT in a file."""


def load_scenarios(
    path: str | os.PathLike[str],
    problem: Problem,
    *,
    times: Mapping[str, Array] | None = None,
    within: Path | None = None,
) -> list[Scenario]:
    """Return the scenarios of a file, for a problem with these equations.

    A file in TOML describes one scenario by the keys of :class:`Scenario`, or several as tables
    ``[[scenario]]``. A table, in CSV or in a workbook, has the times of a scenario, its inputs,
    constants (covariates) in columns of one value, and dose records. A column such as ID separates
    several scenarios. Its columns of observables are measurements. `times`, by the name of an
    experiment, replace those in the file.

    Raises InputError with all mistakes in the file, and in the scenarios for this problem.
    """
    source = os.fspath(path)
    issues = Issues()
    scenarios = _read(source, problem, within, issues)
    if times is not None:
        likes = [named_condition(problem, scenario.like).name for scenario in scenarios]
        scenarios = [
            replace(s, times=times[like]) for s, like in zip(scenarios, likes, strict=True)
        ]
    try:
        with_scenarios(problem, scenarios)
    except InputError as error:
        issues.errors += [m if source in m else f"{source}: {m}" for m in error.messages]
    issues.errors = list(dict.fromkeys(issues.errors))
    issues.raise_errors()
    return scenarios


def _read(source: str, problem: Problem, within: Path | None, issues: Issues) -> list[Scenario]:
    """Return the scenarios of a file; mistakes go to `issues`."""
    file, _ = split_name(source)
    if Path(file).suffix.lower() in TABLES or is_workbook(Path(file)):
        runs = _of_table(Path(source), source, Path(file).stem, problem, issues)
        return named_apart(problem, runs)
    text = read_text(Path(source), source, issues, MAX_PROBLEM_SIZE)
    issues.raise_errors()
    raw = parsed_toml(text or "", source)
    file_issues = Issues(source)
    if "scenario" in raw:
        known_keys(raw, ("format", "scenario"), "", file_issues)
        tables = list_of_tables(raw["scenario"], "[[scenario]]", file_issues) or []
        if not tables:
            file_issues.error(
                "[[scenario]]", "expected at least one; write the keys of a scenario below it"
            )
    else:
        tables = [raw]
    files = NamedFiles(Path(source).parent, within)
    scenarios = []
    for number, table in enumerate(tables, 1):
        default = Path(source).stem if len(tables) == 1 else f"scenario {number}"
        scenarios.append(_of_mapping(table, default, source, problem, files, file_issues))
    issues.errors += file_issues.errors
    return scenarios


def _of_mapping(
    raw: Mapping[str, Any],
    default: str,
    source: str,
    problem: Problem,
    files: NamedFiles,
    issues: Issues,
) -> Scenario:
    name = text_of(raw.get("name"), "name", issues) or default
    place = experiment_place(ScenarioName(name))
    known = known_keys(raw, KEYS, place, issues)
    constants = dict(table_of(known.get("constants"), f"{place} constants", issues) or {})
    covariates = table_of(known.get("covariates"), f"{place} covariates", issues) or {}
    for key in covariates.keys() & constants.keys():
        issues.error(f"{place} covariates.{key}", "constants has it, too; keep one of the two")
    doses, dosing = known.get("doses"), known.get("dosing")
    if isinstance(doses, Mapping):  # in the notation of problem files
        if dosing is not None:
            issues.error(f"{place} dosing", "doses also says how records act; keep one of the two")
        doses, dosing = None, doses
    time = text_of(known.get("time"), f"{place} time", issues)
    columns = table_of(known.get("columns"), f"{place} columns", issues)
    data: Any = None
    label = source
    if known.get("data") is not None:
        layout = _layout(problem, known.get("like"), time, columns)
        data, label = _data(known["data"], name, layout, problem, files, source, issues)
    events = None
    if "event" in known:
        tables = list_of_tables(known["event"], f"{place} event", issues) or []
        events = tuple(events_of(tables, f"{place} event", problem.time_unit, issues))
    steady = known.get("steady_state")
    return Scenario(
        name=name,
        like=text_of(known.get("like"), f"{place} like", issues),
        initial=table_of(known.get("initial"), f"{place} initial", issues) or {},
        constants={**constants, **covariates},
        inputs=table_of(known.get("inputs"), f"{place} inputs", issues) or {},
        data=data,
        events=events,
        doses=doses,
        dosing=dosing,
        times=_times(known.get("times"), f"{place} times", issues),
        t0=known.get("t0"),
        steady_state=None if steady is None else steady_state_of(steady, place, issues),
        source=label,
    )


def _layout(
    problem: Problem, like: Any, time: str | None, columns: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return the layout of a table: what the scenario says, else that of the one it modifies."""
    alike = next((e for e in problem.experiments if e.name == like), problem.experiments[0])
    layout = dict(alike.layout)
    if time is not None:
        layout["time"] = time
    if columns is not None:
        layout["columns"] = columns
    return layout


def _data(
    value: Any,
    name: str,
    layout: Mapping[str, Any],
    problem: Problem,
    files: NamedFiles,
    source: str,
    issues: Issues,
) -> tuple[Any, str]:
    """Return the table that a scenario names or contains, and its name in messages."""
    used = used_columns(problem.given)
    if isinstance(value, str):
        file, sheet = split_name(value)
        path = files.path(file, f'scenario "{name}" data', issues)
        if path is None:
            return None, value
        path = path if sheet is None else path.with_name(f"{path.name}#{sheet}")
        cells = read_cells(path, value, issues)
        if cells is None or any(column.upper() in DOSING for column in cells):
            return (None if cells is None else _renamed(cells, layout)), value
        return _read_columns(path, value, used, cells, layout, issues), value
    columns = [*value] if isinstance(value, Mapping) else []
    names = names_by_column(layout, columns)
    time = _time_column(names)
    data, _ = data_of(value, ScenarioName(name), used | {*names}, time, files, issues, False)
    return (_renamed(data, layout) if data else None), source


def _time_column(names: Mapping[str, str]) -> str:
    """Return the column of the times, of the names by column."""
    return next((column for column, name in names.items() if name == TIME), TIME)


def _read_columns(
    path: Path,
    label: str,
    used: set[str],
    cells: Cells,
    layout: Mapping[str, Any],
    issues: Issues,
) -> dict[str, Array] | None:
    """Return the numbers of a table under our names; None if it cannot be read."""
    names = names_by_column(layout, cells)
    columns = read_table(path, label, used | {*names}, issues, _time_column(names))
    return None if columns is None else {names.get(n, n): values for n, values in columns.items()}


def _renamed(data: Any, layout: Mapping[str, Any]) -> Any:
    """Return columns under our names, with their line numbers, if the data have these."""
    columns = laid_out(data, layout, [*data])
    if not isinstance(data, Cells):
        return columns
    cells = Cells(columns)
    cells.lines = data.lines
    return cells


def _of_table(
    path: Path, label: str, name: str, problem: Problem, issues: Issues
) -> list[Scenario]:
    """Return the scenarios of a table."""
    cells = read_cells(path, label, issues)
    if cells is None:
        return []
    layout = problem.experiments[0].layout
    by = layout.get("by")
    known = next((n for n in cells if n.upper() in IDENTIFIERS), None)
    identifier = by if by in cells else known
    used = used_columns(problem.given)
    if any(n.upper() in DOSING for n in (*cells, *names_by_column(layout, cells).values())):
        cells = _renamed(cells, layout)
        parts = [("", cells)] if identifier is None else _by(cells, identifier)
        return [
            Scenario(
                name=f"{identifier} {key}" if key else name,
                data=part,
                dosing={},
                source=label if not key else f"{label}, {identifier} = {key}",
            )
            for key, part in parts
        ]
    columns = _read_columns(path, label, used, cells, layout, issues)
    if columns is None:
        return []
    keys = [""] if identifier is None else list(dict.fromkeys(cells[identifier]))
    scenarios = []
    for key in keys:
        rows = np.ones(len(next(iter(columns.values()))), dtype=bool)
        if identifier is not None:
            rows = np.array([cell == key for cell in cells[identifier]])
        part = {n: column[rows] for n, column in columns.items() if n != identifier}
        one = Scenario(
            name=f"{identifier} {key.strip()}" if identifier is not None else name,
            data=part,
            source=label if identifier is None else f"{label}, {identifier} = {key.strip()}",
        )
        scenarios.append(_with_covariates(one, part, used, problem, issues))
    have = (*used, *_constants(problem), *ROLES)
    notes = tuple(
        f"{label}, column {name}: not used{did_you_mean(name, have)}"
        for name in columns
        if name not in (*have, identifier) and name.casefold() not in ("t", "time")
    )
    return [replace(scenario, notes=notes) for scenario in scenarios]


def _constants(problem: Problem) -> set[str]:
    """Return the constants, covariates and parameters that a scenario may change."""
    known = {*problem.given.constants, *problem.parameters}
    return known | {name for e in problem.experiments for name in e.constants}


def _with_covariates(
    scenario: Scenario,
    columns: Mapping[str, Array],
    used: set[str],
    problem: Problem,
    issues: Issues,
) -> Scenario:
    """Return the scenario with constant columns turned into constants, without unknown ones."""
    known = _constants(problem)
    constants = {}
    data = {}
    for name, column in columns.items():
        if name in used or name.casefold() in ("t", "time"):
            data[name] = column
            continue
        place = f"{scenario.source}, column {name}"
        values = np.unique(column[np.isfinite(column)])
        if name not in known:
            continue
        if len(values) != 1:
            content = (
                "no value" if not len(values) else f"values from {values[0]:g} to {values[-1]:g}"
            )
            issues.error(place, f"a constant has one value in all rows, this column has {content}")
        else:
            constants[name] = float(values[0])
    return replace(scenario, constants=constants, data=data)


def _by(cells: Cells, identifier: str) -> list[tuple[str, Cells]]:
    """Return the rows of a long table, by subject."""
    by_name: dict[str, list[int]] = {}
    for row, cell in enumerate(cells[identifier]):
        if not is_missing(cell):
            by_name.setdefault(str(cell).strip(), []).append(row)
    parts = []
    for key, rows in by_name.items():
        part = Cells(
            {n: [column[r] for r in rows] for n, column in cells.items() if n != identifier}
        )
        part.lines = [cells.lines[r] for r in rows]
        parts.append((key, part))
    return parts


def _times(value: Any, place: str, issues: Issues) -> Any:
    """Return times given as a list or as the text FROM:TO:COUNT."""
    if isinstance(value, str):
        try:
            first, last, count = value.split(":")
            low, high, number = float(first), float(last), int(count)
            if not (np.isfinite([low, high]).all() and low < high and 2 <= number <= MOST_TIMES):
                raise ValueError
        except ValueError:
            issues.error(
                place, f"expected a list, or FROM:TO:COUNT such as 0:10:101, got {value!r}"
            )
            return None
        return np.linspace(low, high, number)
    if value is not None and not isinstance(value, Sequence):
        issues.expected(place, "a list of numbers", value)
        return None
    return value
