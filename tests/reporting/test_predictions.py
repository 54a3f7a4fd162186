"""Predictions as a table, and validation data: what is read, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import odefit
from odefit import InputError, Model, Problem, Result, SingleShooting
from odefit.reporting.predictions import validation_series


@pytest.fixture(scope="module")
def result() -> Result:
    times = np.linspace(0.0, 4.0, 9)
    values = 2 * np.exp(-0.7 * times) + 0.02 * np.cos(9 * times)
    problem = Problem(
        Model(ode={"x": "-k*x", "z": "k*x"}, observables={"y": "x", "w": "z"}),
        {"t": times, "y": values},
        {"k": {"lower": 0.01, "upper": 5.0, "guess": 0.7}},
        {"x": {"lower": 0.01, "upper": 9.0, "guess": 2.0}, "z": 0.0},
    )
    return odefit.fit(problem, SingleShooting(), jobs=1)


def test_the_table_has_a_row_for_each_time_of_each_output(result: Result) -> None:
    table = result.predict([1.0, 6.0])
    assert list(table["name"].unique()) == ["y", "w", "x", "z"]
    assert table.attrs["level"] == 0.95
    row = table.query("name == 'y' and t == 6.0").iloc[0]
    assert row["value"] == pytest.approx(result.simulate([6.0])["y"].iloc[0])
    assert row["pi_low"] < row["ci_low"] < row["value"] < row["ci_high"] < row["pi_high"]
    assert table.query("kind == 'state'")["pi_low"].isna().all()
    assert len(result.predict()) == 4 * 9


@pytest.mark.slow
def test_samples_make_bands_too(result: Result) -> None:
    samples = result.bootstrap(100, jobs=1)
    one = result.predict([2.0], by=samples).iloc[0]
    other = result.predict([2.0]).iloc[0]
    assert one["ci_high"] - one["ci_low"] == pytest.approx(
        other["ci_high"] - other["ci_low"], rel=0.4
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"by": "liner"}, "did you mean 'linear'"),
        ({"level": 95}, "level: expected a number between 0 and 1, got 95"),
        ({"times": [-1.0]}, "not be before t0"),
        ({"experiment": "two"}, "two"),
    ],
)
def test_wrong_arguments_are_refused(result: Result, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        result.predict(**arguments)


def test_samples_of_another_problem_are_refused(result: Result) -> None:
    other = odefit.fit(
        Problem(
            Model(ode={"x": "-q*x"}), {"t": [0.0, 1, 2], "x": [1, 0.4, 0.1]}, {"q": {}}, {"x": 1}
        ),
        SingleShooting(),
        jobs=1,
    )
    samples = other.bootstrap(20, jobs=1)
    with pytest.raises(InputError, match="of a problem with other unknowns"):
        result.predict(by=samples)


def test_validation_data_are_read_with_gaps(result: Result) -> None:
    table = pd.DataFrame({"t": [5.0, 6.0, 7.0], "y": [0.1, None, 0.05], "other": "text"})
    found = validation_series(result.problem, table)
    times, values = (
        found["experiment", "y"] if ("experiment", "y") in found else next(iter(found.values()))
    )
    assert times.tolist() == [5.0, 7.0]
    assert values.tolist() == [0.1, 0.05]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "expected a table with the column t"),
        ({"t": [1.0], "v": [1.0]}, "no column is an observable; expected at least one of: y, w"),
        ({"t": [1.0], "y": ["high"]}, "expected numbers, got 'high'|expected numbers"),
    ],
)
def test_validation_data_that_cannot_be_used_are_refused(
    result: Result, given: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        validation_series(result.problem, given)


def test_bands_and_validation_data_are_drawn(result: Result) -> None:
    validation = {"t": [5.0, 8.0], "y": [0.1, 0.2], "w": [1.9, 1.8]}
    figure = result.plot_fit(band="linear", validation=validation)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert set(panels) == {"y", "w"}  # w was never measured, except to validate
    for axes in panels.values():
        assert len(axes.collections) == 2
        squares = [line for line in axes.lines if line.get_marker() == "s"]
        assert np.asarray(squares[0].get_xdata()).tolist() == [5.0, 8.0]
        assert axes.get_xlim()[1] > 8.0
    assert not result.plot_fit().axes[0].collections
