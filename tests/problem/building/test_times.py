"""Dates count in the unit of time from t0, wherever they come from."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit.problem import InputError, Model, Problem, load, problem_to_mapping

DATES = ["2024-01-08", "2024-01-15", "2024-01-22"]

FILE = """
format = 1
{unit}
[ode]
x = "-k*x"
[parameters]
k = {{ lower = 0.0 }}
[initial]
x = 10.0
[[experiment]]
data = "d.csv"
{keys}
"""


def problem(data: Any, **given: Any) -> Problem:
    model = Model(ode={"x": "-k*x"})
    return Problem(model, data, {"k": (0.0, None)}, {"x": 10.0}, **given)


def loaded(folder: Path, keys: str, unit: str = "", header: str = "t,x", data: str = "") -> Problem:
    rows = data or "".join(f"{d},{5 - i}\n" for i, d in enumerate(DATES))
    (folder / "d.csv").write_text(f"{header}\n{rows}", encoding="utf-8")
    (folder / "p.toml").write_text(FILE.format(keys=keys, unit=unit), encoding="utf-8")
    return load(folder / "p.toml")


@pytest.mark.parametrize(
    "times",
    [
        DATES,
        [datetime.date.fromisoformat(d) for d in DATES],
        pd.to_datetime(DATES),
        np.array(DATES, dtype="datetime64[D]"),
        pd.to_datetime(DATES, utc=True),
    ],
    ids=["texts", "dates", "pandas", "numpy", "zone"],
)
def test_dates_are_days_since_the_first_one(times: Any) -> None:
    for data in ({"t": times, "x": [3, 2, 1]}, pd.DataFrame({"t": times, "x": [3, 2, 1]})):
        found = problem(data)
        np.testing.assert_array_equal(found.conditions[0].times, [0, 7, 14])
        assert (found.conditions[0].t0, found.time_unit) == (0.0, "d")


def test_the_index_of_a_table_may_have_the_dates() -> None:
    index = pd.DatetimeIndex(DATES, name="date")
    found = problem(pd.DataFrame({"x": [3, 2, 1]}, index=index), time_unit="h")
    np.testing.assert_array_equal(found.conditions[0].times, [0, 168, 336])


@pytest.mark.parametrize("t0", ['"2024-01-01"', "2024-01-01", '"2024-01-01 00:00"'])
def test_a_date_as_t0_is_the_time_zero(tmp_path: Path, t0: str) -> None:
    found = loaded(tmp_path, f"t0 = {t0}", 'time_unit = "week"')
    np.testing.assert_array_equal(found.conditions[0].times, [1, 2, 3])
    assert found.conditions[0].t0 == 0.0
    assert found.notes == ("d.csv: the times are weeks since 2024-01-01",)


def test_a_number_as_t0_counts_from_the_first_date(tmp_path: Path) -> None:
    found = loaded(tmp_path, 't0 = -7.0\ntime = "day"', header="day,x")
    assert found.conditions[0].t0 == -7.0
    np.testing.assert_array_equal(found.conditions[0].times, [0, 7, 14])


def test_rows_of_dates_may_be_in_any_order_and_end_in_the_steady_state(tmp_path: Path) -> None:
    found = loaded(tmp_path, "", data="2024-01-15,2\ninf,0\n2024-01-08,3\n")
    np.testing.assert_array_equal(found.conditions[0].times, [0, 7, np.inf])


def test_events_may_have_dates_too(tmp_path: Path) -> None:
    event = '[[experiment.event]]\nassign = {{ x = "0" }}\n{}\n'
    week = 't0 = "2024-01-01"\n' + event.format(
        'time = "2024-01-08"\nevery = 7\nuntil = 2024-01-22'
    )
    once = 't0 = "2024-01-01"\n' + event.format('times = [2024-01-08, "2024-01-15", 21]')
    for keys in (week, once):
        found = loaded(tmp_path, keys)
        assert [t for t, _ in found.conditions[0].events] == [7.0, 14.0, 21.0]


def test_subjects_count_from_their_own_first_dates_or_from_t0(tmp_path: Path) -> None:
    rows = "A,2024-01-08,3\nA,2024-01-10,2\nB,2024-02-01,3\nB,2024-02-04,1\n"
    own = loaded(tmp_path, 'by = "ID"', header="ID,date,x", data=rows)
    assert [(c.t0, *c.times) for c in own.conditions] == [(0, 0, 2), (0, 0, 3)]
    assert "the first date of each subject" in own.notes[0]
    shared = loaded(tmp_path, 'by = "ID"\nt0 = "2024-01-01"', header="ID,date,x", data=rows)
    assert [(c.t0, *c.times) for c in shared.conditions] == [(0, 7, 9), (0, 31, 34)]


def test_dates_become_numbers_in_all_later_steps(tmp_path: Path) -> None:
    found = loaded(tmp_path, 't0 = "2024-01-01"')
    again = problem_to_mapping(found)
    assert again["experiment"][0]["data"]["t"] == [7.0, 14.0, 21.0]
    assert again["experiment"][0]["t0"] == 0.0
    np.testing.assert_array_equal(found.with_unknowns(fix={"k": 1.0}).conditions[0].times,
                                  found.conditions[0].times)  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "unit", "data", "message"),
    [
        ("", "", "01.01.1900,1\n01.01.1901,2\n", "row 2: '01.01.1900' is not a number (and 1 mo"),
        ("", "", "2024-01-31,1\n5,2\n", "row 3: '5' is not a date, but the first time is one"),
        ("", 'time_unit = "generation"', "", "time_unit: 'generation' is not a unit for the time"),
        ('t0 = "1.1.2024"', "", "", "t0: expected a number or a date such as 2024-01-31, got"),
        ("t0 = 2024-01-01", "", "0,1\n1,2\n", "is a date, but the times of the data are numbers"),
        ("t0 = 2024-01-01T00:00:00Z", "", "", "have a time zone, and others have none"),
        ("t0 = 2024-01-31", "", "", "the data start at t = -23, before t0 = 0"),
        (
            '[[experiment.event]]\ntime = "2024-01-08"\nassign = { x = "0" }',
            "",
            "0,1\n1,2\n",
            "event 1 time: it is a date, but the times of the data are numbers",
        ),
    ],
)
def test_one_mistake_among_dates_gives_one_message(
    tmp_path: Path, keys: str, unit: str, data: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, keys, unit, data=data)
    assert len(caught.value.messages) == 1, caught.value.messages
    assert message in caught.value.messages[0]


def test_whole_numbers_with_the_digits_of_dates_are_pointed_out(tmp_path: Path) -> None:
    found = loaded(tmp_path, "", data="20240131,1\n20240201,2\n")
    assert (
        "look like dates written as numbers, whose differences are not times" in found.warnings[0]
    )


def test_a_temperature_is_not_mistaken_for_the_time() -> None:
    model = Model(ode={"T": "-h*(T - 21)"})
    data = {"time": [0.0, 5.0, 10.0], "T": [85.0, 62.0, 47.0]}
    for table in (data, pd.DataFrame(data)):
        found = Problem(model, table, {"h": (0.0, 1.0)}, {"T": 85.0})
        np.testing.assert_array_equal(found.conditions[0].times, [0, 5, 10])
        np.testing.assert_array_equal(found.conditions[0].series["T"].values, [85, 62, 47])
