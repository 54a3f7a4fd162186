"""Calendars: the dates of times, if the date of t = 0 is known."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import InputError, shown
from odefit.common.packages import require
from odefit.problem.condition import Condition
from odefit.problem.inputs.dates import SECONDS, moment, since, unit_of
from odefit.problem.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

DATE = "date"
"""The name of the column of dates in tables."""


@dataclass(frozen=True)
class Calendar:
    """The date of t = 0, and the unit in which times count from it."""

    origin: datetime.datetime
    unit: str  # a label of a unit of time; empty for days

    @property
    def seconds(self) -> float:
        """Seconds in the unit of time."""
        return SECONDS[unit_of(self.unit) or "d"]

    def date(self, time: float) -> datetime.datetime | None:
        """Return the date of a time, to the millisecond; None beyond the range of calendars."""
        try:
            return self.origin + datetime.timedelta(seconds=round(time * self.seconds, 3))
        except (OverflowError, ValueError):  # infinite times are among these
            return None

    def column(self, times: Array) -> dict[str, pd.Series]:
        """Return the column ``date`` of a table whose times are `times`."""
        require("pandas")
        import pandas as pd

        dates = [self.date(time) for time in times.tolist()]
        return {DATE: pd.Series(dates, dtype=None if dates else object)}


def calendar_of(problem: Problem, condition: Condition) -> Calendar | None:
    """Return the calendar of an experiment; None if its times are mere numbers."""
    return None if condition.origin is None else Calendar(condition.origin, problem.time_unit)


def date_column(problem: Problem, condition: Condition, times: Array) -> dict[str, pd.Series]:
    """Return the column ``date`` of a table of an experiment, as a mapping; empty without dates."""
    calendar = calendar_of(problem, condition)
    return {} if calendar is None else calendar.column(times)


def as_times(times: Any, problem: Problem, condition: Condition) -> Array:
    """Return times that a user gives for an experiment, numbers or dates, as numbers.

    Dates are those of :func:`odefit.problem.inputs.dates.moment`. Raises InputError for any other
    value, and for a date if the experiment's times are numbers.
    """
    listed = _listed(times)
    dates = [moment(value) for value in listed]
    if not any(dates):
        try:
            return np.atleast_1d(np.asarray(times, dtype=float))
        except (TypeError, ValueError):
            expected = "expected a number or a list of numbers, such as [0, 5, 10]"
            raise InputError(f"times: {expected}, got {shown(times)}") from None
    calendar = calendar_of(problem, condition)
    if calendar is None:
        raise InputError(
            f"times: {shown(next(v for v, d in zip(listed, dates, strict=True) if d))} is a date, "
            f'but the times of experiment "{condition.name}" are numbers; give numbers, or the '
            "date of t = 0 as origin of the experiment"
        )
    return np.array([_counted(v, d, calendar) for v, d in zip(listed, dates, strict=True)])


def dates_as_times(times: Any, problem: Problem, experiments: Sequence[str]) -> Any:
    """Return times of several experiments as numbers if dates are among them, else as they are.

    Raises InputError if the numbers differ, as the dates of experiments have different origins.
    """
    if not any(map(moment, _listed(times))):
        return times
    each = [as_times(times, problem, problem.condition(name)) for name in experiments]
    return equal_times(each, "times")


def equal_times(
    each: Sequence[Array], place: str, remedy: str = "give numbers, which count from each"
) -> Array:
    """Return the times of every experiment, which are equal; an InputError refuses others."""
    first, *others = each
    if any(not np.array_equal(first, other) for other in others):
        raise InputError(f"{place}: the experiments count from dates of their own; {remedy}")
    return first


def _listed(times: Any) -> Sequence[Any]:
    single = isinstance(times, (str, datetime.date)) or not hasattr(times, "__len__")
    return [times] if single else list(times)


def _counted(time: Any, date: datetime.datetime | None, calendar: Calendar) -> float:
    try:
        if date is not None:
            return since(calendar.origin, date, calendar.unit)
        return float(time)
    except (TypeError, ValueError):
        why = "is not a date" if date is None else "has a time zone, or lacks that of the data"
        raise InputError(
            f"times: {shown(time)} {why}; give all times like those of the data"
        ) from None
