"""Time axes that show dates: ticks at round dates, while the values stay numbers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence

from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, Locator

from odefit.problem.calendars import Calendar
from odefit.problem.inputs.dates import DAY, SECONDS, since

MOST_TICKS = 6
"""Largest number of labels of an axis."""

CLOCK_STEPS = (
    *(digit * 10.0**power for power in (-3, -2, -1) for digit in (1, 2, 5)),
    *(1.0, 5.0, 15.0, 30.0),
    *(60.0 * minutes for minutes in (1, 5, 15, 30)),
    *(3600.0 * hours for hours in (1, 3, 6, 12)),
)
"""Intervals of ticks within a day, in seconds."""

DAYS = {1: range(1, 32), 2: range(1, 30, 2), 7: (1, 8, 15, 22), 14: (1, 15)}
"""Days of a month that have ticks, by the approximate number of days between them."""

MONTHS = (1, 3, 6)
"""Intervals of ticks in months."""

YEARS = tuple(digit * 10**power for power in range(4) for digit in (1, 2, 5))
"""Intervals of ticks in years."""


class DateTicks(Locator):
    """Round dates as places on an axis of numbers; `room` returns how many labels fit."""

    def __init__(self, calendar: Calendar, room: Callable[[Axis], int]) -> None:
        self.calendar = calendar
        self._room = room

    def __call__(self) -> Sequence[float]:
        """Return the ticks within the limits of the axis."""
        low, high = sorted(self._axis().get_view_interval())
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks from `vmin` to `vmax`; no ticks outside all calendars."""
        origin, unit = self.calendar.origin, self.calendar.unit
        low, high = (self.calendar.date(v) for v in (vmin, vmax))
        if low is None or high is None:
            return []
        places = [since(origin, d, unit) for d in round_dates(low, high, self._room(self._axis()))]
        return [p for p in places if vmin <= p <= vmax]

    def _axis(self) -> Axis:
        axis = self.axis
        assert isinstance(axis, Axis)
        return axis


class DateLabels(Formatter):
    """The dates of ticks in two lines; the second line has the part that neighbours share.

    That is the year below months and days, or the day below times of day.
    """

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the date at the place `x`, for example below the pointer."""
        date = self._calendar.date(x)
        return "" if date is None else f"{date:%Y-%m-%d %H:%M}".removesuffix(" 00:00")

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of all ticks."""
        dates = [self._calendar.date(v) for v in values]
        return date_labels([d for d in dates if d is not None])


def round_dates(
    low: datetime.datetime, high: datetime.datetime, most: int
) -> list[datetime.datetime]:
    """Return round dates between two dates, as many as possible up to about `most`."""
    seconds = (high - low).total_seconds() / max(min(most, MOST_TICKS), 2)
    try:
        return [d for d in _dates(low, high, seconds) if low <= d <= high]
    except (OverflowError, ValueError):  # beyond the last date of the calendar
        return []


def _dates(
    low: datetime.datetime, high: datetime.datetime, seconds: float
) -> Iterator[datetime.datetime]:
    """Yield round dates at least `seconds` apart, with some before and after."""
    midnight = low.replace(hour=0, minute=0, second=0, microsecond=0)
    for step in CLOCK_STEPS:
        if seconds <= step:
            first = int((low - midnight).total_seconds() / step)
            last = int((high - midnight).total_seconds() / step)
            for i in range(first, last + 1):
                yield midnight + datetime.timedelta(seconds=i * step)
            return
    for step, chosen in DAYS.items():
        if seconds <= step * DAY:
            for i in range((high - midnight).days + 1):
                day = midnight + datetime.timedelta(days=i)
                if day.day in chosen:
                    yield day
            return
    month, year = SECONDS["month"], SECONDS["year"]
    apart = next((n for n in MONTHS if seconds <= n * month), 0)
    years = next((n for n in YEARS if seconds <= n * year), YEARS[-1])
    for number in range(low.year - low.year % (1 if apart else years), high.year + 1):
        for each in range(1, 13, apart) if apart else (1,):
            if number > 0 and (apart or number % years == 0):
                yield midnight.replace(year=number, month=each, day=1)


def date_labels(dates: Sequence[datetime.datetime]) -> list[str]:
    r"""Return labels of increasing dates; equal years or days are not repeated.

    >>> day = datetime.datetime(2024, 12, 24)
    >>> date_labels([day, datetime.datetime(2025, 1, 7), datetime.datetime(2025, 1, 21)])
    ['24 Dec\n2024', '7 Jan\n2025', '21 Jan']
    """
    if all(d == datetime.datetime(d.year, 1, 1, tzinfo=d.tzinfo) for d in dates):
        return [str(d.year) for d in dates]
    whole = all(d.time() == datetime.time.min for d in dates)
    if whole and all(d.day == 1 for d in dates):
        pairs = [(f"{d:%b}", str(d.year)) for d in dates]
    elif whole:
        pairs = [(f"{d.day} {d:%b}", str(d.year)) for d in dates]
    else:
        pairs = [(_clock(d, dates), f"{d.day} {d:%b %Y}") for d in dates]
    return [
        first if i and second == pairs[i - 1][1] else f"{first}\n{second}"
        for i, (first, second) in enumerate(pairs)
    ]


def _clock(date: datetime.datetime, dates: Sequence[datetime.datetime]) -> str:
    """Return a time of day with as many digits as the dates need."""
    if any(d.microsecond for d in dates):
        return f"{date:%H:%M:%S}.{date.microsecond // 1000:03d}"
    return f"{date:%H:%M:%S}" if any(d.second for d in dates) else f"{date:%H:%M}"
