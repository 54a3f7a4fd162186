"""The times of an event repeated at equal intervals in a problem file."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from odefit.common.errors import shown
from odefit.problem.inputs.dates import later, moment, since
from odefit.problem.inputs.issues import Issues, finite_number

MAX_REPETITIONS = 100_000
"""Largest number of repetitions; more are a mistake, such as an interval in seconds."""


def repetitions(
    known: Mapping[str, Any], place: str, unit: str, issues: Issues
) -> Sequence[Any] | None:
    """Return the times of an event repeated at equal intervals, including the last one."""
    known, begin = _from_date(known, unit)
    numbers = []
    for key, meaning in (
        ("time", "when it happens first"),
        ("every", "the interval"),
        ("until", "the latest time at which it may happen"),
    ):
        if key not in known:
            issues.error(
                f"{place} {key}",
                f"missing; time, every and until belong together: {key} is {meaning}",
            )
            return None
        if key != "every" and moment(known[key]) is not None:
            # Two dates are numbers by now, unless one of them lacks a time zone.
            issues.error(
                f"{place} {key}",
                "time and until are both numbers, or both dates of one kind; got "
                f"{shown(known[key])}",
            )
            return None
        number = finite_number(known[key], f"{place} {key}", issues)
        if number is None:
            return None
        numbers.append(number)
    first, interval, last = numbers
    if interval <= 0:
        issues.error(f"{place} every", f"expected a positive interval, got {interval:g}")
        return None
    if last < first:
        issues.error(f"{place} until", f"{last:g} is before time = {first:g}")
        return None
    count = (last - first) / interval * (1.0 + 1e-12)  # 0.1 is not exactly one tenth
    if count >= MAX_REPETITIONS:
        issues.error(
            f"{place} every", f"more than {MAX_REPETITIONS} repetitions; choose a longer interval"
        )
        return None
    times = [first + i * interval for i in range(int(count) + 1)]
    return times if begin is None else later(begin, times, unit)


def _from_date(
    known: Mapping[str, Any], unit: str
) -> tuple[Mapping[str, Any], datetime.datetime | None]:
    """Return the repetitions between two dates as numbers, and the first date."""
    begin, end = moment(known.get("time")), moment(known.get("until"))
    if begin is None or end is None or (begin.tzinfo is None) != (end.tzinfo is None):
        return known, None
    return {**known, "time": 0.0, "until": since(begin, end, unit)}, begin
