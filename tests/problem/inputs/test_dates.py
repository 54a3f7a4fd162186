"""Dates and date-times of ISO 8601 are recognised in all forms that tables and Python have."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from odefit.problem.inputs.dates import column_of_dates, moment, since
from odefit.problem.inputs.issues import Issues

HALF_PAST_EIGHT = datetime.datetime(2024, 1, 31, 8, 30)


@pytest.mark.parametrize(
    "value",
    [
        "2024-01-31 08:30",
        " 2024-01-31T08:30:00 ",
        "2024-01-31T8:30:00.000",
        "2024/1/31 08:30",
        "2024.01.31 08:30:00,0",
        datetime.datetime(2024, 1, 31, 8, 30),
        np.datetime64("2024-01-31T08:30"),
        pd.Timestamp("2024-01-31 08:30"),
    ],
)
def test_a_date_with_its_time_of_day_is_read(value: object) -> None:
    assert moment(value) == HALF_PAST_EIGHT


def test_a_date_means_its_midnight_and_zones_are_respected() -> None:
    assert moment("2024-01-31") == moment(datetime.date(2024, 1, 31))
    east, utc = moment("2024-01-31T10:30+02:00"), moment("2024-01-31T08:30Z")
    assert east is not None
    assert utc is not None
    assert since(east, utc, "h") == 0.0


@pytest.mark.parametrize(
    "value",
    ["", "2024", "2024-01", "20240131", "31.01.2024", "01/31/2024", "2024-02-30", "2024-01/31",
     "2024-01-31 25:00", "08:30", 45292, 3.5, None, pd.NaT, np.datetime64("NaT", "s")],
)  # fmt: skip
def test_other_texts_are_not_dates(value: object) -> None:
    assert moment(value) is None


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("", 7.0), ("d", 7.0), ("Days", 7.0), ("h", 168.0), ("weeks", 1.0), ("s", 604800.0)],
)
def test_a_week_is_given_in_any_unit_of_time(unit: str, expected: float) -> None:
    begin, end = moment("2024-02-26"), moment("2024-03-04")  # over the 29th of February
    assert begin is not None
    assert end is not None
    assert since(begin, end, unit) == expected


def test_a_julian_year_has_365_and_a_quarter_days() -> None:
    begin, end = moment("1900-01-01"), moment("1904-01-01")
    assert begin is not None
    assert end is not None
    assert since(begin, end, "years") == 1460 / 365.25  # 1900 was no leap year
    assert since(begin, end, "months") == pytest.approx(12 * 1460 / 365.25, rel=1e-15)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["2024-01-31", "1", "x"], "row 1: '1' is not a date (and 1 more), but the first time is"),
        (["2024-01-31", "2024-02-30"], "row 1: '2024-02-30' is not a date, but the first"),
        (["2024-01-31", "2024-02-01T00:00Z"], "row 1: some times have a time zone and others"),
    ],
)
def test_a_mistake_among_dates_is_reported_once(cells: list[str], message: str) -> None:
    issues = Issues()
    column_of_dates(cells, lambda i: f"row {i}", issues)
    assert len(issues.errors) == 1
    assert message in issues.errors[0]
