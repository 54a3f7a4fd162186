"""A row of the table of estimates: numbers, dates and remarks, and how they are shown."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from odefit.problem.inputs.dates import DAY, date_text
from odefit.problem.parameters import Unknown
from odefit.problem.variants.dated_unknowns import DatedUnknown
from odefit.reporting.numbers import decade_for, significant, to_decade

Kind = Literal["parameter", "initial", "noise"]

DAYS_ALONE = 3.0
"""Standard error, in days, from which dates are shown without the time of day."""

MINUTES_ALONE = 0.01
"""Standard error, in days, from which they are shown without seconds."""

MISSING = math.nan
"""The value of a missing number."""

LARGEST_RSE = 1000.0
"""Relative standard error, in per cent, above which a word replaces the number: linearisation does
not hold that far."""


@dataclass(frozen=True)
class Note:
    """The full remark on a number: words in which {} is replaced by a number.

    ``value`` is that number, ``shown`` its text, and ``more`` holds further sentences.
    """

    words: str = ""
    value: float = MISSING
    shown: str = ""
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        return joined([self])


def joined(notes: Sequence[Note]) -> str:
    """Merge notes that use the same words."""
    shown = list(dict.fromkeys(n.shown for n in sorted(notes, key=lambda n: n.value)))
    number = f"{shown[0]} to {shown[-1]}" if len(shown) > 1 else shown[0]
    more = dict.fromkeys(sentence for note in notes for sentence in note.more)
    return " ".join([f"{notes[0].words.replace('{}', number)}{'.' * bool(more)}", *more])


@dataclass(frozen=True)
class Row:
    """One row of the table of estimates; numbers that are missing are NaN.

    ``experiment`` is set only where each experiment has a value of its own. ``identifiable`` is
    None where identifiability is not decided (fixed, at a bound, weakly determined, or not
    analysed). ``flag`` is the reason for a missing number in a word or two, ``remark`` and its text
    ``note`` the same in full.
    """

    key: str
    name: str
    kind: Kind
    experiment: str | None
    unit: str
    estimate: float
    std_error: float = MISSING
    ci_low: float = MISSING
    ci_high: float = MISSING
    identifiable: bool | None = None
    flag: str = ""
    remark: Note = Note()
    unknown: Unknown | None = None
    # set for a point of time in a problem with dates
    dated: DatedUnknown | None = None

    @property
    def dates(self) -> tuple[str, str, str]:
        """The dates of the estimate and of the ends of its interval; empty if missing."""
        if self.dated is None:
            return "", "", ""
        days = self.dated.days(self.std_error)
        values = (self.estimate, self.ci_low, self.ci_high)
        estimate, low, high = (_date_shown(self.dated.date(value), days) for value in values)
        return estimate, low, high

    @property
    def dates_shown(self) -> str:
        """These dates in words; empty without a date."""
        estimate, low, high = self.dates
        return f"{estimate} ({low} to {high})" if low and high else estimate

    @property
    def note(self) -> str:
        """The full reason for a missing number, or a word of caution."""
        return str(self.remark)

    @property
    def rse(self) -> float:
        """The relative standard error (RSE) in per cent; NaN if missing."""
        if not (math.isfinite(self.std_error) and self.estimate):
            return MISSING
        return 100.0 * self.std_error / abs(self.estimate)

    @property
    def rse_shown(self) -> str:
        """The relative standard error in per cent as text; empty if missing."""
        if self.rse > LARGEST_RSE:
            return "large"
        return significant(self.rse, 2, keep_zeros=True)

    @property
    def shown(self) -> tuple[str, str, str, str]:
        """Estimate, error and limits as texts with the same last digit; empty if missing."""
        decade = decade_for(self.estimate, self.std_error)
        large = self.rse > LARGEST_RSE
        return (
            to_decade(self.estimate, decade),
            "large" if large else significant(self.std_error, 2, keep_zeros=True),
            to_decade(self.ci_low, decade),
            to_decade(self.ci_high, decade),
        )

    @property
    def estimated(self) -> bool:
        """True if the quantity was an unknown of the fit."""
        return self.unknown is not None


def _date_shown(date: datetime.datetime | None, days: float) -> str:
    """Return a date as text, rounded to days or minutes where its error of `days` allows it."""
    if date is None:
        return ""
    unit = DAY if days >= DAYS_ALONE else 60.0 if not days < MINUTES_ALONE else 1.0
    midnight = date.replace(hour=0, minute=0, second=0, microsecond=0)
    seconds = round((date - midnight).total_seconds() / unit) * unit
    text = date_text(midnight + datetime.timedelta(seconds=seconds))
    return text.removesuffix(":00") if unit == 60.0 and ":" in text else text
