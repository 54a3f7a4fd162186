"""Axes of time show round dates where the data have dates."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

import odefit
from odefit.problem.calendars import Calendar
from odefit.reporting.curves import fit_curves
from odefit.reporting.figures import style
from odefit.reporting.figures.date_axes import MOST_TICKS, date_labels, round_dates
from odefit.reporting.figures.fit import panel_figure

START = datetime.datetime(2024, 1, 1)


def labels(axes: Axes) -> list[str]:
    FigureCanvasAgg(axes.figure).draw()  # type: ignore[no-untyped-call, arg-type]
    low, high = axes.get_xlim()
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    return [label.get_text() for at, label in ticks if low <= at <= high]


@pytest.fixture(scope="module")
def epidemic() -> odefit.Result:
    weeks = np.arange(0, 140, 7)
    dates = [f"{START + datetime.timedelta(days=float(d)):%Y-%m-%d}" for d in weeks]
    problem = odefit.Problem(
        odefit.Model(ode={"x": "k*x*(1 - x)"}),
        {"t": dates, "x": 1 / (1 + 9 * np.exp(-0.06 * weeks)) + 0.01 * np.cos(weeks)},
        {"k": {"guess": 0.06, "lower": 0.0}},
        {"x": 0.1},
    )
    return odefit.fit(problem, odefit.SingleShooting(), jobs=1)


@pytest.mark.slow
def test_a_fit_over_dates_shows_dates(epidemic: odefit.Result) -> None:
    (axes,) = epidemic.plot_fit().axes
    assert labels(axes) == ["Jan\n2024", "Feb", "Mar", "Apr", "May"]
    assert axes.get_xlabel() == ""
    (axes,) = epidemic.plot_residuals().axes
    assert labels(axes)[0].endswith("2024")
    (curve,) = fit_curves(epidemic)
    (axes,) = panel_figure(curve).axes  # as in the report
    assert labels(axes) == ["Jan\n2024", "Feb", "Mar", "Apr", "May"]


def test_a_fit_over_numbers_shows_numbers(epidemic: odefit.Result) -> None:
    problem = odefit.Problem(
        odefit.Model(ode={"x": "-k*x"}),
        {"t": [0.0, 1.0, 2.0], "x": [1.0, 0.6, 0.4]},
        {"k": {"guess": 0.5, "lower": 0.0}},
        {"x": 1.0},
        time_unit="d",
    )
    (axes,) = odefit.fit(problem, odefit.SingleShooting(), jobs=1).plot_fit().axes
    assert axes.get_xlabel() == "time (d)"
    assert "1.5" in "".join(labels(axes))


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0.1, ["00:00\n1 Jan 2024", "00:30", "01:00", "01:30", "02:00"]),
        (1.0, ["00:00\n1 Jan 2024", "06:00", "12:00", "18:00", "00:00\n2 Jan 2024"]),
        (9.0, ["1 Jan\n2024", "3 Jan", "5 Jan", "7 Jan", "9 Jan"]),
        (45.0, ["1 Jan\n2024", "15 Jan", "1 Feb", "15 Feb"]),
        (500.0, ["Jan\n2024", "Jul", "Jan\n2025"]),
        (4000.0, ["2024", "2026", "2028", "2030", "2032", "2034"]),
    ],
)
def test_ticks_are_at_dates_that_people_count_by(days: float, expected: list[str]) -> None:
    end = START + datetime.timedelta(days=days)
    assert date_labels(round_dates(START, end, 5 if days < 4000 else 6)) == expected


@given(st.floats(-3.0, 5.5), st.integers(2, MOST_TICKS), st.floats(-2e5, 2e5))
def test_no_axis_has_more_ticks_than_it_has_room_for(
    decades: float, most: int, begin: float
) -> None:
    low = START + datetime.timedelta(days=begin)
    dates = round_dates(low, low + datetime.timedelta(days=10.0**decades), most)
    assert len(dates) <= 2 * most
    assert all(a < b for a, b in pairwise(dates))
    shown = date_labels(dates)
    assert all(a != b for a, b in pairwise(shown))


def test_dates_keep_the_zone_of_the_data_and_end_with_the_calendar() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    begin = datetime.datetime(2024, 1, 1, tzinfo=zone)
    (first, *_) = round_dates(begin, begin + datetime.timedelta(days=10), 5)
    assert first == begin
    assert round_dates(datetime.datetime.max.replace(hour=1), datetime.datetime.max, 5)
    _, axes = style.panel_axes(3.0, 2.0)
    axes.plot([0.0, 1e9], [0.0, 1.0])
    style.dress(axes, calendar=Calendar(START, "d"))
    assert labels(axes) == []


def test_labels_of_dates_do_not_touch(epidemic: odefit.Result) -> None:
    for width in (1.8, 3.1):
        figure: Any = epidemic.plot_fit(width=f"{width * 2.54} cm")
        (axes,) = figure.axes
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        low, high = axes.get_xlim()
        boxes = [
            label.get_window_extent(canvas.get_renderer())  # type: ignore[no-untyped-call]
            for at, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            if low <= at <= high
        ]
        assert len(boxes) >= 2
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
