"""Dates and times of day: their recognition, and the units of time between two of them."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from odefit.common.arrays import Array
from odefit.common.errors import shown
from odefit.problem.inputs.cells import INFINITE, is_missing
from odefit.problem.inputs.issues import Issues

UNITS_OF_TIME = {
    "years": "year", "year": "year", "yr": "year", "y": "year",
    "months": "month", "month": "month",
    "weeks": "week", "week": "week", "wk": "week",
    "days": "d", "day": "d", "d": "d",
    "hours": "h", "hour": "h", "hrs": "h", "hr": "h", "h": "h",
    "minutes": "min", "minute": "min", "mins": "min", "min": "min",
    "seconds": "s", "second": "s", "secs": "s", "sec": "s", "s": "s",
}  # fmt: skip
"""Lower-case units of time in common spellings, with odefit's spelling."""

DAY = 86400.0

SECONDS = {
    "year": 365.25 * DAY,
    "month": 365.25 * DAY / 12,
    "week": 7 * DAY,
    "d": DAY,
    "h": 3600.0,
    "min": 60.0,
    "s": 1.0,
}
"""Seconds in a unit of time; a year is a Julian one, and a month a twelfth of it."""

_DATE = re.compile(
    r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:[T ]\s*([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?)"
    r"\s*(Z|[+-][0-9]{2}:?[0-9]{2})?)?\Z"
)

_WEEK = re.compile(r"([0-9]{4})(?:W([0-9]{2})([1-7])?|-W([0-9]{1,2})(?:-?([1-7]))?)\Z")


def moment(value: Any) -> datetime.datetime | None:
    """Return a date or date-time as a Python object, or None for anything else.

    Texts are those of ISO 8601 with all three parts of the date, such as ``2024-01-31`` or
    ``2024-01-31 08:30``, also with / or . between these parts. A week such as ``2024-W05`` is its
    Monday, ``2024-W05-3`` its Wednesday.
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime):
        return value if value == value else None  # pandas has not-a-time
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, str):
        return None
    match = _DATE.match(value.strip())
    if match is None:
        return _day_of_week(value.strip())
    year, _, month, day, clock, zone = match.groups()
    hour = (clock or "00:00").replace(",", ".")
    try:
        return datetime.datetime.fromisoformat(
            f"{year}-{month:0>2}-{day:0>2}T{'0' * (hour[1] == ':')}{hour}{zone or ''}"
        )
    except ValueError:
        return None


def _day_of_week(text: str) -> datetime.datetime | None:
    """Return the day that a week of ISO 8601 names, by default its Monday."""
    match = _WEEK.match(text)
    if match is None:
        return None
    year, *short, week, day = match.groups()
    week, day = (week or short[0]), (day or short[1] or 1)
    try:
        return datetime.datetime.fromisocalendar(int(year), int(week), int(day))
    except ValueError:  # there is no such week
        return None


def pair_of_dates(text: str) -> tuple[str, str] | None:
    """Return the two dates in a text, separated by a colon, which times of day contain as well."""
    parts = text.split(":")
    pairs = ((":".join(parts[:i]), ":".join(parts[i:])) for i in range(1, len(parts)))
    return next((pair for pair in pairs if all(map(moment, pair))), None)


def column_of_dates(
    values: Sequence[Any], place: Callable[[int], str], issues: Issues
) -> Array | None:
    """Return dates as an array of objects; None if the first value present is not a date.

    Missing dates are None, and infinite times stay. Other values are a mistake, reported once with
    the `place` of the row; so is a mixture of times with and without time zone.
    """
    first = next((v for v in values if not is_missing(v)), None)
    if moment(first) is None:
        return None
    dates = np.full(len(values), None, dtype=object)
    wrong, zones = [], []
    for i, value in enumerate(values):
        dates[i] = moment(value)
        if dates[i] is not None:
            zones.append(dates[i].tzinfo is not None)
        elif str(value).strip().lstrip("+").casefold() in INFINITE:
            dates[i] = math.inf
        elif not is_missing(value):
            wrong.append(i)
    if wrong:
        value = values[wrong[0]]
        text = shown(value.strip() if isinstance(value, str) else value)
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        issues.error(
            place(wrong[0]),
            f"{text} is not a date{more}, but the first time is one; write all as year-month-day, "
            "such as 2024-01-31 or 2024-01-31 08:30",
        )
    elif len(set(zones)) > 1:
        issues.error(
            place(zones.index(not zones[0])),
            "some times have a time zone and others have none; give all of them the same",
        )
    return dates


def unit_of(label: str) -> str | None:
    """Return the unit of :data:`SECONDS` for a label, days for an empty one; None if unknown."""
    return UNITS_OF_TIME.get(label.strip().casefold() or "d")


def since(begin: datetime.datetime, date: datetime.datetime, label: str) -> float:
    """Return the time from one date to another in a unit, by default in days."""
    return (date - begin).total_seconds() / SECONDS[unit_of(label) or "d"]


def later(begin: datetime.datetime, times: Sequence[float], label: str) -> list[datetime.datetime]:
    """Return the dates that follow a date by times in a unit, by default days."""
    second = datetime.timedelta(seconds=1)
    return [begin + t * SECONDS[unit_of(label) or "d"] * second for t in times]


def date_text(date: datetime.datetime) -> str:
    """Return a date in the usual notation, without the time of day if it is midnight."""
    return date.isoformat(" ").removesuffix(" 00:00:00")


def is_bare_date(number: float) -> bool:
    """Return whether a number such as 20240131 has the digits of a date."""
    try:
        datetime.datetime.strptime(f"{number:.0f}", "%Y%m%d")
    except ValueError:
        return False
    return 1.8e7 < number < 2.2e7 and float(number).is_integer()


def unit_words(unit: str) -> str:
    """Return a unit of :data:`SECONDS` in the plural."""
    return next(name for name, short in UNITS_OF_TIME.items() if short == unit)
