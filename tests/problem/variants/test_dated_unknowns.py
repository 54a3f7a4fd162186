"""Unknowns that are points of time have dates, in all notations of a switch or an event."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

import odefit
from odefit.problem.variants.dated_unknowns import dated_unknowns

DATES = [f"2021-03-{day:02}" for day in range(1, 11)]
VALUES = np.exp(-0.2 * np.arange(10.0)).tolist()


def problem(ode: str, unit: str = "", constants: Any = None, **experiment: Any) -> odefit.Problem:
    data = {"t": DATES, "x": VALUES}
    names = {*odefit.Model(ode={"x": ode}).ode["x"].names} - {"x", "t", *(constants or {})}
    return odefit.Problem(
        odefit.Model(ode={"x": ode}, constants=constants or {}),
        experiments=[odefit.Experiment("one", data, **experiment)],
        parameters={name: {"lower": 0.01, "upper": 9} for name in sorted(names | {"T"})},
        initial={"x": 1},
        time_unit=unit,
    )


@pytest.mark.parametrize(
    ("ode", "days"),
    [
        ("-if(t < T, 0.1, k)*x", 0),
        ("-k*step(t, T)*x", 0),
        ("-if(t - 2 < T, 0.1, k)*x", 2),
        ("-k/(1 + exp(-(t - T)/w))*x", 0),
    ],
)
def test_a_time_in_the_equations_has_a_date(ode: str, days: int) -> None:
    dated = dated_unknowns(problem(ode))
    assert [*dated] == ["T"]
    assert dated["T"].date(3.5) == datetime.datetime(2021, 3, 4 + days, 12)
    assert dated["T"].date(float("nan")) is None


def test_times_in_other_units_have_the_same_date() -> None:
    for unit, value in (("h", 84.0), ("week", 0.5)):
        dated = dated_unknowns(problem("-if(t < T, 0.1, k)*x", unit))
        assert dated["T"].date(value) == datetime.datetime(2021, 3, 4, 12)
        assert dated["T"].days(value) == 3.5
    scaled = dated_unknowns(problem("-k/(1 + exp(-(t/2 - T)/w))*x"))
    assert scaled["T"].date(1.75) == datetime.datetime(2021, 3, 4, 12)


@pytest.mark.parametrize(("times", "day"), [("T", 3), ("T + 2", 5), ("2*T", 5)])
def test_the_time_of_an_event_has_a_date(times: str, day: int) -> None:
    event = odefit.Event((times,), assign={"k": 0.1})
    dated = dated_unknowns(problem("-k*x", constants={"k": 0.2}, events=(event,)))
    assert dated["T"].date(2.0) == datetime.datetime(2021, 3, day)


def test_lengths_of_time_and_other_unknowns_have_no_date() -> None:
    assert dated_unknowns(problem("-k*x*T")) == {}
    events = tuple(odefit.Event((f"T + {n}",), assign={"x": "x + 1"}) for n in (0, 3))
    assert dated_unknowns(problem("-k*x", events=events)) == {}  # a lag of two doses
    squared = odefit.Event(("T^2",), assign={"x": "x + 1"})
    assert dated_unknowns(problem("-k*x", events=(squared,))) == {}


def test_times_of_experiments_with_dates_of_their_own_have_none() -> None:
    one = {"t": DATES[:5], "x": VALUES[:5]}
    later = {"t": DATES[5:], "x": VALUES[:5]}

    def made(**more: Any) -> odefit.Problem:
        return odefit.Problem(
            odefit.Model(ode={"x": "-if(t < T, 0.1, k)*x"}),
            experiments=[odefit.Experiment("a", one), odefit.Experiment("b", later)],
            parameters={"k": {"lower": 0.1, "upper": 9}, "T": {"lower": 0.1, "upper": 9, **more}},
            initial={"x": 1},
        )

    assert dated_unknowns(made()) == {}
    dated = dated_unknowns(made(per_experiment=True))
    assert [*dated] == ["T[a]", "T[b]"]
    assert dated["T[b]"].date(0.0) == datetime.datetime(2021, 3, 6)


def test_numbers_for_times_have_no_dates() -> None:
    model = odefit.Model(ode={"x": "-if(t < T, 0.1, k)*x"})
    data = {"t": list(range(10)), "x": VALUES}
    bounds = {name: {"lower": 0.1, "upper": 9} for name in "kT"}
    assert dated_unknowns(odefit.Problem(model, data, parameters=bounds, initial={"x": 1})) == {}
