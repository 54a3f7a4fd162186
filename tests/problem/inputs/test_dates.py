"""Dates and date-times of ISO 8601 are recognised in all forms that tables and Python have."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from odefit.problem.building.columns import numeric_column
from odefit.problem.inputs.dates import column_of_dates, moment, since
from odefit.problem.inputs.issues import Issues
from odefit.problem.inputs.table import read_table

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


@pytest.mark.parametrize(
    ("week", "day"),
    [
        ("2021-W05", "2021-02-01"),
        ("2021-W5", "2021-02-01"),
        ("2021W05", "2021-02-01"),
        ("2021-W05-3", "2021-02-03"),
        (" 2021W057 ", "2021-02-07"),
        ("2020-W53-5", "2021-01-01"),
        ("2024-W01", "2024-01-01"),
    ],
)
def test_a_week_is_its_monday_or_the_day_that_it_names(week: str, day: str) -> None:
    assert moment(week) == datetime.datetime.fromisoformat(day)


def test_a_date_means_its_midnight_and_zones_are_respected() -> None:
    assert moment("2024-01-31") == moment(datetime.date(2024, 1, 31))
    east, utc = moment("2024-01-31T10:30+02:00"), moment("2024-01-31T08:30Z")
    assert east is not None
    assert utc is not None
    assert since(east, utc, "h") == 0.0


@pytest.mark.parametrize(
    "value",
    ["2021-W53", "2021-W00", "2021-W05-8", "2021-W005", "2021W5", "2021-W", "2021-Q1",
     "", "2024", "2024-01", "20240131", "31.01.2024", "01/31/2024", "2024-02-30", "2024-01/31",
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
    ("text", "remedy"),
    [
        ("2021-05", "it names a whole month: write a day of it, such as 2021-05-01"),
        ("2021/5", "it names a whole month: write a day of it, such as 2021-05-01"),
        ("2021-Q2", "it names a whole quarter: write a day of it, such as 2021-04-01"),
        ("2021q4", "it names a whole quarter: write a day of it, such as 2021-10-01"),
        ("May 2021", "write dates as year-month-day, such as 2024-01-31"),
        ("31-Jan-2021", "write dates as year-month-day, such as 2024-01-31"),
        ("05/2021", "write dates as year-month-day, such as 2024-01-31"),
        ("2021-W60", "write dates as year-month-day, such as 2024-01-31"),
    ],
)
def test_other_shapes_of_dates_are_refused_with_the_remedy(
    tmp_path: Path, text: str, remedy: str
) -> None:
    issues = Issues()
    (tmp_path / "d.csv").write_text(f"t,x\n{text},1\n", encoding="utf-8")
    read_table(tmp_path / "d.csv", "d.csv", {"t", "x"}, issues)
    assert issues.errors[0].startswith(
        f"d.csv, column t, row 2: '{text}' is not a number; {remedy}"
    )
    for values in ([text], np.array([text], dtype=object), pd.Series([text])):
        issues = Issues()
        assert numeric_column(values, "data, column t", issues) is None
        assert remedy in issues.errors[0]


def test_periods_of_pandas_are_refused_with_the_remedy() -> None:
    issues = Issues()
    periods = pd.Series(pd.period_range("2021-05", periods=3, freq="M"))
    assert numeric_column(periods, "data, column t", issues) is None
    assert "take the beginnings of these periods, .dt.start_time" in issues.errors[0]
    assert moment(periods.dt.start_time[0]) == datetime.datetime(2021, 5, 1)


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
