"""Unknowns that are points of time, and the dates of their values where times have dates."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass

from odefit.expressions.algebras import NUMPY
from odefit.problem.binding import bound_value, unknowns_of
from odefit.problem.calendars import Calendar, calendar_of
from odefit.problem.condition import Condition
from odefit.problem.problem import Problem
from odefit.problem.variants.sizes import typical_sizes


@dataclass(frozen=True)
class DatedUnknown:
    """An unknown that is a point of time: b in ``t < b``, or in ``t/7 - b - 2``."""

    calendar: Calendar
    slope: float = 1.0  # the factor of the time in b = slope*t + added
    added: float = 0.0

    def date(self, value: float) -> datetime.datetime | None:
        """Return the date of a value; None for a missing one, and beyond the range of calendars."""
        time = (value - self.added) / self.slope
        return self.calendar.date(time) if math.isfinite(time) else None

    def days(self, width: float) -> float:
        """Return the days in a difference of two values."""
        return abs(width / self.slope) * self.calendar.seconds / 86400.0


def dated_unknowns(problem: Problem) -> Mapping[str, DatedUnknown]:
    """Return the unknowns that are points of time, by key, in problems whose times have dates.

    An unknown of several experiments is left out if their times count from different dates.
    """
    if all(condition.origin is None for condition in problem.conditions):
        return {}
    dated = {}
    for index, unknown in enumerate(problem.unknowns):
        if unknown.kind != "parameter":
            continue
        conditions = [c for c in problem.conditions if index in _unknowns(c)]
        calendars = {calendar_of(problem, c) for c in conditions}
        calendar = calendars.pop() if len(calendars) == 1 else None
        if calendar is None:
            continue
        points = {p for c in conditions for p in _of_events(c, index)}
        in_equations = typical_sizes(problem).unknowns[unknown.kind, unknown.name].time
        points |= set() if in_equations is None else {in_equations}
        if len(points) == 1:  # with several, as of a lag of several doses, it has no date
            dated[unknown.key] = DatedUnknown(calendar, *points.pop())
    return dated


def _unknowns(condition: Condition) -> set[int]:
    """Return the indices of the unknowns that an experiment has as parameters or constants."""
    return {bound for bound in condition.scalars.values() if isinstance(bound, int)}


def _of_events(condition: Condition, index: int) -> set[tuple[float, float]]:
    """Return slope and added number of an unknown that determines the times of events linearly."""
    points = set()
    for event in condition.located:
        if event.time is None or unknowns_of(event.time, condition.scalars) != {index}:
            continue
        first, second, third = (
            float(bound_value(event.time, condition.scalars, {index: value}, NUMPY))
            for value in (0.0, 1.0, 2.0)
        )
        factor = second - first
        if factor > 0.0 and math.isclose(third - second, factor):
            points.add((1.0 / factor, 0.0 - first / factor))
    return points
