"""The column of times: found by name, with dates converted to the unit of time."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from odefit.common.errors import shown
from odefit.expressions.expressions import TIME
from odefit.problem.building.columns import NAMES_OF_TIME, as_table, column_names
from odefit.problem.experiment import UNREADABLE, Event, Experiment, data_place
from odefit.problem.inputs.cells import is_missing, plain_number, subject_key
from odefit.problem.inputs.dates import (
    SECONDS,
    column_of_dates,
    date_text,
    is_bare_date,
    moment,
    since,
    unit_of,
    unit_words,
)
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import Cells

NAMES_OF_DATES = frozenset({"date", "datetime", "timestamp", "datum", "fecha"})
"""Lower-case names of columns that hold the times if no other name says time."""


def with_times(data: Any, time: str, place: str, issues: Issues) -> tuple[Any, str]:
    """Return `data` with its times in the column ``t``, and that name.

    Data without times stay unchanged; reading the columns reports the mistake.
    """
    names = column_names(data)
    if names is None:
        return data, time
    if time not in names:
        index = getattr(getattr(data, "index", None), "name", None)
        alike = time == TIME and str(index).casefold() in NAMES_OF_TIME | NAMES_OF_DATES
        if index is not None and TIME not in names and (index == time or alike):
            return data.rename_axis(TIME).reset_index(), TIME
        known = _named(names, NAMES_OF_TIME) or _named(names, NAMES_OF_DATES)
        if time != TIME or len(known) != 1:
            return data, time
        time = known[0]  # exactly one column has the name of times
    if time != TIME and TIME in names:
        issues.error(
            f"{place}, column {TIME}",
            f"the times are in column '{time}', so no other column can have the name '{TIME}',"
            " which is that of the time; rename or remove it",
        )
        return UNREADABLE, TIME
    if time == TIME:
        return data, TIME
    if isinstance(data, Mapping):
        return {TIME if name == time else name: data[name] for name in data}, TIME
    return data.rename(columns={time: TIME}), TIME


def _named(names: Sequence[str], known: frozenset[str]) -> list[str]:
    """Return the columns with known names; beside other columns, ``T`` is a temperature."""
    matches = [name for name in names if name.casefold() in known]
    return [name for name in matches if name != "T"] or matches


def without_dates(
    experiment: Experiment, time_unit: str, place: str, issues: Issues
) -> tuple[Experiment, str]:
    """Return an experiment with numbers for dates, and a sentence on their origin.

    Dates become times in `time_unit`, or in days. They count from the origin; else from a date t0;
    else from the first date of the data, or of each subject, which becomes the origin. Without
    dates in the data the sentence is empty.
    """
    experiment = _with_origin(experiment, place, issues)
    label = data_place(experiment)
    table = as_table(experiment.data)
    name = None if table is None else time_column(experiment, table)
    if name is None and hasattr(experiment.data, "index"):  # a pandas table
        data, time = with_times(experiment.data, experiment.time, label, issues)
        experiment = replace(experiment, data=data, time=time)
        table = as_table(data)
        name = TIME if table and TIME in table else None
    values = [] if table is None or name is None else _listed(table[name])
    lines = experiment.data.lines if isinstance(experiment.data, Cells) else None
    at = f"{label}, column {name}"

    def row(i: int) -> str:
        return f"{at}, row {i} (counting from 0)" if lines is None else f"{at}, row {lines[i]}"

    dates = column_of_dates(values, row, issues)
    if dates is None:
        _warn_of_bare_dates(values, at, issues)
        return _without_date_column(experiment, table is not None, time_unit, place, issues), ""
    assert table is not None
    unit = _unit(time_unit, issues)
    start = moment(experiment.origin) or moment(experiment.t0)
    by = experiment.columns.get(experiment.by or "", experiment.by)
    subjects = [""] * len(values)
    if by is not None and by in table and not start:
        subjects = ["" if is_missing(s) else subject_key(s) for s in _listed(table[by])]
    first: dict[str, datetime.datetime] = {}
    try:
        for subject, date in zip(subjects, dates, strict=False):
            if isinstance(date, datetime.datetime):
                first[subject] = start or min(first.get(subject, date), date)
        numbers = [_since(d, first.get(s), unit) for s, d in zip(subjects, dates, strict=False)]
        shared = len({*first.values()}) == 1
        begin = next(iter(first.values())) if shared else None
        counted = _counted_from(experiment, begin, unit, place, issues)
    except TypeError:  # dates with and without time zones
        issues.error(f"{place} t0", _ZONES)
        return replace(experiment, data=UNREADABLE, t0=None, events=(), origin=None), ""
    data = UNREADABLE if issues.has_errors(at) else _replaced(experiment.data, str(name), numbers)
    zero = "the first date of each subject" if begin is None else date_text(begin)
    note = f"{label}: the times are {unit_words(unit)} since {zero}"
    counted = replace(counted, data=data, origin=first if begin is None else begin)
    return _refused(counted, True, place, issues), note


_ZONES = "some of times, origin, t0 and events have a time zone, and others have none"


def _with_origin(experiment: Experiment, place: str, issues: Issues) -> Experiment:
    """Return an experiment whose origin is a date of Python, or None."""
    stated = experiment.origin
    origin = moment(stated)
    if stated is not None and origin is None:
        issues.error(f"{place} origin", f"expected a date such as 2024-01-31, got {shown(stated)}")
    return replace(experiment, origin=origin)


def _without_date_column(
    experiment: Experiment, numeric: bool, time_unit: str, place: str, issues: Issues
) -> Experiment:
    """Return an experiment whose data have numbers for times, with other dates counted."""
    origin = moment(experiment.origin)
    if origin is None:
        return _refused(experiment, numeric, place, issues)
    try:
        counted = _counted_from(experiment, origin, _unit(time_unit, issues), place, issues)
    except TypeError:  # dates with and without time zones
        issues.error(f"{place} origin", _ZONES)
        return replace(experiment, t0=None, events=(), origin=None)
    return _refused(counted, numeric, place, issues)


def _counted_from(
    experiment: Experiment,
    begin: datetime.datetime | None,
    unit: str,
    place: str,
    issues: Issues,
) -> Experiment:
    """Return an experiment with t0 and the times of events as numbers since `begin`.

    A date t0 is the origin of all subjects unless an origin is given.
    """
    start = moment(experiment.t0)
    t0 = experiment.t0 if start is None else since(begin or start, start, unit)
    events = tuple(
        replace(event, times=_counted(event, begin, unit, f"{place} event {i} time", issues))
        for i, event in enumerate(experiment.events, 1)
    )
    return replace(experiment, t0=t0, events=events)


def _refused(experiment: Experiment, numeric: bool, place: str, issues: Issues) -> Experiment:
    """Return an experiment without dates that cannot be converted, which are reported."""
    t0, readable = experiment.t0, experiment.data is not UNREADABLE
    if isinstance(t0, str) or moment(t0):
        if not moment(t0):
            text = f"expected a number or a date such as 2024-01-31, got {shown(t0)}"
            issues.error(f"{place} t0", text)
        elif numeric and readable:
            issues.error(f"{place} t0", f"{t0} is a date, but {_NUMBERS}")
        t0 = None
    events = tuple(
        replace(
            event,
            times=_counted(event, None, "", f"{place} event {i} time", issues, readable=readable),
        )
        for i, event in enumerate(experiment.events, 1)
    )
    return replace(experiment, t0=t0, events=events)


_NUMBERS = (
    "the times of the data are numbers; give it as a number, too, or the date of t = 0 as origin"
)


def _counted(
    event: Event,
    begin: datetime.datetime | None,
    unit: str,
    place: str,
    issues: Issues,
    *,
    readable: bool = True,
) -> Any:
    """Return the times of an event, with dates as numbers since `begin`.

    A date without a known origin is reported, unless the data are unreadable.
    """
    if not isinstance(event.times, (list, tuple)):
        return event.times
    dates = [moment(t) for t in event.times]
    if any(dates) and begin is None and readable:
        why = "t0 has no date, and each subject begins at a date of its own" if unit else _NUMBERS
        issues.error(place, f"it is a date, but {why}")
    if begin is None:
        return tuple(0.0 if d else t for t, d in zip(event.times, dates, strict=True))
    return tuple(
        _since(d, begin, unit) if d else t for t, d in zip(event.times, dates, strict=True)
    )


def _unit(time_unit: str, issues: Issues) -> str:
    """Return the unit in which the time between dates is given."""
    unit = unit_of(time_unit)
    if unit is None:
        issues.error(
            "time_unit",
            f"{shown(time_unit)} is not a unit for the time between dates; expected one of: "
            f"{', '.join(SECONDS)}",
        )
    return unit or "d"


def _since(date: Any, begin: datetime.datetime | None, unit: str) -> float:
    if not isinstance(date, datetime.datetime) or begin is None:
        return np.nan if date is None else float(date)
    return since(begin, date, unit)


def _replaced(data: Any, name: str, numbers: Sequence[float]) -> Any:
    """Return data with other times."""
    if not isinstance(data, Mapping):
        return data.assign(**{name: numbers})
    columns = {**data, name: list(numbers)}
    if isinstance(data, Cells):
        cells = Cells(columns)
        cells.lines = data.lines
        return cells
    return columns


def _warn_of_bare_dates(values: Sequence[Any], place: str, issues: Issues) -> None:
    numbers = [plain_number(v) for v in values]
    if len(numbers) > 1 and all(n is not None and is_bare_date(n) for n in numbers):
        issues.warn(
            place,
            f"the times {numbers[0]:.0f} to {numbers[-1]:.0f} look like dates written as "
            "numbers, whose differences are not times; write dates as 2024-01-31",
        )


def _listed(values: Any) -> list[Any]:
    """Return a column as a list; an empty list for anything else."""
    column = hasattr(values, "__len__") and not isinstance(values, (str, bytes, Mapping))
    return list(values) if column else []


def time_column(experiment: Experiment, table: Mapping[str, Any]) -> str | None:
    """Return the name of the column of times in the data."""
    name = experiment.columns.get(TIME, experiment.time)
    if name in table:
        return name
    names = list(table)
    return next(iter(_named(names, NAMES_OF_TIME) or _named(names, NAMES_OF_DATES)), None)
