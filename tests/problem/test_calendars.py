"""Dates stay beside the times that they became: in tables, and where a user gives times."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit.problem import InputError, Model, Problem, problem_to_mapping
from odefit.problem.calendars import Calendar
from odefit.problem.toml.reading import problem_from_mapping
from odefit.simulation.simulations import times_from_text, times_of_all

DAY = datetime.timedelta(days=1)
DATES = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"]


def problem(**given: Any) -> Problem:
    data = {"t": DATES, "x": [7.4, 5.5, 4.1, 3.0]}
    return Problem(
        Model(ode={"x": "-k*x"}),
        data,
        {"k": {"guess": 0.04, "lower": 0.0}},
        {"x": 10.0},
        **{"t0": "2024-01-01", **given},
    )


@pytest.fixture(scope="module")
def result() -> odefit.Result:
    return odefit.fit(problem(), odefit.SingleShooting(), jobs=1)


def test_tables_have_the_dates_of_their_times(result: odefit.Result) -> None:
    for table in (result.predict(), result.residuals, result.simulate()):
        assert list(table["date"].dt.strftime("%Y-%m-%d"))[:4] == DATES
        assert list(table.columns).index("date") == list(table.columns).index("t") + 1


def test_predictions_can_be_requested_by_date(result: odefit.Result) -> None:
    later = result.predict(["2024-02-12", "2024-02-05"]).query("kind == 'observable'")
    assert later["t"].tolist() == [35.0, 42.0]
    pd.testing.assert_frame_equal(later, result.predict([35, 42]).query("kind == 'observable'"))
    one = result.simulate(np.datetime64("2024-02-05"))
    assert one["x"].tolist() == pytest.approx(result.simulate(35.0)["x"].tolist())


def test_dates_outlive_a_file(result: odefit.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "r.json")
    again = odefit.load_result(tmp_path / "r.json")
    assert again.problem.conditions[0].origin == datetime.datetime(2024, 1, 1)
    assert list(again.residuals["date"]) == list(result.residuals["date"])
    mapping = problem_to_mapping(result.problem)
    assert mapping["experiment"][0]["origin"] == "2024-01-01"
    copied = problem_from_mapping(json.loads(json.dumps(mapping)))
    assert copied.conditions[0].origin == result.problem.conditions[0].origin


def test_the_origin_may_be_another_date_than_that_of_the_initial_values() -> None:
    found = problem(origin="2023-12-25")
    assert (found.conditions[0].t0, *found.conditions[0].times) == (7, 14, 21, 28, 35)
    weeks = problem(origin=datetime.date(2023, 12, 25), time_unit="week")
    assert (weeks.conditions[0].t0, *weeks.conditions[0].times) == (1, 2, 3, 4, 5)


def test_numbers_have_dates_where_an_origin_is_given() -> None:
    model = Model(ode={"x": "-k*x"})
    data = {"t": [1.0, 2.0], "x": [3.0, 2.0]}
    given: dict[str, Any] = {
        "parameters": {"k": (0, None)},
        "initial": {"x": 4.0},
        "time_unit": "h",
    }
    found = Problem(model, data, origin="2024-01-31 08:00", t0="2024-01-31 08:30", **given)
    assert found.conditions[0].t0 == 0.5
    dates = odefit.simulate(found, [0.1]).table["date"]
    assert list(dates) == [pd.Timestamp("2024-01-31 09:00"), pd.Timestamp("2024-01-31 10:00")]
    assert Problem(model, data, **given).conditions[0].origin is None
    for origin, message in (
        ("soon", "origin: expected a date such as 2024-01-31, got 'soon'"),
        ("2024-01-31T08:00Z", "origin, t0 and events have a time zone, and others have none"),
    ):
        with pytest.raises(InputError, match=message):
            Problem(model, data, origin=origin, t0="2024-01-31 08:30", **given)


def test_subjects_keep_their_own_first_dates() -> None:
    records = {
        "ID": [1.0, 1.0, 2.0, 2.0],
        "date": ["2024-01-08 08:00", "2024-01-08 12:00", "2024-02-08 09:00", "2024-02-08 15:00"],
        "x": [3.0, 2.0, 3.0, 1.0],
    }
    model = Model(ode={"x": "-k*x"})
    found = Problem(model, records, {"k": (0, 1)}, {"x": 4.0}, by="ID", time_unit="h")
    origins = [c.origin for c in found.conditions]
    assert origins == [datetime.datetime(2024, 1, 8, 8), datetime.datetime(2024, 2, 8, 9)]
    with pytest.raises(InputError, match="count from dates of their own; give numbers"):
        times_of_all("2024-02-08:2024-02-09:5", found)
    assert times_from_text("2024-02-08 09:00:2024-02-08 15:00:3", found, "ID 2").tolist() == [
        0,
        3,
        6,
    ]
    assert times_from_text("2024-02-08 15:00,2024-02-08 09:00", found, "ID 2").tolist() == [0, 6]


def test_dates_are_refused_where_there_are_none() -> None:
    model = Model(ode={"x": "-k*x"})
    plain = Problem(model, {"t": [1, 2], "x": [3, 2]}, {"k": (0, 1)}, {"x": 4.0})
    with pytest.raises(InputError, match='the times of experiment "data" are numbers; give num'):
        odefit.simulate(plain, [0.1], ["2024-02-05"])
    with pytest.raises(InputError, match=r"expected FROM:TO:COUNT.* or 2024-01-01:2024-01-31:31"):
        times_from_text("2024-02-05:3", problem())
    with pytest.raises(InputError, match="times: 'noon' is not a date; give all times like those"):
        odefit.simulate(problem(), [0.1], ["2024-02-05", "noon"])
    with pytest.raises(InputError, match="has a time zone, or lacks that of the data"):
        odefit.simulate(problem(), [0.1], ["2024-02-05T00:00Z"])


def test_measurements_that_were_not_fitted_may_have_dates(result: odefit.Result) -> None:
    figure = result.plot_fit(validation={"t": ["2024-02-05"], "x": [2.4]})
    (square,) = [line for line in figure.axes[0].lines if line.get_marker() == "s"]
    assert list(np.asarray(square.get_xdata(), dtype=float)) == [35.0]


def test_times_beyond_all_calendars_have_no_date() -> None:
    calendar = Calendar(datetime.datetime(2024, 1, 1), "year")
    assert calendar.date(np.inf) is None
    assert calendar.date(1e5) is None
    assert calendar.date(1.0) == datetime.datetime(2024, 1, 1) + 365.25 * DAY


def test_values_of_the_unknowns_come_in_any_sequence_but_all_of_them() -> None:
    by_name = odefit.simulate(problem(), {"k": 0.1}).observables["x"]
    np.testing.assert_array_equal(odefit.simulate(problem(), [0.1]).observables["x"], by_name)
    with pytest.raises(InputError, match="expected a number for each of k, in this order, or by n"):
        odefit.simulate(problem(), [0.1, 0.2])
