"""Data columns of any kind become times, measurements and inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from odefit.problem import Experiment, Model
from odefit.problem.building.columns import Columns, read_columns
from odefit.problem.inputs.issues import Issues

MODEL = Model(ode={"x": "-k*x + u"}, observables={"y": "x", "w": "2*x"}, inputs={"u": "linear"})


def read(data: Any, source: str | None = None) -> tuple[Columns, Issues]:
    issues = Issues()
    return read_columns(Experiment("run", data, source=source), MODEL, issues), issues


def good(**changes: Any) -> dict[str, Any]:
    return {"t": [0.0, 1, 2], "y": [1.0, 2, 3], "u": [0.0, 0, 1], **changes}


@pytest.mark.parametrize(
    "values",
    [
        [1.0, None, 3.0],
        [1, float("nan"), 3],
        np.array([1.0, np.nan, 3.0]),
        np.array([1.0, None, 3.0], dtype=object),
        (1.0, None, 3.0),
        pd.Series([1.0, None, 3.0]),
        pd.array([1, None, 3], dtype="Int64"),
        pd.Series([1.5, None, 3], dtype="Float64").round(),
        [1.0, pd.NA, 3.0],
    ],
    ids=range(9),
)
def test_missing_values_are_not_measured(values: Any) -> None:
    found, issues = read(good(y=values))
    assert not issues.errors
    assert found.series["y"].rows.tolist() == [0, 2]
    assert found.series["y"].values[1] == 3.0


def test_rows_are_sorted_by_time() -> None:
    found, _ = read(good(t=[2.0, 0, 1]))
    assert found.times.tolist() == [0, 1, 2]
    assert found.series["y"].values.tolist() == [2, 3, 1]


def test_duplicate_times_are_replicates_with_a_warning() -> None:
    found, issues = read(good(t=[0.0, 1, 1], u=[0.0, 1, 1]))
    assert found.times.tolist() == [0, 1]
    assert found.series["y"].rows.tolist() == [0, 1, 1]
    assert found.series["y"].values.tolist() == [1, 2, 3]
    assert "replicate" in issues.warnings[0]
    assert found.inputs["u"].times.tolist() == [0, 1]


def test_standard_deviations_are_written_beside_their_values() -> None:
    found, issues = read(good(y=[1, None, 3], y_sd=[0.1, None, 0.3]))
    assert not issues.errors
    sds = found.series["y"].sds
    assert sds is not None
    assert sds.tolist() == [0.1, 0.3]


def test_an_input_may_be_given_at_other_times_than_the_measurements() -> None:
    found, issues = read(good(y=[1, None, None], u=[None, 2.0, 3.0]))
    assert not issues.errors
    assert found.inputs["u"].times.tolist() == [1, 2]


def test_a_data_frame_is_read_like_columns() -> None:
    found, issues = read(pd.DataFrame(good(), index=[7, 8, 9]))
    assert not issues.errors
    assert found.series["y"].values.tolist() == [1, 2, 3]


def test_times_before_t0_can_be_left_out() -> None:
    found, _ = read(good(y=[None, 2, 3]))
    later = found.from_time(1.0)
    assert later.times.tolist() == [1, 2]
    assert later.series["y"].rows.tolist() == [0, 1]


def test_an_unused_column_is_a_warning_with_a_hint() -> None:
    _, issues = read(good(w_ds=[1, 2, 3], note=["a", "b", "c"]))
    assert not issues.errors
    assert any("w_ds: not used; did you mean 'w_sd'?" in w for w in issues.warnings)
    assert any("column note: not used" in w for w in issues.warnings)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"y": [1], "u": [1]}, "no column 't' with the times; columns are: y, u"),
        ({}, "columns are: none"),
        (
            {"Time": [0.0], "time": [0.0], "y": [1], "u": [1]},
            "no column 't' with the times; 'Time' and 'time' may have them: say which, time = \"Ti",
        ),
        (good(t=[0.0, None, 2]), "column t: the time is missing or -inf in row 1"),
        (good(t=[0.0, -np.inf, 2]), "column t: the time is missing or -inf in row 1"),
        (good(t=["a", "b", "c"]), "column t: expected numbers, got 'a'"),
        (good(t=pd.to_datetime(["2020-01-01"] * 3)), "column t: expected numbers, got"),
        (good(t=[[0, 1, 2]]), "expected one value a row, got the shape (1, 3)"),
        (good(t=3.0), "expected one value a row, got the shape ()"),
        (good(t=[], y=[], u=[]), "no rows"),
        (good(y=[1, 2]), "column y: 2 values, but 3 times"),
        (good(y=["1", "2", "3"]), "column y: expected numbers, got '1'"),
        (good(y=[1, "two", 3]), "column y: expected numbers, got"),
        (good(y=[1, [2], 3]), "column y: the values are not all numbers"),
        (good(y=[True, False, True]), "column y: expected numbers, got true"),
        (good(y=[1j, 2, 3]), "column y: expected numbers"),
        (good(y=[1, np.inf, 3]), "column y: the value at t = 1 is infinite"),
        (good(y=[None, None, None]), "nothing is measured; expected values in at least one of: y"),
        ({"t": [0.0], "u": [1.0]}, "nothing is measured"),
        (good(y_sd=[1, 0, 1]), "column y_sd: the standard deviation of a measured value must be"),
        (good(y_sd=[1, None, -1]), "be positive, got -1 at t = 2; correct it, or leave the field"),
        (
            good(y_sd=[1, 1e-200, 1]),
            "1e-200 at t = 1 is too small beside the value 2, because squares",
        ),
        (good(y=[1, 1e100, 1], y_sd=[1, 1e-60, 1]), "1e-60 at t = 1 is too small beside the value"),
        (good(y=[1, 1e308, 3]), "column y: at t = 1: 1e+308 is too large, since its square over"),
        (good(u=[1, -1e308, 3]), "column u: at t = 1: -1e+308 is too large, since its square over"),
        (
            {"t": [0.0], "Level (mm)": [1.0], "u": [1.0]},
            'u); where a column has another name, say so: columns = { y = "NAME" }',
        ),
        (
            {"t": [0.0], "Y": [1.0], "u": [1.0]},
            (
                "nothing is measured; expected values in at least one of: y, w (columns "
                "are: t, Y, u); "
                "rename the column 'Y' to 'y'"
            ),
        ),
        (
            {"hours": [0.0], "y": [1.0], "u": [1.0]},
            (
                "no column 't' with the times; columns are: hours, y, u; if one of them "
                "has the times, "
                'name it beside the data: time = "NAME"'
            ),
        ),
        (
            pd.DataFrame({"y": [1.0], "u": [1.0]}, index=[0.5]),
            (
                "no column 't' with the times; columns are: y, u; if the times are in "
                "the index, which "
                "has no name, name it: data.rename_axis('t')"
            ),
        ),
        (
            pd.DataFrame({"y": [1.0], "u": [1.0]}, index=pd.Index([0.5], name="hour")),
            "columns are: y, u; if the index 'hour' has the times, say so: time='hour'",
        ),
        (
            pd.DataFrame({"y": [1.0, 2.0]}, index=pd.RangeIndex(1950, 1952, name="year")),
            "columns are: y; if the index 'year' has the times, say so: time='year'",
        ),
        (
            pd.DataFrame({"y": [1.0, 2.0]}, index=pd.RangeIndex(1950, 1952)),
            "if the times are in the index, which has no name, name it: data.rename_axis('t')",
        ),
        (good(y_sd=[1, np.inf, 1]), "positive, got inf at t = 1"),
        ({"t": [0.0], "y": [1.0]}, "no column 'u' for the input of that name in [inputs]"),
        (good(u=[None, None, None]), "column u: the input has no values"),
        (good(u=[0, np.inf, 1]), "column u: the value at t = 1 is infinite"),
        (good(u=["a", "b", "c"]), "column u: expected numbers"),
        (
            good(t=[0.0, 1, 1]),
            (
                "two values of the input at t = 1: 0 and 1; give one of them; if the table has "
                "several runs one below the other, name the column that tells them apart beside"
            ),
        ),
        (None, "expected a DataFrame or a dict of columns, got nothing"),
        ([[0, 1]], "expected a DataFrame or a dict of columns, got a list"),
        (
            pd.DataFrame([[0.0, 1, 1, 0]], columns=["t", "y", "y", "u"]),
            "two columns have this name",
        ),
    ],
    ids=range(41),
)
def test_a_mistake_gives_one_message_that_names_the_column(data: Any, message: str) -> None:
    _, issues = read(data)
    assert len(issues.errors) == 1
    assert message in issues.errors[0]
    assert 'data of experiment "run"' in issues.errors[0]


def test_messages_name_the_file_where_there_is_one() -> None:
    _, issues = read({}, source="run.csv")
    assert issues.errors[0].startswith("run.csv: ")
